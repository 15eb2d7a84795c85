//! The checks find their violations: deliveries that are tampered with are found out.

use rota_check::event::{Event, EventKind};
use rota_core::contract::{
    Class, Delivery, Engine, Input, NodeId, Output, Process, Service, Status, SubmitError, Time,
    TimerReason,
};
use rota_ring::Protocol;
use rota_ring::RingEngine;
use rota_sim::checks::Checks;
use rota_sim::observe::{Finding, Observer};
use rota_sim::plan::{DiskLoss, Plan};
use rota_sim::ring::Ring;
use rota_sim::world::{System, World};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Wrong {
    Nothing,
    Twice,
    Swapped,
    Damaged,
    Lost,
    Mute,
}

/// Tells the checks one wrong thing of the fiftieth message that node 2 delivers. It stands before the checks, and not in
/// the engine: the wrapper of engines asserts the order of deliveries, and would be the first to find it.
struct Tampering {
    checks: Checks,
    wrong: Wrong,
    messages: u32,
    kept: Option<Event>,
}

impl Observer for Tampering {
    fn observe(&mut self, event: &Event) -> Result<(), Finding> {
        let EventKind::Delivered(placed) = &event.kind else {
            return self.checks.observe(event);
        };
        if event.process.node.get() != 2 {
            return self.checks.observe(event);
        }
        self.messages += 1;
        if let Some(kept) = self.kept.take() {
            self.checks.observe(event)?;
            return self.checks.observe(&kept);
        }
        if self.messages != 50 {
            return self.checks.observe(event);
        }
        match self.wrong {
            Wrong::Nothing | Wrong::Mute => self.checks.observe(event),
            Wrong::Twice => {
                self.checks.observe(event)?;
                self.checks.observe(event)
            }
            Wrong::Damaged => {
                let mut placed = *placed;
                placed.hash ^= 1;
                let kind = EventKind::Delivered(placed);
                self.checks.observe(&Event {
                    kind,
                    ..event.clone()
                })
            }
            Wrong::Lost => Ok(()),
            Wrong::Swapped => {
                self.kept = Some(event.clone());
                Ok(())
            }
        }
    }

    fn disk_lost(&mut self, node: NodeId, loss: DiskLoss) {
        self.checks.disk_lost(node, loss);
    }

    fn founded_anew(&mut self, former: &[Process]) {
        self.checks.founded_anew(former);
    }

    fn quiesce(&mut self, now: Time) -> Result<(), Finding> {
        self.checks.quiesce(now)
    }
}

/// A system in which node 2 passes on no token, if it is to be mute.
struct Tampered(Wrong);

struct Bad {
    ring: RingEngine,
    is_mute: bool,
}

impl System for Tampered {
    type Engine = Bad;

    fn engine(&self, plan: &Plan, me: Process, life: u32) -> Bad {
        Bad {
            ring: Ring(Protocol::Accelerated).engine(plan, me, life),
            is_mute: self.0 == Wrong::Mute && me.node.get() == 2,
        }
    }
}

impl Engine for Bad {
    fn handle(&mut self, now: Time, input: Input) {
        self.ring.handle(now, input);
    }

    fn submit(&mut self, now: Time, service: Service, payload: &[u8]) -> Result<u64, SubmitError> {
        self.ring.submit(now, service, payload)
    }

    fn poll_output(&mut self) -> Option<Output> {
        let output = self.ring.poll_output()?;
        let is_token = matches!(
            output,
            Output::Send {
                class: Class::Token,
                ..
            }
        );
        if self.is_mute && is_token {
            return self.poll_output();
        }
        Some(output)
    }

    fn poll_delivery(&mut self) -> Option<Delivery> {
        self.ring.poll_delivery()
    }

    fn reading(&self) -> Class {
        self.ring.reading()
    }

    fn next_timer(&self) -> Option<(Time, TimerReason)> {
        self.ring.next_timer()
    }

    fn status(&self) -> Status {
        self.ring.status()
    }
}

/// The violation that is found; the ring itself orders, so each delivery has an origin that is right.
fn found(wrong: Wrong) -> Option<String> {
    let mut plan = Plan::plain(3, Protocol::Accelerated);
    for host in &mut plan.hosts {
        host.source.budget = 200;
        host.source.batch = 4;
    }
    let mut tampering = Tampering {
        checks: Checks::new(&plan),
        wrong,
        messages: 0,
        kept: None,
    };
    let outcome = World::new(&plan, &Tampered(wrong))
        .watched_by(&mut tampering)
        .run();
    outcome.finding.map(|finding| finding.property)
}

#[test]
fn each_tampering_is_found_as_what_it_is() {
    for (wrong, property) in [
        (Wrong::Nothing, None),
        (Wrong::Twice, Some("E2")),
        (Wrong::Swapped, Some("O4")),
        (Wrong::Damaged, Some("E1")),
        (Wrong::Lost, Some("prefix")),
        (Wrong::Mute, Some("C8")),
    ] {
        assert_eq!(found(wrong).as_deref(), property);
    }
}
