//! The state of a process, and what it is told.

use alloc::collections::{BTreeSet, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;

use super::base::Base;
use super::config::{Multicast, URingConfig};
use super::counters::URingCounters;
use super::disk::{Disk, Effect};
use super::elect::Election;
use super::fetch::Fetching;
use super::hand_out::HandOut;
use super::lead::Leading;
use super::multicast::Spare;
use super::need::Needs;
use super::own::Own;
use super::peers::Peers;
use super::promise::Lack;
use super::resume::Bases;
use super::stream::Stream;
use super::word::Word;
use crate::contract::{Burst, Incarnation, Input, NodeId, Output, Process, Session, Time};
use crate::mutants::{self, Mutant};
use crate::pack::Outbox;
use crate::paxos::{Acceptor, AcceptorId, Config, Instance, Learner, Register, Round};
use crate::random::Random;

/// U-Ring Paxos: see the module's page.
#[derive(Debug)]
pub struct URing {
    pub(super) settings: URingConfig,
    pub(super) me: Process,
    pub(super) now: Time,
    pub(super) random: Random,
    pub(super) started: bool,
    pub(super) left: bool,
    pub(super) peers: Peers,
    /// The newest configuration; `None` before the first.
    pub(super) config: Option<Arc<Config>>,
    /// The newest configuration known to be complete.
    pub(super) complete: Round,
    pub(super) acceptor: Acceptor,
    /// Its log has all that it is, and its name.
    pub(super) named: bool,
    /// It has not voted for all that was proposed in this round, and so votes for nothing more in it.
    pub(super) early: bool,
    /// For so many times as long as at first the disk is waited for.
    pub(super) hang_patience: u64,
    /// When its log was given up last.
    pub(super) gave_up: Time,
    pub(super) register: Register<Arc<Config>>,
    pub(super) disk: Disk,
    pub(super) learner: Learner,
    /// What has counted, up to where the learner is.
    pub(super) counted: Base,
    /// The same, up to where it was handed out.
    pub(super) told: Base,
    /// The same, up to where the acceptor has forgotten.
    pub(super) base: Base,
    pub(super) bases: Bases,
    pub(super) stream: Option<Stream>,
    pub(super) leading: Option<Leading>,
    /// What this acceptor lacked when it promised, until the round begins: the coordinator may wait for it.
    pub(super) lack: Option<Lack>,
    pub(super) election: Election,
    pub(super) fetching: Fetching,
    pub(super) own: Own,
    pub(super) needs: Needs,
    /// By acceptor of the configuration: what it has learnt, as far as is known.
    pub(super) learnt: Vec<Instance>,
    /// Likewise: whether its log has failed.
    pub(super) mute: Vec<bool>,
    /// Where the current round starts, and what was forgotten before it.
    pub(super) round_start: (Instance, Instance),
    pub(super) hand_out: HandOut,
    /// The first configuration is being written.
    pub(super) founding: bool,
    /// Who has turned out to belong to another foundation.
    pub(super) foreign: BTreeSet<Process>,
    /// Words of this process to itself.
    pub(super) loopback: VecDeque<Word>,
    /// What may be said now.
    pub(super) ready: Vec<Effect>,
    pub(super) out: VecDeque<Output>,
    /// Datagrams of an own value that are next.
    pub(super) bursts: VecDeque<Burst>,
    /// What of own values may leave before something is heard.
    pub(super) spare: Spare,
    /// Everything before this was delivered or carries nothing, as whoever takes deliveries was told.
    pub(super) passed: Instance,
    /// The hint that was written last.
    pub(super) told_decided: Instance,
    /// Something was submitted since the last output.
    pub(super) submitted: bool,
    /// The application has taken what kept the learner waiting.
    pub(super) poke: bool,
    pub(super) counters: URingCounters,
}

impl URing {
    /// A process that was not started.
    ///
    /// # Panics
    /// Where values are multicast in datagrams that have no room for them.
    pub fn new(settings: URingConfig) -> Self {
        let takes = |multicast: Multicast| multicast.takes(settings.frame_bytes);
        assert!(
            settings.multicast.is_none_or(takes),
            "datagrams have no room for parts of values: {:?}",
            settings.multicast
        );
        let (nobody, outbox) = (nobody(), outbox(&settings));
        Self {
            hand_out: HandOut::new(&settings),
            me: nobody,
            now: Time(0),
            random: Random::default(),
            started: false,
            left: false,
            peers: Peers::new(settings.word_bytes),
            config: None,
            complete: 0,
            acceptor: Acceptor::new(AcceptorId {
                node: nobody.node,
                store: 0,
            }),
            named: false,
            early: false,
            hang_patience: 1,
            gave_up: Time(0),
            register: Register::default(),
            disk: Disk::new(settings.forgets, settings.disk_bytes),
            learner: Learner::new(1),
            counted: Base::default(),
            told: Base::default(),
            base: Base::default(),
            bases: Bases::default(),
            stream: None,
            leading: None,
            lack: None,
            election: Election::default(),
            fetching: Fetching::default(),
            own: Own::new(nobody, outbox),
            needs: Needs::default(),
            learnt: Vec::new(),
            mute: Vec::new(),
            round_start: (0, 0),
            founding: false,
            foreign: BTreeSet::new(),
            loopback: VecDeque::new(),
            ready: Vec::new(),
            out: VecDeque::new(),
            bursts: VecDeque::new(),
            spare: Spare::default(),
            passed: 1,
            told_decided: 0,
            submitted: false,
            poke: false,
            counters: URingCounters::default(),
            settings,
        }
    }

    /// Whether this process votes in the newest configuration, or may in the next.
    pub(super) fn votes(&self) -> bool {
        self.is_acceptor() && self.named && !self.disk.failed
    }

    /// Whether its node is one of those that vote: the newest configuration says so, and before the first one the settings,
    /// which may differ from node to node.
    pub(super) fn is_acceptor(&self) -> bool {
        let of_config = |config: &Arc<Config>| {
            let mut nodes = config.acceptors.iter().map(|who| who.node);
            nodes.any(|node| node == self.me.node)
        };
        let of_settings = self.settings.acceptors.contains(&self.me.node);
        match &self.config {
            Some(config) => of_config(config) || of_settings && mutants::on(Mutant::U75),
            None => of_settings,
        }
    }

    /// Whether so much waits for the disk that the ring has to wait, too. Not for the log of a process that does not vote: what
    /// that lacks is in memory.
    pub(super) fn is_full(&self) -> bool {
        self.disk.is_behind() && (self.votes() || mutants::on(Mutant::U76))
    }

    pub(super) fn on_input(&mut self, input: Input) {
        match input {
            Input::Start(start) => self.on_start(start),
            Input::LinkUp { peer, session } => self.on_up(peer, session),
            Input::LinkDown { peer, session } => self.on_down(peer, session),
            Input::LinkMessage {
                peer,
                session,
                bytes,
                ..
            } => self.on_message(peer, session, bytes),
            Input::Writable {
                peer,
                session,
                bytes,
            } => self.peers.on_writable(peer, session, bytes),
            Input::Persisted { id } => self.on_persisted(id),
            Input::PersistFailed { id, .. } if mutants::on(Mutant::U20) => self.on_persisted(id),
            Input::PersistFailed { .. } => self.give_up_log(),
            Input::Reopened { records, lost_some } => self.on_reopened(records, lost_some),
            Input::Timer => self.on_timer(),
            Input::Arbitrated { number, chosen } => self.on_arbitrated(number, chosen),
            Input::Datagrams { bytes, segment, .. } => self.on_datagrams(&bytes, segment),
            Input::Unreachable { .. } | Input::Fetched { .. } => {}
        }
    }

    fn on_up(&mut self, process: Process, session: Session) {
        self.peers.on_up(process, session);
        self.election.down.remove(&process);
        let here = Word::Here(self.here());
        if let Some(config) = self.config.clone().filter(|_| self.is_acceptor()) {
            // Others must not hinder acceptors that have all lost their stores from founding anew.
            self.say(process.node, Word::Known(config));
        }
        self.say(process.node, here);
        if let Some(stream) = &mut self.stream {
            stream.on_link(process);
        }
        self.say_candidacy(Some(process.node));
        self.say_prepare(Some(process.node));
    }

    fn on_down(&mut self, node: NodeId, session: Session) {
        let Some(process) = self.peers.on_down(node, session) else {
            return;
        };
        // Of each node one life.
        self.election.down.retain(|who, _| who.node != process.node);
        self.election.down.insert(process, self.now);
        self.foreign.remove(&process);
        self.stop_asking(node);
        if let Some(leading) = &mut self.leading {
            leading.forget_parts(node);
        }
        if let Some(stream) = &mut self.stream {
            stream.on_link(process);
        }
    }

    fn on_message(&mut self, node: NodeId, session: Session, bytes: Bytes) {
        let Some(peer) = self.peers.session(node, session) else {
            self.counters.uring_messages_stale += 1;
            return;
        };
        let process = peer.process;
        let Some((founded, said)) = super::wire::decode(bytes) else {
            self.counters.uring_messages_refused += 1;
            return;
        };
        peer.theirs = founded;
        match said {
            _ if self.is_foreign(founded) => self.on_foreign(process),
            super::wire::Said::Word(word) => self.on_word(process, word),
            super::wire::Said::Batch(head, body) => self.on_batch(process, &head, body),
        }
    }

    /// Says a word to a node, which may be this one.
    pub(super) fn say(&mut self, node: NodeId, word: Word) {
        if node == self.me.node {
            self.loopback.push_back(word);
        } else {
            self.peers.say(node, &word);
        }
    }

    /// Everything that follows from what was told.
    pub(super) fn settle(&mut self) {
        self.poke = false;
        loop {
            if let Some(word) = self.loopback.pop_front() {
                self.on_word(self.me, word);
                continue;
            }
            self.release();
            self.vote_and_learn();
            self.propose_own();
            self.lead();
            let voted = self.acceptor.voted();
            self.refill();
            self.write();
            let is_over = self.loopback.is_empty() && self.ready.is_empty();
            if is_over && voted == self.acceptor.voted() {
                break;
            }
        }
        self.fetch();
        self.watch();
        self.tell_needs();
    }

    /// What has to be durable is asked for; what need not wait is said.
    fn write(&mut self) {
        let mut ready = core::mem::take(&mut self.ready);
        let places = (self.learner.next(), self.base.floor());
        let request = self
            .disk
            .request(self.now, &mut self.acceptor, places, &mut ready);
        self.out.extend(request);
        for effect in ready {
            match effect {
                Effect::Say(node, word) => self.say(node, word),
                Effect::Found(config) => self.know(&config),
                Effect::Named => self.on_named(),
                Effect::Promise(node, promise) if node == self.me.node => {
                    self.loopback.push_back(Word::Promise(promise, false));
                }
                Effect::Promise(node, promise) => {
                    self.counters.uring_votes_promised += promise.votes.len() as u64;
                    self.peers.promise(node, promise);
                }
            }
        }
    }

    /// Says something when all before it is durable; the mutant, at once.
    pub(super) fn when_durable(&mut self, effect: Effect, early: Mutant) {
        if mutants::on(early) {
            self.ready.push(effect);
        } else {
            self.disk.then(effect);
        }
    }

    /// Own values, as far as the window is open.
    fn propose_own(&mut self) {
        let (window, frame) = (self.own_window(), self.settings.frame_bytes);
        let Some(stream) = &mut self.stream else {
            return;
        };
        while let Some((id, value)) = self.own.next(window, frame) {
            stream.carry(id, value);
        }
    }
}

/// Who a process is before it is started.
const fn nobody() -> Process {
    Process {
        node: NodeId::new(1).expect("not 0"),
        incarnation: Incarnation(0),
    }
}

/// What holds messages until they become values.
fn outbox(settings: &URingConfig) -> Outbox {
    let outbox = Outbox::new(
        settings.frame_bytes,
        settings.message_bytes,
        settings.backlog_bytes,
    );
    let outbox = outbox.with_lead(super::value::lead);
    match settings.value_per_message {
        true => outbox.with_one_each(),
        false => outbox,
    }
}
