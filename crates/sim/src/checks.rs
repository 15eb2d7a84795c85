//! The properties of `rota-check`: some as a run goes on, all of them when it has come to rest.

use std::collections::BTreeMap;

use rota_check::event::{Conf, Event, EventKind};
use rota_check::online::Online;
use rota_check::trace::Trace;
use rota_check::{Options, PrimaryRule, check_all};
use rota_core::contract::{NodeId, Process, Time};

use crate::observe::{Coverage, Finding, Observer};
use crate::plan::{DiskLoss, Plan, PrimaryLayer};

/// Checks a run.
#[derive(Debug)]
pub struct Checks {
    online: Online,
    /// Everything seen, unless only what can be checked at once is.
    trace: Option<Trace>,
    /// All nodes.
    nodes: Vec<NodeId>,
    layer: Option<PrimaryLayer>,
    /// Nodes are configured with different lists of who counts.
    has_lists: bool,
    /// Whether there are clients.
    clients: bool,
    /// The configurations of the live processes, and whether they were reported as primary.
    current: BTreeMap<Process, (usize, bool)>,
    /// Some node has lost the numbers of its rings, and what it knew of primaries.
    numbers_lost: bool,
    coverage: Coverage,
}

impl Checks {
    /// Checks runs of this plan.
    pub fn new(plan: &Plan) -> Self {
        Self {
            online: Online::new(),
            trace: Some(Trace::new()),
            nodes: plan.ring.members.clone(),
            layer: plan.primary,
            has_lists: !plan.apart.electorates.is_empty(),
            clients: plan.groups.is_some(),
            current: BTreeMap::new(),
            numbers_lost: false,
            coverage: Coverage::new(),
        }
    }

    /// Only what can be checked as a run goes on.
    pub fn online() -> Self {
        Self {
            online: Online::new(),
            trace: None,
            nodes: Vec::new(),
            layer: None,
            has_lists: false,
            clients: false,
            current: BTreeMap::new(),
            numbers_lost: false,
            coverage: Coverage::new(),
        }
    }

    fn options(&self) -> Options {
        let rule = |layer| match layer {
            PrimaryLayer::Static if self.has_lists => PrimaryRule::Overlapping,
            PrimaryLayer::Static => PrimaryRule::Majority(self.nodes.clone()),
            PrimaryLayer::Dynamic { .. } => PrimaryRule::Successive,
        };
        Options {
            primary: self.layer.map(rule),
            ..Options::default()
        }
    }

    fn note(&mut self, event: &Event) {
        match &event.kind {
            EventKind::Configuration(Conf { members, .. }) => {
                self.current.insert(event.process, (members.len(), false));
            }
            EventKind::Primary(_) => {
                if let Some((_, primary)) = self.current.get_mut(&event.process) {
                    *primary = true;
                }
            }
            EventKind::Crash | EventKind::Leave => {
                self.current.remove(&event.process);
            }
            _ => {}
        }
    }

    /// P4, primary at rest: when all nodes are in one configuration and nothing goes wrong any more,
    /// that is primary, whatever has happened before.
    fn primary_at_rest(&self) -> Result<(), Finding> {
        let not_yet = self
            .current
            .iter()
            .find(|(_, (members, primary))| *members == self.nodes.len() && !primary);
        let expected = self.layer.is_some() && !self.numbers_lost;
        match not_yet.filter(|_| expected) {
            None => Ok(()),
            Some((process, _)) => {
                let what = format!("node {} is with all others, and not primary", process.node);
                Err(Finding::new("P4", what))
            }
        }
    }
}

impl Observer for Checks {
    fn observe(&mut self, event: &Event) -> Result<(), Finding> {
        self.note(event);
        if let Some(trace) = &mut self.trace {
            trace.push(event);
        }
        self.online
            .observe(event)
            .map_err(|violation| Finding::new(violation.property, violation.detail))
    }

    fn disk_lost(&mut self, node: NodeId, loss: DiskLoss) {
        if loss.is_of_durable() {
            self.online.disk_lost(node);
            self.numbers_lost = true;
        }
    }

    fn quiesce(&mut self, _: Time) -> Result<(), Finding> {
        let options = self.options();
        let Some(trace) = &mut self.trace else {
            return Ok(());
        };
        trace.quiesce();
        let report = check_all(trace, &options);
        self.coverage = report.counters.rare().into();
        for verdict in &report.verdicts {
            let of_layer = match verdict.property.as_bytes()[0] {
                b'P' => self.layer.is_some() && !self.numbers_lost,
                b'K' => self.clients,
                _ => false,
            };
            if of_layer {
                self.coverage.insert(verdict.property, verdict.checked);
            }
        }
        // A process whose numbers are lost with its disk may use them again: the incarnation tells them apart. A disk
        // that forgets durable records voids the promises of primaries.
        let counts =
            |property: &str| !matches!(property, "C7" | "P1" | "P2" | "P3") || !self.numbers_lost;
        let mut violations = report.violations.into_iter();
        violations
            .find(|violation| counts(violation.property))
            .map_or(Ok(()), |violation| {
                Err(Finding::new(violation.property, violation.detail))
            })?;
        self.primary_at_rest()
    }

    fn coverage(&self, coverage: &mut Coverage) {
        for (what, count) in &self.coverage {
            *coverage.entry(what).or_default() += count;
        }
    }
}
