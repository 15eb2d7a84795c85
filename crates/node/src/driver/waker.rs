//! How threads that wait for a disk wake the ring's.

use std::io;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, Ordering};

use rota_net::WakeFd;

/// Wakes the ring's thread once for all that it has not taken yet.
#[derive(Debug)]
pub(super) struct Waker {
    rung: AtomicBool,
    fd: WakeFd,
}

impl Waker {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            rung: AtomicBool::new(false),
            fd: WakeFd::new()?,
        })
    }

    /// There is something to take. It has to be where it is taken from before.
    pub(super) fn ring(&self) {
        if !self.rung.swap(true, Ordering::SeqCst) {
            self.fd.wake();
        }
    }

    pub(super) fn is_rung(&self) -> bool {
        self.rung.load(Ordering::SeqCst)
    }

    /// Whether it was rung since the last time. What is there is to be taken after this: then nothing that comes
    /// meanwhile is left lying.
    pub(super) fn answer(&self) -> bool {
        let was_rung = self.is_rung();
        if was_rung {
            self.fd.clear();
            self.rung.store(false, Ordering::SeqCst);
        }
        was_rung
    }

    /// Readable when it was rung.
    pub(super) fn raw(&self) -> RawFd {
        self.fd.raw()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn however_often_it_is_rung_it_is_answered_once() {
        let waker = Waker::new().unwrap();
        assert!(!waker.answer());
        waker.ring();
        waker.ring();
        assert!(waker.is_rung());
        assert!(waker.answer());
        assert!(!waker.is_rung() && !waker.answer());
        waker.ring();
        assert!(waker.answer());
    }
}
