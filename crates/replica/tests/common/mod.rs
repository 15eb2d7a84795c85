//! Helpers that all tests of replicas share.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use rota_core::contract::NodeId;

/// Everything has happened by then.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub fn node(number: u16) -> NodeId {
    NodeId::new(number).expect("not 0")
}

/// Waits until something is so.
pub fn until(what: &str, is_so: impl FnMut() -> bool) {
    until_within(PATIENCE, what, is_so);
}

/// The same, for so long.
pub fn until_within(patience: Duration, what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < patience, "not {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Whoever goes on until it is told to end does end, though a test has failed.
pub struct Ends<'a>(pub &'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}
