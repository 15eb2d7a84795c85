//! The engines that a campaign can run.

use std::fmt;
use std::str::FromStr;

use rota_ring::Protocol;

/// An engine that can be simulated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EngineName {
    /// The Accelerated Ring.
    AcceleratedRing,
    /// The original Totem ring.
    TotemRing,
    /// FastCast, in primary views.
    FastCast,
    /// LCR, in primary views.
    Lcr,
    /// Ring Paxos, with values multicast.
    RingPaxos,
    /// U-Ring Paxos.
    URingPaxos,
}

impl EngineName {
    /// All of them, by the names of the command line.
    pub const EACH: [Self; 6] = [
        Self::AcceleratedRing,
        Self::TotemRing,
        Self::FastCast,
        Self::Lcr,
        Self::RingPaxos,
        Self::URingPaxos,
    ];
    /// Those that are a ring and nothing else.
    pub const RINGS: [Self; 2] = [Self::AcceleratedRing, Self::TotemRing];

    /// The name on the command line.
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

    /// The protocol of the ring, or of the idle one beside a data path; where there is none, of that whose time-outs
    /// it has.
    pub const fn protocol(self) -> Protocol {
        match self {
            Self::TotemRing => Protocol::Original,
            _ => Protocol::Accelerated,
        }
    }

    /// Whether acceptors vote.
    pub const fn has_votes(self) -> bool {
        matches!(self, Self::RingPaxos | Self::URingPaxos)
    }

    /// Whether it orders in primary views only, beside an idle ring that says which those are.
    pub const fn has_views(self) -> bool {
        matches!(self, Self::FastCast | Self::Lcr)
    }
}

impl fmt::Display for EngineName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for EngineName {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let mut each = Self::EACH.into_iter();
        each.find(|engine| engine.name() == name)
            .ok_or_else(|| format!("no engine is called {name}"))
    }
}
