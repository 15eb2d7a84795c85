//! A process: its parts, its inputs, and the steps that follow.

use alloc::collections::VecDeque;
use bytes::Bytes;

use super::catch_up::CatchUp;
use super::config::{Multicast, URingConfig};
use super::context::Context;
use super::counters::URingCounters;
use super::disk::Effect;
use super::found::Found;
use super::lead::RoundCoordinator;
use super::learning::Learning;
use super::membership::{Membership, around};
use super::need::Needs;
use super::own::InFlight;
use super::peers::Peers;
use super::reading::{Reader, Reading};
use super::round::RoundState;
use super::sending::Sending;
use super::stream::Stream;
use super::voter::{Reopened, Voter};
use super::word::Word;
use rota_core::contract::{Incarnation, Input, NodeId, Output, Process, Session, StartState, Time};
use rota_core::mutants::{self, Mutant};
use rota_core::pack::Outbox;
use rota_core::random::Random;

/// U-Ring Paxos: see the module's page.
#[derive(Debug)]
pub struct URing {
    pub(super) cx: Context,
    pub(super) life: Life,
    pub(super) links: Peers,
    pub(super) membership: Membership,
    pub(super) voter: Voter,
    pub(super) learning: Learning,
    pub(super) catch_up: CatchUp,
    pub(super) round: RoundState,
    /// The ring of the newest configuration, if this process is in it.
    pub(super) stream: Option<Stream>,
    /// The coordinator's part, if this process coordinates.
    pub(super) leading: Option<RoundCoordinator>,
    pub(super) own: InFlight,
    pub(super) needs: Needs,
    pub(super) sending: Sending,
    pub(super) outbox: Outputs,
    pub(super) counters: URingCounters,
}

/// Whether a process runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Life {
    New,
    Started,
    Left,
}

/// Outputs to hand out, reads of the log among them, and messages of a process to itself.
#[derive(Debug, Default)]
pub struct Outputs {
    /// Messages of this process to itself.
    pub loopback: VecDeque<Word>,
    pub out: VecDeque<Output>,
    pub reading: Reading,
    /// Something was submitted since the last output.
    pub submitted: bool,
    /// The application has made the room for which the learner waited.
    pub poke: bool,
}

