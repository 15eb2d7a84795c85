//! What runs above several rings.

use rota_core::contract::{Configuration, Message, Time};
use rota_multiring::{Place, Rank, Resume};
use std::os::fd::RawFd;

use crate::driver::Submitter;

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
    /// A ring has delivered something before what it had delivered already, which it never may. Nothing is delivered any more.
    Contradicted(Rank),
    /// Everything before this place was delivered, and nothing behind it: a state that is kept here goes on with
    /// [`RingsDriver::resume`](super::RingsDriver::resume).
    Point(Box<Resume>),
    /// A ring was founded anew after the state with which this process began: that says nothing about this one. Nothing is delivered any more.
    Refounded(Rank),
}

/// What runs above several rings, in their thread: as [`crate::App`], of which each ring has its own. Every method must be quick: all rings wait.
pub trait RingsApp {
    /// Takes a delivery. Called only while `has_room`.
    fn deliver(&mut self, delivery: RingsDelivery);

    /// Whether it can take another delivery. While it cannot, rings throttle their senders.
    fn has_room(&self) -> bool {
        true
    }

    /// Some deliveries were handed out, and no more follow at once.
    fn flush(&mut self) {}

    /// The moment to submit to a ring.
    fn fill(&mut self, now: Time, ring: Rank, submitter: &mut dyn Submitter);

    /// When `fill` has to be called again for a ring even if nothing happens.
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
