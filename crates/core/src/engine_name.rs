//! The names of the engines.

use alloc::format;
use alloc::string::String;

/// The protocol that orders the messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum EngineName {
    /// The Accelerated Ring: part of a visit's messages leave after the token.
    #[default]
    AcceleratedRing,
    /// The original Totem ring.
    TotemRing,
    /// A sequencer numbers the packets that all members multicast; all acknowledge.
    #[cfg_attr(feature = "serde", serde(rename = "fastcast"))]
    FastCast,
    /// Vector clocks, along a ring of reliable links.
    Lcr,
    /// Instances of Paxos: proposers multicast values, and the rest goes along a ring of reliable links.
    RingPaxos,
    /// Instances of Paxos, in which everything goes along a ring of reliable links.
    #[cfg_attr(feature = "serde", serde(rename = "u-ring-paxos"))]
    URingPaxos,
}

impl EngineName {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::AcceleratedRing,
        Self::TotemRing,
        Self::FastCast,
        Self::Lcr,
        Self::RingPaxos,
        Self::URingPaxos,
    ];

    /// The name in settings, on the command line and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AcceleratedRing => "accelerated-ring",
            Self::TotemRing => "totem-ring",
            Self::FastCast => "fastcast",
            Self::Lcr => "lcr",
            Self::RingPaxos => "ring-paxos",
            Self::URingPaxos => "u-ring-paxos",
        }
    }

    /// Whether it is a ring with a token, and nothing else.
    pub const fn is_ring(self) -> bool {
        matches!(self, Self::AcceleratedRing | Self::TotemRing)
    }

    /// Whether it orders in primary configurations only, beside an idle ring that says which those are.
    pub const fn has_views(self) -> bool {
        matches!(self, Self::FastCast | Self::Lcr)
    }

    /// Whether nodes have reliable links between them, by TCP.
    pub const fn has_links(self) -> bool {
        matches!(self, Self::Lcr | Self::RingPaxos | Self::URingPaxos)
    }

    /// Whether acceptors vote, which must not forget their votes.
    pub const fn has_votes(self) -> bool {
        matches!(self, Self::RingPaxos | Self::URingPaxos)
    }

    /// Whether messages are delivered in one order only, for all that a majority goes on with, and get their places
    /// in it from another node.
    pub const fn is_uniform(self) -> bool {
        self.has_views() || self.has_votes()
    }
}

impl core::fmt::Display for EngineName {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.name())
    }
}

impl core::str::FromStr for EngineName {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let mut all = Self::ALL.into_iter();
        all.find(|engine| engine.name() == name)
            .ok_or_else(|| format!("no engine is called {name}"))
    }
}
