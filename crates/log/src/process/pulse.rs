//! The regular checks of a process: whether its replica has caught up, whether its disk has room, whether entries are
//! missing, and whether logs have more than they are to keep.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rota_front::now;
use rota_multiring::Rank;
use rota_replica::{Given, Orders, Ready};
use rota_storage::acceptor::FileDir;

use super::around::LogMachine;
use super::scrub::Scrub;
use super::source::Source;
use super::way::marker;
use crate::machine::{Batch, Keep, Log, Operation, Pack};
use crate::replicated::View;
use crate::store::Store;

/// The time between two checks.
const LOOK: Duration = Duration::from_millis(100);
/// The time between two checks of the limits of logs and of the disk.
const KEEP: Duration = Duration::from_secs(1);
/// The number of logs that are trimmed at once, at most.
const MOST_TRIMMED: usize = 256;

/// The things that are checked.
pub(super) struct Looked {
    pub(super) orders: Orders<LogMachine>,
    pub(super) ready: Arc<Ready<LogMachine>>,
    /// One of its rings.
    pub(super) ring: Rank,
    /// The givers in the names of its messages: those that show whether it has caught up, and those that trim.
    pub(super) givers: (u64, u64),
    pub(super) view: View,
    pub(super) store: Arc<Store<FileDir>>,
    pub(super) source: Arc<Source>,
    /// The directory of its entries, and the room that there has to be.
    pub(super) directory: PathBuf,
    pub(super) free_bytes: u64,
    pub(super) is_full: Arc<AtomicBool>,
    /// The search for damage that nobody has met, if it is wanted.
    pub(super) scrub: Option<Scrub>,
    /// The time by which this process waits longer than others before it trims, so that not all do it at once.
    pub(super) waits: Duration,
}

/// The threads of the checks. Dropping this ends them.
pub(super) struct Pulse {
    stop: Arc<AtomicBool>,
    source: Arc<Source>,
    threads: Vec<JoinHandle<()>>,
}

impl Pulse {
    pub(super) fn start(looked: Looked) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let mut pulse = Self {
            stop: Arc::clone(&stop),
            source: Arc::clone(&looked.source),
            threads: Vec::new(),
        };
        let (store, source) = (Arc::clone(&looked.store), Arc::clone(&looked.source));
        let ends = Arc::clone(&stop);
        let get = thread::Builder::new().name("rota-log-get".to_owned());
        pulse.threads.push(get.spawn(move || {
            while !ends.load(SeqCst) {
                // The call ends at a stop, too.
                if let Err(error) = source.get_all(&store, &|| true) {
                    tracing::debug!(%error, "entries are missing");
                }
                thread::sleep(LOOK);
            }
        })?);
        let looked = Arc::new(looked);
        let (keeps, ends) = (Arc::clone(&looked), Arc::clone(&stop));
        // This thread may read from the disk.
        let keep = thread::Builder::new().name("rota-log-keep".to_owned());
        pulse.threads.push(keep.spawn(move || keeps.keep(&ends))?);
        if looked.scrub.is_some() {
            let (searches, ends) = (Arc::clone(&looked), Arc::clone(&stop));
            let scrub = thread::Builder::new().name("rota-log-scrub".to_owned());
            let run = move || searches.scrub.iter().for_each(|scrub| scrub.run(&ends));
            pulse.threads.push(scrub.spawn(run)?);
        }
        let beat = thread::Builder::new().name("rota-log-pulse".to_owned());
        pulse.threads.push(beat.spawn(move || looked.run(&stop))?);
        Ok(pulse)
    }
}

impl Drop for Pulse {
    fn drop(&mut self) {
        self.stop.store(true, SeqCst);
        self.source.stop.store(true, SeqCst);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Looked {
    fn run(&self, stop: &AtomicBool) {
        let (mut given, mut was_open) = (Given::default(), None);
        for number in 1.. {
            if stop.load(SeqCst) {
                return;
            }
            let of = (self.givers.0, number);
            self.ready.look((self.ring, &marker()), of, &mut given);
            let is_open = self.ready.is_open();
            match was_open.replace(is_open) {
                Some(false) | None if is_open => tracing::info!("the replica has caught up"),
                Some(true) if !is_open => {
                    tracing::warn!("the replica is behind: clients are told to ask others");
                }
                _ => {}
            }
            thread::sleep(LOOK);
        }
    }

    /// Checks the limits of logs, and the room on the disk.
    fn keep(&self, stop: &AtomicBool) {
        let mut due = Instant::now() + self.waits;
        let mut number = 0;
        while !stop.load(SeqCst) {
            if Instant::now() >= due {
                self.look_at_disk();
                self.trim(&mut number, stop);
                due = Instant::now() + KEEP;
            }
            thread::sleep(LOOK);
        }
    }

    fn look_at_disk(&self) {
        let Ok(room) = rustix::fs::statvfs(&self.directory) else {
            return;
        };
        let free = room.f_bavail.saturating_mul(room.f_frsize);
        let is_full = free < self.free_bytes || self.store.status().is_failing;
        if is_full != self.is_full.swap(is_full, SeqCst) {
            match is_full {
                true => tracing::error!(free, "the disk has no room: clients append nothing here"),
                false => tracing::info!(free, "the disk has room again"),
            }
        }
    }

    /// Has logs trimmed that have more than they are to keep: all of them, some at a time.
    fn trim(&self, number: &mut u64, stop: &AtomicBool) {
        let has_limits = |log: &Log| log.limits.bytes.is_some() || log.limits.millis.is_some();
        let logs = self.view.now();
        let limited = logs.iter();
        let limited = limited.filter(|(_, log)| has_limits(log) && !log.is_empty());
        let mut firsts = limited.filter_map(|(name, log)| {
            let first = self.first_of(log).filter(|first| *first > log.first)?;
            // By the name alone another log could be trimmed: the name may be used again.
            Some(Operation::Trim(name, Keep::From(first), Some(log.id)))
        });
        while !stop.load(SeqCst) {
            let operations: Vec<Operation<'_>> = firsts.by_ref().take(MOST_TRIMMED).collect();
            if operations.is_empty() {
                return;
            }
            let batch = Batch {
                stamp: now(),
                is_atomic: false,
                operations,
            };
            *number += 1;
            // If this message is lost there will be another one.
            let message = Pack(vec![batch.encode()]).encode();
            let of = (self.givers.1, *number);
            let _ = self.orders.give(self.ring, of, &message);
        }
    }

    /// The first entry that a log is to keep.
    fn first_of(&self, log: &Log) -> Option<u64> {
        let by_bytes = log.limits.bytes;
        let by_bytes = by_bytes.and_then(|bytes| self.store.position_at_bytes(log.id, bytes));
        let by_age = log.limits.millis.and_then(|millis| {
            let oldest = now().saturating_sub(millis);
            let found = self.store.first_after(log.id, oldest).ok()?;
            // All entries are older.
            Some(found.unwrap_or(log.next))
        });
        by_bytes.into_iter().chain(by_age).max()
    }
}
