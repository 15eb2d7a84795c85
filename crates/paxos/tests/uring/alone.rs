//! One engine, whose neighbours and whose disk are the test.

use std::sync::Arc;

use bytes::Bytes;
use rota_core::contract::{
    Channel, Class, Engine, Incarnation, Input, LogId, LogRecord, NodeId, Output, PersistError,
    PersistId, Process, Service, Session, StartState, Time,
};
use rota_core::timing::{Timers, Timing};
use rota_core::wire::PartHead;
use rota_paxos as paxos;
use rota_paxos::uring::{
    Hello, Record, Records, ResumeFrom, Said, Snapshot, URing, URingConfig, Word, decode,
};
use rota_paxos::{AcceptorId, Config, STATE_LOG, VOTES_LOG};

use super::datagrams::SETTINGS;
use super::disk::{Disk, Mode};

/// Which foundation they all belong to.
pub const FOUNDED: u64 = 1;

pub const fn process(node: u16, life: u64) -> Process {
    Process {
        node: match NodeId::new(node) {
            Some(node) => node,
            None => panic!("not 0"),
        },
        incarnation: Incarnation(life),
    }
}

pub fn acceptor(node: u16) -> AcceptorId {
    AcceptorId {
        node: process(node, 1).node,
        store: 100 + u64::from(node),
    }
}

/// What an acceptor says that has been in no configuration.
pub fn new_here(node: u16) -> Word {
    Word::Hello(Hello {
        number: 0,
        acceptor: Some(acceptor(node)),
        complete: 0,
        joins: true,
    })
}

/// What a process says that is outside the first configuration, votes for nothing, and wants to be taken in.
pub fn outsider() -> Word {
    Word::Hello(Hello {
        number: 1,
        acceptor: None,
        complete: 0,
        joins: true,
    })
}

pub fn settings() -> URingConfig {
    let ring = (1..=3).map(|node| process(node, 1).node).collect();
    URingConfig::new(ring, &Timers::derive(Timing::Default, 3))
}

/// Three processes, in order.
fn ring_with(me: Process) -> Vec<Process> {
    let ring = [1, 2, 3].map(|node| process(node, 1));
    let with_me = |who: Process| if who.node == me.node { me } else { who };
    ring.map(with_me).to_vec()
}

/// An engine whose neighbours and whose disk are the test.
pub struct Alone {
    pub engine: URing,
    pub now: Time,
    me: Process,
    pub written: PersistId,
    pub records: Vec<LogRecord>,
    /// What it has asked to be written since all was, in bytes, and the largest of its records.
    pub unanswered: usize,
    pub largest: usize,
    pub said: Vec<Word>,
    /// Which foundation it has named last.
    pub names: u64,
    /// Datagrams.
    pub sent: Vec<Bytes>,
    /// Along the ring.
    pub batches: Vec<Vec<Record>>,
    /// Over the link to each node, in bytes.
    sent_bytes: std::collections::BTreeMap<u16, usize>,
    /// How often its log was given up.
    pub reopens: u32,
    /// The numbers for which it has asked the service.
    pub wanted: Vec<u64>,
    /// The votes that it wants to read back: the first position, and the one behind the last.
    pub fetches: Vec<(u64, u64)>,
}

impl Alone {
    pub fn new(me: Process, records: Vec<(LogId, u64, Bytes)>) -> Self {
        Self::with(settings(), me, records)
    }

    pub fn with(settings: URingConfig, me: Process, records: Vec<(LogId, u64, Bytes)>) -> Self {
        Self::found(settings, me, (records, false))
    }

    /// One that finds this, and whether something was lost.
    pub fn found(
        settings: URingConfig,
        me: Process,
        (records, lost_some): (Vec<(LogId, u64, Bytes)>, bool),
    ) -> Self {
        Self::begin(URing::new(settings), me, (records, lost_some))
    }

    /// One whose application has a state of this foundation, with everything before this base.
    pub fn resumed(
        me: Process,
        records: Vec<(LogId, u64, Bytes)>,
        (founded, base): (u64, Snapshot),
    ) -> Self {
        let mut engine = URing::new(settings());
        engine.resume(founded, base);
        Self::begin(engine, me, (records, false))
    }

    fn begin(
        engine: URing,
        me: Process,
        (records, lost_some): (Vec<(LogId, u64, Bytes)>, bool),
    ) -> Self {
        let mut alone = Self {
            engine,
            now: Time(1),
            me,
            written: PersistId(0),
            records: Vec::new(),
            unanswered: 0,
            largest: 0,
            said: Vec::new(),
            names: 0,
            sent: Vec::new(),
            batches: Vec::new(),
            sent_bytes: std::collections::BTreeMap::new(),
            reopens: 0,
            wanted: Vec::new(),
            fetches: Vec::new(),
        };
        let seed = 1;
        alone.tell(Input::Start(StartState {
            me,
            seed,
            records,
            lost_some,
        }));
        alone.write_all();
        alone
    }

