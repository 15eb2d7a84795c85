//! A process, its disk and its application, as a search keeps them.

use std::hash::{DefaultHasher, Hash, Hasher};

use bytes::Bytes;
use rota_core::contract::{
    ConfigurationKind, Engine, Incarnation, Input, LogId, LogRecord, NodeId, Output, PersistId,
    Process, Service, StartState, Time,
};
use rota_ring::RingConfig;
use rota_ring::RingEngine;

/// The most messages that one application submits in one life.
pub(super) const MESSAGES: usize = 4;

/// The first time on a clock: past times do not fall below 0.
const EPOCH: u64 = 1 << 20;

/// The records on a disk: log, position, contents.
type Records = Vec<(LogId, u64, Bytes)>;

/// A machine and the process on it.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub node: NodeId,
    /// `None` while it is down.
    pub engine: Option<RingEngine>,
    /// The time on its clock, which goes on only when one of its own timers fires.
    pub clock: u64,
    pub lives: u32,
    pub disk: Records,
    /// The records that it has asked to be written, in order.
    pub pending: Vec<(PersistId, Vec<LogRecord>)>,
    /// Sends that wait for that.
    pub waiting: Vec<(PersistId, Output)>,
    /// Its application's configuration.
    pub conf: Option<ConfigurationKind>,
    /// Its application's messages by counter, from 1: service and hash.
    pub sent: Vec<(Service, u64)>,
    /// The number of those messages that it has got back.
    pub returned: usize,
    /// All that the node has seen, over its lives, as a hash: the right deliveries depend on it.
    pub history: u64,
    /// The hash of everything here, but the clock.
    pub hash: u64,
}

impl Node {
    pub fn new(node: NodeId) -> Self {
        Self {
            node,
            engine: None,
            clock: EPOCH,
            lives: 0,
            disk: Vec::new(),
            pending: Vec::new(),
            waiting: Vec::new(),
            conf: None,
            sent: Vec::new(),
            returned: 0,
            history: 0,
            hash: 0,
        }
    }

    pub const fn process(&self) -> Process {
        let incarnation = Incarnation(self.lives as u64);
        Process {
            node: self.node,
            incarnation,
        }
    }

    pub const fn now(&self) -> Time {
        Time(self.clock)
    }

    /// The time that its clock has to go for its next timer.
    pub fn next_timer(&self) -> Option<u64> {
        let (at, _) = self.engine.as_ref()?.next_timer()?;
        Some(at.since(self.now()))
    }

    /// Starts the next life.
    ///
    /// # Panics
    /// If the configuration does not work.
    pub fn start(&mut self, config: &RingConfig) {
        self.lives += 1;
        let mut engine = RingEngine::new(config.clone()).expect("a configuration that works");
        let start = StartState {
            me: self.process(),
            seed: 1,
            records: self.disk.clone(),
            lost_some: false,
        };
        engine.handle(self.now(), Input::Start(start));
        self.engine = Some(engine);
    }

    /// The process dies; what was not reported as durable is lost.
    pub fn crash(&mut self) {
        self.engine = None;
        self.pending.clear();
        self.waiting.clear();
        self.conf = None;
        self.sent.clear();
        self.returned = 0;
    }

    /// The oldest request is durable: answers with what may be sent now.
    pub fn write(&mut self) -> Option<(PersistId, Vec<Output>)> {
        if self.pending.is_empty() {
            return None;
        }
        let (id, records) = self.pending.remove(0);
        for record in records {
            match record {
                LogRecord::Put {
                    log,
                    position,
                    bytes,
                } => {
                    self.disk.retain(|&(of, at, _)| (of, at) != (log, position));
                    self.disk.push((log, position, bytes.into_bytes()));
                }
                LogRecord::Trim { log, position } => {
                    self.disk.retain(|&(of, at, _)| of != log || at >= position);
                }
            }
        }
        let waiting = std::mem::take(&mut self.waiting);
        let (free, waiting) = waiting.into_iter().partition(|(after, _)| *after <= id);
        self.waiting = waiting;
        let free: Vec<(PersistId, Output)> = free;
        Some((id, free.into_iter().map(|(_, output)| output).collect()))
    }

    /// Whether a send has to wait.
    pub fn has_to_wait(&self, after: Option<PersistId>) -> bool {
        after.is_some_and(|after| self.pending.iter().any(|(id, _)| *id <= after))
    }

    pub fn remember(&mut self, what: impl Hash) {
        let mut hasher = DefaultHasher::new();
        (self.history, what).hash(&mut hasher);
        self.history = hasher.finish();
    }

    /// Brings the hash up to date.
    pub fn seal(&mut self) {
        let mut hasher = DefaultHasher::new();
        (self.lives, self.history, self.returned).hash(&mut hasher);
        (&self.disk, &self.sent).hash(&mut hasher);
        for (id, records) in &self.pending {
            (id, records.len()).hash(&mut hasher);
        }
        for (id, output) in &self.waiting {
            id.hash(&mut hasher);
            if let Output::Send { burst, .. } = output {
                burst.bytes.hash(&mut hasher);
            }
        }
        if let Some(engine) = &self.engine {
            engine.fingerprint(&mut hasher);
        }
        self.hash = hasher.finish();
    }
}
