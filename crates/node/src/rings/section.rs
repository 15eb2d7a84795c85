//! A ring of several, as a file's section, and the same of a ring that was founded while processes run.

use rota_core::contract::NodeId;
use rota_multiring::level::Mode;
use rota_multiring::{Charter, Constants, Rank, RingOf};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::num::NonZeroU32;

use super::error::RingsError;
use crate::config::{EngineName, NodeConfig, PaxosConfig};

/// The greatest origin. Rounds never come further.
const MOST_ORIGIN: u64 = 1 << 47;
/// The time between two moments at which a coordinator makes up for what is missing from its rate, in milliseconds
/// (Benz et al. 2014, §8.2).
const DELTA_MS: u64 = 5;
/// That rate, in instances a second.
const LAMBDA: u64 = 9000;

/// The way in which a ring that has little to order keeps up with the others.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LevelingName {
    /// Skips when a merge waits for it.
    #[default]
    Pull,
    /// At a rate, as published.
    Paper,
    /// Skips far ahead behind each value: for rings that seldom speak.
    Horizon,
}

/// A `[[ring]]` section: what is founded with it stays so for ever, and is the same on all nodes.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RingSection {
    /// Its number, from 1, and its rank in each round.
    pub id: u16,
    /// The protocol that orders it; `u-ring-paxos` if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<EngineName>,
    /// The nodes that are on it; all, if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<Vec<u16>>,
    /// Instances in each round (`M`): 1, if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_round: Option<NonZeroU32>,
    /// The round of its first instance.
    #[serde(default)]
    pub origin: u64,
    /// The way in which it keeps up with the others.
    #[serde(default)]
    pub leveling: LevelingName,
    /// `leveling = "paper"`: the time between two skips, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delta_ms: Option<u64>,
    /// `leveling = "paper"`: the rate, in instances a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lambda: Option<u64>,
    /// Its ports are those of the `[[node]]` sections plus this one; where nothing is said, two further than those of the ring before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port_offset: Option<u16>,
    /// It orders the charters of rings that are founded while processes run: one ring at most, and the first one, if
    /// nothing is said. Nodes that are to be on such rings have to be on this one.
    #[serde(default, skip_serializing_if = "is_false")]
    pub control: bool,
    /// The acceptors, the storage of votes, and coordination; as the file's own `[paxos]` section, if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paxos: Option<PaxosConfig>,
}

impl RingSection {
    fn mode(&self) -> Result<Mode, RingsError> {
        let rate = (self.delta_ms, self.lambda);
        Ok(match self.leveling {
            LevelingName::Paper => {
                let (delta, lambda) = (rate.0.unwrap_or(DELTA_MS), rate.1.unwrap_or(LAMBDA));
                if delta == 0 || lambda == 0 {
                    return Err(RingsError::Rate(self.id));
                }
                Mode::Paper {
                    delta: delta.saturating_mul(1_000_000),
                    lambda,
                }
            }
            _ if rate != (None, None) => return Err(RingsError::Rate(self.id)),
            LevelingName::Pull => Mode::Pull,
            LevelingName::Horizon => Mode::Horizon,
        })
    }

    pub(super) fn of(&self) -> Result<RingOf, RingsError> {
        if self.origin > MOST_ORIGIN {
            return Err(RingsError::Origin(self.id));
        }
        let constants = Constants {
            rank: Rank(self.id),
            per_round: self.per_round.unwrap_or(NonZeroU32::MIN),
            origin: self.origin,
        };
        let mode = self.mode()?;
        Ok(RingOf { constants, mode })
    }
}

impl RingSection {
    /// The section of a ring that was founded while processes run, with these constants; everything else is as in the
    /// file's own settings.
    pub(super) fn founded(charter: &Charter, of: &Constants, common: &NodeConfig) -> Self {
        let numbers = |nodes: &BTreeSet<NodeId>| -> Vec<u16> {
            nodes.iter().map(|node| node.get()).collect()
        };
        let (leveling, rate) = match charter.mode {
            Mode::Pull => (LevelingName::Pull, None),
            Mode::Paper { delta, lambda } => (LevelingName::Paper, Some((delta, lambda))),
            Mode::Horizon => (LevelingName::Horizon, None),
        };
        let paxos = PaxosConfig {
            acceptors: Some(numbers(&charter.acceptors)),
            ..common.paxos.clone().unwrap_or_default()
        };
        Self {
            id: of.rank.0,
            engine: Some(match charter.is_multicast {
                true => EngineName::RingPaxos,
                false => EngineName::URingPaxos,
            }),
            nodes: Some(numbers(&charter.nodes)),
            per_round: Some(of.per_round),
            origin: of.origin,
            leveling,
            delta_ms: rate.map(|(delta, _)| delta / 1_000_000),
            lambda: rate.map(|(_, lambda)| lambda),
            port_offset: Some(charter.port_offset),
            control: false,
            paxos: Some(paxos),
        }
    }
}

const fn is_false(flag: &bool) -> bool {
    !*flag
}
