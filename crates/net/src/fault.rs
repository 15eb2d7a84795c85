//! Faults on purpose: received datagrams are lost, delayed, doubled and reordered, to measure how a ring behaves on a
//! bad network (report §IV-C) without one. Off unless configured.

use rota_core::contract::{Class, NodeId, Time};
use rota_core::wire::HEADER_BYTES;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::path::PathBuf;

use crate::runs::kept_runs;
use crate::sockets::Arrival;

/// The place of the sender's number in a data header.
const SENDER_AT: usize = 32;

/// The delay of a reordered datagram behind its turn, in nanoseconds: long enough for the rest of its burst and some of
/// the next to overtake it.
const REORDER_NANOS: u64 = 200_000;

/// The configured faults. Probabilities are between 0 and 1.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FaultConfig {
    /// The same seed and the same arrivals give the same faults.
    pub seed: u64,
    /// Probability that a datagram is lost.
    pub loss: f64,
    /// Lose only datagrams from the node this many places before in the ring.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss_distance: Option<usize>,
    /// Every datagram arrives this much later, in microseconds.
    pub delay_us: u64,
    /// Probability that a datagram arrives twice.
    pub duplicate: f64,
    /// Probability that a datagram is overtaken by later ones.
    pub reorder: f64,
    /// Do all this to tokens, too.
    pub include_token: bool,
    /// The time that each sync of the log of votes takes in addition, in microseconds.
    pub disk_delay_us: u64,
    /// The time in milliseconds for which the disk with that log stands still at the end of each period.
    pub disk_hang_ms: u64,
    /// That period, in milliseconds.
    pub disk_hang_every_ms: u64,
    /// While this file is there (`{node}` stands for the node's number), its text is the trouble with that disk:
    /// `hang`, `fail` (every write), or `full` (no new segment).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_trouble: Option<PathBuf>,
}

impl FaultConfig {
    /// Whether all probabilities are between 0 and 1.
    pub fn is_valid(&self) -> bool {
        [self.loss, self.duplicate, self.reorder]
            .iter()
            .all(|p| (0.0..=1.0).contains(p))
    }
}

/// A small generator of pseudo-random numbers (SplitMix64).
#[derive(Clone, Debug)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// True with this probability; draws nothing for 0, so that unused faults change no sequence.
    fn chance(&mut self, probability: f64) -> bool {
        probability > 0.0 && ((self.next() >> 11) as f64) < probability * (1_u64 << 53) as f64
    }
}

/// A datagram that arrives later.
#[derive(Debug)]
struct Late {
    due: Time,
    /// Keeps the order of those due at the same time.
    serial: u64,
    class: Class,
    arrival: Arrival,
}

impl PartialEq for Late {
    fn eq(&self, other: &Self) -> bool {
        self.serial == other.serial
    }
}

impl Eq for Late {}

impl PartialOrd for Late {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Late {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.due, self.serial).cmp(&(other.due, other.serial))
    }
}

/// Stands between the sockets and the engine.
#[derive(Debug)]
pub struct FaultLayer {
    config: FaultConfig,
    random: Random,
    /// Lose only datagrams of this node.
    victim: Option<u16>,
    late: BinaryHeap<Reverse<Late>>,
    serial: u64,
    faults: u64,
}

impl FaultLayer {
    /// Faults for node `me` of the ring `members` (ascending).
    pub fn new(config: FaultConfig, me: NodeId, members: &[NodeId]) -> Self {
        let place = members.iter().position(|&member| member == me).unwrap_or(0);
        let victim = config
            .loss_distance
            .filter(|_| !members.is_empty())
            .map(|distance| {
                let count = members.len();
                members[(place + count - distance % count) % count].get()
            });
        // Nodes with the same seed must not lose the same multicasts.
        let random = Random(config.seed ^ (u64::from(me.get()) << 48));
        Self {
            config,
            random,
            victim,
            late: BinaryHeap::new(),
            serial: 0,
            faults: 0,
        }
    }

    /// Datagrams that something was done to, so far.
    pub const fn faults(&self) -> u64 {
        self.faults
    }

    /// The time at which the next late datagram is due.
    pub fn next_due(&self) -> Option<Time> {
        self.late.peek().map(|Reverse(late)| late.due)
    }

    /// Takes a burst that was read, and appends what arrives of it now to `arrivals`.
    pub fn pass(
        &mut self,
        now: Time,
        class: Class,
        arrival: Arrival,
        arrivals: &mut VecDeque<Arrival>,
    ) {
        if class == Class::Token && !self.config.include_token {
            arrivals.push_back(arrival);
            return;
        }
        let Arrival { bytes, segment } = arrival;
        let mut at = 0;
        let mut extra = Vec::new();
        let keep = |_: usize, datagram: &[u8]| {
            let range = at..at + datagram.len();
            at = range.end;
            if self.loses(datagram) {
                self.faults += 1;
                return false;
            }
            let mut delay = self.config.delay_us.saturating_mul(1000);
            if self.random.chance(self.config.reorder) {
                delay = delay.saturating_add(REORDER_NANOS);
            }
            let copies = 1 + u32::from(self.random.chance(self.config.duplicate));
            let late_copies = if delay > 0 { copies } else { copies - 1 };
            self.faults += u64::from(late_copies > 0);
            for _ in 0..late_copies {
                extra.push((now.after(delay), range.clone()));
            }
            delay == 0
        };
        kept_runs(&bytes, segment, keep, |bytes| {
            let segment = segment.min(bytes.len());
            arrivals.push_back(Arrival { bytes, segment });
        });
        for (due, range) in extra {
            let bytes = bytes.slice(range);
            let arrival = Arrival {
                segment: bytes.len(),
                bytes,
            };
            self.serial += 1;
            self.late.push(Reverse(Late {
                due,
                serial: self.serial,
                class,
                arrival,
            }));
        }
    }

    /// Takes the next late datagram that is due.
    pub fn take_due(&mut self, now: Time) -> Option<(Class, Arrival)> {
        if self.next_due()? > now {
            return None;
        }
        self.late
            .pop()
            .map(|Reverse(late)| (late.class, late.arrival))
    }

    fn loses(&mut self, datagram: &[u8]) -> bool {
        let sender = datagram
            .get(SENDER_AT..HEADER_BYTES)
            .and_then(|field| field.first_chunk());
        let sender = sender.map(|bytes| u16::from_le_bytes(*bytes));
        let chosen = self.victim.is_none() || self.victim == sender;
        chosen && self.random.chance(self.config.loss)
    }
}

#[cfg(test)]
#[path = "fault_tests.rs"]
mod tests;
