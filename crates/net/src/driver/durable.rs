//! What the engine wants made durable, and the sends that wait for it.
//!
//! Two records can be kept: the newest ring id's number, and what the node knows of primaries. With a state
//! directory they go to files, by a thread of its own: a sync takes milliseconds, or seconds on a disk in
//! trouble, and a node has to answer the others meanwhile. Without one the ring id is kept in memory, and
//! counts as durable at once: then only the incarnation keeps the rings of two lives of a node apart. What is
//! known of primaries is never kept in memory only.

use bytes::Bytes;
use rota_core::contract::{
    Burst, Class, Engine, Input, LogId, LogRecord, NodeId, PersistError, PersistId, Target,
};
use std::collections::VecDeque;
use std::io;
use std::os::fd::RawFd;

use super::store::{Files, Found, NEWEST, Record, Store};
use super::worker::Worker;
use super::{Driver, DriverError};
use crate::config::NodeConfig;

/// A send that was handed out and must not leave yet.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) after: PersistId,
    pub(super) class: Class,
    pub(super) to: Target,
    pub(super) burst: Burst,
}

/// A request without an answer.
#[derive(Debug)]
struct Pending {
    id: PersistId,
    record: Record,
    /// What has become of it, while one before it has none.
    result: Option<Result<(), PersistError>>,
}

/// A node's durable state.
#[derive(Debug)]
pub(super) struct Durable {
    found: Found,
    /// `None`: everything is kept in memory.
    worker: Option<Worker>,
    /// Requests without an answer, oldest first: an answer says that all before are durable, too.
    pending: VecDeque<Pending>,
    /// Sends that wait for them, in the order in which they were handed out.
    held: VecDeque<Held>,
    /// The log has been told that something failed, and nothing has gone well since.
    complained: bool,
}

impl Durable {
    /// What the configuration of node `me` says.
    pub(super) fn open(config: &NodeConfig, me: NodeId) -> Result<Self, DriverError> {
        match Files::open(config, me)? {
            Some(files) => {
                Self::with_store(files.found(), Box::new(files)).map_err(DriverError::System)
            }
            None => Ok(Self::in_memory()),
        }
    }

    fn in_memory() -> Self {
        Self {
            found: Found::default(),
            worker: None,
            pending: VecDeque::new(),
            held: VecDeque::new(),
            complained: false,
        }
    }

    /// A store in a thread of its own, which holds what was `found`.
    pub(super) fn with_store(found: Found, store: Box<dyn Store>) -> io::Result<Self> {
        Ok(Self {
            found,
            worker: Some(Worker::start(store)?),
            ..Self::in_memory()
        })
    }

    /// What the engine is told when it starts.
    pub(super) fn records(&self) -> Vec<(LogId, u64, Bytes)> {
        let records = self.found.records();
        records
            .map(|record| (record.log(), NEWEST, record.bytes()))
            .collect()
    }

    /// The answer to a fetch.
    pub(super) fn fetched(&self, log: LogId, from: u64, to: u64) -> Input {
        let wanted = |record: &Record| record.log() == log && (from..to).contains(&NEWEST);
        let records = self.found.records().filter(wanted);
        Input::Fetched {
            log,
            from,
            to,
            records: records.map(|record| (NEWEST, record.bytes())).collect(),
        }
    }

    /// Starts a request. An answer that is there at once is handed back.
    pub(super) fn request(&mut self, id: PersistId, records: &[LogRecord]) -> Option<Input> {
        let record = Record::read(records);
        let kept = |record: &Record| match record {
            Record::RingId(_) => true,
            Record::Primaries(_) => self.found.primaries.is_some(),
        };
        let Some(record) = record.filter(kept) else {
            // Saying so is better than a promise of durability that nobody keeps.
            let error = PersistError::Io("this node does not keep such records".to_owned());
            return Some(Input::PersistFailed { id, error });
        };
        let Some(worker) = &self.worker else {
            self.found.take_over(record);
            return Some(Input::Persisted { id });
        };
        worker.request(id, record.clone());
        self.pending.push_back(Pending {
            id,
            record,
            result: None,
        });
        None
    }

    /// Whether a send that names this request has to wait.
    pub(super) fn is_pending(&self, id: PersistId) -> bool {
        self.pending.iter().any(|pending| pending.id == id)
    }

    pub(super) fn hold(&mut self, held: Held) {
        self.held.push_back(held);
    }

    /// The oldest send that was held back and need not wait any more.
    pub(super) fn next_ready(&mut self) -> Option<Held> {
        let ready = self.held.front().is_some_and(|h| !self.is_pending(h.after));
        if ready { self.held.pop_front() } else { None }
    }

    /// Readable when there may be answers.
    pub(super) fn waker(&self) -> Option<RawFd> {
        let worker = self.worker.as_ref();
        worker
            .filter(|_| !self.pending.is_empty())
            .map(Worker::waker)
    }

    /// Whether there are answers.
    pub(super) fn has_answers(&self) -> bool {
        !self.pending.is_empty() && self.worker.as_ref().is_some_and(Worker::has_answers)
    }

    /// The answers that have come, in the order of the requests. Sends that waited for what failed are
    /// forgotten.
    pub(super) fn answers(&mut self) -> Vec<Input> {
        if self.pending.is_empty() {
            return Vec::new();
        }
        let results = self.worker.as_ref().map(Worker::take_answers);
        for (last, log, result) in results.into_iter().flatten() {
            // A request that a later one overtook is answered together with that one, which wrote over it.
            let of_it = |pending: &&mut Pending| {
                pending.result.is_none() && pending.id <= last && pending.record.log() == log
            };
            for pending in self.pending.iter_mut().filter(of_it) {
                pending.result = Some(result.clone());
            }
        }
        let mut answers = Vec::new();
        while let Some(answered) = self.pending.pop_front_if(|next| next.result.is_some()) {
            let Pending { id, record, result } = answered;
            answers.push(match result {
                Some(Err(error)) => {
                    self.held.retain(|held| held.after != id);
                    Input::PersistFailed { id, error }
                }
                Some(Ok(())) | None => {
                    self.found.take_over(record);
                    Input::Persisted { id }
                }
            });
        }
        answers
    }

    /// Tells the log of the first failure after all went well: a disk that stays bad is tried often.
    fn complain(&mut self, answer: &Input) {
        let Input::PersistFailed { error, .. } = answer else {
            self.complained = false;
            return;
        };
        if !std::mem::replace(&mut self.complained, true) {
            tracing::error!(?error, "a record could not be made durable");
        }
    }
}

impl<E: Engine> Driver<E> {
    /// Takes over what has become durable, and what failed; says whether there was any. Not while an output is stuck: the engine hears
    /// of it after its outputs have left, as with everything that answers them.
    pub(super) fn take_stored(&mut self) -> Result<bool, DriverError> {
        if self.stuck.is_some() {
            return Ok(false);
        }
        let answers = self.durable.answers();
        if answers.is_empty() {
            return Ok(false);
        }
        for answer in &answers {
            self.durable.complain(answer);
            self.forget_on_links(answer);
            let failed = matches!(answer, Input::PersistFailed { .. });
            self.sockets.stats_mut().persist_failures += u64::from(failed);
        }
        self.answers.extend(answers);
        self.carry_out()?;
        Ok(true)
    }

    /// Whether a send names a request that has failed; the engine may not have heard of it yet.
    pub(super) fn has_failed(&self, wanted: PersistId) -> bool {
        self.answers
            .iter()
            .any(|answer| matches!(answer, Input::PersistFailed { id, .. } if *id == wanted))
    }
}
