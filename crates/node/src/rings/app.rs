//! The application above several rings.

use rota_core::contract::Time;
use rota_multiring::{Rank, RingsDelivery};
use std::io;
use std::os::fd::RawFd;

use crate::driver::Submitter;

/// The application above several rings, in their thread: as [`crate::App`], of which each ring has its own. Every
/// method must be quick: all rings wait.
pub trait RingsApp {
    /// Takes a delivery. Called only while `has_room`.
    fn deliver(&mut self, delivery: RingsDelivery);

    /// Whether it can take another delivery. While it cannot, rings throttle their senders.
    fn has_room(&self) -> bool {
        true
    }

    /// Some deliveries were handed out, and no more follow at once.
    fn flush(&mut self) {}

    /// A ring was founded while the process runs, or before it was started, and this process is on it: it may be
    /// submitted to. A message has so many bytes at most.
    ///
    /// # Errors
    /// The ring is tried again later.
    fn on_founded(&mut self, ring: Rank, message_bytes: usize) -> io::Result<()> {
        let _ = (ring, message_bytes);
        Ok(())
    }

    /// The moment to submit to a ring.
    fn fill(&mut self, now: Time, ring: Rank, submitter: &mut dyn Submitter);

    /// The time at which `fill` has to be called again for a ring even if nothing happens.
    fn next_wake(&self, ring: Rank) -> Option<Time> {
        let _ = ring;
        None
    }

    /// A ring is about to sleep; `false` if it must not.
    fn may_sleep(&mut self, ring: Rank) -> bool {
        let _ = ring;
        true
    }

    /// A ring does not sleep any more; `signalled` if it was its waker's doing.
    fn awake(&mut self, ring: Rank, signalled: bool) {
        let _ = (ring, signalled);
    }

    /// A descriptor that wakes a ring when it is readable ([`rota_net::WakeFd`]).
    fn waker(&self, ring: Rank) -> Option<RawFd> {
        let _ = ring;
        None
    }
}
