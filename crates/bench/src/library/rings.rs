//! A node of the benchmark with several rings: a load for each of them, in their thread, and one order above.

use std::collections::BTreeMap;

use rota_core::contract::{Delivery, NodeId, Time};
use rota_multiring::Rank;
use rota_node::rings::{RingsApp, RingsConfig, RingsDelivery, RingsDriver};
use rota_node::{App, Submitter};
use serde::{Deserialize, Serialize};

use super::load::{Delivered, LoadApp, Plan, Slot, Span, merged_slots};
use super::node::{
    Look, Measured, Measuring, Task, Turning, form, measured_in, turn_until, wait_for_go,
};
use super::order::Order;
use crate::child::Coordinator;
use crate::clock::{now_ns, process_cpu_ns};
use crate::error::BenchError;
use crate::hist::Latencies;

/// The task of a node of several rings.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct RingsTask {
    pub config: RingsConfig,
    /// The rings whose messages it delivers.
    pub subscribe: Vec<u16>,
    /// The rings that it sends to.
    pub send: Vec<u16>,
    /// All nodes deliver all rings.
    pub is_one_order: bool,
}

/// A load for each ring that this node delivers or sends to.
struct Loads {
    of: BTreeMap<Rank, LoadApp>,
    order: Order,
    has_ended: Option<&'static str>,
}

impl Loads {
    fn new(task: &Task, rings: &RingsTask) -> Self {
        let all = rings.subscribe.iter().chain(&rings.send);
        let load = |id: &u16| {
            let at = rings.send.iter().position(|send| send == id);
            let plan = at.map_or(Plan::Silent, |at| task.plan.part(at, rings.send.len()));
            (Rank(*id), LoadApp::new(task, plan))
        };
        Self {
            of: all.map(load).collect(),
            order: Order::default(),
            has_ended: None,
        }
    }

    fn formed(&self) -> bool {
        self.of.values().all(|load| load.formed)
    }

    fn refused(&self) -> Option<String> {
        if let Some(how) = self.has_ended {
            return Some(how.to_owned());
        }
        self.of.values().find_map(Measuring::refused)
    }

    fn delivered(&self) -> Delivered {
        let of = |sum: fn(&Delivered) -> u64| {
            self.of
                .values()
                .map(|load| sum(&load.record.delivered))
                .sum()
        };
        Delivered {
            messages: of(|one| one.messages),
            bytes: of(|one| one.bytes),
            own_bytes: of(|one| one.own_bytes),
        }
    }
}

impl RingsApp for Loads {
    fn deliver(&mut self, delivery: RingsDelivery) {
        let (ring, delivery) = match delivery {
            RingsDelivery::Message(place, message) => {
                let sender = message.id.process.node.get();
                let counter = message.id.counter ^ (u64::from(place.rank.0) << 40);
                self.order.note(sender, counter);
                (place.rank, Delivery::Message(message))
            }
            RingsDelivery::Configuration(ring, now) => (ring, Delivery::Configuration(now)),
            RingsDelivery::Trimmed(..) => {
                self.has_ended = Some("a ring forgot what a node had not delivered");
                return;
            }
            RingsDelivery::Contradicted(_) => {
                self.has_ended = Some("a ring contradicted itself");
                return;
            }
            RingsDelivery::Refounded(_) => {
                self.has_ended = Some("a ring was founded anew");
                return;
            }
            RingsDelivery::Unreachable(_) => {
                self.has_ended = Some("a node is not on a ring that it needs");
                return;
            }
            RingsDelivery::Point(_)
            | RingsDelivery::Subscribed(..)
            | RingsDelivery::Left(..)
            | RingsDelivery::LastRing(_)
            | RingsDelivery::NotHeld(_) => return,
        };
        if let Some(load) = self.of.get_mut(&ring) {
            load.deliver(delivery);
        }
    }

    fn flush(&mut self) {
        self.of.values_mut().for_each(App::flush);
    }

    fn fill(&mut self, now: Time, ring: Rank, submitter: &mut dyn Submitter) {
        if let Some(load) = self.of.get_mut(&ring) {
            load.fill(now, submitter);
        }
    }

    fn next_wake(&self, ring: Rank) -> Option<Time> {
        self.of.get(&ring).and_then(App::next_wake)
    }

