//! Messages that wait to be sent on a connection. None is lost while the connection lasts: whoever has asked something
//! would wait for the answer until its time is over, and be told that nobody knows. Where the other end takes too
//! little, this end takes no more questions of it, and asks no more itself; if answers come to too much even so the
//! connection ends, so that the other end knows.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Instant;

use rota_core::contract::NodeId;

use super::lock;

/// The bytes that may wait, at most, about: then the connection ends.
const MOST_BYTES: usize = 256 << 20;
/// The number of questions that may wait, and their bytes: more are refused.
const MOST_ASKED: usize = 4_096;
const MOST_ASKED_BYTES: usize = 64 << 20;
/// The memory of a message beside its bytes, about.
const MESSAGE_BYTES: usize = 64;

/// The next message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Next<T> {
    Message(T),
    /// There was none until then.
    Nothing,
    /// The connection is to end.
    Closed,
}

/// The counters of all outboxes of a process.
#[derive(Default)]
pub(super) struct Counts {
    /// Questions that were refused, as too much waited already.
    pub(super) refused: AtomicU64,
    /// Connections that ended since the other process took too little of what it had asked for.
    pub(super) ended: AtomicU64,
    /// Maps of slots of other processes that could not be read, or that began with other slots than the own one.
    pub(super) maps_refused: AtomicU64,
}

struct Queue<T> {
    /// The messages, each with its bytes.
    waiting: VecDeque<(T, usize)>,
    bytes: usize,
    is_closed: bool,
    /// Questions are refused, and the log says so.
    is_told: bool,
}

/// Messages that wait to be sent on a connection.
pub(super) struct Outbox<T> {
    /// The node at the other end.
    other: NodeId,
    counts: Arc<Counts>,
    queue: Mutex<Queue<T>>,
    changed: Condvar,
}

impl<T> Outbox<T> {
    /// An outbox for a connection with this node.
    pub(super) const fn new(other: NodeId, counts: Arc<Counts>) -> Self {
        Self {
            other,
            counts,
            queue: Mutex::new(Queue {
                waiting: VecDeque::new(),
                bytes: 0,
                is_closed: false,
                is_told: false,
            }),
            changed: Condvar::new(),
        }
    }

    /// Adds a message of about so many bytes, unless the connection is to end. It ends now, if too much waits.
    pub(super) fn put(&self, message: T, bytes: usize) {
        let mut queue = lock(&self.queue);
        if queue.is_closed {
            return;
        }
        queue.push(message, bytes);
        if queue.bytes > MOST_BYTES {
            self.counts.ended.fetch_add(1, SeqCst);
            tracing::warn!(
                node = %self.other,
                bytes = queue.bytes,
                "another process takes too little of what it has asked for: its connection ends"
            );
            queue.close();
        }
        drop(queue);
        self.changed.notify_all();
    }

    /// Adds a question of about so many bytes. `false`: it is refused, as too much waits, or the connection is to end.
    pub(super) fn ask(&self, question: T, bytes: usize) -> bool {
        let mut queue = lock(&self.queue);
        if queue.is_closed {
            return false;
        }
        let (count, waiting) = (queue.waiting.len(), queue.bytes);
        if count >= MOST_ASKED || count > 0 && waiting + bytes > MOST_ASKED_BYTES {
            self.counts.refused.fetch_add(1, SeqCst);
            if !std::mem::replace(&mut queue.is_told, true) {
                tracing::warn!(
                    node = %self.other,
                    questions = count,
                    bytes = waiting,
                    "another process takes too little: it is asked nothing more for now"
                );
            }
            return false;
        }
        queue.push(question, bytes);
        drop(queue);
        self.changed.notify_all();
        true
    }

    /// Ends the connection: what waits is dropped.
    pub(super) fn close(&self) {
        lock(&self.queue).close();
        self.changed.notify_all();
    }

