//! Deliveries on their way to the application. They change threads in batches: waking the application once for each would cost more than everything
//! else.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::lock;

/// Deliveries that wait for the application; then the ring is throttled.
const CREDIT: usize = 4096;

/// Payload bytes of them.
const CREDIT_BYTES: usize = 64 << 20;

/// A delivery that counts its bytes.
pub(crate) trait Delivered {
    /// Payload bytes.
    fn size(&self) -> usize;
}

#[derive(Debug)]
struct Batch<D> {
    deliveries: VecDeque<D>,
    bytes: usize,
    /// The application waits for one.
    awaited: bool,
}

impl<D> Default for Batch<D> {
    fn default() -> Self {
        Self {
            deliveries: VecDeque::new(),
            bytes: 0,
            awaited: false,
        }
    }
}

/// Shared by the application and a ring's thread.
#[derive(Debug)]
pub(crate) struct Outbox<D> {
    batch: Mutex<Batch<D>>,
    /// There is something, or the node has stopped.
    delivered: Condvar,
    /// The ring stopped delivering for want of room.
    stalled: AtomicBool,
    ended: AtomicBool,
}

impl<D> Default for Outbox<D> {
    fn default() -> Self {
        Self {
            batch: Mutex::default(),
            delivered: Condvar::new(),
            stalled: AtomicBool::new(false),
            ended: AtomicBool::new(false),
        }
    }
}

impl<D> Outbox<D> {
    /// Moves everything that was delivered into `taken`, which is empty; waits for it until `deadline`, or without end.
    /// Says whether the ring's thread waits for that, and has to be woken.
    pub(crate) fn take(
        &self,
        taken: &mut VecDeque<D>,
        deadline: Option<Instant>,
    ) -> Result<bool, RecvTimeoutError> {
        let mut batch = lock(&self.batch);
        while batch.deliveries.is_empty() {
            if self.ended.load(SeqCst) {
                return Err(RecvTimeoutError::Disconnected);
            }
            batch.awaited = true;
            let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
            batch = match left {
                Some(Duration::ZERO) => return Err(RecvTimeoutError::Timeout),
                Some(left) => {
                    let waited = self.delivered.wait_timeout(batch, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self
                    .delivered
                    .wait(batch)
                    .unwrap_or_else(PoisonError::into_inner),
            };
        }
        batch.awaited = false;
        batch.bytes = 0;
        std::mem::swap(&mut batch.deliveries, taken);
        drop(batch);
        Ok(self.stalled.swap(false, SeqCst))
    }

    /// The ring's thread has ended.
    pub(crate) fn end(&self) {
        self.ended.store(true, SeqCst);
        drop(lock(&self.batch));
        self.delivered.notify_all();
    }
}

/// The ring thread's side.
#[derive(Debug)]
pub(crate) struct Filling<D> {
    /// Delivered, and not handed over yet.
    batch: Batch<D>,
    /// Messages and bytes in the outbox when it was last looked at: since then they can only have
    /// become fewer.
    waiting: (usize, usize),
}

impl<D> Default for Filling<D> {
    fn default() -> Self {
        Self {
            batch: Batch::default(),
            waiting: (0, 0),
        }
    }
}

impl<D: Delivered> Filling<D> {
    pub(crate) fn deliver(&mut self, delivery: D) {
        self.batch.bytes += delivery.size();
        self.batch.deliveries.push_back(delivery);
    }

    /// Whether the application has room for more. If not, taking some says that the ring's thread has to be woken.
    pub(crate) fn has_room(&self, outbox: &Outbox<D>) -> bool {
        if self.has_credit(self.waiting) || self.has_credit(look(outbox)) {
            return true;
        }
        outbox.stalled.store(true, SeqCst);
        // Room may have come just before that was said.
        self.has_credit(look(outbox))
    }

    fn has_credit(&self, (count, bytes): (usize, usize)) -> bool {
        count + self.batch.deliveries.len() < CREDIT && bytes + self.batch.bytes < CREDIT_BYTES
    }

    /// Hands over what was delivered.
    pub(crate) fn flush(&mut self, outbox: &Outbox<D>) {
        let mut batch = lock(&outbox.batch);
        batch.deliveries.append(&mut self.batch.deliveries);
        batch.bytes += std::mem::take(&mut self.batch.bytes);
        self.waiting = (batch.deliveries.len(), batch.bytes);
        let awaited = std::mem::take(&mut batch.awaited);
        drop(batch);
        if awaited {
            outbox.delivered.notify_all();
        }
    }
}

fn look<D>(outbox: &Outbox<D>) -> (usize, usize) {
    let batch = lock(&outbox.batch);
    (batch.deliveries.len(), batch.bytes)
}
