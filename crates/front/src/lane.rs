//! The queue of commands to be ordered in one place: commands that wait while messages are on their way leave together,
//! so a busier ring has larger messages.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

use crate::lock;

/// The number of messages on their way, at most.
const MOST_ON_THE_WAY: u32 = 4;
/// The bytes of a message, about, unless one item is larger (Benz et al. 2014, §7.2).
const PACK_BYTES: usize = 32 << 10;
/// The bytes that the answers to a message may have, about, unless it is one item with more.
const MOST_ANSWERS_BYTES: usize = 64 << 20;
/// The number of items that may wait: more are refused.
const MOST_WAITING: usize = 65_536;

/// The way for the answer `S` to the giver of an item.
pub enum Teller<S> {
    /// A client of this process.
    Here(oneshot::Sender<S>),
    /// Another process.
    There(Box<dyn FnOnce(S) + Send>),
}

impl<S> std::fmt::Debug for Teller<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Here(_) => "Here",
            Self::There(_) => "There",
        })
    }
}

impl<S> Teller<S> {
    /// Sends the answer.
    pub fn tell(self, said: S) {
        match self {
            Self::Here(tell) => drop(tell.send(said)),
            Self::There(tell) => tell(said),
        }
    }

    /// Whether nobody waits for the answer any more.
    fn is_gone(&self) -> bool {
        matches!(self, Self::Here(tell) if tell.is_closed())
    }
}

/// An item that waits. Only items with the same destination `D` leave in one message.
#[derive(Debug)]
pub struct Item<D, S> {
    /// The command to be ordered.
    pub bytes: Bytes,
    /// The bytes that have to be kept free for its answer.
    pub answer_bytes: usize,
    /// The destination.
    pub to: D,
    /// The time at which nobody waits for the answer any more.
    pub until: Instant,
    /// The way for the answer.
    pub tell: Teller<S>,
}

struct Inner<D, S> {
    queue: VecDeque<Item<D, S>>,
    on_the_way: u32,
}

/// The queue of one place.
pub struct Lane<D, S> {
    inner: Mutex<Inner<D, S>>,
    news: Notify,
    most_packed: usize,
    /// The answer to an item that was not ordered.
    busy: fn() -> S,
}

/// A message is on its way until this is dropped.
pub struct Permit(Box<dyn FnMut() + Send>);

impl Drop for Permit {
    fn drop(&mut self) {
        (self.0)();
    }
}

impl<D: PartialEq + Send + 'static, S: Send + 'static> Lane<D, S> {
    /// An empty queue. A message has `most_packed` items at most; `busy` is the answer to an item that is not ordered.
    pub fn new(most_packed: usize, busy: fn() -> S) -> Self {
        Self {
            inner: Mutex::new(Inner {
                queue: VecDeque::new(),
                on_the_way: 0,
            }),
            news: Notify::new(),
            most_packed,
            busy,
        }
    }

    fn arrive(&self) {
        self.lock().on_the_way -= 1;
        self.news.notify_one();
    }

    fn permit(self: &Arc<Self>) -> Permit {
        let lane = Arc::clone(self);
        Permit(Box::new(move || lane.arrive()))
    }

