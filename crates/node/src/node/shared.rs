//! The state that the application's threads and the ring's thread share.

use rota_core::contract::{Delivery, RingId, Time};
use std::collections::VecDeque;
use std::io;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use super::asked::Asked;
use super::inbox::Inbox;
use super::outbox::{Delivered, Filling, Outbox};
use super::{NodeStatus, lock};
use crate::driver::{App, Submitter};

/// Shared by a node's handles and its ring thread.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) inbox: Inbox,
    outbox: Outbox<Delivery>,
    stop: AtomicBool,
    /// The ring of the primary whose state the application says that it has.
    caught_up: Mutex<Option<RingId>>,
    status: Asked<NodeStatus>,
}

/// The two sides, and the channel between them.
pub(super) fn new(message_bytes: usize) -> io::Result<(Arc<Shared>, RingApp)> {
    let shared = Arc::new(Shared {
        inbox: Inbox::new(message_bytes)?,
        outbox: Outbox::default(),
        stop: AtomicBool::new(false),
        caught_up: Mutex::new(None),
        status: Asked::default(),
    });
    let app = RingApp {
        shared: Arc::clone(&shared),
        filling: Filling::default(),
        refused: false,
    };
    Ok((shared, app))
}

impl Shared {
    /// Moves everything that was delivered into `taken`, which is empty; waits for it until
    /// `deadline`, or without end.
    pub(super) fn take(
        &self,
        taken: &mut VecDeque<Delivery>,
        deadline: Option<Instant>,
    ) -> Result<(), RecvTimeoutError> {
        if self.outbox.take(taken, deadline)? {
            self.inbox.wake();
        }
        Ok(())
    }

    pub(super) fn stop(&self) {
        self.stop.store(true, SeqCst);
        self.inbox.wake();
    }

    pub(super) fn caught_up(&self, ring: RingId) {
        *lock(&self.caught_up) = Some(ring);
        self.inbox.wake();
    }

    pub(super) fn status(&self) -> Option<NodeStatus> {
        self.status.ask(|| self.inbox.wake())
    }
}

impl Delivered for Delivery {
    fn size(&self) -> usize {
        match self {
            Self::Message(message) => message.payload.len(),
            Self::Configuration(_)
            | Self::Passed { .. }
            | Self::Notice { .. }
            | Self::Primary(_)
            | Self::Excluded(_)
            | Self::Missed { .. } => 0,
        }
    }
}

/// The ring thread's side.
#[derive(Debug)]
pub(super) struct RingApp {
    shared: Arc<Shared>,
    filling: Filling<Delivery>,
    /// The engine did not take the oldest message: it will have room after a visit of the token.
    refused: bool,
}

impl RingApp {
    pub(super) fn status_wanted(&self) -> bool {
        self.shared.status.take_wanted()
    }

    pub(super) fn take_caught_up(&self) -> Option<RingId> {
        lock(&self.shared.caught_up).take()
    }

    pub(super) fn publish_status(&self, status: NodeStatus) {
        self.shared.status.answer(status);
    }
}

impl Drop for RingApp {
    fn drop(&mut self) {
        self.shared.inbox.end();
        self.shared.outbox.end();
        self.shared.status.end();
    }
}

impl App for RingApp {
    fn deliver(&mut self, delivery: Delivery) {
        self.filling.deliver(delivery);
    }

    fn has_room(&self) -> bool {
        self.filling.has_room(&self.shared.outbox)
    }

    fn flush(&mut self) {
        self.filling.flush(&self.shared.outbox);
    }

    fn fill(&mut self, now: Time, submitter: &mut dyn Submitter) {
        self.refused = self.shared.inbox.fill(now, submitter);
    }

    fn stop(&self) -> bool {
        self.shared.stop.load(SeqCst)
    }

    fn may_sleep(&mut self) -> bool {
        // If the engine took not all, more submissions change nothing until it has sent some.
        self.refused || self.shared.inbox.may_sleep()
    }

    fn awake(&mut self, signalled: bool) {
        self.shared.inbox.awake(signalled);
    }

    fn waker(&self) -> Option<RawFd> {
        Some(self.shared.inbox.raw())
    }
}
