//! The engine that orders the messages of a benchmark, and the storages that its votes may have.

use std::fmt;
use std::str::FromStr;

use rota_core::EngineName;

use super::{ParseError, StorageName, wrong};

/// The name of several rings with one order.
const MULTI_RING: &str = "multi-ring";

/// The engine, or the engines, that order the messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Subject {
    /// One engine.
    Engine(EngineName),
    /// Several rings of Paxos, and one order of all.
    MultiRing,
}

impl Subject {
    /// The name used on the command line and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Engine(engine) => engine.name(),
            Self::MultiRing => MULTI_RING,
        }
    }

    /// The names of all.
    pub fn names() -> impl Iterator<Item = &'static str> {
        let engines = EngineName::ALL.into_iter().map(EngineName::name);
        engines.chain([MULTI_RING])
    }

    /// Whether acceptors vote.
    pub const fn has_votes(self) -> bool {
        match self {
            Self::Engine(engine) => engine.has_votes(),
            Self::MultiRing => true,
        }
    }

    /// Whether a token goes round in it with the messages.
    pub const fn is_ring(self) -> bool {
        matches!(self, Self::Engine(engine) if engine.is_ring())
    }

    /// Whether its nodes send over links of TCP, and not only datagrams.
    pub const fn has_links(self) -> bool {
        match self {
            Self::Engine(engine) => engine.has_links(),
            Self::MultiRing => true,
        }
    }

    /// The engine of its nodes: of all rings, where it is several.
    pub const fn engine(self) -> EngineName {
        match self {
            Self::Engine(engine) => engine,
            Self::MultiRing => EngineName::URingPaxos,
        }
    }
}

impl FromStr for Subject {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        if text == MULTI_RING {
            return Ok(Self::MultiRing);
        }
        let engine = text.parse().map(Self::Engine);
        engine.or_else(|_: String| {
            let names: Vec<&str> = Self::names().collect();
            wrong(text, &format!("an engine: {}", names.join(" ")))
        })
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl StorageName {
    /// All of them, the fastest first.
    pub const ALL: [Self; 3] = [Self::Memory, Self::Async, Self::Sync];
}
