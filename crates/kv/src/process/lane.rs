//! What waits to be ordered in one place: while some of it is on its way the rest is put together, so that the busier a ring is the more a message of it has.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

use super::gateway::OrderError;
use super::lock;
use crate::map::Partitions;
use crate::store::{Answer, MOST_PACKED};

/// So many messages are on their way at once.
const MOST_ON_THE_WAY: u32 = 4;
/// A message has about so many bytes, if it is not one batch that is larger (Benz et al. 2014, §7.2).
const PACK_BYTES: usize = 32 << 10;
/// So much may wait: more is refused.
const MOST_WAITING: usize = 65_536;

/// What each of a batch's partitions says.
pub(super) type Said = Result<Vec<Answer>, OrderError>;

/// Who is told of it.
pub(super) enum Teller {
    /// A client of this process.
    Here(oneshot::Sender<Said>),
    /// Another process.
    There(Box<dyn FnOnce(Said) + Send>),
}

impl Teller {
    pub(super) fn tell(self, said: Said) {
        match self {
            Self::Here(tell) => drop(tell.send(said)),
            Self::There(tell) => tell(said),
        }
    }

    /// Nobody waits for it any more.
    fn is_gone(&self) -> bool {
        matches!(self, Self::Here(tell) if tell.is_closed())
    }
}

/// A batch, or a pack of batches that are only looked at.
pub(super) struct Item {
    pub(super) bytes: Bytes,
    pub(super) to: Partitions,
    pub(super) until: Instant,
    pub(super) tell: Teller,
}

#[derive(Default)]
struct Inner {
    queue: VecDeque<Item>,
    on_the_way: u32,
}

/// See the module's page.
#[derive(Default)]
pub(super) struct Lane {
    inner: Mutex<Inner>,
    news: Notify,
}

/// A message is on its way until this is dropped.
pub(super) struct Permit(Arc<Lane>);

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.lock().on_the_way -= 1;
        self.0.news.notify_one();
    }
}

impl Lane {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        lock(&self.inner)
    }

    /// Something waits.
    pub(super) fn push(&self, item: Item) {
        let mut inner = self.lock();
        if inner.queue.len() >= MOST_WAITING {
            drop(inner);
            return item.tell.tell(Err(OrderError::Busy));
        }
        inner.queue.push_back(item);
        drop(inner);
        self.news.notify_one();
    }

    /// What is in the next message, as soon as one may leave.
    pub(super) async fn next(self: &Arc<Self>) -> (Vec<Item>, Permit) {
        loop {
            if let Some(items) = self.take() {
                return (items, Permit(Arc::clone(self)));
            }
            self.news.notified().await;
        }
    }

    fn take(&self) -> Option<Vec<Item>> {
        let mut inner = self.lock();
        if inner.on_the_way >= MOST_ON_THE_WAY {
            return None;
        }
        let (mut items, mut bytes, now): (Vec<Item>, _, _) = (Vec::new(), 0, Instant::now());
        let mut others = VecDeque::new();
        while let Some(next) = inner.queue.pop_front() {
            // Whoever has asked was told already that nothing was done, or has gone.
            if next.tell.is_gone() || next.until <= now {
                next.tell.tell(Err(OrderError::Busy));
                continue;
            }
            let first = items.first();
            // What needs a partition waits for nothing that needs another one.
            if first.is_some_and(|first| first.to != next.to) {
                others.push_back(next);
                continue;
            }
            let is_full = items.len() >= MOST_PACKED || bytes + next.bytes.len() > PACK_BYTES;
            if is_full && first.is_some() {
                others.push_back(next);
                break;
            }
            bytes += next.bytes.len();
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

    fn item(bytes: usize) -> (Item, oneshot::Receiver<Said>) {
        let (tell, heard) = oneshot::channel();
        let item = Item {
            bytes: vec![0; bytes].into(),
            to: Partitions::new(),
            until: Instant::now() + Duration::from_secs(60),
            tell: Teller::Here(tell),
        };
        (item, heard)
    }

    fn taken(lane: &Lane) -> Option<usize> {
        lane.take().map(|items| items.len())
    }

    #[test]
    fn what_waits_while_messages_are_on_their_way_leaves_together() {
        let lane = Arc::new(Lane::default());
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
        drop(Permit(Arc::clone(&lane)));
        assert_eq!(taken(&lane), Some(100));
        // Large ones are not put together, and one that is larger than a message leaves alone.
        for bytes in [PACK_BYTES / 2, PACK_BYTES, 3 * PACK_BYTES, 1] {
            push(bytes);
        }
        for expected in [1, 1, 1, 1] {
            drop(Permit(Arc::clone(&lane)));
            assert_eq!(taken(&lane), Some(expected));
        }
        assert_eq!(taken(&lane), None);
    }

    #[test]
    fn what_needs_other_partitions_is_in_another_message() {
        let lane = Arc::new(Lane::default());
        let mut heard = Vec::new();
        for partitions in [[1, 2], [2, 3], [1, 2], [2, 3], [1, 3]] {
            let (mut item, receiver) = item(10);
            item.to = partitions.map(crate::map::Partition).into();
            heard.push(receiver);
            lane.push(item);
        }
        let taken = [2, 2, 1].map(|_| taken(&lane));
        assert_eq!(taken, [Some(2), Some(2), Some(1)]);
    }

    #[test]
    fn what_nobody_waits_for_is_not_ordered() {
        let lane = Arc::new(Lane::default());
        let (gone, receiver) = item(1);
        drop(receiver);
        lane.push(gone);
        let (mut late, mut heard) = item(1);
        late.until = Instant::now();
        lane.push(late);
        assert_eq!(taken(&lane), None);
        assert_eq!(heard.try_recv(), Ok(Err(OrderError::Busy)));
    }
}
