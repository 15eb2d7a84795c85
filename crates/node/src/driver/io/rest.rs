//! The rest of a loop that has nothing to do.

use rota_core::contract::{Engine, Time};

use super::Io;
use crate::driver::doze::Load;
use crate::driver::{App, DriverError};
use rota_net::sockets::{PollSet, Wait};

/// The wait when a queue below the socket is full, in nanoseconds: a few packets' time.
const NO_BUFFERS_NANOS: u64 = 100_000;

/// There is something to do.
#[derive(Clone, Copy, Debug)]
pub(in crate::driver) struct Awake;

impl Io {
    /// Rests until something happens, at most for `limit` nanoseconds.
    pub(in crate::driver) fn rest<E: Engine, A: App>(
        &mut self,
        engine: &E,
        app: &mut A,
        limit: Option<u64>,
    ) -> Result<(), DriverError> {
        if self.has_link_events() {
            return Ok(());
        }
        let now = rota_net::monotonic();
        let until = self.rest_until(engine, app, now, limit);
        let over = until.is_some_and(|until| until <= now);
        // A stuck output must leave first; the kernel says when it can.
        if self.sending.is_stuck() || over {
            return self.sleep(app, until);
        }
        // An application with something to submit does not let the loop rest.
        if !app.may_sleep() {
            return self.sleep(app, Some(now));
        }
        if self.look_around(engine, app, now, until)? {
            return Ok(());
        }
        self.sleep(app, until)
    }

    /// The time until which a driver may sleep that rests together with others, as far as is known without asking the
    /// kernel. `Err`: it may not.
    pub(in crate::driver) fn lie_down<E: Engine, A: App>(
        &self,
        engine: &E,
        app: &mut A,
    ) -> Result<Option<Time>, Awake> {
        let until = self.rest_until(engine, app, rota_net::monotonic(), None);
        let is_due = until.is_some_and(|until| until <= rota_net::monotonic());
        if self.has_link_events() || self.answers.are_there() || is_due {
            return Err(Awake);
        }
        if !self.sending.is_stuck() && !app.may_sleep() {
            return Err(Awake);
        }
        Ok(until)
    }

    /// The descriptors that wake this driver.
    pub(in crate::driver) fn poll_set<A: App>(&self, app: &A) -> PollSet {
        self.sockets.poll_set(&self.waits(app, None))
    }

    /// Takes over what the kernel has said of these descriptors.
    pub(in crate::driver) fn wake<A: App>(&mut self, app: &mut A, fds: &[libc::pollfd]) {
        let ready = self.sockets.heard(fds);
        app.awake(ready.woken);
        self.arrivals.know(ready);
    }

    /// The load that has come until now.
    pub(in crate::driver) const fn load(&self) -> Load {
        Load::of(self.sockets.stats())
    }

    /// Whether one of the sockets has something.
    fn look<E: Engine, A: App>(
        &mut self,
        engine: &E,
        app: &mut A,
        now: Time,
    ) -> Result<bool, DriverError> {
        if app.is_woken_by_kernel() {
            return self.look_at_all(app);
        }
        let first = engine.reading();
        let look = self.arrivals.look(&mut self.sockets, first, now);
        let mut came = look.map_err(DriverError::Socket)?;
        if let Some(links) = self.links.as_mut().filter(|_| !came) {
            came = links.look(now).map_err(DriverError::Socket)?;
        }
        if came {
            app.awake(false);
        }
        Ok(came)
    }

    /// The same, the application's own included: one question about all is cheaper then than one for each.
    fn look_at_all<A: App>(&mut self, app: &mut A) -> Result<bool, DriverError> {
        let wait = Wait {
            nanos: Some(0),
            waker: app.waker(),
            links: self.links.as_ref().map(|links| links.raw()),
            ..Wait::default()
        };
        let ready = self.sockets.wait(wait).map_err(DriverError::Socket)?;
        let came = ready.data || ready.token || ready.woken || ready.links;
        if came {
            app.awake(ready.woken);
            self.arrivals.know(ready);
        }
        Ok(came)
    }

    /// The time at which there is something to do even if nothing comes.
    fn rest_until<E: Engine, A: App>(
        &self,
        engine: &E,
        app: &A,
        now: Time,
        limit: Option<u64>,
    ) -> Option<Time> {
        let has_no_buffers = self.sending.has_no_buffers();
        let wake = [
            engine.next_timer().map(|(at, _)| at),
            app.next_wake(),
            self.arrivals.next_due(),
            self.links.as_ref().and_then(|links| links.next_due()),
            limit.map(|nanos| now.after(nanos)),
            has_no_buffers.then(|| now.after(NO_BUFFERS_NANOS)),
        ];
        wake.into_iter().flatten().min()
    }

    /// Looks a few times; says whether there is something to do.
    fn look_around<E: Engine, A: App>(
        &mut self,
        engine: &E,
        app: &mut A,
        start: Time,
        until: Option<Time>,
    ) -> Result<bool, DriverError> {
        let (mut looks, mut now) = (0, start);
        while self.doze.looks_on(looks, start, now) {
            let before = now;
            std::thread::yield_now();
            now = rota_net::monotonic();
            self.doze.yielded(before, now, self.load());
            if self.look(engine, app, now)? {
                self.doze.came();
                return Ok(true);
            }
            let stored = self.answers.are_there();
            if stored || until.is_some_and(|until| until <= now) || !app.may_sleep() {
                app.awake(false);
                return Ok(true);
            }
            looks += 1;
        }
        self.doze.nothing_came();
        Ok(false)
    }

    /// Sleeps until something comes or it is time; not at all if it is time already.
    fn sleep<A: App>(&mut self, app: &mut A, until: Option<Time>) -> Result<(), DriverError> {
        let nanos = until.map(|until| until.since(rota_net::monotonic()));
        let wait = self.waits(app, nanos);
        self.sockets.stats_mut().waits += u64::from(nanos != Some(0));
        let ready = self.sockets.wait(wait).map_err(DriverError::Socket)?;
        if ready.data || ready.token || ready.links {
            self.doze.woken();
        }
        app.awake(ready.woken);
        self.arrivals.know(ready);
        Ok(())
    }

    fn waits<A: App>(&self, app: &A, nanos: Option<u64>) -> Wait {
        let is_stuck = self.sending.is_stuck();
        Wait {
            nanos,
            no_token: is_stuck,
            writable: self.sending.waits_for(),
            waker: app.waker(),
            // While an output is stuck the answer would only be left lying.
            stored: self.answers.raw().filter(|_| !is_stuck),
            links: self.links.as_ref().map(|links| links.raw()),
        }
    }
}
