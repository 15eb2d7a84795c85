//! An engine that does nothing well but uses all of the contract: it says hello at intervals, counts as its
//! configuration the processes that it has heard lately, and keeps a number on disk that grows with each of its lives.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use rota_core::contract::{
    Burst, Channel, Class, Configuration, ConfigurationKind, Delivery, Engine, Incarnation, Input,
    LogId, LogRecord, Message, MessageId, NodeId, Output, PersistId, Process, RingId, Service,
    Status, SubmitError, Target, Time, TimerReason,
};
use rota_sim::plan::{MILLIS, Plan};
use rota_sim::world::System;

const HELLO_EVERY: u64 = 20 * MILLIS;
const FORGET_AFTER: u64 = 200 * MILLIS;
const LOG: LogId = LogId(1);
/// As long as the shortest datagram there is.
const HELLO_BYTES: usize = 40;

/// The flaws of toys.
#[derive(Clone, Copy, Default, Debug)]
pub struct Toys {
    /// It does not wait until its number is durable.
    pub hasty: bool,
    /// It takes a write that failed for one that went well.
    pub careless: bool,
    /// It never forgets anybody.
    pub nostalgic: bool,
}

impl System for Toys {
    type Engine = Toy;

    fn engine(&self, _: &Plan, _: Process, _: u32) -> Toy {
        Toy {
            kind: *self,
            ..Toy::default()
        }
    }
}

#[derive(Default, Debug)]
pub struct Toy {
    kind: Toys,
    me: Option<Process>,
    now: Time,
    number: u64,
    requests: u64,
    turns: u64,
    next: Time,
    /// Whom it heard, and when.
    heard: BTreeMap<Process, Time>,
    /// The largest number that each node has told.
    told: BTreeMap<NodeId, u64>,
    members: Vec<Process>,
    confs: u64,
    /// It has been careless.
    fooled: bool,
    sent: u64,
    halves: BTreeMap<Process, u64>,
    outputs: VecDeque<Output>,
    deliveries: VecDeque<Delivery>,
    counters: BTreeMap<&'static str, u64>,
}

impl Toy {
    fn count(&mut self, what: &'static str) {
        *self.counters.entry(what).or_default() += 1;
    }

    fn persist(&mut self) {
        self.requests += 1;
        let number = self.number;
        let put = |position| LogRecord::Put {
            log: LOG,
            position,
            bytes: number.to_le_bytes().to_vec().into(),
        };
        let records = vec![put(0), put(1)];
        let id = PersistId(self.requests);
        self.outputs.push_back(Output::Persist { id, records });
    }

    /// Two halves, so that it can be killed between them.
    fn hello(&mut self) {
        let Some(me) = self.me else { return };
        for half in 0..2 {
            let mut bytes = vec![half];
            bytes.extend(me.node.get().to_le_bytes());
            bytes.extend(me.incarnation.0.to_le_bytes());
            bytes.extend(self.number.to_le_bytes());
            bytes.resize(HELLO_BYTES, 0);
            self.outputs.push_back(Output::Send {
                class: Class::Token,
                channel: Channel(0),
                to: Target::Others,
                burst: Burst::single(bytes),
                after: (!self.kind.hasty && !self.fooled).then_some(PersistId(self.requests)),
            });
        }
    }

