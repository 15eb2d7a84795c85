//! The options of a campaign.

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::str::FromStr;

use rota_core::mutants::Mutant;

use super::engine::protocol;
use crate::plan::{GroupsPlan, Plan, PrimaryLayer, Profile};
use crate::ring::ABILITIES;
use rota_core::EngineName;

/// The choice of seeds with the layer that says which configurations are primary.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum PrimaryChoice {
    /// Those whose plans say so.
    #[default]
    Drawn,
    /// None.
    None,
    /// All, with the majority of all nodes.
    Static,
    /// All, with dynamic linear voting.
    Dynamic,
}

impl PrimaryChoice {
    /// All of them, by the names of the command line.
    pub const EACH: [Self; 4] = [Self::Drawn, Self::None, Self::Static, Self::Dynamic];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Drawn => "drawn",
            Self::None => "none",
            Self::Static => "static",
            Self::Dynamic => "dynamic",
        }
    }

    fn apply(self, plan: &mut Plan) {
        match self {
            Self::Drawn => {}
            Self::None => plan.primary = None,
            Self::Static => plan.primary = Some(PrimaryLayer::Static),
            Self::Dynamic => {
                plan.primary = Some(PrimaryLayer::dynamic(plan.seed, plan.nodes()));
            }
        }
    }
}

impl FromStr for PrimaryChoice {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let mut each = Self::EACH.into_iter();
        each.find(|choice| choice.name() == name)
            .ok_or_else(|| format!("no layer is called {name}"))
    }
}

/// The choice of seeds with clients and groups.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum GroupsChoice {
    /// Those whose plans say so.
    #[default]
    Drawn,
    /// None.
    None,
    /// All.
    All,
}

impl GroupsChoice {
    /// All of them, by the names of the command line.
    pub const EACH: [Self; 3] = [Self::Drawn, Self::None, Self::All];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Drawn => "drawn",
            Self::None => "none",
            Self::All => "all",
        }
    }

    fn apply(self, plan: &mut Plan) {
        match self {
            Self::Drawn => {}
            Self::None => plan.groups = None,
            Self::All => plan.groups = Some(GroupsPlan::of(plan.seed)),
        }
    }
}

impl FromStr for GroupsChoice {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let mut each = Self::EACH.into_iter();
        each.find(|choice| choice.name() == name)
            .ok_or_else(|| format!("groups are not drawn like {name}"))
    }
}

/// Cuts of a drawn plan, to make a failure smaller.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Cuts {
    /// Only these of the timed faults, by their places in the drawn list; `None` keeps all.
    pub keep: Option<Vec<usize>>,
    /// The world heals at this time already, in nanoseconds.
    pub horizon: Option<u64>,
    /// The network loses, repeats, damages and delays nothing by itself.
    pub calm: bool,
}

impl Cuts {
    /// Cuts a plan down to the part that is left.
    pub fn apply(&self, plan: &mut Plan) {
        if let Some(keep) = &self.keep {
            let mut place = 0..;
            plan.faults
                .retain(|_| place.next().is_some_and(|place| keep.contains(&place)));
        }
        if let Some(horizon) = self.horizon {
            plan.horizon = horizon.min(plan.horizon);
        }
        if self.calm {
            plan.net = crate::plan::Net {
                fifo: plan.net.fifo,
                whole: plan.net.whole,
                ..crate::plan::Net::perfect()
            };
        }
    }
}

impl fmt::Display for Cuts {
    /// As options of `rota sim replay`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.keep.as_deref() {
            Some([]) => f.write_str(" --keep none")?,
            Some(keep) => {
                let keep: Vec<String> = keep.iter().map(ToString::to_string).collect();
                write!(f, " --keep {}", keep.join(","))?;
            }
            None => {}
        }
        if let Some(horizon) = self.horizon {
            write!(f, " --horizon-ns {horizon}")?;
        }
        if self.calm {
            f.write_str(" --calm")?;
        }
        Ok(())
    }
}

/// A campaign.
#[derive(Clone, Debug)]
pub struct Options {
    /// The engine.
    pub engine: EngineName,
    /// The seeds.
    pub seeds: Range<u64>,
    /// The faults.
    pub faults: Profile,
    /// The seeds with the layer that says which configurations are primary.
    pub primary: PrimaryChoice,
    /// The seeds with clients and groups.
    pub groups: GroupsChoice,
    /// A protocol bug to put in.
    pub mutant: Option<String>,
    /// Stop at the first seed that fails.
    pub first: bool,
    /// The directory of trace files, with one directory in it for each seed.
    pub trace: Option<PathBuf>,
    /// Threads.
    pub jobs: usize,
    /// The cuts of each plan.
    pub cuts: Cuts,
}

