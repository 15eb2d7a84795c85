//! Several drivers in one thread: a thread for each ring would cost more in wake-ups than the rings do.
//!
//! A driver that has nothing to do lies down. One call asks the kernel about all that lie down: after each turn of the
//! drivers that have something to do, and for as long as none has.

use rota_core::contract::{Engine, Time};

use super::doze::{Doze, Load};
use super::{App, Driver, DriverError};
use rota_net::sockets::PollSet;

/// The steps of one driver before the others have their turn: bursts, or messages of links.
const STEPS: u32 = 8;

/// Descriptors that wake a driver.
const SET: usize = size_of::<PollSet>() / size_of::<libc::pollfd>();

/// A driver, and what runs above it.
pub(crate) struct Lane<E, A> {
    pub(crate) driver: Driver<E>,
    pub(crate) app: A,
    /// The driver lies down.
    asleep: bool,
    /// The driver has something to do then.
    until: Option<Time>,
}

/// All of a thread.
pub(crate) struct Many<E, A> {
    lanes: Vec<Lane<E, A>>,
    doze: Doze,
    /// The time at which the last turn began.
    began: Time,
    fds: Vec<libc::pollfd>,
}

impl<E: Engine, A: App> Many<E, A> {
    /// None of them has had a turn.
    pub(crate) fn new(
        drivers: impl IntoIterator<Item = (Driver<E>, A)>,
        busy_poll_us: u64,
    ) -> Self {
        Self {
            lanes: drivers.into_iter().map(Lane::new).collect(),
            doze: Doze::new(busy_poll_us.saturating_mul(1000), rota_net::is_realtime()),
            began: Time(0),
            fds: Vec::new(),
        }
    }

    /// One more, which has its turn with the others.
    pub(crate) fn push(&mut self, driver: (Driver<E>, A)) {
        self.lanes.push(Lane::new(driver));
    }

    pub(crate) fn lanes(&mut self) -> &mut [Lane<E, A>] {
        &mut self.lanes
    }

    /// Each does some of what it has to do.
    ///
    /// # Errors
    /// [`DriverError`] of any of them.
    pub(crate) fn work(&mut self) -> Result<(), DriverError> {
        self.began = rota_net::monotonic();
        for lane in &mut self.lanes {
            lane.rouse(self.began);
            if !lane.asleep {
                lane.work()?;
            }
        }
        Ok(())
    }

    /// Rests until something happens, at most for `limit` nanoseconds, where no driver has anything to do. The work of
    /// one may be news for another, so the caller tells them before this.
    ///
    /// # Errors
    /// [`DriverError`] of any of them.
    pub(crate) fn rest(&mut self, limit: Option<u64>) -> Result<(), DriverError> {
        if self.lanes.iter().all(|lane| lane.asleep) {
            return self.doze(self.began, limit);
        }
        if self.lanes.iter().any(|lane| lane.asleep) {
            self.poll(Some(0))?;
        }
        Ok(())
    }

    /// Tells the other nodes of each ring that this one leaves.
    ///
    /// # Errors
    /// [`DriverError`] of the first that cannot.
    pub(crate) fn leave(&mut self) -> Result<(), DriverError> {
        let left = self.lanes.iter_mut().map(|lane| lane.driver.leave());
        left.fold(Ok(()), Result::and)
    }

    fn doze(&mut self, start: Time, limit: Option<u64>) -> Result<(), DriverError> {
        let limit = limit.map(|nanos| start.after(nanos));
        let until = self.lanes.iter().filter_map(|lane| lane.until);
        let until = until.chain(limit).min();
        let (mut looks, mut now) = (0, start);
        while self.doze.looks_on(looks, start, now) {
            let before = now;
            std::thread::yield_now();
            now = rota_net::monotonic();
            let loads = self.lanes.iter().map(|lane| lane.driver.io.load());
            self.doze
                .yielded(before, now, loads.fold(Load::NONE, Load::and));
            if self.poll(Some(0))? {
                self.doze.came();
                return Ok(());
            }
            if until.is_some_and(|until| until <= now) {
                return Ok(());
            }
            looks += 1;
        }
        self.doze.nothing_came();
        let nanos = until.map(|until| until.since(rota_net::monotonic()));
        if self.poll(nanos)? {
            self.doze.woken();
        }
        Ok(())
    }

    /// Asks the kernel about all that lie down, for `nanos` nanoseconds; says whether it has something for one of them.
    fn poll(&mut self, nanos: Option<u64>) -> Result<bool, DriverError> {
        self.fds.clear();
        for lane in self.lanes.iter().filter(|lane| lane.asleep) {
            self.fds.extend(lane.driver.io.poll_set(&lane.app));
        }
        let count = rota_net::poll(&mut self.fds, nanos).map_err(DriverError::Socket)?;
        if count == 0 {
            return Ok(false);
        }
        let asleep = self.lanes.iter_mut().filter(|lane| lane.asleep);
        for (lane, fds) in asleep.zip(self.fds.chunks(SET)) {
            if fds.iter().any(|fd| fd.revents != 0) {
                lane.asleep = false;
                lane.driver.io.wake(&mut lane.app, fds);
            }
        }
        Ok(true)
    }
}

impl<E, A> Lane<E, A> {
    fn new((driver, app): (Driver<E>, A)) -> Self {
        Self {
            driver,
            app,
            asleep: false,
            until: None,
        }
    }
}

impl<E: Engine, A: App> Lane<E, A> {
    /// Its time has come.
    fn rouse(&mut self, now: Time) {
        if self.asleep && self.until.is_some_and(|until| until <= now) {
            self.asleep = false;
            self.app.awake(false);
        }
    }

    fn work(&mut self) -> Result<(), DriverError> {
        for _ in 0..STEPS {
            match self.driver.work(&mut self.app)? {
                None => {}
                Some(true) => return Ok(()),
                Some(false) => {
                    if let Ok(until) = self.driver.lie_down(&mut self.app) {
                        (self.asleep, self.until) = (true, until);
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }

    /// Whether it has nothing to do, as far as it knew.
    pub(crate) const fn is_asleep(&self) -> bool {
        self.asleep
    }

    /// Something from above has to be done at once.
    pub(crate) fn get_up(&mut self) {
        if self.asleep {
            self.asleep = false;
            self.app.awake(false);
        }
    }
}
