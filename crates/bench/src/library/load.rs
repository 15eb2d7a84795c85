//! The application of a benchmark node: submits by its plan, measures the deliveries.
//!
//! Free of coordinated omission: a message's latency counts from when the plan wanted it sent. A ring
//! that stalls delays its sender too, and those delays are in the figures. In a closed loop ([`Plan::UnderWay`]) there is no
//! such time: a latency counts from the submission, and a ring that stalls is given less.

use rota_core::contract::{
    Configuration, ConfigurationKind, Delivery, Message, Service, SubmitError, Time,
};
use rota_node::{App, Submitter};
use serde::{Deserialize, Serialize};

use super::node::Measuring;
use super::order::Order;
use crate::clock::{now_ns, wake_for};
use crate::hist::Latencies;

/// Smallest payload: when it was due (8 bytes), its sender (4), its number (4).
pub(crate) const MIN_PAYLOAD: usize = 16;
/// Deliveries in a row that share one look at the clock.
const PER_CLOCK: u32 = 8;
/// While the ring is busy, tokens come often enough to submit at; no extra wake-up is made sooner
/// than this after the last chance to submit.
const WAKE_GAP_NS: u64 = 200_000;

/// The times at which a node submits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Plan {
    /// Never.
    Silent,
    /// Whenever the ring takes more.
    Max,
    /// At start + offset + k intervals, in nanoseconds.
    Fixed {
        /// Of this node.
        offset: f64,
        /// Between two messages of this node.
        interval: f64,
    },
    /// When one of its own is delivered, so that so many are under way.
    UnderWay(u32),
}

/// The measured part of a run, on the common clock.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Span {
    pub start: u64,
    pub from: u64,
    pub until: u64,
}

/// Counts between two moments, or of the whole run.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Delivered {
    pub messages: u64,
    pub bytes: u64,
    pub own_bytes: u64,
}

/// Messages that were submitted together are delivered together, and a look at the clock is shared.
#[derive(Clone, Copy, Debug, Default)]
struct Run {
    own: bool,
    latency: u64,
    messages: u64,
}

/// See the module page.
pub(super) struct LoadApp {
    me: u16,
    members: usize,
    service: Service,
    plan: Plan,
    payload: Vec<u8>,
    span: Option<Span>,
    /// Number of the next message.
    next: u32,
    last_fill: u64,
    /// Own messages that were submitted and not delivered here.
    under_way: u32,
    /// One was delivered since the last chance to submit.
    freed: bool,
    clock: u64,
    clock_uses: u32,
    /// Messages delivered in a row that had the same latency, and are not recorded yet.
    run: Run,
    /// The configuration with all members has been delivered.
    pub formed: bool,
    /// Regular configurations after the first.
    pub reconfigurations: u64,
    pub delivered: Delivered,
    pub order: Order,
    /// Latencies of the others' messages that were due in the measured time.
    pub latencies: Latencies,
    /// Latencies of own messages.
    pub own_latencies: Latencies,
    /// Number and latency of every message, where there are only a few.
    pub trials: Option<Vec<(u32, u64)>>,
    /// Deliveries whose contents are not what was sent.
    pub garbled: u64,
    pub submitted: u64,
    pub refused: Option<SubmitError>,
    /// The number of times that this node was told that it missed messages that others have delivered.
    pub missed: u64,
}

impl LoadApp {
    pub(super) fn new(me: u16, members: usize, service: Service, size: usize, plan: Plan) -> Self {
        Self {
            me,
            members,
            service,
            plan,
            payload: vec![0x5A; size.max(MIN_PAYLOAD)],
            span: None,
            next: 0,
            last_fill: 0,
            under_way: 0,
            freed: false,
            clock: 0,
            clock_uses: 0,
            run: Run::default(),
            formed: false,
            reconfigurations: 0,
            delivered: Delivered::default(),
            order: Order::default(),
            latencies: Latencies::new(),
            own_latencies: Latencies::new(),
            trials: None,
            garbled: 0,
            submitted: 0,
            refused: None,
            missed: 0,
        }
    }

    /// Starts the plan.
    pub(super) fn begin(&mut self, span: Span) {
        self.span = Some(span);
    }

    /// When the next message is due; `None` if there is none any more.
    fn due(&self) -> Option<u64> {
        let span = self.span?;
        let at = match self.plan {
            Plan::Silent => return None,
            Plan::Max | Plan::UnderWay(_) => span.start,
            Plan::Fixed { offset, interval } => {
                span.start + (offset + interval * f64::from(self.next)) as u64
            }
        };
        (at < span.until).then_some(at)
    }

    /// As many own messages are under way as the plan wants.
    fn has_enough(&self) -> bool {
        matches!(self.plan, Plan::UnderWay(most) if self.under_way >= most)
    }