/// The reason why a campaign cannot run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UsageError(pub String);

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UsageError {}

impl Options {
    /// All seeds of a range, with all faults that the engine claims to survive.
    pub const fn new(engine: EngineName, seeds: Range<u64>) -> Self {
        Self {
            engine,
            seeds,
            faults: Profile::All,
            primary: PrimaryChoice::Drawn,
            groups: GroupsChoice::Drawn,
            mutant: None,
            first: false,
            trace: None,
            jobs: 1,
            cuts: Cuts {
                keep: None,
                horizon: None,
                calm: false,
            },
        }
    }

    /// Whether this build can do what is asked.
    ///
    /// # Errors
    /// The part of the request that this build cannot do, and what to try.
    pub fn check(&self) -> Result<(), UsageError> {
        if self.seeds.is_empty() {
            return Err(UsageError(
                "--seeds A..B excludes B: A must be less".to_owned(),
            ));
        }
        let suits = match self.faults {
            Profile::Power | Profile::Stores | Profile::Archive | Profile::Observers => {
                self.engine.has_votes()
            }
            Profile::Crowd => !self.engine.has_votes(),
            _ => self.faults.suits(ABILITIES),
        };
        if !suits {
            let (engine, faults) = (self.engine, self.faults);
            let what = format!("{engine} does not claim to survive {faults}: try --faults all");
            return Err(UsageError(what));
        }
        if self.engine.has_views() {
            self.check_views()?;
        }
        if self.engine.has_votes() {
            self.check_uring()?;
        }
        match &self.mutant {
            None => Ok(()),
            Some(name) if cfg!(feature = "mutants") => match self.mutant() {
                Some(_) => Ok(()),
                None => Err(UsageError(format!("no mutant is called {name}"))),
            },
            Some(_) => Err(UsageError(
                "this build has no mutants: build with --features mutants".to_owned(),
            )),
        }
    }

    fn check_views(&self) -> Result<(), UsageError> {
        let engine = self.engine;
        if self.primary == PrimaryChoice::None {
            let what =
                format!("{engine} orders in primary configurations only: leave --primary out");
            return Err(UsageError(what));
        }
        Ok(())
    }

    fn check_uring(&self) -> Result<(), UsageError> {
        let engine = self.engine;
        if !matches!(self.primary, PrimaryChoice::Drawn | PrimaryChoice::None) {
            let what = format!("{engine} has no primary configurations: leave --primary out");
            return Err(UsageError(what));
        }
        if self.groups == GroupsChoice::All {
            let what = format!("no clients over {engine} here: leave --groups out");
            return Err(UsageError(what));
        }
        Ok(())
    }

    /// The protocol bug to put in, if there is one of that name.
    pub fn mutant(&self) -> Option<Mutant> {
        let name = self.mutant.as_deref()?;
        Mutant::ALL
            .into_iter()
            .find(|mutant| mutant.to_string() == name)
    }

    /// The plan of a seed, after the cuts.
    pub fn plan(&self, seed: u64) -> Plan {
        let mut plan = Plan::random(seed, protocol(self.engine), self.faults, ABILITIES);
        if self.engine.has_views() {
            plan.set_views(self.engine == EngineName::Lcr);
        }
        self.groups.apply(&mut plan);
        if self.engine.has_views() && self.faults.is_whole() {
            plan.add_story();
        }
        self.primary.apply(&mut plan);
        plan.bound_forgetting();
        if self.engine.has_votes() {
            let multicast = self.engine == EngineName::RingPaxos;
            plan.set_uring(self.faults.power(), multicast);
            plan.widen(self.faults);
        }
        plan.draw_apart(self.faults);
        self.cuts.apply(&mut plan);
        plan
    }

    /// The command that runs one seed again.
    pub fn replay_command(&self, seed: u64, cuts: &Cuts) -> String {
        let (engine, faults) = (self.engine, self.faults);
        let mutant = self.mutant.as_deref();
        let mutant = mutant.map_or_else(String::new, |mutant| format!(" --mutant {mutant}"));
        let primary = match self.primary {
            PrimaryChoice::Drawn => String::new(),
            choice => format!(" --primary {}", choice.name()),
        };
        let groups = match self.groups {
            GroupsChoice::Drawn => String::new(),
            choice => format!(" --groups {}", choice.name()),
        };
        format!(
            "rota sim replay --engine {engine} --seed {seed} --faults {faults}{primary}{groups}{mutant}{cuts}"
        )
    }
}
