//! What the application's threads and the ring's thread share.

use rota_core::contract::{Delivery, RingId, Service, SubmitError, Time};
use std::collections::VecDeque;
use std::io;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::NodeStatus;
use crate::driver::{App, Submitter};
use crate::sys::WakeFd;

/// Deliveries that wait for the application; then the ring is throttled.
const DELIVERY_CREDIT: usize = 4096;

/// Payload bytes of them.
const DELIVERY_CREDIT_BYTES: usize = 64 << 20;

/// Submitted messages that wait for the ring's thread. Behind it the engine has a backlog of its own.
const SUBMIT_CREDIT: usize = 4096;

/// Payload bytes of them; a single message may be larger.
const SUBMIT_CREDIT_BYTES: usize = 4 << 20;

#[derive(Debug, Default)]
struct Queue {
    messages: VecDeque<(Service, Vec<u8>)>,
    bytes: usize,
}

impl Queue {
    fn is_full(&self) -> bool {
        self.messages.len() >= SUBMIT_CREDIT || self.bytes >= SUBMIT_CREDIT_BYTES
    }
}

/// Deliveries on their way to the application. They change threads in batches: waking the
/// application once for each would cost more than everything else.
#[derive(Debug, Default)]
struct Outbox {
    deliveries: VecDeque<Delivery>,
    bytes: usize,
    /// The application waits for one.
    awaited: bool,
}

/// Shared by a node's handles and its ring thread.
#[derive(Debug)]
pub(super) struct Shared {
    queue: Mutex<Queue>,
    /// The queue has room, or the node has stopped.
    room: Condvar,
    waker: WakeFd,
    /// The ring's thread sleeps, or may be about to.
    asleep: AtomicBool,
    stop: AtomicBool,
    /// Nothing is taken any more: the ring's thread has ended, or will.
    ended: AtomicBool,
    outbox: Mutex<Outbox>,
    /// The outbox has something, or the node has stopped.
    delivered: Condvar,
    /// The ring stopped delivering for want of room.
    stalled: AtomicBool,
    /// What the application has said that it has the state of.
    caught_up: Mutex<Option<RingId>>,
    status_wanted: AtomicBool,
    status: Mutex<Option<NodeStatus>>,
    status_there: Condvar,
    message_bytes: usize,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The two sides, and the channel between them.
pub(super) fn new(message_bytes: usize) -> io::Result<(Arc<Shared>, RingApp)> {
    let shared = Arc::new(Shared {
        queue: Mutex::default(),
        room: Condvar::new(),
        waker: WakeFd::new()?,
        asleep: AtomicBool::new(false),
        stop: AtomicBool::new(false),
        ended: AtomicBool::new(false),
        outbox: Mutex::default(),
        delivered: Condvar::new(),
        stalled: AtomicBool::new(false),
        caught_up: Mutex::new(None),
        status_wanted: AtomicBool::new(false),
        status: Mutex::new(None),
        status_there: Condvar::new(),
        message_bytes,
    });
    let app = RingApp {
        shared: Arc::clone(&shared),
        batch: Outbox::default(),
        waiting: (0, 0),
        refused: false,
    };
    Ok((shared, app))
}

impl Shared {
    pub(super) fn submit(&self, service: Service, payload: &[u8]) -> Result<(), SubmitError> {
        self.check(payload)?;
        let queue = lock(&self.queue);
        if queue.is_full() {
            return Err(SubmitError::Full);
        }
        self.push(queue, service, payload);
        Ok(())
    }

