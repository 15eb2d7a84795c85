//! The settings of data paths beside the ring that a seed draws, and of the links that some of them use.

use rota_ring::RingConfig;

use super::{DiskLoss, FaultKind, MICROS, MILLIS, Plan, PrimaryLayer};
use crate::rng::{Ppm, Rng};

/// Nanoseconds that a byte takes: a gigabit in a second.
const BYTE_NANOS: u64 = 8;

/// The most that a member of a view tells the others of its packets and messages, in bytes.
const EXCHANGE_BYTES: usize = 8 << 20;

/// The settings of data paths: each takes those that concern it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ViewsPlan {
    /// FastCast: packets that a member may have under way.
    pub window: u32,
    /// FastCast: the capacity of a link, in bits per second, if that is configured.
    pub capacity: Option<u64>,
    /// FastCast: control goes where packets go.
    pub control_with_data: bool,
    /// LCR: the largest frame.
    pub frame_bytes: usize,
    /// LCR: bytes that a member may have under way.
    pub window_bytes: usize,
    /// LCR: the size, in bytes, at which a message to the successor ends.
    pub batch_bytes: usize,
    /// Nodes may be killed however few remember the last view: then a new order begins, and what was in the
    /// old one is lost.
    pub amnesia: bool,
}

/// Reliable links.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinksPlan {
    /// Room of a link's queue.
    pub queue_bytes: usize,
    /// The time for which an end goes on with nothing passing, in nanoseconds.
    pub patience: u64,
    /// The time after which a link that is down is tried again, and one that is up may break, in nanoseconds.
    pub retry: u64,
    /// The share of those times at which a link that is up breaks.
    pub breaks: Ppm,
    /// Nanoseconds that a byte takes.
    pub byte_nanos: u64,
}

impl ViewsPlan {
    fn drawn(rng: &mut Rng) -> Self {
        Self {
            window: rng.pick(&[1, 4, 32, 256, 256]),
            capacity: rng.pick(&[
                None,
                None,
                Some(100_000_000),
                Some(1_000_000_000),
                Some(10_000_000_000),
            ]),
            control_with_data: rng.percent(30),
            frame_bytes: rng.pick(&[300, 1400, 16_000]),
            window_bytes: rng.pick(&[1 << 10, 16 << 10, 1 << 20]),
            batch_bytes: rng.pick(&[1 << 10, 8 << 10, 64 << 10]),
            amnesia: rng.percent(10),
        }
    }
}

impl LinksPlan {
    pub(super) fn drawn(rng: &mut Rng, token_loss: u64) -> Self {
        Self {
            queue_bytes: rng.pick(&[160 << 10, 256 << 10, 1 << 20]),
            patience: rng.spread(token_loss / 4, 4 * token_loss),
            retry: rng.spread(500 * MICROS, 50 * MILLIS),
            breaks: rng.pick(&[0, 0, 1000, 10_000, 100_000]),
            byte_nanos: BYTE_NANOS,
        }
    }
}

impl Plan {
    /// The same world for a data path beside the ring, with links if it uses them.
    pub fn set_views(&mut self, links: bool) {
        let mut rng = Rng::split(self.seed, 10);
        let views = ViewsPlan::drawn(&mut rng);
        let drawn = LinksPlan::drawn(&mut rng, self.ring.timers.token_loss);
        self.views = Some(views);
        self.links = links.then_some(drawn);
        self.primary.get_or_insert(PrimaryLayer::Static);
        self.bound_forgetting();
    }

    /// A view exists in its members' memories alone. With dynamic linear voting nothing bounds how many of them may be
    /// restarted, so nobody is. All nodes have to come back if a majority counts, with the numbers of their rings: by
    /// these they know that they have forgotten something.
    pub(crate) fn bound_forgetting(&mut self) {
        if self.views.is_none() {
            return;
        }
        let votes = matches!(self.primary, Some(PrimaryLayer::Dynamic { .. }));
        let is_kill = |kind: &FaultKind| matches!(kind, FaultKind::Kill { .. });
        self.faults.retain(|fault| !(votes && is_kill(&fault.kind)));
        for fault in &mut self.faults {
            if let FaultKind::Kill { disk, for_good, .. } = &mut fault.kind {
                *for_good = false;
                if disk.is_of_durable() {
                    *disk = DiskLoss::Torn;
                }
            }
        }
    }

    /// The configuration of the ring beside a data path, where `ring` is that of the data path's node.
    pub fn ring_beside(ring: RingConfig) -> RingConfig {
        let mut beside = ring;
        beside.message_bytes = EXCHANGE_BYTES;
        beside.backlog_bytes = 2 * EXCHANGE_BYTES;
        beside.trace = false;
        beside
    }
}
