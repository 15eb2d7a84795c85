//! What a loop does that has nothing to do.

use rota_core::contract::{Engine, Time};

use super::{App, Driver, DriverError};
use crate::sockets::{Outgoing, Ready, Wait};
use crate::sys;

/// How long to wait when a queue below the socket is full, in nanoseconds: a few packets' time.
const NO_BUFFERS_NANOS: u64 = 100_000;

/// The most looks before a sleep. They take about as much as a sleep and a wake-up from another
/// processor do on a virtual machine (25 µs), so that at the very worst a rest costs twice that.
const MOST_LOOKS: u32 = 32;

/// How often a loop looks whether something has come, and lets others run, before it sleeps. Where
/// nodes share a processor, those others may well send what it would sleep for.
#[derive(Debug)]
pub(super) struct Doze {
    /// Doubled when looking was worth it, halved when it was not.
    looks: u32,
    /// Goes on looking for so long, where that is configured.
    busy_poll_nanos: u64,
}

impl Doze {
    pub(super) const fn new(busy_poll_nanos: u64) -> Self {
        Self {
            looks: 1,
            busy_poll_nanos,
        }
    }

    fn came(&mut self) {
        self.looks = (self.looks * 2).min(MOST_LOOKS);
    }

    fn nothing_came(&mut self) {
        self.looks = (self.looks / 2).max(1);
    }
}

impl<E: Engine> Driver<E> {
    /// Rests until something happens, at most for `limit` nanoseconds.
    pub(super) fn rest<A: App>(
        &mut self,
        app: &mut A,
        limit: Option<u64>,
    ) -> Result<(), DriverError> {
        if let Some(tracer) = &mut self.tracer {
            tracer.flush().map_err(DriverError::Trace)?;
        }
        let now = sys::monotonic();
        let until = self.rest_until(app, now, limit);
        // An application with something to submit does not let the loop sleep, but what is stuck
        // must leave first.
        let over = until.is_some_and(|until| until <= now);
        let stay = over || !(app.may_sleep() || self.stuck.is_some());
        let wait = Wait {
            nanos: Some(0),
            no_token: self.stuck.is_some(),
            writable: self
                .stuck
                .as_ref()
                .filter(|_| !self.no_buffers)
                .map(Outgoing::class),
            waker: app.waker(),
        };
        let ready = if stay {
            self.look(wait)?
        } else {
            self.doze_or_sleep(wait, now, until)?
        };
        app.awake(ready.woken);
        self.arrivals.know(ready);
        Ok(())
    }

    /// When there is something to do even if nothing comes.
    fn rest_until<A: App>(&self, app: &A, now: Time, limit: Option<u64>) -> Option<Time> {
        let wake = [
            self.engine.next_timer().map(|(at, _)| at),
            app.next_wake(),
            self.arrivals.next_due(),
            limit.map(|nanos| now.after(nanos)),
            self.no_buffers.then(|| now.after(NO_BUFFERS_NANOS)),
        ];
        wake.into_iter().flatten().min()
    }

    fn doze_or_sleep(
        &mut self,
        wait: Wait,
        start: Time,
        until: Option<Time>,
    ) -> Result<Ready, DriverError> {
        let mut now = start;
        // The kernel tells when there is room again; nothing else matters until then.
        if self.stuck.is_none() {
            let mut looks = 0;
            while looks < self.doze.looks || now.since(start) < self.doze.busy_poll_nanos {
                std::thread::yield_now();
                let ready = self.look(wait)?;
                now = sys::monotonic();
                if ready != Ready::default() {
                    self.doze.came();
                    return Ok(ready);
                }
                if until.is_some_and(|until| until <= now) {
                    return Ok(ready);
                }
                looks += 1;
            }
            self.doze.nothing_came();
        }
        let nanos = until.map(|until| until.since(now));
        self.look(Wait { nanos, ..wait })
    }

    fn look(&mut self, wait: Wait) -> Result<Ready, DriverError> {
        self.sockets.stats_mut().waits += u64::from(wait.nanos != Some(0));
        self.sockets.wait(wait).map_err(DriverError::Socket)
    }
}