    fn on_hello(&mut self, bytes: &[u8]) {
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(word)
        };
        let node = u16::from_le_bytes([bytes[1], bytes[2]]);
        let (Some(node), incarnation) = (NodeId::new(node), Incarnation(word(3))) else {
            return self.count("nonsense");
        };
        let process = Process { node, incarnation };
        let number = word(11);
        // A first half waits for its second.
        let waiting = self.halves.entry(process).or_default();
        *waiting = if bytes[0] == 0 { *waiting + 1 } else { 0 };
        let before = self.told.insert(node, number).unwrap_or(0);
        let new = self.heard.insert(process, self.now).is_none();
        if new && number <= before {
            self.count("numbers_forgotten");
        }
        if new {
            // Its earlier lives are over.
            self.heard
                .retain(|other, _| other.node != node || *other == process);
        }
        self.settle();
    }

    fn settle(&mut self) {
        let (Some(me), now) = (self.me, self.now) else {
            return;
        };
        if !self.kind.nostalgic {
            self.heard.retain(|_, at| now.since(*at) < FORGET_AFTER);
        }
        self.heard.insert(me, now);
        let members: Vec<Process> = self.heard.keys().copied().collect();
        if members == self.members {
            return;
        }
        self.members.clone_from(&members);
        self.confs += 1;
        let rep = members[0];
        let mixed = members.iter().fold(0_u64, |mixed, member| {
            mixed.rotate_left(7) ^ member.incarnation.0 ^ u64::from(member.node.get())
        });
        let ring = RingId {
            ring_seq: mixed,
            rep: rep.node,
            incarnation: rep.incarnation,
        };
        let kind = ConfigurationKind::Regular(ring);
        let conf = Configuration { kind, members };
        self.deliveries.push_back(Delivery::Configuration(conf));
    }
}

impl Engine for Toy {
    fn handle(&mut self, now: Time, input: Input) {
        self.now = now;
        match input {
            Input::Start(start) => {
                self.me = Some(start.me);
                let stored = start.records.iter().map(|(_, _, bytes)| {
                    let mut word = [0; 8];
                    word.copy_from_slice(bytes);
                    u64::from_le_bytes(word)
                });
                self.number = stored.max().unwrap_or(0) + 1;
                self.persist();
                self.hello();
                self.settle();
                self.next = now.after(HELLO_EVERY);
            }
            Input::Datagrams { bytes, segment, .. } => {
                for datagram in bytes.chunks(segment) {
                    if datagram.len() == HELLO_BYTES && datagram[0] < 2 {
                        self.on_hello(datagram);
                    } else {
                        self.count("nonsense");
                    }
                }
            }
            Input::Timer => {
                if self.halves.values().any(|&waiting| waiting > 0) {
                    self.count("halves_alone");
                    self.halves.clear();
                }
                self.next = now.after(HELLO_EVERY);
                self.turns += 1;
                // Again, so that a disk has something to fail at.
                if self.turns.is_multiple_of(8) {
                    self.persist();
                }
                self.hello();
                self.settle();
            }
            Input::Persisted { id } => {
                let last = id == PersistId(self.requests);
                self.count(if last { "persisted" } else { "persisted_late" });
            }
            Input::PersistFailed { .. } => {
                self.count("persist_failed");
                if self.kind.careless {
                    self.fooled = true;
                } else {
                    self.persist();
                }
            }
            Input::Unreachable { .. } => self.count("peers_unreachable"),
            _ => self.count("unexpected"),
        }
    }

    fn submit(&mut self, _: Time, service: Service, payload: &[u8]) -> Result<u64, SubmitError> {
        let Some(process) = self.me else {
            return Err(SubmitError::Stopped);
        };
        self.sent += 1;
        let (counter, seq, index) = (self.sent, self.sent, 0);
        self.outputs.push_back(Output::Originated {
            counter,
            seq,
            index,
        });
        self.deliveries.push_back(Delivery::Message(Message {
            id: MessageId { process, counter },
            service,
            seq,
            index,
            payload: Bytes::copy_from_slice(payload),
        }));
        Ok(counter)
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    fn poll_delivery(&mut self) -> Option<Delivery> {
        self.deliveries.pop_front()
    }

    fn reading(&self) -> Class {
        Class::Token
    }

    fn next_timer(&self) -> Option<(Time, TimerReason)> {
        Some((self.next, TimerReason::Other("hello")))
    }

    fn status(&self) -> Status {
        Status {
            state: format!("{} configurations", self.confs),
            counters: self.counters.clone(),
            ..Status::default()
        }
    }
}