    pub fn tell(&mut self, input: Input) {
        self.engine.handle(self.now, input);
        while let Some(output) = self.engine.poll_output() {
            match output {
                Output::Persist { id, records } => {
                    self.written = id;
                    let bytes = records.iter().map(|record| match record {
                        LogRecord::Put { bytes, .. } => bytes.len(),
                        LogRecord::Trim { .. } => 0,
                    });
                    self.unanswered += bytes.clone().sum::<usize>();
                    self.largest = bytes.max().unwrap_or(0).max(self.largest);
                    self.records.extend(records);
                }
                Output::LinkSend { peer, bytes, .. } => {
                    *self.sent_bytes.entry(peer.get()).or_default() += bytes.len();
                    self.on_sent(bytes.into_bytes());
                }
                Output::Send { burst, .. } => {
                    let datagrams = burst.datagrams();
                    self.sent.extend(datagrams.map(Bytes::copy_from_slice));
                }
                Output::Reopen => self.reopens += 1,
                Output::Arbitrate { number, .. } => self.wanted.push(number),
                Output::Fetch { log, from, to } => {
                    assert_eq!(log, VOTES_LOG);
                    self.fetches.push((from, to));
                }
                other => panic!("{other:?}"),
            }
        }
    }

    fn on_sent(&mut self, bytes: Bytes) {
        match decode(bytes) {
            Some((founded, Said::Word(word))) => {
                self.names = founded;
                self.said.push(word);
            }
            Some((_, Said::Batch(_, body))) => {
                let ring = ring_with(self.me);
                let records: Result<Vec<Record>, ()> = Records::new(body, &ring).collect();
                self.batches.push(records.expect("records"));
            }
            None => panic!("neither a word nor a batch"),
        }
    }

    /// Nothing of what is asked for is written.
    pub fn fail(&mut self) {
        let (id, error) = (self.written, PersistError::Io("no".to_owned()));
        self.tell(Input::PersistFailed { id, error });
    }

    pub fn submit(&mut self, payload: &[u8]) {
        let taken = self.engine.submit(self.now, Service::Agreed, payload);
        taken.expect("it has room");
        self.tell(Input::Timer);
    }

    /// What was asked to be written, without a key of the log of states.
    pub fn records_without(&self, key: Option<u64>) -> Vec<(LogId, u64, Bytes)> {
        let kept = self.records.iter().filter_map(|record| match record {
            LogRecord::Put {
                log,
                position,
                bytes,
            } => Some((*log, *position, bytes.clone().into_bytes())),
            LogRecord::Trim { .. } => None,
        });
        kept.filter(|(log, at, _)| *log != STATE_LOG || Some(*at) != key)
            .collect()
    }

    /// Its log is open again.
    pub fn reopen(&mut self, records: Vec<(LogId, u64, Bytes)>, lost_some: bool) {
        self.tell(Input::Reopened { records, lost_some });
    }

    /// What it finds when it begins again and the first of its records are on the disk.
    pub fn on_disk(&self, records: usize) -> Vec<(LogId, u64, Bytes)> {
        let mut disk = Disk::default();
        let first = self.records[..records].to_vec();
        disk.waiting.push_back((PersistId(1), first));
        disk.answer(PersistId(1), Mode::Sync);
        disk.found()
    }

    /// The votes on its disk of these instances.
    pub fn votes_on_disk(&self, (from, to): (u64, u64)) -> Vec<(u64, Bytes)> {
        let all = self.all_on_disk().into_iter();
        let votes = all.filter(|(log, ..)| *log == VOTES_LOG);
        let votes = votes.map(|(_, at, bytes)| (at, bytes));
        votes.filter(|(at, _)| (from..to).contains(at)).collect()
    }

    /// Its disk answers with these records to what it wanted to read back first.
    pub fn read(&mut self, records: Vec<(u64, Bytes)>) {
        let (from, to) = self.fetches.remove(0);
        let log = VOTES_LOG;
        self.tell(Input::Fetched {
            log,
            from,
            to,
            records,
        });
    }

    /// Its disk answers all that it wants to read back.
    pub fn read_all(&mut self) {
        while let Some(wanted) = self.fetches.first() {
            self.read(self.votes_on_disk(*wanted));
        }
    }

    /// The same, with all of them.
    pub fn all_on_disk(&self) -> Vec<(LogId, u64, Bytes)> {
        self.on_disk(self.records.len())
    }

    /// Everything is durable.
    pub fn write(&mut self) {
        self.unanswered = 0;
        let id = self.written;
        self.tell(Input::Persisted { id });
    }

