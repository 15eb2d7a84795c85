//! What the engine wants made durable, and the sends that wait for it.
//!
//! Only ring ids can be kept: one number, at position 0 of one log. With a state directory it goes to a
//! file, by a thread of its own: a sync takes milliseconds, or seconds on a disk in trouble, and a node
//! has to answer the others meanwhile. Without one it is kept in memory, and counts as durable at once:
//! then only the incarnation keeps the rings of two lives of a node apart.

use bytes::Bytes;
use rota_core::contract::{
    Burst, Class, Engine, Input, LogId, LogRecord, NodeId, PersistError, PersistId, Target,
};
use rota_storage::{OnDamage, OpenError, RingIdFile, StoreError};
use std::collections::VecDeque;
use std::io;
use std::os::fd::RawFd;

use super::worker::Worker;
use super::{Driver, DriverError};
use crate::config::NodeConfig;

/// The log of ring ids.
const RING_IDS: LogId = LogId(1);
/// The one position in it.
const NEWEST: u64 = 0;

/// Makes a ring id durable; may take its time.
pub(super) trait RingIdStore: Send {
    fn store(&mut self, value: u64) -> Result<(), PersistError>;
}

impl RingIdStore for RingIdFile {
    fn store(&mut self, value: u64) -> Result<(), PersistError> {
        Self::store(self, value).map_err(|error| match error {
            StoreError::NoSpace(_) => PersistError::NoSpace,
            StoreError::Io(_) | StoreError::TooLong(_) | StoreError::Failed => {
                PersistError::Io(error.to_string())
            }
        })
    }
}

/// A send that was handed out and must not leave yet.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) after: PersistId,
    pub(super) class: Class,
    pub(super) to: Target,
    pub(super) burst: Burst,
}

/// A node's durable state.
#[derive(Debug)]
pub(super) struct Durable {
    /// What is durable.
    value: Option<u64>,
    /// `None`: everything is kept in memory.
    worker: Option<Worker>,
    /// Requests without an answer, oldest first.
    pending: VecDeque<(PersistId, u64)>,
    /// Sends that wait for them, in the order in which they were handed out.
    held: VecDeque<Held>,
}

impl Durable {
    /// What the configuration of node `me` says.
    pub(super) fn open(config: &NodeConfig, me: NodeId) -> Result<Self, DriverError> {
        let Some(path) = config.ring_id_file(me) else {
            return Ok(Self::in_memory());
        };
        let on_damage = if config.reset_ring_id {
            OnDamage::Reset
        } else {
            OnDamage::Refuse
        };
        let file = RingIdFile::open(path.clone(), me, on_damage);
        let file = file.map_err(|error: OpenError| DriverError::State(error))?;
        if file.lost_a_slot() {
            tracing::warn!(
                path = %path.display(),
                "one copy of the ring id was damaged, and the other is used: look at the disk"
            );
        }
        let value = file.value();
        Self::with_store(value, Box::new(file)).map_err(DriverError::System)
    }

    const fn in_memory() -> Self {
        Self {
            value: None,
            worker: None,
            pending: VecDeque::new(),
            held: VecDeque::new(),
        }
    }

    /// A store in a thread of its own; `value` is what it holds.
    pub(super) fn with_store(value: Option<u64>, store: Box<dyn RingIdStore>) -> io::Result<Self> {
        Ok(Self {
            value,
            worker: Some(Worker::start(store)?),
            ..Self::in_memory()
        })
    }

    /// What the engine is told when it starts.
    pub(super) fn records(&self) -> Vec<(LogId, u64, Bytes)> {
        let record = |value: u64| (RING_IDS, NEWEST, encoded(value));
        self.value.map(record).into_iter().collect()
    }

    /// The answer to a fetch.
    pub(super) fn fetched(&self, log: LogId, from: u64, to: u64) -> Input {
        let value = self.value;
        let value = value.filter(|_| log == RING_IDS && (from..to).contains(&NEWEST));
        let record = |value: u64| (NEWEST, encoded(value));
        Input::Fetched {
            log,
            from,
            to,
            records: value.map(record).into_iter().collect(),
        }
    }

    /// Starts a request. An answer that is there at once is handed back.
    pub(super) fn request(&mut self, id: PersistId, records: &[LogRecord]) -> Option<Input> {
        let Some(value) = ring_id_in(records) else {
            // Saying so is better than a promise of durability that nobody keeps.
            let error = PersistError::Io("this driver keeps ring ids only".to_owned());
            return Some(Input::PersistFailed { id, error });
        };
        let Some(worker) = &self.worker else {
            self.value = Some(value);
            return Some(Input::Persisted { id });
        };
        worker.request(id, value);
        self.pending.push_back((id, value));
        None
    }

    /// Whether a send that names this request has to wait.
    pub(super) fn is_pending(&self, id: PersistId) -> bool {
        self.pending.iter().any(|(pending, _)| *pending == id)
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
        let mut answers = Vec::new();
        if self.pending.is_empty() {
            return answers;
        }
        let results = self.worker.as_ref().map(Worker::take_answers);
        for (last, result) in results.into_iter().flatten() {
            // A request that a later one overtook is answered together with that one, which wrote over it.
            while let Some(&(id, value)) = self.pending.front().filter(|(id, _)| *id <= last) {
                self.pending.pop_front();
                answers.push(match &result {
                    Ok(()) => {
                        self.value = Some(value);
                        Input::Persisted { id }
                    }
                    Err(error) => {
                        self.held.retain(|held| held.after != id);
                        let error = error.clone();
                        Input::PersistFailed { id, error }
                    }
                });
            }
        }
        answers
    }
}

fn encoded(value: u64) -> Bytes {
    Bytes::copy_from_slice(&value.to_le_bytes())
}

/// The ring id that these records come to; `None` if they are about anything else.
fn ring_id_in(records: &[LogRecord]) -> Option<u64> {
    let mut newest = None;
    for record in records {
        match record {
            LogRecord::Put {
                log: RING_IDS,
                position: NEWEST,
                bytes,
            } => newest = Some(u64::from_le_bytes(bytes.as_ref().try_into().ok()?)),
            LogRecord::Put { .. } | LogRecord::Trim { .. } => return None,
        }
    }
    newest
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
            if let Input::PersistFailed { error, .. } = answer {
                self.sockets.stats_mut().persist_failures += 1;
                tracing::error!(?error, "a ring id could not be made durable");
            }
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
