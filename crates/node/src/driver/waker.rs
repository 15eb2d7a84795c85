//! The wake-up of the ring's thread by threads that wait for a disk.

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

    /// Tells of something to take. It has to be in its place before this.
    pub(super) fn ring(&self) {
        if !self.rung.swap(true, Ordering::SeqCst) {
            self.fd.wake();
        }
    }

    pub(super) fn is_rung(&self) -> bool {
        self.rung.load(Ordering::SeqCst)
    }

    /// Whether it was rung since the last call. The caller takes what is there after this call: then nothing that comes
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
