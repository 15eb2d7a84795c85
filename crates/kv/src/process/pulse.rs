//! The regular checks of a process: whether its replica has caught up, whether its partition has room, whether keys
//! have come to their ends that no client asks for, whether keys of slots that have moved are settled, and whether a
//! move of slots goes on.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rota_multiring::Rank;
use rota_replica::Orders;

use super::clock::Clock;
use super::desk::Desk;
use super::looks::{marker, tick};
use super::moves::{Watch, step_batch};
use super::outbox::Counts;
use crate::map::Map;
use crate::store::{Step, Store};
use rota_replica::{Given, Ready};

/// The time between two checks.
const LOOK: Duration = Duration::from_millis(100);
/// The number of checks after which the message that founds the store is given again: the ring of all may have lost it.
const FOUND_AGAIN: u64 = 3;

/// The things that are checked.
pub(super) struct Looked {
    pub(super) orders: Orders<Store>,
    pub(super) ring: Rank,
    /// The ring of all.
    pub(super) global: Rank,
    /// The time by which this process waits longer than others before it ends a move, so that not all do it at once.
    pub(super) waits: Duration,
    /// The giver in the names of its messages.
    pub(super) giver: u64,
    /// The bytes with which a partition has no room.
    pub(super) most_bytes: u64,
    pub(super) is_full: Arc<AtomicBool>,
    pub(super) ready: Arc<Ready<Store>>,
    pub(super) desk: Arc<Desk>,
    pub(super) clock: Arc<Clock>,
    pub(super) counts: Arc<Counts>,
    /// The slots of partitions by the file of this process.
    pub(super) map: Map,
}

/// The thread of the checks. Dropping this ends it.
pub(super) struct Pulse {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Pulse {
    pub(super) fn start(looked: Looked) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&stop);
        let run = move || {
            let (mut watch, mut given) = (Watch::default(), Given::default());
            let (mut was, mut is_founded) = (None, false);
            for number in 1.. {
                if ends.load(SeqCst) {
                    return;
                }
                is_founded = is_founded || looked.found(number);
                looked.look(number, (&mut watch, &mut given));
                let is = (looked.ready.is_open(), looked.is_full.load(SeqCst));
                let before = was.replace(is);
                if before.map_or(is.0, |before| before.0 != is.0) {
                    note(is.0);
                }
                if before != Some(is) {
                    // Other processes are told at once.
                    looked.desk.tell_again();
                }
                thread::sleep(LOOK);
            }
        };
        let thread = thread::Builder::new().name("rota-kv-pulse".to_owned());
        Ok(Self {
            stop,
            thread: Some(thread.spawn(run)?),
        })
    }
}

fn note(is_open: bool) {
    match is_open {
        true => tracing::info!("the replica has caught up"),
        false => tracing::warn!(
            "the replica is behind: others of its partition are asked for what its clients want"
        ),
    }
}

impl Looked {
    /// Has the store founded with the slots that the file here gives to partitions, unless that has been done. Whether
    /// it has been done.
    fn found(&self, number: u64) -> bool {
        let begun = self.orders.read(|store| Arc::clone(store.map()));
        let Some(begun) = begun.filter(|map| map.is_founded()) else {
            if number % FOUND_AGAIN == 1 {
                let of = (self.giver, number | 1 << 61);
                let founds = step_batch(Step::Found(self.map.clone())).alone();
                let _ = self.orders.give(self.global, of, &founds);
            }
            return false;
        };
        if !begun.has_begun_as(&self.map) {
            tracing::error!(
                "the file here gives slots to other partitions than the store began with: the store's count, and this process does not start again with this file"
            );
            self.counts.maps_refused.fetch_add(1, SeqCst);
        }
        true
    }

    fn look(&self, number: u64, (watch, given): (&mut Watch, &mut Given)) {
        // The highest bit keeps these names apart from others.
        let of = (self.giver, number | 1 << 63);
        let now = self.clock.stamp();
        self.ready.look((self.ring, &marker(now)), of, given);
        let look = |store: &Store| {
            let ended = watch.ended(store, self.waits);
            let has_more = store.has_ended(0) || !store.is_settled();
            // Other processes may have let time pass a moment ago.
            let is_due = store.time() + LOOK.as_millis() as u64 <= now;
            let is_late = is_due && store.has_ended(now);
            (store.bytes() as u64, (has_more, is_late), ended)
        };
        let (bytes, (has_more, is_late), ended) = self.orders.read(look).unwrap_or_default();
        self.is_full.store(bytes >= self.most_bytes, SeqCst);
        if is_late {
            // If this message is lost there will be another one. The second highest bit keeps its name apart.
            let of = (self.giver, number | 1 << 62);
            let _ = self.orders.give(self.global, of, &tick(now));
        }
        if has_more {
            // Keys are taken away, and settled, by all replicas at one place.
            let _ = self
                .orders
                .give(self.ring, (self.giver, number), &marker(now));
        }
        if let Some(step) = ended {
            tracing::warn!(?step, "a move of slots does not go on: it is ended");
            let ring = match step {
                Step::Forget { .. } => self.ring,
                _ => self.global,
            };
            let end = step_batch(step).alone();
            let _ = self.orders.give(ring, (self.giver, number), &end);
        }
    }
}

impl Drop for Pulse {
    fn drop(&mut self) {
        self.stop.store(true, SeqCst);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
