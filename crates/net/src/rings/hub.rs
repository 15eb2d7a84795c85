//! What the rings of a process deliver, merged.

use rota_core::contract::{Configuration, Delivery, Message};
use rota_multiring::merge::Need;
use rota_multiring::{Constants, Merge, Place, Point, Rank, Round};
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::node::outbox::{Delivered, Filling, Outbox};

/// What of one ring may wait for others, in bytes; the ring's engine keeps what is behind that, and throttles nobody.
const WAITING_BYTES: usize = 8 << 20;

/// What a process of several rings delivers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RingsDelivery {
    /// A message, in the order of all rings.
    Message(Place, Message),
    /// The members of a ring are others now. Not in that order: what this process hears of a ring, when it does.
    Configuration(Rank, Configuration),
    /// A ring has forgotten what this process needs of it next, so many instances. Nothing is delivered any more: this process has to begin
    /// at a later point, with the state that belongs to it.
    Trimmed(Rank, u64),
}

impl Delivered for RingsDelivery {
    fn size(&self) -> usize {
        match self {
            Self::Message(_, message) => message.payload.len(),
            Self::Configuration(..) | Self::Trimmed(..) => 0,
        }
    }
}

/// Everything above the rings of a process.
#[derive(Debug)]
pub(super) struct Hub {
    merge: Merge<Message>,
    filling: Filling<RingsDelivery>,
    pub(super) outbox: Arc<Outbox<RingsDelivery>>,
    /// The greatest round for which each ring was said to be needed.
    asked: BTreeMap<Rank, Round>,
    /// Something has come since what is needed was looked at.
    is_changed: bool,
    /// Nothing is delivered any more.
    is_over: bool,
}

impl Hub {
    /// Above these rings, from their beginning.
    pub(super) fn new(
        rings: impl IntoIterator<Item = Constants>,
        outbox: Arc<Outbox<RingsDelivery>>,
    ) -> Self {
        Self {
            merge: Merge::new(rings),
            filling: Filling::default(),
            outbox,
            asked: BTreeMap::new(),
            is_changed: false,
            is_over: false,
        }
    }

    /// Whether a ring's messages are wanted.
    pub(super) fn has(&self, rank: Rank) -> bool {
        self.merge.rings().any(|of| of.rank == rank)
    }

    pub(super) fn has_room(&self, rank: Rank) -> bool {
        self.merge.waiting_bytes(rank) < WAITING_BYTES && self.filling.has_room(&self.outbox)
    }

    pub(super) fn deliver(&mut self, rank: Rank, delivery: Delivery) {
        match delivery {
            Delivery::Message(message) => self.push(rank, message),
            Delivery::Passed { next } => {
                let told = self.merge.passed(rank, next, 1);
                self.is_changed |= told.is_ok();
            }
            Delivery::Configuration(now) => {
                self.filling
                    .deliver(RingsDelivery::Configuration(rank, now));
            }
            Delivery::Missed { count, .. } if self.has(rank) && !self.is_over => {
                self.is_over = true;
                self.filling.deliver(RingsDelivery::Trimmed(rank, count));
            }
            Delivery::Missed { .. } | Delivery::Primary(_) | Delivery::Excluded(_) => {}
        }
        self.pump();
    }

    fn push(&mut self, rank: Rank, message: Message) {
        let (at, bytes) = (
            (message.seq, u32::from(message.index)),
            message.payload.len(),
        );
        match self.merge.push(rank, at, (message, bytes)) {
            Ok(()) => self.is_changed = true,
            // Of a ring that this process is on and does not want.
            Err(rota_multiring::PushError::NotSubscribed(_)) => {}
            Err(error) => {
                tracing::error!(
                    ring = rank.0,
                    ?error,
                    "a ring contradicts itself: nothing is delivered any more"
                );
                self.is_over = true;
            }
        }
    }

    /// Hands over what may be delivered by now.
    fn pump(&mut self) {
        while !self.is_over
            && let Some(merged) = self.merge.poll()
        {
            let delivery = RingsDelivery::Message(merged.place, merged.message);
            self.filling.deliver(delivery);
        }
    }

    pub(super) fn flush(&mut self) {
        self.filling.flush(&self.outbox);
    }

    /// The rings that are needed further than was said before.
    pub(super) fn take_needs(&mut self) -> Vec<Need> {
        if !std::mem::take(&mut self.is_changed) {
            return Vec::new();
        }
        let mut needs = self.merge.needs();
        needs.retain(|need| {
            let asked = self.asked.entry(need.rank).or_insert(0);
            let is_news = need.round >= *asked;
            *asked = (*asked).max(need.round.saturating_add(1));
            is_news
        });
        needs
    }

    /// How far it is, and what it waits for.
    pub(super) fn describe(&self) -> (Option<Point>, Vec<Need>) {
        (self.merge.point(), self.merge.needs())
    }
}
