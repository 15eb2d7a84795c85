//! The memory that is kept for clients: a bound for all together, so that a few thousand slow ones do not take all
//! memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// The bytes that all clients together may have kept.
const MOST_BYTES: u64 = 512 << 20;
/// The bytes that a client may have kept in any case.
const LITTLE_BYTES: u64 = 64 << 10;

/// The bytes that are kept for all clients.
#[derive(Clone, Default)]
pub struct Held(Arc<AtomicU64>);

/// The bytes that are kept for one client. They are free when this is dropped.
pub struct Share {
    all: Held,
    bytes: u64,
}

impl Held {
    /// The number of bytes.
    pub fn bytes(&self) -> u64 {
        self.0.load(SeqCst)
    }

    /// The share of a client that begins.
    pub fn share(&self) -> Share {
        Share {
            all: self.clone(),
            bytes: 0,
        }
    }
}

impl Share {
    /// Sets the bytes that are kept for the client now.
    pub fn set(&mut self, bytes: usize) {
        let bytes = bytes as u64;
        match bytes >= self.bytes {
            true => self.all.0.fetch_add(bytes - self.bytes, SeqCst),
            false => self.all.0.fetch_sub(self.bytes - bytes, SeqCst),
        };
        self.bytes = bytes;
    }

    /// Whether all clients together have too much, and this one more than a little.
    pub fn is_too_much(&self) -> bool {
        self.bytes > LITTLE_BYTES && self.all.bytes() > MOST_BYTES
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_keeps_is_free_when_it_goes_and_who_has_little_is_not_in_the_way() {
        let all = Held::default();
        let (mut large, mut little) = (all.share(), all.share());
        large.set(MOST_BYTES as usize);
        assert!(!large.is_too_much());
        little.set(100);
        assert!(large.is_too_much() && !little.is_too_much());
        large.set(1_000);
        assert!(!large.is_too_much());
        assert_eq!(all.bytes(), 1_100);
        drop(large);
        assert_eq!(all.bytes(), 100);
    }
}
