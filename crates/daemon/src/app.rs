//! What the ring's loop calls.

use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rota_core::contract::{Delivery, SubmitError, Time};
use rota_net::{App, Submitter};

use crate::hub::Hub;

/// The daemon's clients, as the ring's loop sees them.
#[derive(Debug)]
pub(crate) struct ClientsApp {
    pub hub: Hub,
    stop: Arc<AtomicBool>,
    /// The ring took no more when it was last asked, and has delivered nothing since.
    full: bool,
    /// Clients cannot be served any more.
    pub failed: Option<io::Error>,
}

impl ClientsApp {
    pub const fn new(hub: Hub, stop: Arc<AtomicBool>) -> Self {
        Self {
            hub,
            stop,
            full: false,
            failed: None,
        }
    }

    /// Hands to the ring what is to be ordered, as long as it takes it.
    fn submit(&mut self, now: Time, submitter: &mut dyn Submitter) {
        let groups = &mut self.hub.groups;
        self.full = false;
        while let Some((service, bytes)) = groups.to_submit() {
            match submitter.submit(now, service, bytes) {
                Ok(_) => groups.submitted(),
                Err(SubmitError::Full | SubmitError::Stopped) => {
                    self.full = true;
                    return;
                }
                Err(SubmitError::TooLarge { .. } | SubmitError::Unsupported) => groups.refused(),
            }
        }
    }
}

impl App for ClientsApp {
    fn deliver(&mut self, delivery: Delivery) {
        self.full = false;
        self.hub.deliver(delivery);
    }

    fn fill(&mut self, now: Time, submitter: &mut dyn Submitter) {
        if let Err(error) = self.hub.serve(now) {
            self.failed = Some(error);
        }
        self.submit(now, submitter);
    }

    fn stop(&self) -> bool {
        self.failed.is_some() || self.stop.load(Ordering::Relaxed)
    }

    fn next_wake(&self) -> Option<Time> {
        self.hub.next_wake()
    }

    fn flush(&mut self) {
        self.hub.flush_if_due();
    }

    fn may_sleep(&mut self) -> bool {
        // What the ring delivers in a row goes to each client at once.
        self.hub.flush();
        let work = self.hub.has_work();
        let unsent = !self.full && self.hub.groups.has_to_submit();
        !(work || unsent || self.stop.load(Ordering::Relaxed))
    }

    fn awake(&mut self, signalled: bool) {
        self.hub.looked = !signalled;
    }

    fn waker(&self) -> Option<RawFd> {
        Some(self.hub.door.fd())
    }

    fn is_woken_by_kernel(&self) -> bool {
        true
    }
}