    /// The same, until nothing more is asked for.
    pub fn write_all(&mut self) {
        self.write();
        while self.unanswered > 0 {
            self.write();
        }
    }

    /// Everything but the last request is durable.
    pub fn write_all_but_one(&mut self) {
        let id = PersistId(self.written.0.saturating_sub(1));
        self.tell(Input::Persisted { id });
    }

    pub fn link(&mut self, peer: Process) {
        let session = Session(u64::from(peer.node.get()));
        self.tell(Input::LinkUp { peer, session });
        let (peer, bytes) = (peer.node, 1 << 20);
        self.tell(Input::Writable {
            peer,
            session,
            bytes,
        });
    }

    /// The links have room again.
    pub fn room(&mut self) {
        for node in [1, 2, 3] {
            let (peer, session) = (process(node, 1).node, Session(u64::from(node)));
            let bytes = 1 << 20;
            self.tell(Input::Writable {
                peer,
                session,
                bytes,
            });
        }
    }

    pub fn unlink(&mut self, node: u16) {
        let peer = process(node, 1).node;
        let session = Session(u64::from(node));
        self.tell(Input::LinkDown { peer, session });
    }

    pub fn hear(&mut self, from: u16, bytes: impl Into<Bytes>) {
        self.tell(Input::LinkMessage {
            peer: process(from, 1).node,
            session: Session(u64::from(from)),
            channel: Channel::default(),
            bytes: bytes.into(),
        });
    }

    /// A part of a value comes.
    pub fn datagram(&mut self, head: &PartHead, bytes: &[u8]) {
        let mut datagram = Vec::new();
        head.encode_into(bytes, &mut datagram, SETTINGS.seal_bytes);
        self.datagrams(datagram.into());
    }

    /// A datagram comes.
    pub fn datagrams(&mut self, bytes: Bytes) {
        let (class, channel, segment) = (Class::Data, Channel::default(), bytes.len());
        self.tell(Input::Datagrams {
            class,
            channel,
            bytes,
            segment,
        });
    }

    /// What it votes as, by its own word.
    pub fn votes_as(&self) -> AcceptorId {
        let here = self.said.iter().rev().find_map(|word| match word {
            Word::Hello(here) => here.acceptor,
            _ => None,
        });
        here.expect("it has a store")
    }

    /// A configuration of three with the first as coordinator.
    pub fn config(&self, number: u64) -> Arc<Config> {
        let mine = self.votes_as();
        let acceptors = [1, 2, 3].map(acceptor);
        let acceptors = acceptors.map(|who| if who.node == mine.node { mine } else { who });
        let ring = ring_with(self.me);
        Arc::new(Config {
            founded: FOUNDED,
            number,
            coordinator: process(1, 1),
            ring,
            acceptors: acceptors.to_vec(),
            prior: Vec::new(),
        })
    }

    /// The same as [`Self::join`], in a configuration in which this node has no vote.
    pub fn join_without_a_vote(&mut self) {
        for node in [1, 3] {
            self.link(process(node, 1));
        }
        let mut config = (*self.config(1)).clone();
        config.acceptors = [1, 3, 5].map(acceptor).to_vec();
        self.hear(1, Word::Known(Arc::new(config)).encode(FOUNDED));
    }

    pub fn has_promised(&self, round: u64) -> bool {
        let of = |word: &Word| matches!(word, Word::Promise(promise, _) if promise.round == round);
        self.said.iter().any(of)
    }

    /// What it has told its predecessor last.
    pub fn follow(&self) -> ResumeFrom {
        self.followed().expect("it is in the ring")
    }

    /// The same, if it was ever in a ring.
    pub fn followed(&self) -> Option<ResumeFrom> {
        self.said.iter().rev().find_map(|word| match word {
            Word::ResumeFrom(follow, _) => Some(*follow),
            _ => None,
        })
    }

    /// What it has answered last, as one of the register.
    pub fn answer(&self) -> Option<paxos::Word<Arc<Config>>> {
        self.said.iter().rev().find_map(|word| match word {
            Word::Answer(_, _, answer) => Some(answer.clone()),
            _ => None,
        })
    }

    pub fn has_said(&self, word: &Word) -> bool {
        self.said.contains(word)
    }

    /// What it has sent over its link to a node, in bytes.
    pub fn bytes_to(&self, node: u16) -> usize {
        self.sent_bytes.get(&node).copied().unwrap_or(0)
    }

    /// The others are there, and the first configuration is known.
    pub fn join(&mut self) {
        for node in [1, 2, 3] {
            if node != self.me.node.get() {
                self.link(process(node, 1));
            }
        }
        let known = Word::Known(self.config(1));
        let from = if self.me.node.get() == 1 { 2 } else { 1 };
        self.hear(from, known.encode(FOUNDED));
    }
}
