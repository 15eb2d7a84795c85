//! The number of clusters at a time.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// They mostly wait, so that two are no trouble for each other.
const AT_ONCE: usize = 2;

static PLACES: Mutex<usize> = Mutex::new(AT_ONCE);
static FREED: Condvar = Condvar::new();
static ALONE: Mutex<()> = Mutex::new(());

/// The place of a cluster.
#[derive(Debug)]
pub struct Turn(());

impl Turn {
    /// Waits for one.
    pub fn take() -> Self {
        let places = PLACES.lock().unwrap_or_else(PoisonError::into_inner);
        let has_none = |places: &mut usize| *places == 0;
        let mut places = FREED
            .wait_while(places, has_none)
            .unwrap_or_else(PoisonError::into_inner);
        *places -= 1;
        Self(())
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        *PLACES.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        FREED.notify_all();
    }
}

/// The other places, for a test of how long something takes.
#[derive(Debug)]
pub struct Alone {
    _others: [Turn; AT_ONCE - 1],
    _one: MutexGuard<'static, ()>,
}

/// To be asked for before there is a cluster, and kept until it is gone.
pub fn alone() -> Alone {
    let one = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    Alone {
        _others: std::array::from_fn(|_| Turn::take()),
        _one: one,
    }
}
