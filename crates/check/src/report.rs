//! The result of a check.

use rota_core::contract::{NodeId, Process};

use crate::counters::Counters;
use crate::uniform::counters::UniformCounters;

/// Details kept for each property: the first are the ones to look at.
const KEPT: usize = 10;

/// Something that must hold and does not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// The property, by its short name.
    pub property: &'static str,
    /// The details, naming processes, messages and configurations.
    pub detail: String,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.property, self.detail)
    }
}

impl std::error::Error for Violation {}

/// Facts about a run that its trace does not tell.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// A process that has not crashed or left by the end was alive and had nothing left to do, even if the trace does
    /// not say so.
    pub quiescent: bool,
    /// The live processes at the end, by the processes that they could reach; for C8, which holds without them.
    pub components: Vec<Vec<Process>>,
    /// The rule by which configurations are primary; for P2, which is sharper with it.
    pub primary: Option<PrimaryRule>,
}

/// A rule by which configurations are primary.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PrimaryRule {
    /// Primaries have more than half of these nodes.
    Majority(Vec<NodeId>),
    /// Primaries have more than half of the nodes of the primary before, or half and the smallest.
    Successive,
    /// Primaries have a node of the primary before: where the list of nodes that count changes, and both lists have to
    /// agree while it does.
    Overlapping,
}

/// The orders of messages that engines promise.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// Extended Virtual Synchrony: every part of a network that was split goes on.
    Evs,
    /// One order over primary views.
    Uniform,
    /// One order that acceptors vote for, of which no process leaves anything out but what it is told it has missed.
    Whole,
    /// The same, where processes are given only messages that are ordered while they are members.
    OfMembers,
}

/// The result for one property.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Verdict {
    /// The property's short name.
    pub property: &'static str,
    /// The rule in a few words.
    pub title: &'static str,
    /// The number of cases that the property speaks of: where it is 0, the absence of violations means nothing.
    pub checked: u64,
    /// The number of cases that violate it.
    pub violations: u64,
}

/// The result for all properties.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    /// The order that was checked.
    pub order: Order,
    /// The verdicts, one for each property, in the order of their names' numbers.
    pub verdicts: Vec<Verdict>,
    /// The first violations of each property.
    pub violations: Vec<Violation>,
    /// The amount of what happened in the run.
    pub counters: Counters,
    /// The same for one order over primary views, if that was checked.
    pub uniform: Option<UniformCounters>,
}

impl Report {
    pub(crate) const fn new(order: Order, counters: Counters) -> Self {
        Self {
            order,
            verdicts: Vec::new(),
            violations: Vec::new(),
            counters,
            uniform: None,
        }
    }

    pub(crate) fn add(&mut self, findings: Findings) {
        self.verdicts.push(findings.verdict);
        self.violations.extend(findings.violations);
    }

    /// Whether nothing is violated.
    pub fn holds(&self) -> bool {
        self.violations.is_empty()
    }
}

/// Collects the cases of one property.
#[derive(Debug)]
pub(crate) struct Findings {
    pub verdict: Verdict,
    pub violations: Vec<Violation>,
}

impl Findings {
    pub const fn new(property: &'static str, title: &'static str) -> Self {
        Self {
            verdict: Verdict {
                property,
                title,
                checked: 0,
                violations: 0,
            },
            violations: Vec::new(),
        }
    }

    /// Counts a case that the property speaks of; if it is violated, `detail` says how.
    pub fn check(&mut self, holds: bool, detail: impl FnOnce() -> String) {
        self.verdict.checked += 1;
        if !holds {
            self.violated(detail);
        }
    }

    /// A violation in a case that is counted elsewhere.
    pub fn violated(&mut self, detail: impl FnOnce() -> String) {
        self.verdict.violations += 1;
        if self.violations.len() < KEPT {
            self.violations.push(Violation {
                property: self.verdict.property,
                detail: detail(),
            });
        }
    }
}
