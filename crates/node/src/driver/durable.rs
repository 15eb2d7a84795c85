//! The records that the engine wants durable, and the sends that wait for them.
//!
//! Two records can be kept: the newest ring id's number, and what the node knows of primaries. With a state directory
//! they go to files, by a thread of its own: a sync takes milliseconds, or seconds on a disk in trouble, and a node has
//! to answer the others meanwhile. Without one the ring id is kept in memory, and counts as durable at once: then only
//! the incarnation keeps the rings of two lives of a node apart. The record of primaries is never kept in memory only.
//!
//! The votes and the state of an engine of the Paxos family go to an acceptor's log ([`Acceptor`]), by another thread.

use bytes::Bytes;
use rota_core::contract::{
    Burst, Class, Input, LogId, LogRecord, NodeId, PersistError, PersistId, Target,
};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use super::DriverError;
use super::acceptor::{Acceptor, Kept};
use super::log_opening::Found as FoundVotes;
use super::store::{Files, Found, NEWEST, Record, Store};
use super::votes::{self, Change};
use super::waker::Waker;
use super::worker::Worker;
use crate::config::NodeConfig;

/// A send that was handed out and must not leave yet.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) after: PersistId,
    pub(super) class: Class,
    pub(super) to: Target,
    pub(super) burst: Burst,
}

/// The subject of a request.
#[derive(Debug)]
enum About {
    /// A file.
    Record(Record),
    /// The acceptor's log.
    Votes,
}

impl About {
    fn is_of(&self, log: LogId) -> bool {
        matches!(self, Self::Record(record) if record.log() == log)
    }
}

/// A request without an answer.
#[derive(Debug)]
struct Pending {
    id: PersistId,
    about: About,
    /// The result, while a request before this one has none.
    result: Option<Result<(), PersistError>>,
}

/// The reply to a request.
pub(super) enum Reply {
    /// The request is answered later.
    None,
    /// The request is answered now.
    Now(Input),
    /// This driver cannot carry the request out.
    Unsupported(Input),
}

/// A node's durable state.
#[derive(Debug)]
pub(super) struct Durable {
    found: Found,
    /// `None`: everything is kept in memory.
    worker: Option<Worker>,
    /// `None`: the engine has no votes.
    acceptor: Option<Acceptor>,
    /// The contents of the acceptor's log, until the engine is told.
    votes: FoundVotes,
    /// Rung by the threads of both, and by others that it is shared with.
    waker: Arc<Waker>,
    /// Fetches without an answer.
    fetching: usize,
    /// Requests without an answer, oldest first: an answer says that all before are durable, too.
    pending: VecDeque<Pending>,
    /// Sends that wait for them, in the order in which they were handed out.
    held: VecDeque<Held>,
    /// Requests that will never be answered: from the first to the last that waited when the log was given up.
    void: Option<(PersistId, PersistId)>,
    /// The log has been told that something failed, and nothing has gone well since.
    complained: bool,
}

impl Durable {
    /// The durable state that the configuration of node `me` names.
    pub(super) fn open(config: &NodeConfig, me: NodeId) -> Result<Self, DriverError> {
        let mut durable = match Files::open(config, me)? {
            Some(files) => Self::with_store(files.found(), Box::new(files)),
            None => Self::in_memory(),
        }
        .map_err(DriverError::System)?;
        if let Some((acceptor, votes)) = Acceptor::open(config, me, &durable.waker)? {
            durable.acceptor = Some(acceptor);
            durable.votes = votes;
        }
        Ok(durable)
    }

    fn in_memory() -> io::Result<Self> {
        Ok(Self {
            found: Found::default(),
            worker: None,
            acceptor: None,
            votes: FoundVotes::default(),
            void: None,
            waker: Arc::new(Waker::new()?),
            fetching: 0,
            pending: VecDeque::new(),
            held: VecDeque::new(),
            complained: false,
        })
    }

    /// A store in a thread of its own, which holds what was `found`.
    pub(super) fn with_store(found: Found, store: Box<dyn Store>) -> io::Result<Self> {
        let mut durable = Self::in_memory()?;
        durable.found = found;
        durable.worker = Some(Worker::start(store, Arc::clone(&durable.waker))?);
        Ok(durable)
    }