    pub(super) fn submit_blocking(
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

    /// Moves everything that was delivered into `taken`, which is empty; waits for it until
    /// `deadline`, or without end.
    pub(super) fn take(
        &self,
        taken: &mut VecDeque<Delivery>,
        deadline: Option<Instant>,
    ) -> Result<(), RecvTimeoutError> {
        let mut outbox = lock(&self.outbox);
        while outbox.deliveries.is_empty() {
            if self.ended.load(SeqCst) {
                return Err(RecvTimeoutError::Disconnected);
            }
            outbox.awaited = true;
            let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
            outbox = match left {
                Some(Duration::ZERO) => return Err(RecvTimeoutError::Timeout),
                Some(left) => {
                    let waited = self.delivered.wait_timeout(outbox, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self
                    .delivered
                    .wait(outbox)
                    .unwrap_or_else(PoisonError::into_inner),
            };
        }
        outbox.awaited = false;
        outbox.bytes = 0;
        std::mem::swap(&mut outbox.deliveries, taken);
        drop(outbox);
        if self.stalled.swap(false, SeqCst) {
            self.waker.wake();
        }
        Ok(())
    }

    pub(super) fn stop(&self) {
        self.stop.store(true, SeqCst);
        self.waker.wake();
    }

    pub(super) fn caught_up(&self, ring: RingId) {
        *lock(&self.caught_up) = Some(ring);
        self.waker.wake();
    }

    pub(super) fn status(&self) -> Option<NodeStatus> {
        const PATIENCE: Duration = Duration::from_secs(1);
        let mut status = lock(&self.status);
        *status = None;
        self.status_wanted.store(true, SeqCst);
        self.waker.wake();
        let missing =
            |status: &mut Option<NodeStatus>| status.is_none() && !self.ended.load(SeqCst);
        let waited = self
            .status_there
            .wait_timeout_while(status, PATIENCE, missing);
        waited.unwrap_or_else(PoisonError::into_inner).0.clone()
    }
}

fn size(delivery: &Delivery) -> usize {
    match delivery {
        Delivery::Message(message) => message.payload.len(),
        Delivery::Configuration(_)
        | Delivery::Passed { .. }
        | Delivery::Primary(_)
        | Delivery::Excluded(_)
        | Delivery::Missed { .. } => 0,
    }
}

/// The ring thread's side.
#[derive(Debug)]
pub(super) struct RingApp {
    shared: Arc<Shared>,
    /// Delivered, and not handed over yet.
    batch: Outbox,
    /// Messages and bytes in the outbox when it was last looked at: since then they can only have
    /// become fewer.
    waiting: (usize, usize),
    /// The engine did not take the oldest message: it will have room after a visit of the token.
    refused: bool,
}

impl RingApp {
    pub(super) fn status_wanted(&self) -> bool {
        self.shared.status_wanted.swap(false, SeqCst)
    }

    pub(super) fn take_caught_up(&self) -> Option<RingId> {
        lock(&self.shared.caught_up).take()
    }

    pub(super) fn publish_status(&self, status: NodeStatus) {
        *lock(&self.shared.status) = Some(status);
        self.shared.status_there.notify_all();
    }

    fn has_credit(&self, (count, bytes): (usize, usize)) -> bool {
        count + self.batch.deliveries.len() < DELIVERY_CREDIT
            && bytes + self.batch.bytes < DELIVERY_CREDIT_BYTES
    }

    fn look(&self) -> (usize, usize) {
        let outbox = lock(&self.shared.outbox);
        (outbox.deliveries.len(), outbox.bytes)
    }
}

impl Drop for RingApp {
    fn drop(&mut self) {
        self.shared.ended.store(true, SeqCst);
        // With the locks held nobody can be between looking at `ended` and waiting.
        drop(lock(&self.shared.queue));
        self.shared.room.notify_all();
        drop(lock(&self.shared.outbox));
        self.shared.delivered.notify_all();
        drop(lock(&self.shared.status));
        self.shared.status_there.notify_all();
    }
}

impl App for RingApp {
    fn deliver(&mut self, delivery: Delivery) {
        self.batch.bytes += size(&delivery);
        self.batch.deliveries.push_back(delivery);
    }

    fn has_room(&self) -> bool {
        if self.has_credit(self.waiting) || self.has_credit(self.look()) {
            return true;
        }
        self.shared.stalled.store(true, SeqCst);
        // Room may have come just before that was said.
        self.has_credit(self.look())
    }

    fn flush(&mut self) {
        let mut outbox = lock(&self.shared.outbox);
        outbox.deliveries.append(&mut self.batch.deliveries);
        outbox.bytes += std::mem::take(&mut self.batch.bytes);
        self.waiting = (outbox.deliveries.len(), outbox.bytes);
        let awaited = std::mem::take(&mut outbox.awaited);
        drop(outbox);
        if awaited {
            self.shared.delivered.notify_all();
        }
    }

    fn fill(&mut self, now: Time, submitter: &mut dyn Submitter) {
        let mut queue = lock(&self.shared.queue);
        let was_full = queue.is_full();
        self.refused = false;
        while let Some((service, payload)) = queue.messages.front() {
            match submitter.submit(now, *service, payload) {
                Err(SubmitError::Full) => {
                    self.refused = true;
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
            self.shared.room.notify_all();
        }
    }

    fn stop(&self) -> bool {
        self.shared.stop.load(SeqCst)
    }

    fn may_sleep(&mut self) -> bool {
        if self.refused {
            // More submissions change nothing until the engine has sent some.
            return true;
        }
        self.shared.asleep.store(true, SeqCst);
        let idle = lock(&self.shared.queue).messages.is_empty();
        if !idle {
            self.shared.asleep.store(false, SeqCst);
        }
        idle
    }

    fn awake(&mut self, signalled: bool) {
        self.shared.asleep.store(false, SeqCst);
        if signalled {
            self.shared.waker.clear();
        }
    }

    fn waker(&self) -> Option<RawFd> {
        Some(self.shared.waker.raw())
    }
}
