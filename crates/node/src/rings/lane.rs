//! The application above one ring of several, in the thread of all.

use rota_core::contract::{Delivery, Process, Service, SubmitError, Time};
use rota_multiring::Rank;
use std::cell::{Cell, RefCell};
use std::os::fd::RawFd;
use std::rc::Rc;

use super::app::RingsApp;
use super::hub::MergedDelivery;
use super::trace::RingsTrace;
use crate::driver::{App, Submitter};

/// The application above one ring: deliveries go to the merge, and all else to the application above all rings.
#[derive(Debug)]
pub(super) struct LaneApp<A> {
    pub(super) rank: Rank,
    /// This node's process on the ring.
    process: Process,
    hub: Rc<RefCell<MergedDelivery<A>>>,
    /// A delivery may have met no room.
    blocked: Cell<bool>,
}

impl<A: RingsApp> LaneApp<A> {
    pub(super) const fn new(
        rank: Rank,
        process: Process,
        hub: Rc<RefCell<MergedDelivery<A>>>,
    ) -> Self {
        Self {
            rank,
            process,
            hub,
            blocked: Cell::new(false),
        }
    }

    /// Whether there was no room, and there is some now.
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
        let mut hub = self.hub.borrow_mut();
        let MergedDelivery { app, trace, .. } = &mut *hub;
        let Some(trace) = trace else {
            return app.fill(now, self.rank, submitter);
        };
        let process = self.process;
        app.fill(
            now,
            self.rank,
            &mut Traced {
                submitter,
                trace,
                process,
            },
        );
        // Before anything of it is on the wire.
        trace.flush();
    }

    /// The caller that runs all rings says when to end.
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

/// Writes the messages that a ring accepts into the trace.
struct Traced<'a> {
    submitter: &'a mut dyn Submitter,
    trace: &'a mut RingsTrace,
    process: Process,
}

impl Submitter for Traced<'_> {
    fn submit(&mut self, now: Time, service: Service, payload: &[u8]) -> Result<u64, SubmitError> {
        let counter = self.submitter.submit(now, service, payload)?;
        self.trace.on_submit(now, self.process, counter, payload);
        Ok(counter)
    }
}
