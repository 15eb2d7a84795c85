//! A node's words on the order in which it delivers, where a trace would be too long: a digest to be compared with
//! others' at equal counts.

use rota_bench::Digest;
use rota_core::contract::Time;
use serde::Serialize;

/// A digest is said after each so many messages: about one a second at full load.
const STRIDE: u64 = 1 << 18;

/// See the module. Messages count from the regular configuration that is current.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Order {
    conf: String,
    #[serde(flatten)]
    digest: Digest,
    /// Messages of this node, of all configurations.
    submitted: u64,
    /// The longest time between deliveries, in nanoseconds: how long the ring stood still at most.
    longest_gap: u64,
    #[serde(skip)]
    flushed: Option<Time>,
    /// Whether a message was delivered since then.
    #[serde(skip)]
    delivered: bool,
}

impl Order {
    pub(super) fn begin(&mut self, conf: &str) {
        conf.clone_into(&mut self.conf);
        self.digest = Digest::default();
    }

    pub(super) fn submitted(&mut self) {
        self.submitted += 1;
    }

    /// Adds a message; says whether it is time to say the digest.
    pub(super) fn note(&mut self, node: u16, counter: u64) -> bool {
        self.digest.note(node, counter);
        self.delivered = true;
        self.digest.count.is_multiple_of(STRIDE)
    }

    /// The deliveries so far are handed out.
    pub(super) fn flushed(&mut self, now: Time) {
        if !std::mem::take(&mut self.delivered) {
            return;
        }
        let gap = self.flushed.map_or(0, |before| now.since(before));
        self.longest_gap = self.longest_gap.max(gap);
        self.flushed = Some(now);
    }

    /// Gaps count from the next message on: an idle ring delivers nothing.
    pub(super) fn forget_gaps(&mut self) {
        (self.flushed, self.longest_gap) = (None, 0);
        self.delivered = false;
    }
}