    /// The next message, if there is one until then.
    pub(super) fn next(&self, until: Instant) -> Next<T> {
        let mut queue = lock(&self.queue);
        loop {
            if queue.is_closed {
                return Next::Closed;
            }
            if let Some((message, bytes)) = queue.waiting.pop_front() {
                queue.bytes -= bytes;
                queue.is_told &= !queue.waiting.is_empty();
                drop(queue);
                self.changed.notify_all();
                return Next::Message(message);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Next::Nothing;
            }
            let waited = self.changed.wait_timeout(queue, left);
            queue = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits until no more than so many bytes wait. `false`: the connection is to end.
    pub(super) fn has_room(&self, most_bytes: usize) -> bool {
        let mut queue = lock(&self.queue);
        while !queue.is_closed && queue.bytes > most_bytes {
            let waited = self.changed.wait(queue);
            queue = waited.unwrap_or_else(PoisonError::into_inner);
        }
        !queue.is_closed
    }
}

impl<T> Queue<T> {
    fn push(&mut self, message: T, bytes: usize) {
        let bytes = bytes + MESSAGE_BYTES;
        self.bytes += bytes;
        self.waiting.push_back((message, bytes));
    }

    fn close(&mut self) {
        self.is_closed = true;
        self.waiting.clear();
        self.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::thread;
    use std::time::Duration;

    const MANY: u32 = 100_000;

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(10)
    }

    fn outbox() -> Outbox<u32> {
        Outbox::new(NodeId::new(7).expect("not 0"), Arc::default())
    }

    /// What was refused, and what has ended.
    fn counted(outbox: &Outbox<u32>) -> (u64, u64) {
        let counts = &outbox.counts;
        (counts.refused.load(SeqCst), counts.ended.load(SeqCst))
    }

    #[test]
    fn what_waits_is_sent_however_much_it_is_and_in_its_order() {
        let outbox = outbox();
        (0..MANY).for_each(|number| outbox.put(number, 1));
        assert!(!outbox.ask(MANY, 1), "they are so many");
        for number in 0..MANY {
            assert_eq!(outbox.next(Instant::now()), Next::Message(number));
        }
        assert_eq!(outbox.next(Instant::now()), Next::Nothing);
        assert_eq!(counted(&outbox), (1, 0));
    }

    /// Large questions ended the connection, and with it all that was asked before.
    #[test]
    fn questions_are_refused_by_number_and_by_bytes_and_those_that_wait_stay() {
        let part = 1 << 20;
        for (bytes, most) in [(1, MOST_ASKED), (part, MOST_ASKED_BYTES / part)] {
            let outbox = outbox();
            let fits = (0..).take_while(|number| outbox.ask(*number, bytes));
            let fits = fits.count();
            assert!((most - 1..=most).contains(&fits), "{fits}");
            assert!(!outbox.ask(0, bytes));
            assert_eq!(counted(&outbox), (2, 0));
            assert_eq!(outbox.next(soon()), Next::Message(0));
            assert!(outbox.ask(fits as u32, bytes), "there is room again");
            for number in 1..=fits as u32 {
                assert_eq!(outbox.next(soon()), Next::Message(number));
            }
            assert!(outbox.ask(0, 2 * MOST_ASKED_BYTES), "nothing waits");
            outbox.close();
            assert!(!outbox.ask(0, 1));
            assert_eq!(counted(&outbox), (2, 0), "nobody took too little");
        }
    }

    #[test]
    fn a_connection_ends_when_too_much_waits() {
        let outbox = outbox();
        let part = 1 << 20;
        let most = (MOST_BYTES / part) as u32;
        (1..most).for_each(|number| outbox.put(number, part));
        assert_eq!(outbox.next(soon()), Next::Message(1));
        (0..3).for_each(|number| outbox.put(number, part));
        assert_eq!(outbox.next(soon()), Next::Closed);
        assert!(!outbox.has_room(MOST_BYTES));
        outbox.put(0, MOST_BYTES);
        assert_eq!(counted(&outbox), (0, 1), "it has ended once");
    }

    #[test]
    fn who_waits_for_room_goes_on_when_there_is_some_or_there_will_be_none() {
        let outbox = Arc::new(outbox());
        let waits = |most| {
            let of = Arc::clone(&outbox);
            thread::spawn(move || of.has_room(most))
        };
        (0..3).for_each(|number| outbox.put(number, 1_000));
        let some = waits(2_500);
        assert_eq!(outbox.next(soon()), Next::Message(0));
        assert!(some.join().expect("no panic"));
        let none = waits(0);
        outbox.close();
        assert!(!none.join().expect("no panic"));
    }
}