    /// Submits one message that was due at `at`; `false` if the ring takes no more.
    fn submit(&mut self, now: Time, at: u64, submitter: &mut dyn Submitter) -> bool {
        self.payload[..8].copy_from_slice(&at.to_le_bytes());
        self.payload[8..12].copy_from_slice(&u32::from(self.me).to_le_bytes());
        self.payload[12..16].copy_from_slice(&self.next.to_le_bytes());
        match submitter.submit(now, self.service, &self.payload) {
            Ok(_) => {
                self.next = self.next.wrapping_add(1);
                self.submitted += 1;
                self.under_way = self.under_way.saturating_add(1);
                true
            }
            Err(SubmitError::Full) => false,
            Err(error) => {
                self.refused = Some(error);
                false
            }
        }
    }

    fn on_message(&mut self, message: &Message) {
        if self.clock_uses == 0 {
            self.clock = now_ns();
            self.clock_uses = PER_CLOCK;
        }
        self.clock_uses -= 1;
        let sender = message.id.process.node.get();
        self.order.note(sender, message.id.counter);
        self.delivered.messages += 1;
        self.delivered.bytes += message.payload.len() as u64;
        let own = sender == self.me;
        if own {
            self.delivered.own_bytes += message.payload.len() as u64;
            self.under_way = self.under_way.saturating_sub(1);
            self.freed = true;
        }
        let Some((at, number)) = read_payload(&message.payload, sender, self.payload.len()) else {
            self.garbled += 1;
            return;
        };
        let Some(span) = self
            .span
            .filter(|span| (span.from..span.until).contains(&at))
        else {
            return;
        };
        debug_assert!(span.start <= at);
        let latency = self.clock.saturating_sub(at);
        if (self.run.own, self.run.latency) != (own, latency) {
            self.record_run();
            self.run = Run {
                own,
                latency,
                messages: 0,
            };
        }
        self.run.messages += 1;
        if let Some(trials) = &mut self.trials {
            trials.push((number, latency));
        }
    }

    fn record_run(&mut self) {
        let Run {
            own,
            latency,
            messages,
        } = std::mem::take(&mut self.run);
        let latencies = if own {
            &mut self.own_latencies
        } else {
            &mut self.latencies
        };
        if messages > 0 {
            latencies.record_many(latency, messages);
        }
    }

    fn on_configuration(&mut self, configuration: &Configuration) {
        if let ConfigurationKind::Regular(_) = configuration.kind {
            if self.formed {
                self.reconfigurations += 1;
            }
            self.formed |= configuration.members.len() == self.members;
        }
    }
}

/// When a message was due and its number, if it is what `sender` sends.
fn read_payload(payload: &[u8], sender: u16, size: usize) -> Option<(u64, u32)> {
    let (at, rest) = payload.split_first_chunk::<8>()?;
    let (node, rest) = rest.split_first_chunk::<4>()?;
    let number = rest.first_chunk::<4>()?;
    let right = payload.len() == size && u32::from_le_bytes(*node) == u32::from(sender);
    right.then(|| (u64::from_le_bytes(*at), u32::from_le_bytes(*number)))
}

impl Measuring for LoadApp {
    fn formed(&self) -> bool {
        self.formed
    }

    fn refused(&self) -> Option<String> {
        if self.missed > 0 {
            return Some("a node fell behind what others keep, and missed messages".to_owned());
        }
        let error = self.refused.as_ref()?;
        Some(format!("a message was refused: {error}"))
    }
}

impl App for LoadApp {
    fn deliver(&mut self, delivery: Delivery) {
        match delivery {
            Delivery::Message(message) => self.on_message(&message),
            Delivery::Configuration(configuration) => self.on_configuration(&configuration),
            // Before the load there is nothing to miss.
            Delivery::Missed { .. } => self.missed += u64::from(self.span.is_some()),
            Delivery::Passed { .. } | Delivery::Primary(_) | Delivery::Excluded(_) => {}
        }
    }

    fn flush(&mut self) {
        self.clock_uses = 0;
        self.record_run();
    }

    fn fill(&mut self, now: Time, submitter: &mut dyn Submitter) {
        self.last_fill = now.0;
        self.freed = false;
        while let Some(due) = self.due() {
            let over = self.span.is_some_and(|span| now.0 >= span.until);
            let timed = matches!(self.plan, Plan::Fixed { .. });
            if due > now.0 || self.refused.is_some() || (!timed && over) || self.has_enough() {
                return;
            }
            // Without a plan of times, a message is due when the ring would take it.
            let at = if timed { due } else { now.0 };
            if !self.submit(now, at, submitter) {
                return;
            }
        }
    }

    fn stop(&self) -> bool {
        self.refused.is_some()
    }

    fn may_sleep(&mut self) -> bool {
        !(self.freed && matches!(self.plan, Plan::UnderWay(_)))
    }

    fn next_wake(&self) -> Option<Time> {
        let due = self.due()?;
        match self.plan {
            // The backlog is full, or the start is still to come.
            Plan::Max | Plan::UnderWay(_) if self.next > 0 => None,
            Plan::Silent => None,
            _ => {
                let wake = wake_for(self.last_fill, due);
                Some(Time(wake.max(self.last_fill + WAKE_GAP_NS)))
            }
        }
    }
}

#[cfg(test)]
mod tests;
