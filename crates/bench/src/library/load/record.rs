//! What a node saw of the deliveries: their order, their latencies, and whether they are what was sent.

use rota_core::contract::Message;
use serde::{Deserialize, Serialize};

use super::pace::Span;
use super::series::{Series, Slot};
use crate::clock::now_ns;
use crate::hist::Latencies;
use crate::library::order::Order;

/// Deliveries in a row that share one look at the clock.
const PER_CLOCK: u32 = 8;

/// Counts between two moments, or of the whole run.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(in crate::library) struct Delivered {
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
#[derive(Debug)]
pub(in crate::library) struct Record {
    me: u16,
    /// Bytes of every payload.
    size: usize,
    clock: u64,
    clock_uses: u32,
    /// Messages delivered in a row that had the same latency, and are not recorded yet.
    run: Run,
    series: Option<Series>,
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
}

impl Record {
    pub(super) fn new(me: u16, size: usize) -> Self {
        Self {
            me,
            size,
            clock: 0,
            clock_uses: 0,
            run: Run::default(),
            series: None,
            delivered: Delivered::default(),
            order: Order::default(),
            latencies: Latencies::new(),
            own_latencies: Latencies::new(),
            trials: None,
            garbled: 0,
        }
    }

    /// From now on this node has another number.
    pub(super) fn renumber(&mut self, me: u16) {
        self.me = me;
    }

    /// From now on counts by slots of this length, in nanoseconds.
    pub(in crate::library) fn keep_series(&mut self, length_ns: u64) {
        self.series = Some(Series::new(length_ns));
    }

    /// Notes a delivered message; `true` if it is this node's own.
    pub(super) fn note(&mut self, message: &Message, span: Option<Span>) -> bool {
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
        }
        match read_payload(&message.payload, sender, self.size) {
            Some((at, number)) => {
                if let Some(span) = span {
                    self.time(at, number, own, span);
                }
            }
            None => self.garbled += 1,
        }
        own
    }

    /// Notes the latency of a message that was due at `at`.
    fn time(&mut self, at: u64, number: u32, own: bool, span: Span) {
        let latency = self.clock.saturating_sub(at);
        if let Some(series) = &mut self.series {
            series.note(self.clock.saturating_sub(span.start), self.size, latency);
        }
        if !span.measures(at) {
            return;
        }
        debug_assert!(span.start <= at);
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

    /// The deliveries that belonged together are over.
    pub(super) fn flush(&mut self) {
        self.clock_uses = 0;
        self.record_run();
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

    /// What was delivered over time, if that was kept.
    pub(in crate::library) fn take_slots(&mut self) -> Vec<Slot> {
        self.series.take().map_or_else(Vec::new, Series::into_slots)
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
