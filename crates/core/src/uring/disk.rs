//! What an acceptor keeps: records in two logs, and what is said when they are durable.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;

use super::base::Base;
use super::codec::{Source, cast, put_base, put_config, put_slot};
use super::word::Word;
use crate::contract::{LogId, LogRecord, NodeId, Output, PersistId};
use crate::mutants::{self, Mutant};
use crate::paxos::{
    self, Acceptor, AcceptorId, Config, Instance, Mark, Promise, Round, STATE_LOG, Slot, VOTES_LOG,
    Vote,
};

const PROMISED: u64 = 0;
const CONFIG: u64 = 1;
const SLOT: u64 = 2;
const BASE: u64 = 3;
const STORE: u64 = 4;
const DECIDED: u64 = 5;
const KEPT: u64 = 6;

/// With more than this waiting for the disk a process takes no proposals, and so slows the ring, in bytes. Drivers
/// have to take this, and a message more.
const MOST_BYTES: usize = 16 << 20;

/// What may be said when all before it is durable.
#[derive(Clone, Debug)]
pub enum Effect {
    /// A word to a node.
    Say(NodeId, Word),
    /// Phase 1B.
    Promise(NodeId, Promise),
}

#[derive(Debug)]
struct Waiting {
    id: PersistId,
    bytes: usize,
    mark: Mark,
    effects: Vec<Effect>,
}

/// What was found when the process started.
#[derive(Debug, Default)]
pub struct Found {
    pub store: Option<u64>,
    pub promised: Round,
    pub config: Option<Arc<Config>>,
    pub slot: Option<(Round, Slot<Arc<Config>>)>,
    pub base: Option<Base>,
    /// Its votes before this are what was decided.
    pub decided: Instance,
    pub kept: Instance,
    pub votes: Vec<Vote>,
    /// Something could not be read.
    pub damaged: bool,
}

/// Requests to make records durable.
#[derive(Debug, Default)]
pub struct Disk {
    last: u64,
    state: Vec<LogRecord>,
    /// What speaks of votes, and must not be durable before they are.
    behind: Vec<LogRecord>,
    effects: Vec<Effect>,
    waiting: VecDeque<Waiting>,
    /// What waits, in bytes.
    bytes: usize,
    /// Nothing is kept.
    forgets: bool,
    /// A request has failed: nothing is promised and voted for any more.
    pub failed: bool,
}

impl Found {
    /// What these records say.
    pub fn read(records: Vec<(LogId, u64, Bytes)>) -> Self {
        let mut found = Self::default();
        for (log, position, bytes) in records {
            let read = match log {
                VOTES_LOG => found.on_vote(position, &bytes),
                STATE_LOG => found.on_state(position, bytes),
                _ => Some(()),
            };
            found.damaged |= read.is_none();
        }
        // Of two votes for an instance the one of the higher round was cast later.
        found.votes.sort_by_key(|vote| vote.round);
        found
    }

    fn on_vote(&mut self, position: Instance, bytes: &Bytes) -> Option<()> {
        let mut whole = Vec::with_capacity(8 + bytes.len());
        whole.extend(position.to_le_bytes());
        whole.extend_from_slice(bytes);
        let mut source = Source(whole.into());
        let vote = source.vote()?;
        self.votes.push(vote);
        source.is_over().then_some(())
    }

    fn on_state(&mut self, key: u64, bytes: Bytes) -> Option<()> {
        let mut source = Source(bytes);
        match key {
            PROMISED => self.promised = source.number()?,
            CONFIG => self.config = Some(source.config()?),
            SLOT => self.slot = Some((source.number()?, source.slot()?)),
            BASE => self.base = Some(source.base()?),
            STORE => self.store = Some(source.u64()?),
            DECIDED => self.decided = source.number()?,
            KEPT => self.kept = source.number()?,
            _ => return None,
        }
        source.is_over().then_some(())
    }

    /// The acceptor that all this is of.
    pub fn acceptor(&mut self, id: AcceptorId) -> Acceptor {
        let trimmed = paxos::Record::Trimmed(self.kept);
        let mut votes = core::mem::take(&mut self.votes);
        if mutants::on(Mutant::U18) {
            votes.clear();
        }
        if mutants::on(Mutant::U24) {
            self.promised = 0;
        }
        let records = core::iter::once(paxos::Record::Promised(self.promised))
            .chain(votes.into_iter().map(paxos::Record::Voted))
            .chain([trimmed]);
        Acceptor::restore(id, records)
    }
}

fn bytes_of(record: &LogRecord) -> usize {
    match record {
        LogRecord::Put { bytes, .. } => bytes.len(),
        LogRecord::Trim { .. } => 0,
    }
}

