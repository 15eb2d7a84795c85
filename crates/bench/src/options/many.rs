//! Several rings, with the engine `multi-ring`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use rota_core::EngineName;

use super::{ParseError, wrong};

names! {
    /// How rings that have little to order keep up with the others.
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
    /// Which rings each node delivers.
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
    /// How many.
    pub rings: u16,
    /// So many of them are sent to, the first ones; all, if nothing is said.
    pub busy: Option<u16>,
    /// What orders each of them.
    pub engine: EngineName,
    /// How all of them keep up; the last one, where nodes have it beside their own, by `horizon` alone.
    pub leveling: Leveling,
    /// Which of them each node delivers.
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
