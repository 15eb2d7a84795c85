//! U-Ring Paxos, as the simulator knows it, and the properties of its one order.

use std::collections::BTreeSet;

use rota_check::Violation;
use rota_check::event::{Event, EventKind};
use rota_check::online::WholeOnline;
use rota_core::contract::{Process, Seq, Time};
use rota_core::uring::URing;

use crate::observe::{Coverage, Finding, Observer};
use crate::plan::Plan;
use crate::world::System;

/// One with U-Ring Paxos.
#[derive(Clone, Copy, Debug)]
pub struct Along;

impl System for Along {
    type Engine = URing;

    /// # Panics
    /// If the plan says nothing of it.
    fn engine(&self, plan: &Plan, _: Process) -> URing {
        let uring = plan.uring.as_ref().expect("a plan for U-Ring Paxos");
        URing::new(uring.config(plan))
    }

    fn is_settled(&self, engine: &URing) -> Option<bool> {
        Some(engine.is_settled())
    }
}

/// Checks a run of an engine with one order of which nobody leaves anything out.
#[derive(Debug, Default)]
pub struct WholeChecks {
    online: WholeOnline,
    alive: BTreeSet<Process>,
    rests: u64,
}

impl WholeChecks {
    /// A check that has seen nothing yet.
    pub fn new() -> Self {
        Self::default()
    }
}

fn found(result: Result<(), Violation>) -> Result<(), Finding> {
    result.map_err(|violation| Finding::new(violation.property, violation.detail))
}

impl Observer for WholeChecks {
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
        found(self.online.observe(event))
    }

    fn missed(&mut self, process: Process, next: Seq, own: u64) -> Result<(), Finding> {
        found(self.online.missed(process, next, own))
    }

    fn quiesce(&mut self, _: Time) -> Result<(), Finding> {
        self.rests += self.alive.len() as u64;
        found(self.online.rest(self.alive.iter().copied()))
    }

    fn coverage(&self, coverage: &mut Coverage) {
        *coverage.entry("places").or_default() += self.online.places() as u64;
        *coverage.entry("UA").or_default() += self.rests;
    }
}
