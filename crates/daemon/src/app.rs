//! The application of the node's driver: the callbacks of the ring's loop.

use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rota_core::contract::{Delivery, Histogram, SubmitError, Time};
use rota_net::monotonic;
use rota_node::{App, Submitter};

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
    /// The own message that is being timed, and when it was handed to the ring.
    timed: Option<(u64, Time)>,
    /// The times from the hand-over of timed messages to their own delivery.
    pub latency: Histogram,
}

impl ClientsApp {
    pub fn new(hub: Hub, stop: Arc<AtomicBool>) -> Self {
        Self {
            hub,
            stop,
            full: false,
            failed: None,
            timed: None,
            latency: Histogram::default(),
        }
    }

    /// Takes the time of an own message that comes back.
    fn time(&mut self, delivery: &Delivery) {
        let Some((counter, since)) = self.timed else {
            return;
        };
        let Delivery::Message(message) = delivery else {
            return;
        };
        if message.id.process == self.hub.groups.me() && message.id.counter >= counter {
            self.timed = None;
            if message.id.counter == counter {
                self.latency.record(monotonic().since(since));
            }
        }
    }

    /// Hands to the ring what is to be ordered, as long as it takes it.
    fn submit(&mut self, now: Time, submitter: &mut dyn Submitter) {
        let groups = &mut self.hub.groups;
        self.full = false;
        while let Some((service, bytes)) = groups.to_submit() {
            match submitter.submit(now, service, bytes) {
                Ok(counter) => {
                    self.timed.get_or_insert((counter, now));
                    groups.submitted(counter);
                }
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
        self.time(&delivery);
        self.hub.deliver(delivery);
    }

    fn fill(&mut self, now: Time, submitter: &mut dyn Submitter) {
        if let Err(error) = self.hub.serve(now) {
            self.failed = Some(error);
        }
        self.submit(now, submitter);
    }

    fn has_room(&self) -> bool {
        self.hub.has_room()
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
        // All that the ring delivers in a row is written to each client at once.
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
