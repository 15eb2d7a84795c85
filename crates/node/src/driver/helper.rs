//! A thread beside the ring's, and the desk between the two.
//!
//! Each thread puts its messages to the other on the desk. The helper thread waits for them there; the ring's thread is
//! woken by its waker.

use std::fmt;
use std::io;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::waker::Waker;

/// The time for which the end of a driver waits for the thread's current work. That was promised to nobody.
const PATIENCE: Duration = Duration::from_secs(2);

/// The exchange between the two threads.
#[derive(Debug, Default)]
pub(super) struct Mailbox<T> {
    things: T,
    /// The thread is to end.
    pub(super) stop: bool,
    /// The thread has ended; unless it was told to, it panicked.
    pub(super) ended: bool,
    /// The thread waits for something to be put here.
    sleeps: bool,
}

impl<T> Deref for Mailbox<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.things
    }
}

impl<T> DerefMut for Mailbox<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.things
    }
}

/// The desk, as both threads have it.
#[derive(Debug)]
pub(super) struct Shared<T> {
    desk: Mutex<Mailbox<T>>,
    changed: Condvar,
    pub(super) waker: Arc<Waker>,
}

impl<T: Default> Shared<T> {
    pub(super) fn new(waker: Arc<Waker>) -> Arc<Self> {
        Arc::new(Self {
            desk: Mutex::default(),
            changed: Condvar::new(),
            waker,
        })
    }
}

impl<T> Shared<T> {
    pub(super) fn desk(&self) -> MutexGuard<'_, Mailbox<T>> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts something on the desk, and wakes the thread if it waits for it.
    pub(super) fn put(&self, put: impl FnOnce(&mut Mailbox<T>)) {
        let mut desk = self.desk();
        put(&mut desk);
        let sleeps = desk.sleeps;
        drop(desk);
        if sleeps {
            self.changed.notify_all();
        }
    }

    /// Waits while the thread is idle and is not to end, at most for `limit`.
    pub(super) fn wait(
        &self,
        limit: Option<Duration>,
        idle: impl Fn(&T) -> bool,
    ) -> MutexGuard<'_, Mailbox<T>> {
        let waits = |desk: &mut Mailbox<T>| idle(desk) && !desk.stop;
        let mut desk = self.desk();
        if limit == Some(Duration::ZERO) || !waits(&mut desk) {
            return desk;
        }
        desk.sleeps = true;
        let mut desk = match limit {
            None => self.changed.wait_while(desk, waits),
            Some(limit) => {
                let waited = self.changed.wait_timeout_while(desk, limit, waits);
                Ok(waited.unwrap_or_else(PoisonError::into_inner).0)
            }
        }
        .unwrap_or_else(PoisonError::into_inner);
        desk.sleeps = false;
        desk
    }
}

/// The ring's side of such a thread. Dropping it ends the thread, unless that does not answer.
pub(super) struct Helper<T> {
    shared: Arc<Shared<T>>,
    thread: Option<JoinHandle<()>>,
    /// The warning if the thread does not end.
    late: &'static str,
}

impl<T: Send + 'static> Helper<T> {
    pub(super) fn start(
        shared: Arc<Shared<T>>,
        name: &str,
        late: &'static str,
        work: impl FnOnce(&Shared<T>) + Send + 'static,
    ) -> io::Result<Self> {
        let end = End(Arc::clone(&shared));
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || work(&end.0))?;
        Ok(Self {
            shared,
            thread: Some(thread),
            late,
        })
    }
}

impl<T> Deref for Helper<T> {
    type Target = Shared<T>;

    fn deref(&self) -> &Shared<T> {
        &self.shared
    }
}

impl<T> Drop for Helper<T> {
    fn drop(&mut self) {
        self.shared.put(|desk| desk.stop = true);
        let (desk, _) = self
            .shared
            .changed
            .wait_timeout_while(self.shared.desk(), PATIENCE, |desk| !desk.ended)
            .unwrap_or_else(PoisonError::into_inner);
        if !desk.ended {
            tracing::warn!("{}", self.late);
            return;
        }
        drop(desk);
        // A panic has been shown already.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl<T> fmt::Debug for Helper<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Helper").finish_non_exhaustive()
    }
}

/// Says that the thread has ended, also when it panics.
struct End<T>(Arc<Shared<T>>);

impl<T> Drop for End<T> {
    fn drop(&mut self) {
        self.0.desk().ended = true;
        self.0.changed.notify_all();
        self.0.waker.ring();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    fn shared() -> Arc<Shared<Vec<u32>>> {
        Shared::new(Arc::new(Waker::new().unwrap()))
    }

    #[test]
    fn it_takes_what_is_put_and_ends_when_it_is_dropped() {
        let helper = Helper::start(shared(), "rota-test", "late", |shared| {
            loop {
                let mut desk = shared.wait(None, Vec::is_empty);
                if desk.stop {
                    return;
                }
                desk.clear();
                drop(desk);
                shared.waker.ring();
            }
        });
        let helper = helper.unwrap();
        for number in 0..3 {
            helper.put(|desk| desk.push(number));
            while !helper.waker.answer() {
                std::thread::yield_now();
            }
            assert!(helper.desk().is_empty());
        }
        let shared = Arc::clone(&helper.shared);
        drop(helper);
        assert!(shared.desk().ended);
        assert_eq!(Arc::strong_count(&shared), 1);
    }

    #[test]
    fn a_wait_ends_when_something_comes_or_its_time_is_over() {
        let shared = shared();
        let brief = Duration::from_millis(30);
        let start = Instant::now();
        assert!(shared.wait(Some(brief), Vec::is_empty).is_empty());
        assert!(start.elapsed() >= brief);
        std::thread::scope(|scope| {
            // A put that changes nothing for the thread that waits does not make it deaf.
            scope.spawn(|| {
                std::thread::sleep(brief);
                shared.put(|_| {});
                shared.put(|desk| desk.push(1));
            });
            assert_eq!(shared.wait(None, Vec::is_empty)[..], [1]);
        });
    }

    #[test]
    fn a_panic_is_seen() {
        let helper = Helper::start(shared(), "rota-test", "late", |_| {
            panic!("as the test wants")
        });
        let helper = helper.unwrap();
        // The waker comes last: a thread that is woken by it finds the reason on the desk.
        while !helper.waker.answer() {
            std::thread::yield_now();
        }
        assert!(helper.desk().ended);
    }
}
