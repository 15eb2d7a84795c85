//! Messages of the application's threads, on their way to a ring's thread.

use rota_core::contract::{Service, SubmitError, Time};
use std::collections::VecDeque;
use std::io;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::lock;
use crate::driver::Submitter;
use rota_net::WakeFd;

/// Submitted messages that wait for the ring's thread. Behind it the engine has a backlog of its own.
const CREDIT: usize = 4096;

/// Payload bytes of them; a single message may be larger.
const CREDIT_BYTES: usize = 4 << 20;

#[derive(Debug, Default)]
struct Queue {
    messages: VecDeque<(Service, Vec<u8>)>,
    bytes: usize,
}

impl Queue {
    fn is_full(&self) -> bool {
        self.messages.len() >= CREDIT || self.bytes >= CREDIT_BYTES
    }
}

/// Shared by the threads that submit to a ring, and the ring's thread.
#[derive(Debug)]
pub(crate) struct Inbox {
    queue: Mutex<Queue>,
    /// The queue has room, or the node has stopped.
    room: Condvar,
    waker: WakeFd,
    /// The ring's thread sleeps, or may be about to.
    asleep: AtomicBool,
    /// Nothing is taken any more: the ring's thread has ended, or will.
    ended: AtomicBool,
    message_bytes: usize,
}

impl Inbox {
    pub(crate) fn new(message_bytes: usize) -> io::Result<Self> {
        Ok(Self {
            queue: Mutex::default(),
            room: Condvar::new(),
            waker: WakeFd::new()?,
            asleep: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            message_bytes,
        })
    }

    pub(crate) fn submit(&self, service: Service, payload: &[u8]) -> Result<(), SubmitError> {
        self.check(payload)?;
        let queue = lock(&self.queue);
        if queue.is_full() {
            return Err(SubmitError::Full);
        }
        self.push(queue, service, payload);
        Ok(())
    }

    pub(crate) fn submit_blocking(
        &self,
        service: Service,
        payload: &[u8],
    ) -> Result<(), SubmitError> {
        self.check(payload)?;
        let queue = lock(&self.queue);
        let full = |queue: &mut Queue| queue.is_full() && !self.ended.load(SeqCst);
        let queue = self
            .room
            .wait_while(queue, full)
            .unwrap_or_else(PoisonError::into_inner);
        self.check(payload)?;
        self.push(queue, service, payload);
        Ok(())
    }

    fn check(&self, payload: &[u8]) -> Result<(), SubmitError> {
        if self.ended.load(SeqCst) {
            Err(SubmitError::Stopped)
        } else if payload.len() > self.message_bytes {
            Err(SubmitError::TooLarge {
                limit: self.message_bytes,
            })
        } else {
            Ok(())
        }
    }

    fn push(&self, mut queue: MutexGuard<'_, Queue>, service: Service, payload: &[u8]) {
        queue.bytes += payload.len();
        queue.messages.push_back((service, payload.to_vec()));
        drop(queue);
        self.wake_sleeper();
    }

    /// A signal is a system call and perhaps a wake-up, so only a thread that may sleep gets one,
    /// and only one.
    fn wake_sleeper(&self) {
        if self.asleep.swap(false, SeqCst) {
            self.waker.wake();
        }
    }

    /// Wakes the ring's thread, whatever it does.
    pub(crate) fn wake(&self) {
        self.waker.wake();
    }

    /// Readable when the ring's thread is to wake up.
    pub(crate) fn raw(&self) -> RawFd {
        self.waker.raw()
    }

    /// Hands in the messages that wait. Says whether the engine refused the oldest: it will have room when it has sent
    /// some.
    pub(crate) fn fill(&self, now: Time, submitter: &mut dyn Submitter) -> bool {
        let mut queue = lock(&self.queue);
        let was_full = queue.is_full();
        let mut refused = false;
        while let Some((service, payload)) = queue.messages.front() {
            match submitter.submit(now, *service, payload) {
                Err(SubmitError::Full) => {
                    refused = true;
                    break;
                }
                Err(error) => tracing::warn!(%error, "a message was dropped"),
                Ok(_) => {}
            }
            if let Some((_, payload)) = queue.messages.pop_front() {
                queue.bytes -= payload.len();
            }
        }
        if was_full && !queue.is_full() {
            self.room.notify_all();
        }
        refused
    }

    /// The ring's thread is about to sleep. Says whether no message waits.
    pub(crate) fn may_sleep(&self) -> bool {
        self.asleep.store(true, SeqCst);
        let idle = lock(&self.queue).messages.is_empty();
        if !idle {
            self.asleep.store(false, SeqCst);
        }
        idle
    }

    /// The ring's thread does not sleep any more.
    pub(crate) fn awake(&self, signalled: bool) {
        self.asleep.store(false, SeqCst);
        if signalled {
            self.waker.clear();
        }
    }

    /// The ring's thread has ended.
    pub(crate) fn end(&self) {
        self.ended.store(true, SeqCst);
        // With the lock held nobody can be between looking at `ended` and waiting.
        drop(lock(&self.queue));
        self.room.notify_all();
    }
}
