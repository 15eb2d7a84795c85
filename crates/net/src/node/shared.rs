//! What the application's threads and the ring's thread share.

use rota_core::contract::{Delivery, Service, SubmitError, Time};
use std::collections::VecDeque;
use std::io;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

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
    waiting: AtomicUsize,
    waiting_bytes: AtomicUsize,
    /// The ring stopped delivering for want of room.
    stalled: AtomicBool,
    status_wanted: AtomicBool,
    status: Mutex<Option<NodeStatus>>,
    status_there: Condvar,
    message_bytes: usize,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The two sides, and the channel between them.
pub(super) fn new(message_bytes: usize) -> io::Result<(Arc<Shared>, RingApp, Receiver<Delivery>)> {
    let (sender, receiver) = sync_channel(DELIVERY_CREDIT);
    let shared = Arc::new(Shared {
        queue: Mutex::default(),
        room: Condvar::new(),
        waker: WakeFd::new()?,
        asleep: AtomicBool::new(false),
        stop: AtomicBool::new(false),
        ended: AtomicBool::new(false),
        waiting: AtomicUsize::new(0),
        waiting_bytes: AtomicUsize::new(0),
        stalled: AtomicBool::new(false),
        status_wanted: AtomicBool::new(false),
        status: Mutex::new(None),
        status_there: Condvar::new(),
        message_bytes,
    });
    let app = RingApp {
        shared: Arc::clone(&shared),
        sender,
        refused: false,
    };
    Ok((shared, app, receiver))
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

    /// The application has taken a delivery.
    pub(super) fn received(&self, delivery: &Delivery) {
        let waiting = self.waiting.fetch_sub(1, SeqCst) - 1;
        let bytes = size(delivery);
        let waiting_bytes = self.waiting_bytes.fetch_sub(bytes, SeqCst) - bytes;
        // Half of the credit at once: a wake-up for each message would cost more than the message.
        if waiting <= DELIVERY_CREDIT / 2
            && waiting_bytes <= DELIVERY_CREDIT_BYTES / 2
            && self.stalled.swap(false, SeqCst)
        {
            self.waker.wake();
        }
    }

    pub(super) fn stop(&self) {
        self.stop.store(true, SeqCst);
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
        Delivery::Configuration(_) | Delivery::Skips { .. } => 0,
    }
}

/// The ring thread's side.
#[derive(Debug)]
pub(super) struct RingApp {
    shared: Arc<Shared>,
    sender: SyncSender<Delivery>,
    /// The engine did not take the oldest message: it will have room after a visit of the token.
    refused: bool,
}

impl RingApp {
    pub(super) fn status_wanted(&self) -> bool {
        self.shared.status_wanted.swap(false, SeqCst)
    }

    pub(super) fn publish_status(&self, status: NodeStatus) {
        *lock(&self.shared.status) = Some(status);
        self.shared.status_there.notify_all();
    }

    fn room_left(&self) -> bool {
        self.shared.waiting.load(SeqCst) < DELIVERY_CREDIT
            && self.shared.waiting_bytes.load(SeqCst) < DELIVERY_CREDIT_BYTES
    }
}

impl Drop for RingApp {
    fn drop(&mut self) {
        self.shared.ended.store(true, SeqCst);
        // With the locks held nobody can be between looking at `ended` and waiting.
        drop(lock(&self.shared.queue));
        self.shared.room.notify_all();
        drop(lock(&self.shared.status));
        self.shared.status_there.notify_all();
    }
}

impl App for RingApp {
    fn deliver(&mut self, delivery: Delivery) {
        self.shared.waiting.fetch_add(1, SeqCst);
        self.shared.waiting_bytes.fetch_add(size(&delivery), SeqCst);
        // Never full, for that is what `has_room` counts; nobody receives when the node is dropped.
        let _ = self.sender.try_send(delivery);
    }

    fn has_room(&self) -> bool {
        if self.room_left() {
            return true;
        }
        self.shared.stalled.store(true, SeqCst);
        // Room may have come just before that was said.
        self.room_left()
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