fn state(key: u64, write: impl FnOnce(&mut Vec<u8>)) -> LogRecord {
    let mut bytes = Vec::new();
    write(&mut bytes);
    LogRecord::Put {
        log: STATE_LOG,
        position: key,
        bytes: bytes.into(),
    }
}

impl Disk {
    /// For an acceptor that forgets, or one that does not.
    pub fn new(forgets: bool) -> Self {
        Self {
            forgets,
            ..Self::default()
        }
    }

    /// Says something when all that has to be durable before it is.
    pub fn then(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    fn put(&mut self, key: u64, write: impl FnOnce(&mut Vec<u8>)) {
        self.state.push(state(key, write));
    }

    pub fn put_store(&mut self, store: u64) {
        self.put(STORE, |out| out.extend(store.to_le_bytes()));
    }

    pub fn put_config(&mut self, config: &Config) {
        self.put(CONFIG, |out| put_config(out, config));
    }

    pub fn put_slot(&mut self, number: Round, slot: &Slot<Arc<Config>>) {
        self.put(SLOT, |out| {
            out.extend(number.to_le_bytes());
            put_slot(out, slot);
        });
    }

    pub fn put_base(&mut self, base: &Base) {
        self.behind.push(state(BASE, |out| put_base(out, base)));
    }

    /// A hint for the next start.
    pub fn put_decided(&mut self, decided: Instance) {
        let hint = state(DECIDED, |out| out.extend(decided.to_le_bytes()));
        self.behind.push(hint);
    }

    /// What there is to write now. What waits for nothing any more is in `ready`.
    pub fn request(&mut self, acceptor: &mut Acceptor, ready: &mut Vec<Effect>) -> Option<Output> {
        let (records, mark) = acceptor.records();
        if self.forgets {
            self.state.clear();
            self.behind.clear();
            acceptor.on_durable(mark);
            ready.append(&mut self.effects);
            return None;
        }
        if self.failed {
            self.effects.clear();
            self.state.clear();
            self.behind.clear();
            return None;
        }
        let mut trimmed = 0;
        for record in records {
            match record {
                paxos::Record::Trimmed(below) => trimmed = below.max(trimmed),
                other => self.take(other),
            }
        }
        self.state.append(&mut self.behind);
        if trimmed > 0 {
            self.trim(trimmed);
        }
        let effects = core::mem::take(&mut self.effects);
        if self.state.is_empty() {
            match self.waiting.back_mut() {
                Some(last) => {
                    last.mark = mark;
                    last.effects.extend(effects);
                }
                None => {
                    acceptor.on_durable(mark);
                    ready.extend(effects);
                }
            }
            return None;
        }
        self.last += 1;
        let id = PersistId(self.last);
        let records = core::mem::take(&mut self.state);
        let bytes = records.iter().map(bytes_of).sum();
        self.bytes += bytes;
        self.waiting.push_back(Waiting {
            id,
            bytes,
            mark,
            effects,
        });
        Some(Output::Persist { id, records })
    }

    fn take(&mut self, record: paxos::Record) {
        match record {
            paxos::Record::Promised(round) => {
                self.put(PROMISED, |out| out.extend(round.to_le_bytes()));
            }
            paxos::Record::Voted(vote) => {
                self.state.push(LogRecord::Put {
                    log: VOTES_LOG,
                    position: vote.first,
                    bytes: cast(&vote),
                });
            }
            paxos::Record::Floor(floor) => self.put(KEPT, |out| out.extend(floor.to_le_bytes())),
            paxos::Record::Trimmed(below) => self.trim(below),
        }
    }

    fn trim(&mut self, below: Instance) {
        self.put(KEPT, |out| out.extend(below.to_le_bytes()));
        self.state.push(LogRecord::Trim {
            log: VOTES_LOG,
            position: below,
        });
    }

    /// A request, and all before it, are durable: what may be said now.
    pub fn on_persisted(&mut self, id: PersistId, acceptor: &mut Acceptor) -> Vec<Effect> {
        let mut ready = Vec::new();
        while let Some(done) = self.waiting.pop_front_if(|waiting| waiting.id <= id) {
            self.bytes -= done.bytes;
            acceptor.on_durable(done.mark);
            ready.extend(done.effects);
        }
        ready
    }

    /// A request failed: this acceptor is over.
    pub fn on_failed(&mut self) {
        self.failed = true;
        self.bytes = 0;
        self.waiting.clear();
        self.state.clear();
        self.behind.clear();
        self.effects.clear();
    }

    /// Whether so much waits that nothing should be added.
    pub const fn is_behind(&self) -> bool {
        self.bytes > MOST_BYTES
    }

    /// Whether everything that was asked for is durable.
    pub fn is_idle(&self) -> bool {
        self.waiting.is_empty()
    }
}
