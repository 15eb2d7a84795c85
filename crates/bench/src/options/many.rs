//! Several rings, with the engine `multi-ring`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use rota_core::EngineName;

use super::{ParseError, wrong};

names! {
    /// The way in which rings that have little to order keep up with the others.
    Leveling: "a leveling" {
        /// Skips when a merge waits.
        Pull = "pull",
        /// Skips at a rate.
        Paper = "paper",
        /// Skips far ahead.
        Horizon = "horizon",
    }
}

names! {
    /// The rings that each node delivers.
    Subscribe: "a subscription" {
        /// All of them.
        All = "all",
        /// One each: the first node the first, and so on.
        Own = "own",
        /// One each, and the last ring.
        OwnAndGlobal = "own+global",
    }
}

/// Several rings, with the engine `multi-ring`.
#[derive(Clone, Copy, Debug)]
pub struct ManyRings {
    /// The number of rings.
    pub rings: u16,
    /// The number of rings that are sent to, the first ones; all, if nothing is said.
    pub busy: Option<u16>,
    /// The engine of each ring.
    pub engine: EngineName,
    /// The leveling of all rings; where nodes have the last one beside their own, `horizon` is for that ring alone.
    pub leveling: Leveling,
    /// The rings that each node delivers.
    pub subscribe: Subscribe,
}

impl Default for ManyRings {
    fn default() -> Self {
        Self {
            rings: 3,
            busy: None,
            engine: EngineName::URingPaxos,
            leveling: Leveling::Pull,
            subscribe: Subscribe::All,
        }
    }
}
