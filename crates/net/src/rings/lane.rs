//! What runs above one ring of several, in their thread.

use rota_core::contract::{Delivery, Time};
use rota_multiring::Rank;
use std::cell::{Cell, RefCell};
use std::os::fd::RawFd;
use std::rc::Rc;
use std::sync::Arc;

use super::hub::Hub;
use crate::driver::{App, Submitter};
use crate::node::inbox::Inbox;

/// Above one ring: hands in what was submitted to it, and its deliveries to the merge.
#[derive(Debug)]
pub(super) struct LaneApp {
    pub(super) rank: Rank,
    inbox: Arc<Inbox>,
    hub: Rc<RefCell<Hub>>,
    /// The engine did not take the oldest message.
    refused: bool,
    /// It had a delivery, perhaps, and there was no room.
    blocked: Cell<bool>,
}

impl LaneApp {
    pub(super) const fn new(rank: Rank, inbox: Arc<Inbox>, hub: Rc<RefCell<Hub>>) -> Self {
        Self {
            rank,
            inbox,
            hub,
            refused: false,
            blocked: Cell::new(false),
        }
    }

    /// It had no room, and has some now.
    pub(super) fn is_freed(&self) -> bool {
        self.blocked.get() && self.has_room()
    }
}

impl Drop for LaneApp {
    fn drop(&mut self) {
        self.inbox.end();
    }
}

impl App for LaneApp {
    fn deliver(&mut self, delivery: Delivery) {
        self.hub.borrow_mut().deliver(self.rank, delivery);
    }

    fn has_room(&self) -> bool {
        let has_room = self.hub.borrow().has_room(self.rank);
        self.blocked.set(!has_room);
        has_room
    }

    fn flush(&mut self) {
        self.hub.borrow_mut().flush();
    }

    fn fill(&mut self, now: Time, submitter: &mut dyn Submitter) {
        self.refused = self.inbox.fill(now, submitter);
    }

    /// Whoever runs all rings says when to end.
    fn stop(&self) -> bool {
        false
    }

    fn may_sleep(&mut self) -> bool {
        self.refused || self.inbox.may_sleep()
    }

    fn awake(&mut self, signalled: bool) {
        self.inbox.awake(signalled);
    }

    fn waker(&self) -> Option<RawFd> {
        Some(self.inbox.raw())
    }
}