impl URing {
    /// A process that was not started.
    ///
    /// # Panics
    /// If values are multicast in datagrams that have no room for them.
    pub fn new(settings: URingConfig) -> Self {
        let takes = |multicast: Multicast| multicast.takes(settings.proposer.frame_bytes);
        assert!(
            settings.multicast.is_none_or(takes),
            "datagrams have no room for parts of values: {:?}",
            settings.multicast
        );
        let outbox = outbox(&settings);
        let cx = Context {
            settings,
            me: nobody(),
            now: Time(0),
        };
        Self {
            life: Life::New,
            links: Peers::new(cx.settings.word_bytes),
            membership: Membership::default(),
            voter: Voter::new(&cx),
            learning: Learning::new(&cx),
            catch_up: CatchUp::default(),
            round: RoundState::default(),
            stream: None,
            leading: None,
            own: InFlight::new(cx.me, outbox),
            needs: Needs::default(),
            sending: Sending::default(),
            outbox: Outputs::default(),
            counters: URingCounters::default(),
            cx,
        }
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
            } => self.links.on_writable(peer, session, bytes),
            Input::Persisted { id } => self.voter.on_persisted(&self.cx, id),
            Input::PersistFailed { id, .. } if mutants::on(Mutant::U20) => {
                self.voter.on_persisted(&self.cx, id);
            }
            Input::PersistFailed { .. } => self.give_up_log(),
            Input::Reopened { records, lost_some } => self.on_reopened(records, lost_some),
            Input::Timer => self.on_timer(),
            Input::Arbitrated { number, chosen } => self.on_arbitrated(number, chosen),
            Input::Datagrams { bytes, segment, .. } => self.on_datagrams(&bytes, segment),
            Input::Fetched {
                from, to, records, ..
            } => self.on_fetched(&(from..to), records),
            Input::Unreachable { .. } => {}
        }
    }

    fn on_start(&mut self, start: StartState) {
        self.life = Life::Started;
        self.cx.me = start.me;
        self.own.start(start.me);
        self.membership.start(Random::of(&start));
        let mut found = Found::read(start.records, start.lost_some);
        let drawn = self.membership.draw();
        self.voter.start(&self.cx, &mut found, drawn);
        let has_config = found.config.is_some();
        self.membership
            .found(found.complete, found.slot, found.config);
        self.learning.start(&self.cx, &self.voter, found.decided);
        self.membership.election.start(self.cx.now);
        if has_config {
            let has_seat = self.has_seat();
            self.voter.on_configuration(&self.cx, has_seat);
            self.links.found(self.membership.founded());
            self.membership.on_outside(&self.cx, true);
        }
        self.learning.begin_behind_state(&self.voter);
        let lacks = Reopened::of(&self.membership);
        self.voter.name(&self.cx, &lacks);
        self.try_to_found();
    }

    fn on_up(&mut self, process: Process, session: Session) {
        self.links.on_up(process, session);
        self.membership.absent.on_up(process);
        let here = Word::Hello(self.here());
        let config = self.membership.config().cloned();
        if let Some(config) = config.filter(|_| self.voter.is_acceptor()) {
            // Others must not hinder acceptors that have all lost their stores from founding anew.
            self.say(process.node, Word::Known(config));
        }
        self.say(process.node, here);
        if let Some(stream) = &mut self.stream {
            stream.on_link(self.cx.now, process);
        }
        self.say_campaign(Some(process.node));
        self.say_prepare(Some(process.node));
    }

    fn on_down(&mut self, node: NodeId, session: Session) {
        let Some(process) = self.links.on_down(node, session) else {
            return;
        };
        self.membership.absent.on_down(process, self.cx.now);
        self.membership.seats.on_down(process);
        self.membership.foundation.on_down(process);
        self.catch_up.on_down(&self.cx, node);
        self.outbox.reading.forget(Reader::Peer(node));
        if let Some(leading) = &mut self.leading {
            leading.forget_parts(node);
        }
        if let Some(stream) = &mut self.stream {
            stream.on_link(self.cx.now, process);
        }
    }

    fn on_message(&mut self, node: NodeId, session: Session, bytes: Bytes) {
        let Some(peer) = self.links.session(node, session) else {
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
            _ if self.membership.is_foreign(founded) => self.on_foreign(process),
            super::wire::Said::Word(word) => self.on_word(process, word),
            super::wire::Said::Batch(head, body) => self.on_batch(process, &head, body),
        }
    }

    /// Sends a message to a node, which may be this one.
    pub(super) fn say(&mut self, node: NodeId, word: Word) {
        if node == self.cx.me.node {
            self.outbox.loopback.push_back(word);
        } else {
            self.links.say(node, &word);
        }
    }

    /// Does everything that is due by now.
    fn on_timer(&mut self) {
        let now = self.cx.now;
        let is_due = |at: Option<Time>| at.is_some_and(|at| at <= now);
        if is_due(self.voter.hangs_at(&self.cx)) && self.voter.is_late(now) {
            self.give_up_log();
        }
        if is_due(self.catch_up.next_time(&self.cx)) {
            self.catch_up.on_timer(&self.cx);
        }
        if is_due(self.membership.next_time(&around!(self))) {
            self.on_election_timer();
        }
        if is_due(self.stream.as_ref().and_then(Stream::overdue_at)) {
            self.on_overdue();
        }
        if let Some(stream) = &mut self.stream {
            stream.on_time(now, self.cx.settings.patience.heartbeat);
        }
    }

    /// Does everything that follows from inputs: proposals are voted for and learnt (Multi-Ring Paxos §4), own values
    /// go to the coordinator, which proposes the values that it has, and records are written, until nothing follows any
    /// more.
    pub(super) fn settle(&mut self) {
        self.outbox.poke = false;
        loop {
            if let Some(word) = self.outbox.loopback.pop_front() {
                self.on_word(self.cx.me, word);
                continue;
            }
            self.release();
            self.learn();
            self.look_at_list();
            self.propose_own();
            self.lead();
            let voted = self.voter.voted();
            self.write();
            let is_over = self.outbox.loopback.is_empty() && !self.voter.has_ready();
            if is_over && voted == self.voter.voted() {
                break;
            }
        }
        self.ask_for_missing();
        self.ask_elsewhere();
        self.observe();
        self.tell_observers();
        self.watch();
        self.tell_needs();
    }

    /// Puts own values on their way, as far as the window is open.
    fn propose_own(&mut self) {
        let Some(stream) = &mut self.stream else {
            return;
        };
        let window = stream.own_window(&self.cx);
        while let Some((id, value)) = self.own.next(window, self.cx.settings.proposer.frame_bytes) {
            stream.carry(id, value);
        }
    }

    /// Asks the disk to make records durable, and runs the effects that need not wait.
    fn write(&mut self) {
        let numbers = (self.number(), self.membership.complete());
        let next = self.learning.next();
        self.voter.refill(numbers, next);
        let request = self.voter.request(self.cx.now, next);
        self.outbox.out.extend(request);
        for effect in self.voter.take_ready() {
            match effect {
                Effect::Say(node, word) => self.say(node, word),
                Effect::Found(config) => self.know(&config),
                Effect::Named => self.on_named(),
                // The disk was slow, and another round has followed.
                Effect::Promise(node, promise, _)
                    if promise.round != self.number()
                        && node != self.cx.me.node
                        && !mutants::on(Mutant::U114) => {}
                Effect::Promise(node, promise, lacks) => self.promised(node, promise, lacks),
            }
        }
    }
}

/// The name of a process before its start.
const fn nobody() -> Process {
    Process {
        node: NodeId::new(1).expect("not 0"),
        incarnation: Incarnation(0),
    }
}

/// The outbox that holds messages until they become values.
fn outbox(settings: &URingConfig) -> Outbox {
    let outbox = Outbox::new(
        settings.proposer.frame_bytes,
        settings.proposer.message_bytes,
        settings.proposer.backlog_bytes,
    );
    let outbox = outbox.with_lead(super::value::lead);
    match settings.proposer.value_per_message {
        true => outbox.with_one_each(),
        false => outbox,
    }
}

impl URing {
    /// The invariants of the whole, and of each part.
    pub(super) fn check(&self) {
        let config = self.membership.config();
        let leads = config.is_some_and(|config| config.coordinator == self.cx.me);
        assert!(
            self.leading.is_none() || leads,
            "only the coordinator coordinates"
        );
        if let Some(stream) = &self.stream {
            assert_eq!(
                stream.round(),
                self.number(),
                "the ring is the newest one's"
            );
            assert_eq!(
                stream.leads(),
                self.leading.is_some(),
                "the coordinator of a ring coordinates"
            );
            stream.check();
        }
        assert!(
            self.learning.learner.round() <= self.number(),
            "no round has begun of a configuration that is not known"
        );
        self.links.check();
        self.membership.check(&self.cx);
        self.voter.check();
        self.outbox.reading.check();
        self.learning.check();
        self.round.check(config.map(|config| &**config));
        self.own.check();
        if let Some(leading) = &self.leading {
            leading.check();
        }
    }
}
