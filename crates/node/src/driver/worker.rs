//! The thread that waits for the disk.
//!
//! It has room for one request of each kind of record. One that comes while another is being written takes
//! the place of a third that still waits: a record is written over the one before anyway, so the newest is
//! all that has to reach the disk, and nothing grows while the disk does not answer.

use rota_core::contract::{LogId, PersistError, PersistId};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::helper::{Helper, Shared};
use super::store::{Record, Store};
use super::waker::Waker;

/// The time after which a write counts as slow.
const SLOW: Duration = Duration::from_millis(500);

/// The result of a request and of all before it that are about the same log.
type Answer = (PersistId, LogId, Result<(), PersistError>);

/// The exchange between the ring's thread and the store's.
#[derive(Debug, Default)]
struct Orders {
    /// Oldest first, at most one of each kind.
    wanted: Vec<(PersistId, Record)>,
    /// The request that is being written.
    writing: Option<(PersistId, LogId)>,
    answers: Vec<Answer>,
}

/// A store, and the thread that it is in.
#[derive(Debug)]
pub(super) struct Worker(Helper<Orders>);

impl Worker {
    pub(super) fn start(store: Box<dyn Store>, waker: Arc<Waker>) -> io::Result<Self> {
        let late = "the disk does not answer; its files are still in use";
        let work = move |shared: &Shared<Orders>| work(store, shared);
        Helper::start(Shared::new(waker), "rota-storage", late, work).map(Self)
    }

    pub(super) fn request(&self, id: PersistId, record: Record) {
        let mut ended = false;
        self.0.put(|desk| {
            desk.wanted.retain(|(_, other)| other.log() != record.log());
            desk.wanted.push((id, record));
            ended = desk.ended;
        });
        if ended {
            // The request fails when answers are taken.
            self.0.waker.ring();
        }
    }

    /// The answers that have come since the last call.
    pub(super) fn take_answers(&self) -> Vec<Answer> {
        let mut desk = self.0.desk();
        let mut answers = std::mem::take(&mut desk.answers);
        if desk.ended {
            // The store panicked. Requests that still come fail, too.
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

fn work(mut store: Box<dyn Store>, shared: &Shared<Orders>) {
    loop {
        let mut desk = shared.wait(None, |desk| desk.wanted.is_empty());
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
        shared.waker.ring();
    }
}
