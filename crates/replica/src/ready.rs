//! Whether a replica has caught up: until then its clients should ask others.
//!
//! A replica learns only after its start whether it gets the instances it lacks from its rings, or has to get the state
//! of another replica first; and a process that was stopped for a while learns nothing of that. So a message is given
//! again and again. When a message is delivered here that was given after the replica was found behind, the replica has
//! all that was ordered before that; when none is delivered for long, the replica is behind.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use rota_multiring::Rank;

use crate::machine::Machine;
use crate::orders::Orders;

/// The time between two messages.
const AGAIN: Duration = Duration::from_secs(1);
/// The time without a delivery of a message after which a replica counts as behind.
const LATE: Duration = Duration::from_secs(2);
/// The number of messages on their way, at most. With more, the oldest counts as lost.
const MOST: usize = 16;

/// The readiness of a replica: whether it has caught up.
#[derive(Debug)]
pub struct Ready<M: Machine> {
    orders: Orders<M>,
    began: Instant,
    /// The time of the last look, in milliseconds since `began`.
    looked: AtomicU64,
    /// The number of times that the replica was found behind.
    behind: AtomicU64,
    /// The number, as in `behind`, after which it has caught up.
    caught_up: Arc<AtomicU64>,
}

/// Messages on their way.
#[derive(Debug, Default)]
pub struct Given(VecDeque<One>);

#[derive(Debug)]
struct One {
    of: (u64, u64),
    name: Option<u64>,
    at: Instant,
    is_delivered: Arc<AtomicBool>,
}

impl<M: Machine> Ready<M> {
    /// The readiness of a replica that begins: it is behind.
    pub fn new(orders: Orders<M>) -> Self {
        Self {
            orders,
            began: Instant::now(),
            looked: AtomicU64::new(0),
            behind: AtomicU64::new(1),
            caught_up: Arc::default(),
        }
    }

    fn millis(&self) -> u64 {
        self.began.elapsed().as_millis() as u64
    }

    fn has_caught_up(&self) -> bool {
        self.caught_up.load(SeqCst) == self.behind.load(SeqCst)
    }

    /// Whether the replica has caught up, and takes commands. Without a look for long, the process was stopped.
    pub fn is_open(&self) -> bool {
        let since = self.millis().saturating_sub(self.looked.load(SeqCst));
        since < LATE.as_millis() as u64 && self.has_caught_up() && self.orders.is_open()
    }

    /// Looks at the state of the replica, and gives a message under this name in a ring of its partition, if one is
    /// due. `marker`: a command that does nothing.
    pub fn look(&self, (ring, marker): (Rank, &[u8]), of: (u64, u64), Given(given): &mut Given) {
        self.looked.store(self.millis(), SeqCst);
        given.retain(|one| !one.is_delivered.load(SeqCst));
        let is_open = self.orders.is_open();
        let is_late = given.front().is_some_and(|one| one.at.elapsed() > LATE);
        if self.has_caught_up() && (is_late || !is_open) {
            self.behind.fetch_add(1, SeqCst);
        }
        if !is_open {
            given.drain(..).for_each(|one| self.give_up(&one));
            return;
        }
        if given.back().is_some_and(|one| one.at.elapsed() < AGAIN) {
            return;
        }
        if given.len() >= MOST
            && let Some(oldest) = given.pop_front()
        {
            self.give_up(&oldest);
        }
        given.extend(self.give((ring, marker), of));
    }

    fn give_up(&self, one: &One) {
        if let Some(name) = one.name {
            self.orders.give_up(one.of, name);
        }
    }

    /// Gives a message. `None`: the ring does not take it.
    fn give(&self, (ring, marker): (Rank, &[u8]), of: (u64, u64)) -> Option<One> {
        let is_delivered = Arc::new(AtomicBool::new(false));
        let (has_come, caught_up) = (Arc::clone(&is_delivered), Arc::clone(&self.caught_up));
        let behind = self.behind.load(SeqCst);
        let then = move |answer: Result<_, _>| {
            has_come.store(true, SeqCst);
            if answer.is_ok() {
                caught_up.fetch_max(behind, SeqCst);
            }
        };
        let one = One {
            of,
            name: self.orders.wait_for(of, then),
            at: Instant::now(),
            is_delivered,
        };
        match self.orders.give(ring, of, marker) {
            Ok(()) => Some(one),
            Err(_) => {
                self.give_up(&one);
                None
            }
        }
    }
}
