//! The thread that waits for the disk.
//!
//! It has room for one request of each kind of record. One that comes while another is being written takes
//! the place of a third that still waits: a record is written over the one before anyway, so the newest is
//! all that has to reach the disk, and nothing grows while the disk does not answer.

use rota_core::contract::{LogId, PersistError, PersistId};
use std::fmt;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::bell::Bell;
use super::store::{Record, Store};

/// How long the end of a driver waits for the disk. What is being written then was promised to nobody.
const PATIENCE: Duration = Duration::from_secs(2);

/// A write that takes so long is worth a word.
const SLOW: Duration = Duration::from_millis(500);

/// A request and all before it that are about the same log have become this.
type Answer = (PersistId, LogId, Result<(), PersistError>);

#[derive(Debug, Default)]
struct Desk {
    /// Oldest first, at most one of each kind.
    wanted: Vec<(PersistId, Record)>,
    /// The request that is being written.
    writing: Option<(PersistId, LogId)>,
    answers: Vec<Answer>,
    stop: bool,
    ended: bool,
}

#[derive(Debug)]
struct Shared {
    desk: Mutex<Desk>,
    changed: Condvar,
    bell: Arc<Bell>,
}

impl Shared {
    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A store, and the thread that it is in.
pub(super) struct Worker {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    pub(super) fn start(store: Box<dyn Store>, bell: Arc<Bell>) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            desk: Mutex::default(),
            changed: Condvar::new(),
            bell,
        });
        let end = End(Arc::clone(&shared));
        let thread = std::thread::Builder::new()
            .name("rota-storage".to_owned())
            .spawn(move || work(store, &end))?;
        Ok(Self {
            shared,
            thread: Some(thread),
        })
    }

    pub(super) fn request(&self, id: PersistId, record: Record) {
        let mut desk = self.shared.desk();
        desk.wanted.retain(|(_, other)| other.log() != record.log());
        desk.wanted.push((id, record));
        if desk.ended {
            // It fails when answers are taken.
            self.shared.bell.ring();
        }
        drop(desk);
        self.shared.changed.notify_all();
    }

    /// What was answered since this was last asked.
    pub(super) fn take_answers(&self) -> Vec<Answer> {
        let mut desk = self.shared.desk();
        let mut answers = std::mem::take(&mut desk.answers);
        if desk.ended {
            // The store panicked. Whatever still comes fails, too.
            let writing = desk.writing.take();
            let wanted = std::mem::take(&mut desk.wanted);
            let wanted = wanted.into_iter().map(|(id, record)| (id, record.log()));
            let error = || PersistError::Io("the storage thread has ended".to_owned());
            let failed = writing.into_iter().chain(wanted);
            answers.extend(failed.map(|(id, log)| (id, log, Err(error()))));
        }
        answers
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.shared.desk().stop = true;
        self.shared.changed.notify_all();
        let (desk, _) = self
            .shared
            .changed
            .wait_timeout_while(self.shared.desk(), PATIENCE, |desk| !desk.ended)
            .unwrap_or_else(PoisonError::into_inner);
        if !desk.ended {
            tracing::warn!("the disk does not answer; its files are still in use");
            return;
        }
        drop(desk);
        // The panic of a store has been shown already.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").finish_non_exhaustive()
    }
}

/// Says that the thread has ended, also when the store panics.
struct End(Arc<Shared>);

impl Drop for End {
    fn drop(&mut self) {
        self.0.desk().ended = true;
        self.0.changed.notify_all();
        self.0.bell.ring();
    }
}

fn work(mut store: Box<dyn Store>, end: &End) {
    let shared = &end.0;
    loop {
        let mut desk = shared
            .changed
            .wait_while(shared.desk(), |desk| desk.wanted.is_empty() && !desk.stop)
            .unwrap_or_else(PoisonError::into_inner);
        if desk.stop {
            return;
        }
        let (id, record) = desk.wanted.remove(0);
        let log = record.log();
        desk.writing = Some((id, log));
        drop(desk);
        let started = Instant::now();
        let result = store.store(&record);
        let took = started.elapsed();
        if took > SLOW {
            tracing::warn!(
                ?took,
                "the disk is slow: no ring starts, and none becomes primary, while it writes"
            );
        }
        let mut desk = shared.desk();
        desk.writing = None;
        desk.answers.push((id, log, result));
        drop(desk);
        shared.bell.ring();
    }
}
