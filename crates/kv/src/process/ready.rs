//! Whether the replica of this process has caught up: clients are sent to others before, and others ask others.
//!
//! Whether it gets what it lacks from its rings, or has to get the state of another replica first, it learns after it has begun. So a message is given,
//! again and again, and when one is delivered here, the replica has all that was ordered before it began.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

use rota_multiring::Rank;
use rota_replica::Orders;

use super::looks::marker;
use crate::store::Store;

/// A message that is not delivered in so long a time is given again.
const AGAIN: Duration = Duration::from_secs(1);

/// See the module's page.
#[derive(Debug)]
pub(super) struct Ready {
    orders: Orders<Store>,
    has_caught_up: Arc<AtomicBool>,
}

/// A message on its way.
pub(super) struct Given {
    of: (u64, u64),
    name: Option<u64>,
    at: Instant,
}

impl Ready {
    pub(super) fn new(orders: Orders<Store>) -> Self {
        Self {
            orders,
            has_caught_up: Arc::default(),
        }
    }

    /// Whether it has caught up, and takes commands.
    pub(super) fn is_open(&self) -> bool {
        self.has_caught_up.load(SeqCst) && self.orders.is_open()
    }

    /// Looks how it is, and gives a message under this name in the ring of its partition, if one is to be given.
    pub(super) fn look(&self, ring: Rank, of: (u64, u64), given: &mut Option<Given>) {
        if !self.orders.is_open() {
            self.has_caught_up.store(false, SeqCst);
            return;
        }
        let is_on_the_way = |given: &Given| given.at.elapsed() < AGAIN;
        if self.has_caught_up.load(SeqCst) || given.as_ref().is_some_and(is_on_the_way) {
            return;
        }
        if let Some(Given {
            of,
            name: Some(name),
            ..
        }) = given.take()
        {
            self.orders.give_up(of, name);
        }
        let has = Arc::clone(&self.has_caught_up);
        let then = move |answer: Result<_, _>| {
            if answer.is_ok() {
                has.store(true, SeqCst);
            }
        };
        let name = self.orders.wait_for(of, then);
        let at = Instant::now();
        *given = Some(Given { of, name, at });
        // What is not taken is given again.
        let _ = self.orders.give(ring, of, &marker(0));
    }
}
