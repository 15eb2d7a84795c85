//! The checks find their violations: a ring whose deliveries are tampered with is found out.

use std::collections::VecDeque;

use bytes::Bytes;
use rota_core::contract::{
    Class, Delivery, Engine, Input, Output, Process, Service, Status, SubmitError, Time,
    TimerReason,
};
use rota_ring::Protocol;
use rota_ring::RingEngine;
use rota_sim::checks::Checks;
use rota_sim::plan::Plan;
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

struct Tampered(Wrong);

/// A ring that does one thing wrong to its fiftieth message, at node 2 only.
struct Bad {
    ring: RingEngine,
    wrong: Wrong,
    messages: u32,
    next: VecDeque<Delivery>,
}

impl System for Tampered {
    type Engine = Bad;

    fn engine(&self, plan: &Plan, me: Process, life: u32) -> Bad {
        Bad {
            ring: Ring(Protocol::Accelerated).engine(plan, me, life),
            wrong: if me.node.get() == 2 {
                self.0
            } else {
                Wrong::Nothing
            },
            messages: 0,
            next: VecDeque::new(),
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
        if self.wrong == Wrong::Mute
            && matches!(
                output,
                Output::Send {
                    class: Class::Token,
                    ..
                }
            )
        {
            return self.poll_output();
        }
        Some(output)
    }

    fn poll_delivery(&mut self) -> Option<Delivery> {
        if let Some(delivery) = self.next.pop_front() {
            return Some(delivery);
        }
        let mut message = match self.ring.poll_delivery()? {
            Delivery::Message(message) => message,
            other => return Some(other),
        };
        self.messages += 1;
        if self.messages != 50 {
            return Some(Delivery::Message(message));
        }
        match self.wrong {
            Wrong::Nothing | Wrong::Mute => {}
            Wrong::Twice => self.next.push_back(Delivery::Message(message.clone())),
            Wrong::Damaged => message.payload = Bytes::from_static(b"not what was sent"),
            Wrong::Lost => return self.ring.poll_delivery(),
            Wrong::Swapped => {
                let other = self.ring.poll_delivery();
                self.next.push_back(Delivery::Message(message));
                return other.or_else(|| self.next.pop_front());
            }
        }
        Some(Delivery::Message(message))
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
    let mut checks = Checks::new(&plan);
    let outcome = World::new(&plan, &Tampered(wrong))
        .watched_by(&mut checks)
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
