//! What runs above one ring of several, in their thread.

use rota_core::contract::{Delivery, Time};
use rota_multiring::Rank;
use std::cell::{Cell, RefCell};
use std::os::fd::RawFd;
use std::rc::Rc;

use super::app::RingsApp;
use super::hub::Hub;
use crate::driver::{App, Submitter};

/// Above one ring: its deliveries go to the merge, and all else to what is above all rings.
#[derive(Debug)]
pub(super) struct LaneApp<A> {
    pub(super) rank: Rank,
    hub: Rc<RefCell<Hub<A>>>,
    /// It had a delivery, perhaps, and there was no room.
    blocked: Cell<bool>,
}

impl<A: RingsApp> LaneApp<A> {
    pub(super) const fn new(rank: Rank, hub: Rc<RefCell<Hub<A>>>) -> Self {
        Self {
            rank,
            hub,
            blocked: Cell::new(false),
        }
    }

    /// It had no room, and has some now.
    pub(super) fn is_freed(&self) -> bool {
        self.blocked.get() && self.has_room()
    }
}

impl<A: RingsApp> App for LaneApp<A> {
    fn deliver(&mut self, delivery: Delivery) {
        self.hub.borrow_mut().deliver(self.rank, delivery);
    }

    fn has_room(&self) -> bool {
        let has_room = self.hub.borrow().has_room(self.rank);
        self.blocked.set(!has_room);
        has_room
    }

    fn flush(&mut self) {
        self.hub.borrow_mut().app.flush();
    }

    fn fill(&mut self, now: Time, submitter: &mut dyn Submitter) {
        self.hub.borrow_mut().app.fill(now, self.rank, submitter);
    }

    /// Whoever runs all rings says when to end.
    fn stop(&self) -> bool {
        false
    }

    fn next_wake(&self) -> Option<Time> {
        self.hub.borrow().app.next_wake(self.rank)
    }

    fn may_sleep(&mut self) -> bool {
        self.hub.borrow_mut().app.may_sleep(self.rank)
    }

    fn awake(&mut self, signalled: bool) {
        self.hub.borrow_mut().app.awake(self.rank, signalled);
    }

    fn waker(&self) -> Option<RawFd> {
        self.hub.borrow().app.waker(self.rank)
    }
}
