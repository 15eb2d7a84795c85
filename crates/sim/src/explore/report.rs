//! The results of a search.

use std::fmt;

use serde::Serialize;

/// The results of a search.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// Nodes.
    pub nodes: usize,
    /// The name of the start.
    pub start: String,
    /// Steps in a row, at most.
    pub depth: u32,
    /// Datagrams that might be lost.
    pub losses: u32,
    /// Nodes that might die.
    pub crashes: u32,
    /// Timers that might fire early.
    pub early: u32,
    /// Datagrams of one link might overtake each other.
    pub reorder: bool,
    /// Distinct states.
    pub states: u64,
    /// Steps made.
    pub transitions: u64,
    /// The longest sequence of steps to a state.
    pub deepest: u32,
    /// Every state within the depth was seen.
    pub complete: bool,
    /// States in which all nodes were operational on one ring.
    pub together: u64,
    /// States from which the search went on, to see whether all nodes come together.
    pub settled: u64,
    /// Most datagrams on their way at once.
    pub flights: usize,
    /// The time that the search took, in seconds.
    pub seconds: f64,
    /// The violation that was found, if one was.
    pub violation: Option<Violation>,
}

/// A violation of a property.
#[derive(Clone, Debug, Serialize)]
pub struct Violation {
    /// The property that does not hold.
    pub property: String,
    /// The details of the finding.
    pub detail: String,
    /// The steps to it.
    pub path: Vec<String>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { nodes, start, .. } = self;
        let order = if self.reorder {
            "any order"
        } else {
            "in order"
        };
        writeln!(f, "start             {nodes} nodes, {start}; links {order}")?;
        let (losses, crashes, early) = (self.losses, self.crashes, self.early);
        writeln!(
            f,
            "at most           {losses} losses, {crashes} crashes, {early} early timers"
        )?;
        writeln!(f, "distinct states   {}", self.states)?;
        writeln!(f, "transitions       {}", self.transitions)?;
        let end = if self.complete {
            "complete"
        } else {
            "not complete"
        };
        writeln!(
            f,
            "depth             {} of {}, {end}",
            self.deepest, self.depth
        )?;
        writeln!(f, "all on one ring   {}", self.together)?;
        writeln!(f, "run to rest       {}", self.settled)?;
        writeln!(f, "most on their way {}", self.flights)?;
        let rate = self.states as f64 / self.seconds.max(1e-9);
        writeln!(
            f,
            "seconds           {:.1} ({rate:.0} states a second)",
            self.seconds
        )?;
        match &self.violation {
            None => write!(f, "violations        none"),
            Some(violation) => write!(f, "{violation}"),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            property, detail, ..
        } = self;
        writeln!(f, "violation         {property}: {detail}")?;
        for (at, step) in self.path.iter().enumerate() {
            writeln!(f, "  {:>3}  {step}", at + 1)?;
        }
        Ok(())
    }
}
