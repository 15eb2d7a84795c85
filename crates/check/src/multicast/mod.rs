//! Atomic multicast over several rings: the properties of the traces of all processes that take part.
//!
//! | name | what |
//! |---|---|
//! | AM-I | a message is delivered at most once in a life, with the payload with which it was sent |
//! | AM-P | of one foundation, a place has one message, and a message one place |
//! | AM-M | deliveries of a life ascend in the order of rounds, ranks and instances |
//! | AM-C | from its beginning to its last delivery a life leaves out nothing for it that any life delivered |
//! | AM-O | no two lives contradict each other, without regard to rounds |
//! | AM-S | replicas of a partition agree in which rounds it has a ring |
//! | AM-D | replicas of a partition that are at one point have the same state |
//! | AM-R | behind a checkpoint that was installed nothing from before it is delivered |
//! | AM-T | enough replicas of each partition have checkpoints behind what is trimmed |
//! | AM-A | at rest, each living life has delivered all that any life delivered and that was for it |
//! | AM-V | at rest, the messages of living processes are delivered |
//!
//! Rounds are computed here from the foundations of rings, and not taken from the deliveries.

mod event;
mod life;
mod order;
mod places;
mod read;
mod rest;
mod state;

use std::collections::BTreeMap;

pub use event::{Delivered, Event, Instance, Line, Point, Ring, Round};
pub use life::{Founded, Life};
pub use read::read;

use crate::report::{Findings, Verdict, Violation};
use life::{Lives, Who};

/// The result of a check.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct MulticastReport {
    /// The verdicts, one for each property.
    pub verdicts: Vec<Verdict>,
    /// The first violations of each.
    pub violations: Vec<Violation>,
    /// The amount of what happened.
    pub counters: MulticastCounters,
}

/// The amount of what happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize)]
pub struct MulticastCounters {
    /// Rings.
    pub rings: u64,
    /// Lives of learners.
    pub learners: u64,
    /// Deliveries.
    pub deliveries: u64,
    /// Installed checkpoints of the learner's own.
    pub installed_local: u64,
    /// Installed checkpoints of peers.
    pub installed_remote: u64,
    /// Changes of subscriptions, beside those at the beginning.
    pub changes: u64,
    /// Trims of acceptors.
    pub trims: u64,
}

impl MulticastReport {
    /// Whether nothing is violated.
    pub fn holds(&self) -> bool {
        self.violations.is_empty()
    }

    fn add(&mut self, findings: Findings) {
        self.verdicts.push(findings.verdict);
        self.violations.extend(findings.violations);
    }
}

/// Checks the lines of all nodes, each node's in their order.
pub fn check_multicast(lines: &[Line]) -> MulticastReport {
    let lives = Lives::of(lines);
    let is_trim = |line: &&Line| matches!(line.event, Event::Trim { .. });
    let mut report = MulticastReport {
        counters: MulticastCounters {
            trims: lines.iter().filter(is_trim).count() as u64,
            ..lives.counters
        },
        ..MulticastReport::default()
    };
    report.add(places::once(&lives));
    report.add(places::one_to_one(&lives));
    report.add(order::ascending(&lives));
    report.add(order::complete(&lives));
    report.add(order::acyclic(&lives));
    report.add(state::subscriptions(&lives));
    report.add(state::digests(lines));
    report.add(order::behind_install(&lives));
    report.add(state::trims(lines));
    report.add(rest::agreement(&lives));
    report.add(rest::validity(&lives));
    report
}

/// The origin, the partitions and the hash of a message that was sent.
#[derive(Clone, Debug)]
struct Sent {
    by: Who,
    to: Vec<String>,
    hash: String,
}

type Messages = BTreeMap<String, Sent>;
