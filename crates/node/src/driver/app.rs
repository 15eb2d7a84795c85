//! The application's side of a driver.

use rota_core::contract::{Delivery, Engine, Service, SubmitError, Time};
use std::os::fd::RawFd;

use crate::trace::Tracer;

/// Takes messages for ordering.
pub trait Submitter {
    /// Submits a message; answers with its counter.
    ///
    /// # Errors
    /// [`SubmitError`]; nothing of the message was kept.
    fn submit(&mut self, now: Time, service: Service, payload: &[u8]) -> Result<u64, SubmitError>;
}

/// The program above a ring, in the ring's own thread. Every method must be quick: the ring waits.
pub trait App {
    /// Takes a delivery. Called only while `has_room`.
    fn deliver(&mut self, delivery: Delivery);

    /// Whether it can take another delivery. While it cannot, the ring throttles all senders.
    fn has_room(&self) -> bool {
        true
    }

    /// The moment to submit: called just before each token is handled, and before the loop waits.
    fn fill(&mut self, now: Time, submitter: &mut dyn Submitter);

    /// Whether to end [`crate::Driver::run`].
    fn stop(&self) -> bool;

    /// The time at which `fill` has to be called again even if nothing happens.
    fn next_wake(&self) -> Option<Time> {
        None
    }

    /// Some deliveries were handed out, and no more follow at once; or there was no room for any.
    fn flush(&mut self) {}

    /// The loop is about to sleep; `false` if it must not. An application that submits as its own
    /// deliveries come back has to say so here: the last of them may come after the last `fill`.
    fn may_sleep(&mut self) -> bool {
        true
    }

    /// The loop does not sleep any more; `signalled` if it was the waker's doing.
    fn awake(&mut self, signalled: bool) {
        let _ = signalled;
    }

    /// A descriptor that wakes the loop when readable ([`rota_net::WakeFd`]).
    fn waker(&self) -> Option<RawFd> {
        None
    }

    /// Whether the loop is woken by other sockets behind the waker. Only the kernel knows whether those have something:
    /// `may_sleep` cannot say it.
    fn is_woken_by_kernel(&self) -> bool {
        false
    }
}

/// Submits to an engine, and says so in its trace.
pub(super) struct EngineSubmitter<'a, E> {
    pub(super) engine: &'a mut E,
    pub(super) tracer: Option<&'a mut Tracer>,
    /// The number of messages that the engine has taken so far.
    pub(super) taken: &'a mut u64,
}

impl<E: Engine> Submitter for EngineSubmitter<'_, E> {
    fn submit(&mut self, now: Time, service: Service, payload: &[u8]) -> Result<u64, SubmitError> {
        let counter = self.engine.submit(now, service, payload)?;
        *self.taken += 1;
        if let Some(tracer) = &mut self.tracer {
            tracer.on_submit(now, counter, service, payload);
        }
        Ok(counter)
    }
}
