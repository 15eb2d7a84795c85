//! The faults that a campaign asks for, and those that an engine can stand.

use std::fmt;
use std::str::FromStr;

use super::Power;

/// The abilities that an engine claims. Faults beyond are not drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Abilities {
    /// Processes may die and come back.
    pub crashes: bool,
    /// The network may split.
    pub partitions: bool,
}

impl Abilities {
    /// Everything.
    pub const ALL: Self = Self {
        crashes: true,
        partitions: true,
    };
    /// Members that live and reach each other, sooner or later.
    pub const STATIC: Self = Self {
        crashes: false,
        partitions: false,
    };
}

/// A family of faults: `--faults NAME`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Profile {
    /// Nothing goes wrong.
    None,
    /// The network loses, repeats, delays, damages and reorders.
    Loss,
    /// Processes and applications stand still as well.
    Pauses,
    /// Processes die as well.
    Crashes,
    /// The network splits as well, and nobody dies.
    Partitions,
    /// Processes die and disks fail as well.
    Disk,
    /// All of it; and what is answered is on disk, and machines lose their power, once at least. Of engines that vote.
    Power,
    /// All of it; and voters lose what they have, one after the other or all at once, in every seed. Of engines that vote.
    Stores,
    /// All of it; and acceptors keep few values in memory, and read the others back from their disks. Of engines that
    /// vote.
    Archive,
    /// All of it; and where not all nodes vote, one or two of the others observe. Of engines that vote.
    Observers,
    /// All of it, among 17 to 128 nodes. Of rings, and of what stands on them.
    Crowd,
    /// All of it.
    #[default]
    All,
}

/// The timed faults that a plan may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Allowed {
    pub network: bool,
    pub pauses: bool,
    pub crashes: bool,
    pub partitions: bool,
    pub disk: bool,
}

impl Profile {
    /// All of them.
    pub const EACH: [Self; 12] = [
        Self::None,
        Self::Loss,
        Self::Pauses,
        Self::Crashes,
        Self::Partitions,
        Self::Disk,
        Self::Power,
        Self::Stores,
        Self::Archive,
        Self::Observers,
        Self::Crowd,
        Self::All,
    ];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Loss => "loss",
            Self::Pauses => "pauses",
            Self::Crashes => "crashes",
            Self::Partitions => "partitions",
            Self::Disk => "disk",
            Self::Power => "power",
            Self::Stores => "stores",
            Self::Archive => "archive",
            Self::Observers => "observers",
            Self::Crowd => "crowd",
            Self::All => "all",
        }
    }

    /// Whether an engine of these abilities survives the faults that the profile is about. Asked for `All`, it gets all
    /// that it survives.
    pub const fn suits(self, abilities: Abilities) -> bool {
        match self {
            Self::Crashes
            | Self::Disk
            | Self::Power
            | Self::Stores
            | Self::Archive
            | Self::Observers => abilities.crashes,
            Self::Partitions => abilities.partitions,
            Self::None | Self::Loss | Self::Pauses | Self::Crowd | Self::All => true,
        }
    }

    /// Whether nodes have what [`Plan::draw_apart`](super::Plan::draw_apart) draws, and stories.
    pub const fn is_whole(self) -> bool {
        matches!(self, Self::All | Self::Crowd)
    }

    /// Whether machines lose their power.
    pub const fn power(self) -> Power {
        match self {
            Self::Power => Power::Fails,
            Self::All | Self::Disk | Self::Stores | Self::Archive | Self::Observers => {
                Power::MayFail
            }
            _ => Power::Lasts,
        }
    }

    pub(super) const fn allowed(self, abilities: Abilities) -> Allowed {
        let all = matches!(
            self,
            Self::All | Self::Power | Self::Stores | Self::Archive | Self::Observers | Self::Crowd
        );
        let disk = all || matches!(self, Self::Disk);
        Allowed {
            network: !matches!(self, Self::None),
            pauses: all || matches!(self, Self::Pauses),
            crashes: abilities.crashes && (disk || matches!(self, Self::Crashes)),
            partitions: abilities.partitions && (all || matches!(self, Self::Partitions)),
            disk: abilities.crashes && disk,
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Profile {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::EACH
            .into_iter()
            .find(|profile| profile.name() == name)
            .ok_or_else(|| format!("no faults are called {name}"))
    }
}