    fn lock(&self) -> MutexGuard<'_, Inner<D, S>> {
        lock(&self.inner)
    }

    /// Adds an item, or refuses it if too many wait.
    pub fn push(&self, item: Item<D, S>) {
        let mut inner = self.lock();
        if inner.queue.len() >= MOST_WAITING {
            drop(inner);
            return item.tell.tell((self.busy)());
        }
        inner.queue.push_back(item);
        drop(inner);
        self.news.notify_one();
    }

    /// The items of the next message, as soon as one may leave.
    pub async fn next(self: &Arc<Self>) -> (Vec<Item<D, S>>, Permit) {
        loop {
            if let Some(items) = self.take() {
                return (items, self.permit());
            }
            self.news.notified().await;
        }
    }

    fn take(&self) -> Option<Vec<Item<D, S>>> {
        let mut inner = self.lock();
        if inner.on_the_way >= MOST_ON_THE_WAY {
            return None;
        }
        let (mut items, now): (Vec<Item<D, S>>, _) = (Vec::new(), Instant::now());
        let (mut bytes, mut answers) = (0, 0);
        let mut others = VecDeque::new();
        while let Some(next) = inner.queue.pop_front() {
            // The client has gone, or its time is over: the item is not ordered.
            if next.tell.is_gone() || next.until <= now {
                next.tell.tell((self.busy)());
                continue;
            }
            let first = items.first();
            // Items for one destination do not wait for those of another one.
            if first.is_some_and(|first| first.to != next.to) {
                others.push_back(next);
                continue;
            }
            let is_full = items.len() >= self.most_packed
                || bytes + next.bytes.len() > PACK_BYTES
                || answers + next.answer_bytes > MOST_ANSWERS_BYTES;
            if is_full && first.is_some() {
                others.push_back(next);
                break;
            }
            bytes += next.bytes.len();
            answers += next.answer_bytes;
            items.push(next);
        }
        others.append(&mut inner.queue);
        inner.queue = others;
        if items.is_empty() {
            return None;
        }
        inner.on_the_way += 1;
        Some(items)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn item(bytes: usize) -> (Item<Vec<u8>, bool>, oneshot::Receiver<bool>) {
        let (tell, heard) = oneshot::channel();
        let item = Item {
            bytes: vec![0; bytes].into(),
            answer_bytes: 0,
            to: Vec::new(),
            until: Instant::now() + Duration::from_secs(60),
            tell: Teller::Here(tell),
        };
        (item, heard)
    }

    fn taken(lane: &Lane<Vec<u8>, bool>) -> Option<usize> {
        lane.take().map(|items| items.len())
    }

    #[test]
    fn what_waits_while_messages_are_on_their_way_leaves_together() {
        let lane = Arc::new(Lane::new(128, || false));
        let mut heard = Vec::new();
        let mut push = |bytes: usize| {
            let (item, receiver) = item(bytes);
            heard.push(receiver);
            lane.push(item);
        };
        for _ in 0..MOST_ON_THE_WAY {
            push(10);
            assert_eq!(taken(&lane), Some(1));
        }
        (0..100).for_each(|_| push(10));
        assert_eq!(taken(&lane), None, "enough are on their way");
        lane.arrive();
        assert_eq!(taken(&lane), Some(100));
        // Large items are not put together, and one that is larger than a message leaves alone.
        for bytes in [PACK_BYTES / 2, PACK_BYTES, 3 * PACK_BYTES, 1] {
            push(bytes);
        }
        for expected in [1, 1, 1, 1] {
            lane.arrive();
            assert_eq!(taken(&lane), Some(expected));
        }
        assert_eq!(taken(&lane), None);
    }

    #[test]
    fn what_needs_other_partitions_is_in_another_message() {
        let lane = Arc::new(Lane::new(128, || false));
        let mut heard = Vec::new();
        for partitions in [[1, 2], [2, 3], [1, 2], [2, 3], [1, 3]] {
            let (mut item, receiver) = item(10);
            item.to = partitions.to_vec();
            heard.push(receiver);
            lane.push(item);
        }
        let taken = [2, 2, 1].map(|_| taken(&lane));
        assert_eq!(taken, [Some(2), Some(2), Some(1)]);
    }

    #[test]
    fn what_may_have_large_answers_leaves_in_several_messages() {
        let lane = Arc::new(Lane::new(128, || false));
        let mut heard = Vec::new();
        for part in [4, 4, 2, 2, 1, 3] {
            let (mut item, receiver) = item(10);
            item.answer_bytes = MOST_ANSWERS_BYTES / part;
            heard.push(receiver);
            lane.push(item);
        }
        let (mut large, receiver) = item(10);
        large.answer_bytes = 2 * MOST_ANSWERS_BYTES;
        heard.push(receiver);
        let taken_of = [(); 4].map(|()| taken(&lane));
        assert_eq!(taken_of, [Some(3), Some(1), Some(1), Some(1)]);
        lane.push(large);
        lane.arrive();
        assert_eq!(taken(&lane), Some(1));
    }

    #[test]
    fn what_nobody_waits_for_is_not_ordered() {
        let lane = Arc::new(Lane::new(128, || false));
        let (gone, receiver) = item(1);
        drop(receiver);
        lane.push(gone);
        let (mut late, mut heard) = item(1);
        late.until = Instant::now();
        lane.push(late);
        assert_eq!(taken(&lane), None);
        assert_eq!(heard.try_recv(), Ok(false));
    }
}
