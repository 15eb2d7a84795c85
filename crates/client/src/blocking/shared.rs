//! The state that both halves of a client share, and the waits of one half for the other.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::link::{Interest, Link};
use crate::error::ConnectionLost;
use crate::protocol::PrivateName;
use crate::session::{OutstandingRequests, Settled, Stop};

/// The longest time for which a sender does not check whether the connection still stands.
const TURN: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub struct Shared {
    pub link: Link,
    pub name: PrivateName,
    /// The time-out for the answer to a request.
    pub timeout: Duration,
    account: Mutex<OutstandingRequests>,
    changed: Condvar,
    /// Senders that wait for `changed`. Only a thread that holds the account changes this number.
    waiting: AtomicUsize,
}

impl Shared {
    pub fn new(
        link: Link,
        name: PrivateName,
        timeout: Duration,
        account: OutstandingRequests,
    ) -> Self {
        Self {
            link,
            name,
            timeout,
            account: Mutex::new(account),
            changed: Condvar::new(),
            waiting: AtomicUsize::new(0),
        }
    }

    /// No step of an account can panic half-way, so the account of a thread that panicked is sound.
    pub fn account(&self) -> MutexGuard<'_, OutstandingRequests> {
        self.account.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the link that more bytes are on the way, if it minds.
    pub fn mind(&self) {
        if self.link.is_patient() {
            self.link.mind(self.account().credit.outstanding());
        }
    }

    /// Enters the news of one read, and wakes the senders that wait for it.
    pub fn settle(&self, settled: Settled) {
        let mut account = self.account();
        let changed = account.settle(settled);
        self.link.mind(account.credit.outstanding());
        // A notification costs a system call even if no sender waits.
        if changed && self.waiting.load(Relaxed) > 0 {
            drop(account);
            self.changed.notify_all();
        }
    }
}

/// The event that a sender waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Need {
    /// Room in the socket.
    Write,
    /// Another account than the one with this number of changes.
    Change(u64),
}

/// The way of a sender to wait.
pub trait Wait {
    /// Waits until the need may be met; may return too early.
    fn wait(&mut self, shared: &Shared, need: Need, deadline: Option<Instant>) -> Result<(), Stop>;

    /// The reason, as far as it can be known, why the socket takes nothing more.
    fn write_failed(&mut self, shared: &Shared, error: io::Error) -> ConnectionLost;
}

/// Waits for the receiver, which another thread has.
#[derive(Debug)]
pub struct Apart;

impl Wait for Apart {
    fn wait(&mut self, shared: &Shared, need: Need, deadline: Option<Instant>) -> Result<(), Stop> {
        let in_time = match need {
            Need::Write => wait_for_room(shared, deadline)?,
            Need::Change(seen) => wait_for_change(shared, seen, deadline),
        };
        if in_time { Ok(()) } else { Err(Stop::TimedOut) }
    }

    /// The receiver may yet read why.
    fn write_failed(&mut self, shared: &Shared, error: io::Error) -> ConnectionLost {
        let lost = shared.account().lost.clone();
        lost.unwrap_or_else(|| error.into())
    }
}

/// Returns now and then: an end of the stream in the other direction, which the receiver reads, makes no room in the
/// socket, so the sender has to check the connection itself.
fn wait_for_room(shared: &Shared, deadline: Option<Instant>) -> Result<bool, Stop> {
    shared.account().standing()?;
    let interest = Interest {
        read: false,
        write: true,
    };
    let turn = Instant::now() + TURN;
    let is_last = deadline.is_some_and(|deadline| deadline <= turn);
    let until = if is_last { deadline } else { Some(turn) };
    Ok(shared.link.wait(interest, until)? || !is_last)
}

fn wait_for_change(shared: &Shared, seen: u64, deadline: Option<Instant>) -> bool {
    let same = |account: &mut OutstandingRequests| account.changes == seen;
    let account = shared.account();
    shared.waiting.fetch_add(1, Relaxed);
    let (account, in_time) = match deadline {
        None => {
            let waited = shared.changed.wait_while(account, same);
            (waited.unwrap_or_else(PoisonError::into_inner), true)
        }
        Some(deadline) => {
            let left = deadline.saturating_duration_since(Instant::now());
            let waited = shared.changed.wait_timeout_while(account, left, same);
            let (account, result) = waited.unwrap_or_else(PoisonError::into_inner);
            (account, !result.timed_out())
        }
    };
    shared.waiting.fetch_sub(1, Relaxed);
    drop(account);
    in_time
}
