//! What a process looks at again and again: whether its replica has caught up, whether its partition has room, whether keys have come to their ends
//! that nobody asks for, and whether a move of slots goes on.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rota_multiring::Rank;
use rota_replica::Orders;

use super::desk::Desk;
use super::looks::marker;
use super::moves::{Watch, step_batch};
use crate::store::{Pack, Step, Store};
use rota_front::now;
use rota_replica::{Given, Ready};

/// How often.
const LOOK: Duration = Duration::from_millis(100);

/// What is looked at.
pub(super) struct Looked {
    pub(super) orders: Orders<Store>,
    pub(super) ring: Rank,
    /// The ring of all.
    pub(super) global: Rank,
    /// Not all processes end a move at once: this one waits for so long.
    pub(super) waits: Duration,
    /// Under which name it gives messages.
    pub(super) giver: u64,
    /// A partition with so many bytes has no room.
    pub(super) most_bytes: u64,
    pub(super) is_full: Arc<AtomicBool>,
    pub(super) ready: Arc<Ready<Store>>,
    pub(super) desk: Arc<Desk>,
}

/// See the module's page. Dropping it ends it.
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
            let mut was = None;
            for number in 1.. {
                if ends.load(SeqCst) {
                    return;
                }
                looked.look(number, (&mut watch, &mut given));
                let is = (looked.ready.is_open(), looked.is_full.load(SeqCst));
                let before = was.replace(is);
                if before.map_or(is.0, |before| before.0 != is.0) {
                    note(is.0);
                }
                if before != Some(is) {
                    // Others are to know at once.
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
    fn look(&self, number: u64, (watch, given): (&mut Watch, &mut Given)) {
        // Names of their own.
        let of = (self.giver, number | 1 << 63);
        self.ready.look((self.ring, &marker(0)), of, given);
        let look = |store: &Store| {
            let ended = watch.ended(store, self.waits);
            (store.bytes() as u64, store.has_ended(now()), ended)
        };
        let (bytes, has_ended, ended) = self.orders.read(look).unwrap_or_default();
        self.is_full.store(bytes >= self.most_bytes, SeqCst);
        if has_ended {
            // Time passes for all replicas at one place. If this one is lost there will be another.
            let _ = self
                .orders
                .give(self.ring, (self.giver, number), &marker(0));
        }
        if let Some(step) = ended {
            tracing::warn!(?step, "a move of slots does not go on: it is ended");
            let ring = match step {
                Step::Forget { .. } => self.ring,
                _ => self.global,
            };
            let end = Pack(vec![step_batch(step, 0).encode()]).encode();
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
