//! The results of a campaign, for people and programs.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use super::{Cuts, Options, floors};
use crate::observe::{Coverage, TraceHash};
use crate::plan::Plan;
use crate::world::Outcome;

/// A property that did not hold.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Violation {
    /// The property.
    pub property: String,
    /// The seed.
    pub seed: u64,
    /// The details of the finding.
    pub detail: String,
    /// The command that shows it again, with as few faults as were found to do.
    pub replay: String,
    /// Those faults.
    pub faults: Vec<String>,
}

/// The totals of a campaign.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The engine.
    pub engine: &'static str,
    /// The profile of faults.
    pub faults: &'static str,
    /// The number of seeds.
    pub seeds: u64,
    /// The worlds' own time.
    pub virtual_seconds: f64,
    /// Rotations of tokens.
    pub token_rounds: u64,
    /// Different regular configurations.
    pub configurations: u64,
    /// Recoveries that ended in another one.
    pub failed_recoveries: u64,
    /// Messages delivered.
    pub deliveries: u64,
    /// The same for the same seeds, always; hexadecimal.
    pub trace_hash: String,
    /// The properties that did not hold.
    pub violations: Vec<Violation>,
    /// The events that were to happen and never did, or too rarely for so long a campaign.
    pub vacuous: Vec<String>,
    /// The counts of the events that were to happen.
    pub coverage: Coverage,
    /// The counts of events by the state of membership of the process that each came to: `state: event`.
    pub cells: BTreeMap<String, u64>,
    /// The time that the campaign took, in seconds.
    pub seconds: f64,
    #[serde(skip)]
    hash: TraceHash,
    #[serde(skip)]
    virtual_nanos: u128,
    #[serde(skip)]
    pub(super) failed: Vec<Outcome>,
}

impl Report {
    pub(super) fn new(options: &Options) -> Self {
        Self {
            engine: options.engine.name(),
            faults: options.faults.name(),
            seeds: 0,
            virtual_seconds: 0.0,
            token_rounds: 0,
            configurations: 0,
            failed_recoveries: 0,
            deliveries: 0,
            trace_hash: String::new(),
            violations: Vec::new(),
            vacuous: Vec::new(),
            coverage: Coverage::new(),
            cells: BTreeMap::new(),
            seconds: 0.0,
            hash: TraceHash::default(),
            virtual_nanos: 0,
            failed: Vec::new(),
        }
    }

    /// Adds the outcome of the next seed.
    pub(super) fn add(&mut self, outcome: &Outcome, plan: &Plan) {
        let tally = &outcome.tally;
        self.seeds += 1;
        self.virtual_nanos += u128::from(outcome.virtual_nanos);
        self.virtual_seconds = self.virtual_nanos as f64 / 1e9;
        self.token_rounds += tally.counter("token_rotations") / plan.nodes() as u64;
        self.configurations += tally.configurations;
        self.failed_recoveries += tally.counter("failed_recoveries");
        for &name in floors::counters(plan).iter().chain(floors::beside(plan)) {
            *self.coverage.entry(name).or_default() += tally.counter(name);
        }
        self.deliveries += tally.deliveries;
        self.hash.add(outcome.trace_hash);
        self.trace_hash = format!("{:016x}", self.hash.get());
        for (&what, &count) in &tally.coverage {
            *self.coverage.entry(what).or_default() += count;
        }
        for (&(state, event), &count) in &tally.cells {
            *self.cells.entry(format!("{state}: {event}")).or_default() += count;
        }
        if outcome.finding.is_some() {
            self.failed.push(outcome.clone());
        }
    }

    /// Whether nothing was violated, and, of a long campaign, nothing was missed that had to be tried.
    pub fn holds(&self) -> bool {
        self.violations.is_empty() && (self.vacuous.is_empty() || !floors::is_long(self))
    }

    /// Judges the coverage, when all seeds have been added.
    pub(super) fn judge(&mut self, options: &Options) {
        let never = self.coverage.iter().filter(|(_, count)| **count == 0);
        self.vacuous = never.map(|(&what, _)| what.to_owned()).collect();
        self.vacuous.extend(floors::missed(self, options.faults));
    }

    /// Adds a failure, made as small as `cuts` say.
    pub(super) fn violated(&mut self, options: &Options, outcome: &Outcome, cuts: Cuts) {
        let Some(finding) = &outcome.finding else {
            return;
        };
        let mut options = options.clone();
        options.cuts = cuts;
        let faults = options.plan(outcome.seed).faults;
        self.violations.push(Violation {
            property: finding.property.clone(),
            seed: outcome.seed,
            detail: finding.detail.clone(),
            replay: options.replay_command(outcome.seed, &options.cuts),
            faults: faults.iter().map(ToString::to_string).collect(),
        });
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = |count: u64| count as f64 / self.seconds.max(1e-9);
        writeln!(
            f,
            "engine            {} (faults: {})",
            self.engine, self.faults
        )?;
        writeln!(f, "seeds             {}", self.seeds)?;
        writeln!(f, "virtual seconds   {:.1}", self.virtual_seconds)?;
        let rounds = self.token_rounds;
        writeln!(
            f,
            "token rounds      {rounds} ({:.0} a second)",
            rate(rounds)
        )?;
        writeln!(f, "configurations    {}", self.configurations)?;
        writeln!(f, "failed recoveries {}", self.failed_recoveries)?;
        writeln!(f, "deliveries        {}", self.deliveries)?;
        writeln!(f, "trace hash        {}", self.trace_hash)?;
        for (what, count) in &self.coverage {
            writeln!(f, "  {what:<28} {count}")?;
        }
        for (cell, count) in &self.cells {
            writeln!(f, "  {cell:<36} {count}")?;
        }
        if !self.vacuous.is_empty() {
            writeln!(f, "too rare          {}", self.vacuous.join(", "))?;
        }
        for violation in &self.violations {
            writeln!(
                f,
                "\nVIOLATION of {} by seed {}",
                violation.property, violation.seed
            )?;
            writeln!(f, "  {}", violation.detail)?;
            for fault in &violation.faults {
                writeln!(f, "  {fault}")?;
            }
            writeln!(f, "  again: {}", violation.replay)?;
        }
        write!(f, "violations        {}", self.violations.len())
    }
}
