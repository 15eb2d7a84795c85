//! The application of the node's driver: the callbacks of the ring's loop.

use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rota_core::contract::{Delivery, Histogram, SubmitError, Time};
use rota_net::monotonic;
use rota_node::{App, Submitter};

use crate::control::Control;
use crate::hub::Hub;
use crate::members::Members;

/// The daemon's clients, as the ring's loop sees them.
#[derive(Debug)]
pub(crate) struct ClientsApp {
    pub hub: Hub,
    /// The nodes of the cluster.
    pub members: Members,
    stop: Arc<AtomicBool>,
    control: Control,
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
    pub fn new(hub: Hub, members: Members, stop: Arc<AtomicBool>, control: Control) -> Self {
        Self {
            hub,
            members,
            stop,
            control,
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
        if message.id.process == self.hub.me() && message.id.counter >= counter {
            self.timed = None;
            if message.id.counter == counter {
                self.latency.record(monotonic().since(since));
            }
        }
    }

    /// Hands to the ring what is to be ordered, as long as it takes it.
    fn submit(&mut self, now: Time, submitter: &mut dyn Submitter) {
        self.full = false;
        while let Some((service, bytes)) = self.members.to_submit() {
            match submitter.submit(now, service, bytes) {
                Ok(_) => self.members.submitted(),
                Err(SubmitError::Full | SubmitError::Stopped) => {
                    self.full = true;
                    return;
                }
                Err(error @ (SubmitError::TooLarge { .. } | SubmitError::Unsupported)) => {
                    self.members.cannot_submit(error);
                }
            }
        }
        while let Some((service, bytes)) = self.hub.next_to_submit() {
            match submitter.submit(now, service, bytes) {
                Ok(counter) => {
                    self.timed.get_or_insert((counter, now));
                    self.hub.submitted(counter);
                }
                Err(SubmitError::Full | SubmitError::Stopped) => {
                    self.full = true;
                    return;
                }
                Err(SubmitError::TooLarge { .. } | SubmitError::Unsupported) => {
                    self.hub.refused();
                }
            }
        }
    }
}

impl App for ClientsApp {
    fn deliver(&mut self, delivery: Delivery) {
        self.full = false;
        self.time(&delivery);
        if !self.members.deliver(&delivery) {
            self.hub.deliver(delivery);
        }
    }

    fn fill(&mut self, now: Time, submitter: &mut dyn Submitter) {
        if let Err(error) = self.hub.serve(now) {
            self.failed = Some(error);
        }
        self.members.look_at_clock(now);
        self.submit(now, submitter);
    }

    fn has_room(&self) -> bool {
        self.hub.has_room()
    }

    fn stop(&self) -> bool {
        let is_over = self.failed.is_some() || self.members.leaves();
        is_over || self.stop.load(Ordering::Relaxed)
    }

    fn next_wake(&self) -> Option<Time> {
        let wakes = [self.hub.next_wake(), self.members.next_wake()];
        wakes.into_iter().flatten().min()
    }

    fn flush(&mut self) {
        self.hub.flush_if_due();
    }

    fn may_sleep(&mut self) -> bool {
        // All that the ring delivers in a row is written to each client at once.
        self.hub.flush();
        let work = self.hub.has_work();
        let to_submit = self.hub.has_to_submit() || self.members.to_submit().is_some();
        let unsent = !self.full && to_submit;
        let unstored = self.members.has_to_store();
        // A look at the clients' sockets since the last answer may have taken the wake-up of whoever asks.
        let unanswered = self.control.is_asked();
        !(work || unsent || unstored || unanswered || self.stop.load(Ordering::Relaxed))
    }

    fn awake(&mut self, signalled: bool) {
        self.hub.awake(signalled);
    }

    fn waker(&self) -> Option<RawFd> {
        Some(self.hub.fd())
    }

    fn is_woken_by_kernel(&self) -> bool {
        true
    }
}
