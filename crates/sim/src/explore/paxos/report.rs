//! The results of a search, for people and programs.

use std::fmt;

use serde::Serialize;

use super::super::report::Violation;
use super::search::Found;
use super::{Budget, Checks, Options, Rules};

/// The results of a search.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The start, and the events that may happen.
    pub of: String,
    /// Distinct states.
    pub states: u64,
    /// Steps made.
    pub transitions: u64,
    /// Steps to the state that is furthest from the start.
    pub deepest: u32,
    /// Steps in a row, at most.
    pub depth: u32,
    /// Every schedule was looked at, whatever its length.
    pub whole: bool,
    /// Every schedule within the depth was looked at: otherwise those of one step less than [`Self::deepest`].
    pub complete: bool,
    /// States in which something was decided in a later round than the first; of a register, those in which some
    /// candidate knows the choice.
    pub far: u64,
    /// States from which the search went on, to see whether all learn everything.
    pub closed: u64,
    /// Most states of one depth.
    pub widest: usize,
    /// The time that the search took, in seconds.
    pub seconds: f64,
    /// The violations that were found.
    pub violations: Vec<Violation>,
}

impl Report {
    /// The length up to which all schedules were looked at, however the search ended: it goes through one length after
    /// the other.
    pub const fn bound(&self) -> u32 {
        match self.complete {
            true => self.deepest,
            false => self.deepest.saturating_sub(1),
        }
    }

    pub(super) fn new(options: &Options, found: Found) -> Self {
        Self {
            of: options.to_string(),
            states: found.states,
            transitions: found.transitions,
            deepest: found.deepest,
            depth: options.depth,
            whole: found.whole,
            complete: found.complete,
            far: found.far,
            closed: found.closed,
            widest: found.widest,
            seconds: found.seconds,
            violations: found.violations,
        }
    }
}

impl fmt::Display for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Rules {
            acceptors,
            spares,
            coordinators,
            ..
        } = self.rules;
        write!(f, "{acceptors} acceptors")?;
        if spares > 0 {
            write!(f, " and {spares} more nodes")?;
        }
        write!(f, ", {coordinators} may coordinate, {}", self.start)?;
        let Budget {
            stands,
            values,
            skips,
            crashes,
            disks,
            trims,
            late,
            changes,
            foreign,
        } = self.budget;
        let counts = [
            (stands, "configurations"),
            (values, "packets"),
            (skips, "skips"),
            (crashes, "restarts"),
            (disks, "disks lost"),
            (trims, "trims"),
            (late, "late words"),
            (changes, "changes of the acceptors"),
            (foreign, "foreign numbers"),
        ];
        for (count, what) in counts.into_iter().filter(|(count, _)| *count > 0) {
            write!(f, "; {count} {what}")?;
        }
        let flags = [
            (self.rules.lazy, "slow disks"),
            (self.rules.gaps, "questions anywhere"),
            (self.rules.ahead, "questions ahead"),
            (self.rules.reorder, "any order"),
            (self.rules.loose, "old proposals"),
            (self.rules.apart, "acceptors apart"),
            (!self.rules.members, "no members"),
            (self.rules.checks != Checks::ALL, "not all is checked"),
        ];
        for (_, what) in flags.into_iter().filter(|(is, _)| *is) {
            write!(f, "; {what}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "searched          {}", self.of)?;
        writeln!(f, "distinct states   {}", self.states)?;
        writeln!(f, "transitions       {}", self.transitions)?;
        let end = match (self.whole, self.complete) {
            (true, _) => "all schedules, whatever their length".to_owned(),
            (false, true) => format!("all schedules of {} steps", self.depth),
            (false, false) => format!("all schedules of {} steps, and some more", self.bound()),
        };
        writeln!(f, "depth             {}; {end}", self.deepest)?;
        writeln!(f, "far states        {}", self.far)?;
        writeln!(f, "run to rest       {}", self.closed)?;
        writeln!(f, "most at once      {}", self.widest)?;
        let rate = self.states as f64 / self.seconds.max(1e-9);
        writeln!(
            f,
            "seconds           {:.1} ({rate:.0} states a second)",
            self.seconds
        )?;
        if self.violations.is_empty() {
            return write!(f, "violations        none");
        }
        for violation in &self.violations {
            write!(f, "\n{violation}")?;
        }
        Ok(())
    }
}
