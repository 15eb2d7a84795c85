//! The application above the rings of a [`RingsNode`](super::RingsNode), in their thread.

use rota_core::contract::Time;
use rota_multiring::{Rank, RingsDelivery};
use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;

use super::app::RingsApp;
use super::node::Shared;
use super::ways::{Way, Ways};
use crate::driver::Submitter;
use crate::node::inbox::Inbox;
use crate::node::outbox::{Delivered, Filling, Outbox};

/// A ring whose messages come from other threads.
#[derive(Debug)]
pub(super) struct Taking {
    way: Way,
    /// It did not take the oldest message.
    refused: bool,
}

impl Taking {
    pub(super) const fn new(way: Way) -> Self {
        let refused = false;
        Self { way, refused }
    }
}

/// See the module's page.
#[derive(Debug)]
pub(super) struct NodeApp {
    /// The rings that this process is on.
    pub(super) taken: Vec<Taking>,
    /// The same, for other threads.
    pub(super) ways: Ways,
    pub(super) filling: Filling<RingsDelivery>,
    pub(super) outbox: Arc<Outbox<RingsDelivery>>,
    pub(super) shared: Arc<Shared>,
}

impl NodeApp {
    fn of(&self, ring: Rank) -> Option<&Taking> {
        self.taken.iter().find(|taking| taking.way.rank == ring)
    }
}

impl Drop for NodeApp {
    fn drop(&mut self) {
        self.taken.iter().for_each(|taking| taking.way.inbox.end());
        self.outbox.end();
        self.shared.status.end();
        self.shared.foundings.end();
    }
}

impl RingsApp for NodeApp {
    fn deliver(&mut self, delivery: RingsDelivery) {
        self.filling.deliver(delivery);
    }

    fn has_room(&self) -> bool {
        self.filling.has_room(&self.outbox)
    }

    fn flush(&mut self) {
        self.filling.flush(&self.outbox);
    }

    fn on_founded(&mut self, rank: Rank, message_bytes: usize) -> io::Result<()> {
        let inbox = Arc::new(Inbox::new(message_bytes)?);
        let way = Way {
            rank,
            inbox,
            is_closed: false,
        };
        self.ways.add(way.clone());
        self.taken.push(Taking::new(way));
        Ok(())
    }

    fn fill(&mut self, now: Time, ring: Rank, submitter: &mut dyn Submitter) {
        let mut taken = self.taken.iter_mut();
        if let Some(taking) = taken.find(|taking| taking.way.rank == ring) {
            taking.refused = taking.way.inbox.fill(now, submitter);
        }
    }

    fn may_sleep(&mut self, ring: Rank) -> bool {
        let of = self.of(ring);
        of.is_none_or(|taking| taking.refused || taking.way.inbox.may_sleep())
    }

    fn awake(&mut self, ring: Rank, signalled: bool) {
        if let Some(taking) = self.of(ring) {
            taking.way.inbox.awake(signalled);
        }
    }

    fn waker(&self, ring: Rank) -> Option<RawFd> {
        self.of(ring).map(|taking| taking.way.inbox.raw())
    }
}

impl Delivered for RingsDelivery {
    fn size(&self) -> usize {
        match self {
            Self::Message(_, message) => message.payload.len(),
            _ => 0,
        }
    }
}
