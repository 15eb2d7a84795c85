//! One node: its disk, and the machines of the process that lives there.

use std::hash::{DefaultHasher, Hash, Hasher};

use rota_core::contract::{Incarnation, NodeId, Process};
use rota_paxos::{
    Acceptor, AcceptorId, Coordinator, Instance, Learner, Mark, Promise, Record, Round, Votes,
};

/// The disk, which survives a restart. Records that later ones have replaced are gone, so two orders of writing that
/// leave the same behind are one state.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Disk {
    promised: Round,
    /// The newest configuration that it knew.
    known: Round,
    pub kept: Instance,
    pub floor: Instance,
    /// The place of the application's checkpoint.
    pub base: Instance,
    pub votes: Votes,
}

impl Default for Disk {
    fn default() -> Self {
        Self {
            promised: 0,
            known: 0,
            kept: 1,
            floor: 1,
            base: 1,
            votes: Votes::default(),
        }
    }
}

impl Disk {
    pub fn write(&mut self, record: &Record) {
        match record {
            Record::Promised(round) => self.promised = self.promised.max(*round),
            Record::Voted(vote) => {
                self.promised = self.promised.max(vote.round);
                self.votes.put(vote.clone());
                self.votes.trim(self.kept);
            }
            Record::Floor(floor) => self.floor = self.floor.max(*floor),
            Record::Trimmed(below) => {
                self.floor = self.floor.max(*below);
                self.kept = self.kept.max(*below);
                self.votes.trim(self.kept);
            }
        }
    }

    pub fn know(&mut self, number: Round) {
        self.known = self.known.max(number);
    }

    /// The records that a process finds when it starts.
    fn records(&self) -> Vec<Record> {
        let first = [
            Record::Promised(self.promised),
            Record::Floor(self.floor),
            Record::Trimmed(self.kept),
        ];
        let votes = self.votes.from(0).map(Record::Voted);
        first.into_iter().chain(votes).collect()
    }
}

/// An effect that waits for the disk; effects take place in order.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Effect {
    Write(Record),
    Snapshot(Instance),
    Config(Round),
    /// All before is durable, and the acceptor is told so.
    Told(Mark),
    /// Leaves when all before is durable; the flag says whether the promise is late then.
    Promise(Promise, bool),
}

#[derive(Clone, Debug)]
pub(super) struct Node {
    pub id: AcceptorId,
    pub lives: u64,
    pub disk: Disk,
    pub queue: Vec<Effect>,
    pub acceptor: Acceptor,
    /// The mark of the records that it was, or will be, told last to be durable.
    told: Mark,
    pub learner: Learner,
    pub coordinator: Option<Coordinator>,
    /// The newest configuration that it knows; it takes nothing of those before.
    pub known: Round,
    /// The newest of which it knows that it is complete.
    pub complete: Round,
    /// Everything before is in the application's checkpoint.
    pub base: Instance,
    /// The newest round of which it has got proposals, and their number.
    pub got: (Round, u8),
    /// Whether anything has happened here.
    pub touched: bool,
    /// The hash of everything here.
    pub hash: u64,
}

impl Node {
    pub fn new(at: usize) -> Self {
        let id = acceptor_id(at, at);
        let mut node = Self {
            id,
            lives: 1,
            disk: Disk::default(),
            queue: Vec::new(),
            acceptor: Acceptor::new(id),
            told: Mark::default(),
            learner: Learner::new(1),
            coordinator: None,
            known: 0,
            complete: 0,
            base: 1,
            got: (0, 0),
            touched: false,
            hash: 0,
        };
        node.seal();
        node
    }

    pub const fn process(&self) -> Process {
        Process {
            node: self.id.node,
            incarnation: Incarnation(self.lives),
        }
    }

    /// The next life, with what the disk has.
    pub fn restart(&mut self) {
        self.lives += 1;
        self.queue.clear();
        self.acceptor = Acceptor::restore(self.id, self.disk.records());
        self.told = Mark::default();
        (self.base, self.known) = (self.disk.base, self.disk.known);
        // Older votes were perhaps never compared with the decisions.
        self.acceptor.trim(self.base);
        self.learner = Learner::new(self.base);
        self.coordinator = None;
        self.complete = 0;
        self.got = (0, 0);
    }

    /// The next life, with a new disk.
    pub fn replace(&mut self, store: usize) {
        self.id.store = store as u64;
        self.disk = Disk::default();
        self.restart();
    }

    /// A configuration becomes known.
    pub fn know(&mut self, number: Round) {
        if number > self.known {
            self.known = number;
            self.queue.push(Effect::Config(number));
        }
    }

    /// Queues the records that the acceptor wants to be durable.
    pub fn write(&mut self) {
        let (records, mark) = self.acceptor.records();
        let is_new = !records.is_empty() || mark != self.told;
        self.told = mark;
        self.queue.extend(records.into_iter().map(Effect::Write));
        self.queue.extend(is_new.then_some(Effect::Told(mark)));
    }

    /// Brings the hash up to date.
    pub fn seal(&mut self) {
        let mut hasher = DefaultHasher::new();
        (self.id, self.lives, self.touched).hash(&mut hasher);
        (self.known, self.complete, self.base, self.got).hash(&mut hasher);
        self.disk.hash(&mut hasher);
        self.queue.hash(&mut hasher);
        (&self.acceptor, self.told).hash(&mut hasher);
        self.learner.hash(&mut hasher);
        self.coordinator.hash(&mut hasher);
        self.hash = hasher.finish();
    }
}

/// The acceptor at a place that has this store.
///
/// # Panics
/// If there are more places than nodes can be.
pub(super) fn acceptor_id(at: usize, store: usize) -> AcceptorId {
    AcceptorId {
        node: NodeId::new(at as u16 + 1).expect("not 0"),
        store: store as u64,
    }
}