    /// An acceptor's log that this opens, in a thread of its own.
    #[cfg(test)]
    pub(super) fn with_log<D: rota_storage::acceptor::LogDisk + 'static>(
        opener: super::log_opening::Opener<D>,
        mode: rota_storage::acceptor::Mode,
    ) -> Result<Self, DriverError> {
        let mut durable = Self::in_memory().map_err(DriverError::System)?;
        let (acceptor, votes) = Acceptor::on_disk(opener, mode, &durable.waker)?;
        durable.acceptor = Some(acceptor);
        durable.votes = votes;
        Ok(durable)
    }

    /// The records that the engine is told when it starts, and whether some may be missing; votes only once.
    pub(super) fn records(&mut self) -> (Vec<(LogId, u64, Bytes)>, bool) {
        let records = self.found.records();
        let mut records: Vec<_> = records
            .map(|record| (record.log(), NEWEST, record.bytes()))
            .collect();
        // State is told first.
        let votes = std::mem::take(&mut self.votes);
        records.extend(votes.records);
        (records, votes.lost_some)
    }

    /// Gives the acceptor's log up, and has it opened again. Sends that waited for requests that will have no answer are
    /// forgotten. `None` without such a log. For a log in memory the input for the engine is there at once.
    pub(super) fn reopen(&mut self) -> Option<Option<Input>> {
        let found = self.acceptor.as_mut()?.reopen();
        let is_vote = |pending: &Pending| matches!(pending.about, About::Votes);
        let void = self.pending.iter().filter(|pending| is_vote(pending));
        let void: Vec<PersistId> = void.map(|pending| pending.id).collect();
        self.pending.retain(|pending| !is_vote(pending));
        if let (Some(first), Some(last)) = (void.first(), void.last()) {
            self.void = Some((*first, *last));
        }
        self.held
            .retain(|held| void.binary_search(&held.after).is_err());
        Some(found.map(reopened))
    }

    /// Whether this request will never be answered.
    pub(super) fn is_void(&self, id: PersistId) -> bool {
        let is_among = |(first, last): (PersistId, PersistId)| (first..=last).contains(&id);
        self.void.is_some_and(is_among) && !self.is_pending(id)
    }

    /// Starts a fetch. An answer that is there at once is handed back.
    pub(super) fn fetch(&mut self, log: LogId, from: u64, to: u64) -> Option<Input> {
        if let Some(acceptor) = self.acceptor.as_mut().filter(|_| votes::is_one(log)) {
            let answer = acceptor.fetch(log, from..to);
            self.fetching += usize::from(answer.is_none());
            return answer;
        }
        let wanted = |record: &Record| record.log() == log && (from..to).contains(&NEWEST);
        let records = self.found.records().filter(wanted);
        Some(Input::Fetched {
            log,
            from,
            to,
            records: records.map(|record| (NEWEST, record.bytes())).collect(),
        })
    }

    /// Starts a request.
    pub(super) fn request(&mut self, id: PersistId, records: &[LogRecord]) -> Reply {
        if let Some(acceptor) = &mut self.acceptor
            && let Some(changes) = Change::read(records)
        {
            let kept = acceptor.request(id, changes);
            return self.after_request(id, About::Votes, kept);
        }
        let record = Record::read(records);
        let kept = |record: &Record| match record {
            Record::RingId(_) | Record::Electorates(_) => true,
            Record::Primaries(_) => self.found.primaries.is_some(),
        };
        let Some(record) = record.filter(kept) else {
            // Saying so is better than a promise of durability that nobody keeps.
            let error = PersistError::Io("this node does not keep such records".to_owned());
            return Reply::Unsupported(Input::PersistFailed { id, error });
        };
        let kept = match &self.worker {
            Some(worker) => {
                worker.request(id, record.clone());
                Kept::Later
            }
            None => {
                self.found.take_over(record.clone());
                Kept::Now
            }
        };
        self.after_request(id, About::Record(record), kept)
    }

    /// An answer says that all before are durable, too: so it waits for theirs.
    fn after_request(&mut self, id: PersistId, about: About, kept: Kept) -> Reply {
        debug_assert!(self.pending.back().is_none_or(|last| last.id < id));
        let result = match kept {
            Kept::Later => None,
            Kept::Now => Some(Ok(())),
            Kept::Failed(error) => Some(Err(error)),
        };
        match result {
            Some(Ok(())) if self.pending.is_empty() => Reply::Now(Input::Persisted { id }),
            Some(Err(error)) if self.pending.is_empty() => {
                Reply::Now(Input::PersistFailed { id, error })
            }
            result => {
                self.pending.push_back(Pending { id, about, result });
                Reply::None
            }
        }
    }

    /// Whether a send that names this request has to wait.
    pub(super) fn is_pending(&self, id: PersistId) -> bool {
        let place = self.pending.binary_search_by_key(&id, |pending| pending.id);
        place.is_ok()
    }

    pub(super) fn hold(&mut self, held: Held) {
        self.held.push_back(held);
    }

    /// The oldest send that was held back and need not wait any more.
    pub(super) fn next_ready(&mut self) -> Option<Held> {
        let ready = self.held.front().is_some_and(|h| !self.is_pending(h.after));
        if ready { self.held.pop_front() } else { None }
    }

    /// Whether there is an answer to come.
    pub(super) fn waits(&self) -> bool {
        let reopens = self.acceptor.as_ref().is_some_and(Acceptor::reopens);
        !self.pending.is_empty() || self.fetching > 0 || reopens
    }

    /// Rung when there may be answers.
    pub(super) const fn waker(&self) -> &Arc<Waker> {
        &self.waker
    }

    /// The log of an engine with votes.
    pub(super) const fn acceptor(&self) -> Option<&Acceptor> {
        self.acceptor.as_ref()
    }

    /// The answers that have come, those to requests in their order. Sends that waited for a failed request are
    /// forgotten.
    pub(super) fn answers(&mut self) -> Vec<Input> {
        self.take_stored();
        let mut answers = self.take_votes();
        while let Some(answered) = self.pending.pop_front_if(|next| next.result.is_some()) {
            let Pending { id, about, result } = answered;
            answers.push(match result {
                Some(Err(error)) => {
                    self.held.retain(|held| held.after != id);
                    self.complain(&about, Some(&error));
                    Input::PersistFailed { id, error }
                }
                Some(Ok(())) | None => {
                    self.complain(&about, None);
                    if let About::Record(record) = about {
                        self.found.take_over(record);
                    }
                    Input::Persisted { id }
                }
            });
        }
        answers
    }

    /// Takes the results of records in files.
    fn take_stored(&mut self) {
        let results = self.worker.as_ref().map(Worker::take_answers);
        for (last, log, result) in results.into_iter().flatten() {
            // A request that a later one overtook is answered together with that one, which wrote over it.
            let of_it = |pending: &&mut Pending| {
                pending.result.is_none() && pending.id <= last && pending.about.is_of(log)
            };
            for pending in self.pending.iter_mut().filter(of_it) {
                pending.result = Some(result.clone());
            }
        }
    }

    /// Takes the results of votes; hands back fetched records, and the contents of a log that is open again.
    fn take_votes(&mut self) -> Vec<Input> {
        let Some(acceptor) = &mut self.acceptor else {
            return Vec::new();
        };
        let taken = acceptor.take();
        let open = |pending: &&mut Pending| {
            pending.result.is_none() && matches!(pending.about, About::Votes)
        };
        for pending in self.pending.iter_mut().filter(open) {
            let is_durable = taken.durable.is_some_and(|last| pending.id <= last);
            pending.result = match (is_durable, &taken.failed) {
                (true, _) => Some(Ok(())),
                (false, Some(error)) => Some(Err(error.clone())),
                (false, None) => break,
            };
        }
        self.fetching -= taken.fetched.len();
        let mut answers = taken.fetched;
        answers.extend(taken.reopened.map(reopened));
        answers
    }

    /// Requests are answered in their order.
    pub(super) fn check(&self) {
        let pending = self.pending.iter();
        debug_assert!(pending.is_sorted_by(|one, next| one.id < next.id));
    }

    /// Tells the operator of the first failure after all went well: a disk that stays bad is tried often. The log's
    /// thread tells of failed votes itself.
    fn complain(&mut self, about: &About, error: Option<&PersistError>) {
        if matches!(about, About::Votes) {
            return;
        }
        let complained = std::mem::replace(&mut self.complained, error.is_some());
        if let Some(error) = error.filter(|_| !complained) {
            tracing::error!(?error, "a record could not be made durable");
        }
    }
}

fn reopened(found: FoundVotes) -> Input {
    let FoundVotes { records, lost_some } = found;
    Input::Reopened { records, lost_some }
}
