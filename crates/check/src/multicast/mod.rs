//! Atomic multicast over several rings: what has to hold of the traces of all that take part.
//!
//! | name | what |
//! |---|---|
//! | AM-I | a message is delivered at most once in a life, with the payload with which it was sent |
//! | AM-P | of one foundation, a place has one message, and a message one place |
//! | AM-M | deliveries of a life ascend in the order of rounds, ranks and instances |
//! | AM-C | between where it began and its last delivery a life leaves out nothing that anybody delivered and that was for it |
//! | AM-O | no two lives contradict each other, whatever rounds say |
//! | AM-S | replicas of a partition agree from which round on it has a ring |
//! | AM-D | replicas of a partition that are at one point have the same state |
//! | AM-R | behind a checkpoint that was installed nothing from before it is delivered |
//! | AM-T | what is trimmed enough replicas of each partition have checkpoints behind |
//! | AM-A | at rest, what anybody delivered all that live and should have delivered |
//! | AM-V | at rest, what those that live have sent is delivered |
//!
//! Rounds are computed here from what rings are founded with, and not taken from whoever delivered.

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

/// What was found.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct MulticastReport {
    /// One for each property.
    pub verdicts: Vec<Verdict>,
    /// The first violations of each.
    pub violations: Vec<Violation>,
    /// How much happened.
    pub counters: MulticastCounters,
}

/// How much happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize)]
pub struct MulticastCounters {
    /// Rings.
    pub rings: u64,
    /// Lives of learners.
    pub learners: u64,
    /// Deliveries.
    pub deliveries: u64,
    /// Checkpoints that were installed, of the learner's own,
    pub installed_local: u64,
    /// and of peers.
    pub installed_remote: u64,
    /// Changes of subscriptions, beside those at the beginning.
    pub changes: u64,
    /// Acceptors that forgot something.
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
    let mut report = MulticastReport {
        counters: lives.counters,
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

/// What a message was sent with.
#[derive(Clone, Debug)]
struct Sent {
    by: Who,
    to: Vec<String>,
    hash: String,
}

type Messages = BTreeMap<String, Sent>;
