//! A node of the experiment: sends by its phase, and adds up the deliveries of each node's messages.

use rota_core::contract::{Configuration, ConfigurationKind, Delivery, Service, SubmitError, Time};
use rota_node::{App, Submitter};

use super::{NODES, Phase, SLOT_NS};
use crate::clock::now_ns;
use crate::library::Measuring;

/// Lengths of messages, in bytes (§4.2).
const LENGTHS: std::ops::RangeInclusive<u64> = 1_000..=6_000;
/// No extra wake-up is made sooner than this after the last chance to submit.
const WAKE_GAP_NS: u64 = 200_000;
/// Deliveries in a row that share one look at the clock.
const PER_CLOCK: u32 = 8;
const NANOS: u128 = 1_000_000_000;

/// See the module page.
pub(super) struct SharesApp {
    phases: Vec<Phase>,
    random: u64,
    next_length: u64,
    payload: Vec<u8>,
    /// The start and the end, on the common clock.
    span: Option<(u64, u64)>,
    last_fill: u64,
    /// Bits that are due and not submitted, times 10⁹.
    due: u128,
    clock: u64,
    clock_uses: u32,
    formed: bool,
    refused: Option<SubmitError>,
    /// Bytes of payload of each node, slot by slot.
    pub slots: Vec<[u64; NODES]>,
}

impl SharesApp {
    pub fn new(node: u16, phases: Vec<Phase>, slots: usize) -> Self {
        Self {
            phases,
            random: u64::from(node),
            next_length: *LENGTHS.start(),
            payload: vec![0x5A; *LENGTHS.end() as usize],
            span: None,
            last_fill: 0,
            due: 0,
            clock: 0,
            clock_uses: 0,
            formed: false,
            refused: None,
            slots: vec![[0; NODES]; slots],
        }
    }

    pub fn begin(&mut self, start: u64) {
        let length = self.slots.len() as u64 * SLOT_NS;
        self.span = Some((start, start + length));
        self.last_fill = start;
    }

    fn rate(&self, since_start: u64) -> u64 {
        let past = self.phases.iter().rev();
        let mut past = past.skip_while(|phase| phase.from_ns > since_start);
        past.next().map_or(0, |phase| phase.bits_per_second)
    }

    /// The next length: splitmix64.
    fn draw(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.random ^ (self.random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        LENGTHS.start() + (z ^ (z >> 31)) % (LENGTHS.end() - LENGTHS.start() + 1)
    }

    /// The slot of this moment.
    fn slot(&mut self) -> Option<usize> {
        if self.clock_uses == 0 {
            self.clock = now_ns();
            self.clock_uses = PER_CLOCK;
        }
        self.clock_uses -= 1;
        let (start, _) = self.span?;
        let since = self.clock.checked_sub(start)?;
        usize::try_from(since / SLOT_NS).ok()
    }
}

impl Measuring for SharesApp {
    fn formed(&self) -> bool {
        self.formed
    }

    fn refused(&self) -> Option<String> {
        let error = self.refused.as_ref()?;
        Some(format!("a message was refused: {error}"))
    }
}

impl App for SharesApp {
    fn deliver(&mut self, delivery: Delivery) {
        match delivery {
            Delivery::Configuration(Configuration {
                kind: ConfigurationKind::Regular(_),
                members,
            }) => self.formed = members.len() == NODES,
            Delivery::Message(message) => {
                let sender = usize::from(message.id.process.node.get()) - 1;
                let slot = self.slot();
                if let Some(slot) = slot.and_then(|slot| self.slots.get_mut(slot))
                    && let Some(bytes) = slot.get_mut(sender)
                {
                    *bytes += message.payload.len() as u64;
                }
            }
            _ => {}
        }
    }

    fn flush(&mut self) {
        self.clock_uses = 0;
    }

    fn fill(&mut self, now: Time, submitter: &mut dyn Submitter) {
        let Some((start, end)) = self.span else {
            return;
        };
        if now.0 <= self.last_fill || now.0 >= end {
            return;
        }
        let rate = u128::from(self.rate(now.0 - start));
        self.due += rate * u128::from(now.0 - self.last_fill);
        self.last_fill = now.0;
        while self.due >= u128::from(self.next_length) * 8 * NANOS {
            let payload = &self.payload[..self.next_length as usize];
            match submitter.submit(now, Service::Safe, payload) {
                Ok(_) => {}
                // A message that is not taken is not sent later.
                Err(SubmitError::Full) => self.due = self.due.min(8 * NANOS * 6_000),
                Err(error) => {
                    self.refused = Some(error);
                    return;
                }
            }
            self.due = self
                .due
                .saturating_sub(u128::from(self.next_length) * 8 * NANOS);
            self.next_length = self.draw();
        }
    }

    fn stop(&self) -> bool {
        self.refused.is_some()
    }

    fn next_wake(&self) -> Option<Time> {
        let (start, end) = self.span?;
        let rate = u128::from(self.rate(self.last_fill - start)).max(1);
        let lacking = (u128::from(self.next_length) * 8 * NANOS).saturating_sub(self.due);
        let wait = u64::try_from(lacking / rate).unwrap_or(u64::MAX);
        let at = self.last_fill.saturating_add(wait.max(WAKE_GAP_NS));
        (at < end).then_some(Time(at))
    }
}
