//! A question about a node's state, which the node's thread answers when it comes to it.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::lock;

/// The time for which a question waits for its answer.
const PATIENCE: Duration = Duration::from_secs(1);

/// Shared by the thread that asks and the thread that answers.
#[derive(Debug)]
pub(crate) struct Asked<T> {
    is_wanted: AtomicBool,
    ended: AtomicBool,
    answer: Mutex<Option<T>>,
    there: Condvar,
}

impl<T> Default for Asked<T> {
    fn default() -> Self {
        Self {
            is_wanted: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            answer: Mutex::new(None),
            there: Condvar::new(),
        }
    }
}

impl<T: Clone> Asked<T> {
    /// Asks, and wakes the thread; `None` if it has ended, or does not come to it in time.
    pub(crate) fn ask(&self, wake: impl FnOnce()) -> Option<T> {
        let mut answer = lock(&self.answer);
        *answer = None;
        self.is_wanted.store(true, SeqCst);
        wake();
        let missing = |answer: &mut Option<T>| answer.is_none() && !self.ended.load(SeqCst);
        let waited = self.there.wait_timeout_while(answer, PATIENCE, missing);
        waited.unwrap_or_else(PoisonError::into_inner).0.clone()
    }

    /// Whether a question waits.
    pub(crate) fn take_wanted(&self) -> bool {
        self.is_wanted.swap(false, SeqCst)
    }

    pub(crate) fn answer(&self, answer: T) {
        *lock(&self.answer) = Some(answer);
        self.there.notify_all();
    }

    /// No question is answered any more.
    pub(crate) fn end(&self) {
        self.ended.store(true, SeqCst);
        // With the lock held nobody can be between looking at `ended` and waiting.
        drop(lock(&self.answer));
        self.there.notify_all();
    }
}