    fn may_sleep(&mut self, ring: Rank) -> bool {
        self.of.get_mut(&ring).is_none_or(App::may_sleep)
    }
}

type Driver = RingsDriver<Loads>;

pub(super) fn work(
    task: &Task,
    rings: &RingsTask,
    coordinator: &Coordinator,
) -> Result<Measured, BenchError> {
    let failed = |what: String| BenchError::Node {
        node: usize::from(task.node),
        what,
    };
    let me = NodeId::new(task.node).ok_or_else(|| failed("node ids start at 1".to_owned()))?;
    let loads = Loads::new(task, rings);
    let opened = Driver::open(&rings.config, me, Some(&rings.subscribe), loads);
    let mut driver = opened.map_err(|error| failed(error.to_string()))?;
    form(&mut driver).map_err(failed)?;
    let start = wait_for_go(&mut driver, coordinator)?;
    let from = start + task.warm_up_ns;
    let span = Span {
        start,
        from,
        until: from + task.duration_ns,
    };
    let mut app = driver.app_mut();
    app.of.values_mut().for_each(|load| load.begin(span));
    drop(app);
    turn_until(&mut driver, span.from).map_err(failed)?;
    let before = look(&mut driver);
    turn_until(&mut driver, span.until).map_err(failed)?;
    let after = look(&mut driver);
    turn_until(&mut driver, span.until + task.drain_ns).map_err(failed)?;
    if let Some(why) = driver.app().refused() {
        return Err(failed(why));
    }
    Ok(measured(&mut driver, rings, &before, &after))
}

impl Turning for Driver {
    fn turn(&mut self, nanos: u64) -> Result<(), String> {
        Self::turn(self, Some(nanos)).map_err(|error| error.to_string())
    }

    fn formed(&self) -> bool {
        self.app().formed()
    }

    fn refused(&self) -> Option<String> {
        self.app().refused()
    }

    fn state(&mut self) -> String {
        let rings = self.status().rings.into_iter();
        let states: Vec<String> = rings
            .map(|(ring, of)| format!("{ring}: {}", of.state))
            .collect();
        states.join("; ")
    }
}

fn look(driver: &mut Driver) -> Look {
    let (at, cpu) = (now_ns(), process_cpu_ns());
    let delivered = driver.app().delivered();
    let submitted = driver.app().of.values().map(|load| load.submitted).sum();
    let mut counters: BTreeMap<String, u64> = BTreeMap::new();
    for (_, status) in driver.status().rings {
        for (name, count) in status.counters {
            *counters.entry(name.to_owned()).or_default() += count;
        }
    }
    Look {
        at,
        cpu,
        client_cpu: 0,
        delivered,
        submitted,
        counters,
        coordinates: false,
    }
}

fn measured(driver: &mut Driver, rings: &RingsTask, before: &Look, after: &Look) -> Measured {
    let mut app = driver.app_mut();
    let slots: Vec<Vec<Slot>> = app
        .of
        .values_mut()
        .map(|load| load.record.take_slots())
        .collect();
    let slots = merged_slots(slots.iter());
    let [mut latencies, mut own_latencies, mut lateness] = [(); 3].map(|()| Latencies::new());
    for load in app.of.values() {
        latencies.merge(&load.record.latencies.to_counts());
        own_latencies.merge(&load.record.own_latencies.to_counts());
        lateness.merge(&load.lateness.to_counts());
    }
    let loads = app.of.values();
    let subscribed = app
        .of
        .iter()
        .filter(|(ring, _)| rings.subscribe.contains(&ring.0));
    let orders = subscribed.map(|(ring, load)| (ring.0, load.record.order.clone()));
    let submitted = app.of.iter().map(|(ring, load)| (ring.0, load.submitted));
    Measured {
        reconfigurations: loads
            .clone()
            .map(|load| load.reconfigurations)
            .max()
            .unwrap_or(0),
        latencies: latencies.to_counts(),
        own_latencies: own_latencies.to_counts(),
        lateness: lateness.to_counts(),
        slots,
        order: match rings.is_one_order {
            true => app.order.clone(),
            false => Order::default(),
        },
        orders: orders.collect(),
        submitted_to: submitted.collect(),
        submitted_ever: loads.clone().map(|load| load.submitted).sum(),
        garbled: loads.map(|load| load.record.garbled).sum(),
        ..measured_in(before, after)
    }
}
