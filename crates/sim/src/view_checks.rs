//! The properties of one order over primary views (uniform total order, view synchrony): some as a run goes on, all
//! of them when it has come to rest.

use std::collections::BTreeSet;

use rota_check::event::{Event, EventKind};
use rota_check::online::UniformOnline;
use rota_check::trace::Trace;
use rota_check::{Options, PrimaryRule, check_uniform};
use rota_core::contract::{NodeId, Process, Time};

use crate::observe::{Coverage, Finding, Observer};
use crate::plan::{Plan, PrimaryLayer};

/// Checks a run of an engine with views.
#[derive(Debug)]
pub struct ViewChecks {
    online: UniformOnline,
    trace: Trace,
    /// All nodes, where a majority of them counts.
    configured: Option<Vec<NodeId>>,
    alive: BTreeSet<Process>,
    /// Whether there are clients.
    clients: bool,
    coverage: Coverage,
}

impl ViewChecks {
    /// Checks runs of this plan.
    pub fn new(plan: &Plan) -> Self {
        // A trace does not say which list of nodes that count was in force, where lists differ, and change.
        let has_lists = !plan.apart.electorates.is_empty();
        let counts = plan.primary == Some(PrimaryLayer::Static) && !has_lists;
        let configured = counts.then(|| plan.ring.members.clone());
        let online = configured.clone();
        Self {
            online: online.map_or_else(UniformOnline::new, UniformOnline::of),
            trace: Trace::new(),
            configured,
            alive: BTreeSet::new(),
            clients: plan.groups.is_some(),
            coverage: Coverage::new(),
        }
    }

    /// Everybody reaches everybody at rest.
    fn options(&self) -> Options {
        let rule = match &self.configured {
            Some(nodes) => PrimaryRule::Majority(nodes.clone()),
            None => PrimaryRule::Successive,
        };
        Options {
            components: vec![self.alive.iter().copied().collect()],
            primary: Some(rule),
            ..Options::default()
        }
    }
}

impl Observer for ViewChecks {
    fn observe(&mut self, event: &Event) -> Result<(), Finding> {
        match event.kind {
            EventKind::Start => {
                self.alive.insert(event.process);
            }
            EventKind::Crash | EventKind::Leave => {
                self.alive.remove(&event.process);
            }
            _ => {}
        }
        self.trace.push(event);
        self.online
            .observe(event)
            .map_err(|violation| Finding::new(violation.property, violation.detail))
    }

    fn quiesce(&mut self, _: Time) -> Result<(), Finding> {
        let options = self.options();
        self.trace.quiesce();
        let report = check_uniform(&self.trace, &options);
        for verdict in &report.verdicts {
            // There are no transitions, of which K6 speaks, but what is safe.
            if self.clients || !verdict.property.starts_with('K') {
                self.coverage.insert(verdict.property, verdict.checked);
            }
        }
        let mut violations = report.violations.into_iter();
        violations.next().map_or(Ok(()), |violation| {
            Err(Finding::new(violation.property, violation.detail))
        })
    }

    fn coverage(&self, coverage: &mut Coverage) {
        for (what, count) in &self.coverage {
            *coverage.entry(what).or_default() += count;
        }
    }
}
