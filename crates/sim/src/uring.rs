//! U-Ring Paxos, as the simulator knows it, and the properties of its one order.

use std::collections::BTreeSet;

use rota_check::Violation;
use rota_check::event::{Event, EventKind};
use rota_check::online::WholeOnline;
use rota_core::contract::{Process, Time};
use rota_paxos::uring::URing;

use crate::observe::{Coverage, Finding, Observer};
use crate::plan::Plan;
use crate::world::System;

/// One with U-Ring Paxos.
#[derive(Clone, Copy, Debug)]
pub struct URingSystem;

impl System for URingSystem {
    type Engine = URing;

    /// # Panics
    /// If the plan says nothing of it.
    fn engine(&self, plan: &Plan, me: Process, _: u32) -> URing {
        let uring = plan.uring.as_ref().expect("a plan for U-Ring Paxos");
        let mut members = plan.ring.members.iter();
        let host = members.position(|node| *node == me.node);
        URing::new(uring.config(plan, host.expect("a host")))
    }

    fn voting<'e>(&self, engine: &'e URing) -> Option<&'e URing> {
        Some(engine)
    }

    fn leaves_alone_until(&self, engine: &URing) -> Option<Time> {
        engine.stays_out_until()
    }

    fn is_settled(&self, engine: &URing) -> Option<bool> {
        Some(engine.is_settled())
    }
}

/// Checks a run of an engine with one order of which nobody leaves anything out.
#[derive(Debug, Default)]
pub struct WholeChecks {
    only_as_member: bool,
    online: WholeOnline,
    alive: BTreeSet<Process>,
    /// Of before all voters lost what they had, and who still belongs to that.
    before: Option<WholeOnline>,
    former: BTreeSet<Process>,
    rests: u64,
}

impl WholeChecks {
    /// A check that has seen nothing yet.
    pub fn new(plan: &Plan) -> Self {
        let only_as_member = plan
            .uring
            .as_ref()
            .is_some_and(|uring| uring.only_as_member);
        Self {
            only_as_member,
            online: order(only_as_member),
            ..Self::default()
        }
    }

    /// The checker of a process.
    fn of(&mut self, who: Process) -> &mut WholeOnline {
        match &mut self.before {
            Some(before) if self.former.contains(&who) => before,
            _ => &mut self.online,
        }
    }
}

fn order(only_as_member: bool) -> WholeOnline {
    match only_as_member {
        true => WholeOnline::of_members_only(),
        false => WholeOnline::new(),
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
        found(self.of(event.process).observe(event))
    }

    fn founded_anew(&mut self, former: &[Process]) {
        self.former.extend(former);
        let anew = order(self.only_as_member);
        self.before = Some(std::mem::replace(&mut self.online, anew));
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
