//! Real engines and a network that is moved by hand: single packets are lost, repeated, held or brought
//! back, processes stand still, die and come back, and all that they see is checked in the end.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

use bytes::Bytes;
use rota_check::event::{Event, EventKind};
use rota_check::trace::Trace;
use rota_check::{Options, check_all};
use rota_core::contract::{
    Channel, Checked, Class, Configuration, ConfigurationKind, Engine, Incarnation, Input, LogId,
    LogRecord, NodeId, Output, PersistError, PersistId, Process, RingId, StartState, Target, Time,
};
use rota_core::timing::Timers;
use rota_ring::wire::{Packet, decode};
use rota_ring::{Counters, RingConfig};
use rota_ring::{RING_SEQ_LOG, RingEngine};

use crate::app::App;

pub const MICRO: u64 = 1_000;
pub const MILLI: u64 = 1_000_000;
pub const SECOND: u64 = 1_000_000_000;

/// How long a datagram is on its way, unless something else is asked for.
const DELAY: u64 = 20 * MICRO;

/// What kind of packet it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    Data,
    Token,
    Hurry,
    Join,
    Commit,
    MergeDetect,
}

/// A datagram on its way.
#[derive(Clone, Debug)]
pub struct Flying {
    pub from: usize,
    pub to: usize,
    pub class: Class,
    pub kind: Kind,
    pub packet: Rc<Packet>,
    pub bytes: Bytes,
}

/// What becomes of a datagram that is being sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    Pass,
    Lose,
    /// It takes so much longer.
    Late(u64),
    /// It arrives again so much later.
    Twice(u64),
    /// It is kept until it is let go.
    Hold,
}

/// What a disk does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Disk {
    Works,
    Fails,
    /// Nothing comes of what it is asked.
    Hangs,
}

pub struct Host {
    pub engine: Checked<RingEngine>,
    pub me: Process,
    pub app: App,
    pub dead: bool,
    pub paused: bool,
    /// Its application takes nothing.
    pub stalled: bool,
    pub disk: Disk,
    pub records: Vec<(LogId, u64, Bytes)>,
    waiting: VecDeque<Flying>,
    hung: Vec<(PersistId, Vec<LogRecord>)>,
}

type Rule = Box<dyn FnMut(&Flying) -> Fate>;

pub struct Net {
    pub now: Time,
    pub hosts: Vec<Host>,
    /// From whom nothing reaches whom.
    pub cut: BTreeSet<(usize, usize)>,
    pub config: RingConfig,
    /// Who is configured in another way.
    pub own_configs: BTreeMap<usize, RingConfig>,
    pub held: Vec<Flying>,
    /// All that was ever sent, if it is kept.
    pub log: Vec<Flying>,
    pub keeps_log: bool,
    pub lives: u64,
    /// Some node has lost the numbers of its rings: it may use them again under its new incarnation.
    pub numbers_lost: bool,
    flying: BTreeMap<(Time, u64), Flying>,
    order: u64,
    rule: Option<Rule>,
    trace: Trace,
}

pub fn id(at: usize) -> NodeId {
    NodeId::new(at as u16 + 1).expect("not 0")
}

fn kind(packet: &Packet) -> Kind {
    match packet {
        Packet::Data(_) => Kind::Data,
        Packet::Token(_) => Kind::Token,
        Packet::Hurry(_) => Kind::Hurry,
        Packet::Join(_) => Kind::Join,
        Packet::Commit(_) => Kind::Commit,
        Packet::MergeDetect(_) => Kind::MergeDetect,
    }
}

pub fn config(nodes: usize) -> RingConfig {
    let mut config = RingConfig::new(1, (0..nodes).map(id).collect());
    config.trace = true;
    config
}

impl Net {
    /// Nodes that have started and not heard of each other yet.
    pub fn started(nodes: usize) -> Self {
        Self::with(config(nodes))
    }

    pub fn with(config: RingConfig) -> Self {
        Self::with_own(config, BTreeMap::new())
    }

    /// Some of them are configured in another way than the others.
    pub fn with_own(config: RingConfig, own_configs: BTreeMap<usize, RingConfig>) -> Self {
        let mut net = Self {
            now: Time(1),
            hosts: Vec::new(),
            cut: BTreeSet::new(),
            held: Vec::new(),
            log: Vec::new(),
            keeps_log: false,
            lives: 0,
            numbers_lost: false,
            flying: BTreeMap::new(),
            order: 0,
            rule: None,
            trace: Trace::new(),
            config,
            own_configs,
        };
        for at in 0..net.config.members.len() {
            let host = net.host(at);
            net.hosts.push(host);
        }
        for at in 0..net.hosts.len() {
            net.begin(at);
        }
        net
    }

    /// One more node, which the others are not configured with.
    pub fn add(&mut self) -> usize {
        let at = self.hosts.len();
        let host = self.host(at);
        self.hosts.push(host);
        self.begin(at);
        at
    }

    /// Nodes on one ring.
    pub fn formed(nodes: usize) -> Self {
        let mut net = Self::started(nodes);
        net.come_together();
        net
    }

    pub fn formed_with(config: RingConfig) -> Self {
        let mut net = Self::with(config);
        net.come_together();
        net
    }

    fn host(&mut self, at: usize) -> Host {
        self.lives += 1;
        let config = self.own_configs.get(&at).unwrap_or(&self.config);
        let engine = RingEngine::new(config.clone()).expect("a valid ring");
        let me = Process {
            node: id(at),
            incarnation: Incarnation(self.lives),
        };
        Host {
            engine: Checked::new(engine),
            me,
            app: App::new(me),
            dead: false,
            paused: false,
            stalled: false,
            disk: Disk::Works,
            records: Vec::new(),
            waiting: VecDeque::new(),
            hung: Vec::new(),
        }
    }

    fn begin(&mut self, at: usize) {
        let host = &mut self.hosts[at];
        let start = StartState {
            me: host.me,
            seed: 1,
            records: host.records.clone(),
            lost_some: false,
        };
        let me = host.me;
        self.emit(me, EventKind::Start);
        self.hand_in(at, Input::Start(start));
    }

    pub fn timers(&self) -> Timers {
        self.config.timers
    }

    pub fn engine(&self, at: usize) -> &RingEngine {
        self.hosts[at].engine.get()
    }

    pub fn counters(&self, at: usize) -> &Counters {
        self.engine(at).counters()
    }

    pub fn phase(&self, at: usize) -> &'static str {
        self.engine(at).phase_name()
    }

    pub fn ring(&self, at: usize) -> RingId {
        self.engine(at).ordering().expect("it is on a ring").ring()
    }

    /// The nodes of the installed ring, as indices.
    pub fn members(&self, at: usize) -> Vec<usize> {
        let ring = self.engine(at).ordering();
        let members = ring.map_or(&[][..], |ring| ring.members());
        let index = |process: &Process| usize::from(process.node.get()) - 1;
        members.iter().map(index).collect()
    }

    pub fn alive(&self) -> Vec<usize> {
        let hosts = 0..self.hosts.len();
        hosts.filter(|&at| !self.hosts[at].dead).collect()
    }

    pub fn emit(&mut self, process: Process, kind: EventKind) {
        let time = self.now;
        self.trace.push(&Event {
            time,
            process,
            kind,
        });
    }

    /// From now on this says what becomes of what is sent.
    pub fn rule(&mut self, rule: impl FnMut(&Flying) -> Fate + 'static) {
        self.rule = Some(Box::new(rule));
    }

    pub fn no_rule(&mut self) {
        self.rule = None;
    }

    /// Cuts the network into `group` and the others.
    pub fn part(&mut self, group: &[usize]) {
        for from in 0..self.hosts.len() {
            for to in 0..self.hosts.len() {
                if group.contains(&from) != group.contains(&to) {
                    self.cut.insert((from, to));
                }
            }
        }
    }

    pub fn heal(&mut self) {
        self.cut.clear();
        self.rule = None;
    }

    /// The process dies, and what is on its way to it finds nobody.
    pub fn kill(&mut self, at: usize) {
        let host = &mut self.hosts[at];
        assert!(!host.dead, "{at} is dead already");
        host.dead = true;
        host.waiting.clear();
        let me = host.me;
        self.emit(me, EventKind::Crash);
    }

    /// The process has said that it leaves: its last outputs go out, and it is no more.
    pub fn farewell(&mut self, at: usize) {
        self.send_all(at);
        self.hosts[at].dead = true;
        let me = self.hosts[at].me;
        self.emit(me, EventKind::Leave);
    }

    /// A new life with what is on the disk.
    pub fn restart(&mut self, at: usize) {
        let records = self.hosts[at].records.clone();
        self.restart_with(at, records);
    }

    pub fn restart_with(&mut self, at: usize, records: Vec<(LogId, u64, Bytes)>) {
        if !self.hosts[at].dead {
            self.kill(at);
        }
        let mut host = self.host(at);
        host.records = records;
        self.hosts[at] = host;
        self.begin(at);
    }

    pub fn pause(&mut self, at: usize) {
        self.hosts[at].paused = true;
    }

    /// Goes on with all that has come in the meantime: what has come first, or its timers first.
    pub fn resume(&mut self, at: usize, timers_first: bool) {
        self.hosts[at].paused = false;
        if timers_first {
            self.fire(at);
        }
        while let Some(flying) = self.hosts[at].waiting.pop_front() {
            self.receive(flying);
        }
        self.fire(at);
    }

    fn fire(&mut self, at: usize) {
        if self.due(at).is_some_and(|due| due <= self.now) {
            self.hand_in(at, Input::Timer);
        }
    }

    pub fn hand_in(&mut self, at: usize, input: Input) {
        let now = self.now;
        self.hosts[at].engine.handle(now, input);
        self.carry_out(at);
        self.hosts[at].engine.reading();
    }

    /// Puts a packet into the network, as if `from` had sent it.
    pub fn inject(&mut self, from: usize, to: usize, packet: &Packet, late: u64) {
        let flying = self.flying_of(from, to, Class::Token, Bytes::from(packet.encode()));
        self.fly(flying, late);
    }

    fn flying_of(&self, from: usize, to: usize, class: Class, bytes: Bytes) -> Flying {
        let packet = decode(bytes.clone()).expect("engines send valid packets");
        let kind = kind(&packet);
        let packet = Rc::new(packet);
        Flying {
            from,
            to,
            class,
            kind,
            packet,
            bytes,
        }
    }

    /// Sends something again that was sent before.
    pub fn fly(&mut self, flying: Flying, late: u64) {
        self.order += 1;
        let at = (self.now.after(late), self.order);
        self.flying.insert(at, flying);
    }

    pub fn let_go(&mut self) {
        for flying in std::mem::take(&mut self.held) {
            self.fly(flying, DELAY);
        }
    }

    /// Does what an engine wants, and lets its application take what there is.
    pub fn carry_out(&mut self, at: usize) {
        loop {
            self.send_all(at);
            if self.hosts[at].dead || self.hosts[at].stalled || !self.take_one(at) {
                return;
            }
        }
    }

    fn send_all(&mut self, at: usize) {
        while let Some(output) = self.hosts[at].engine.poll_output() {
            match output {
                Output::Persist { id, records } => self.persist(at, id, records),
                Output::Originated {
                    counter,
                    seq,
                    index,
                } => {
                    let (me, placed) = self.hosts[at].app.originated(counter, seq, index);
                    self.emit(me, EventKind::Originated(placed));
                }
                Output::Send {
                    class,
                    to,
                    burst,
                    after,
                    ..
                } => {
                    // What waits for a disk that does not work is never sent.
                    if after.is_none() || self.hosts[at].disk == Disk::Works {
                        for datagram in burst.datagrams() {
                            self.send(at, class, to, &Bytes::copy_from_slice(datagram));
                        }
                    }
                }
                other => panic!("a ring does not ask for {other:?}"),
            }
        }
    }

    fn persist(&mut self, at: usize, id: PersistId, records: Vec<LogRecord>) {
        let now = self.now;
        match self.hosts[at].disk {
            Disk::Works => {
                self.write(at, &records);
                self.hosts[at].engine.handle(now, Input::Persisted { id });
            }
            Disk::Fails => {
                let error = PersistError::NoSpace;
                let failed = Input::PersistFailed { id, error };
                self.hosts[at].engine.handle(now, failed);
            }
            Disk::Hangs => self.hosts[at].hung.push((id, records)),
        }
    }

    fn write(&mut self, at: usize, records: &[LogRecord]) {
        for record in records {
            if let LogRecord::Put {
                log,
                position,
                bytes,
            } = record
            {
                let host = &mut self.hosts[at];
                host.records.retain(|(l, p, _)| (l, p) != (log, position));
                host.records
                    .push((*log, *position, bytes.clone().into_bytes()));
            }
        }
    }

    fn send(&mut self, from: usize, class: Class, target: Target, bytes: &Bytes) {
        for to in 0..self.hosts.len() {
            let meant = match target {
                Target::Others => to != from,
                Target::Node(node) => node == id(to),
            };
            if !meant {
                continue;
            }
            let flying = self.flying_of(from, to, class, bytes.clone());
            if self.keeps_log {
                self.log.push(flying.clone());
            }
            if self.cut.contains(&(from, to)) {
                continue;
            }
            match self.rule.as_mut().map_or(Fate::Pass, |rule| rule(&flying)) {
                Fate::Pass => self.fly(flying, DELAY),
                Fate::Lose => {}
                Fate::Late(late) => self.fly(flying, DELAY + late),
                Fate::Twice(late) => {
                    self.fly(flying.clone(), DELAY);
                    self.fly(flying, DELAY + late);
                }
                Fate::Hold => self.held.push(flying),
            }
        }
    }

    /// An application takes one delivery.
    pub fn take_one(&mut self, at: usize) -> bool {
        let host = &mut self.hosts[at];
        let Some(delivery) = host.engine.poll_delivery() else {
            return false;
        };
        let kind = host.app.take(delivery);
        let me = host.me;
        self.emit(me, kind);
        true
    }

    fn due(&self, at: usize) -> Option<Time> {
        let host = &self.hosts[at];
        let runs = !host.dead && !host.paused;
        let due = host.engine.next_timer().filter(|_| runs);
        due.map(|(due, _)| due.max(self.now))
    }

    /// The next timer of any node.
    fn next_due(&self) -> Option<(Time, usize)> {
        let hosts = 0..self.hosts.len();
        hosts.filter_map(|at| Some((self.due(at)?, at))).min()
    }

    /// The datagram that arrives next, unless a timer fires before.
    pub fn next(&self) -> Option<&Flying> {
        let ((arrives, _), flying) = self.flying.first_key_value()?;
        let earlier = self.next_due().is_some_and(|(due, _)| due < *arrives);
        (!earlier).then_some(flying)
    }

    /// Loses the datagram that would arrive next.
    pub fn lose_next(&mut self) -> Flying {
        self.flying.pop_first().expect("something is flying").1
    }

    pub fn flying(&self) -> impl Iterator<Item = &Flying> {
        self.flying.values()
    }

    /// Loses everything that is on its way.
    pub fn lose_all(&mut self) {
        self.flying.clear();
    }

    /// One thing happens, if one does until then.
    pub fn step_until(&mut self, end: Time) -> bool {
        let arrives = self.flying.first_key_value().map(|(&(time, _), _)| time);
        let due = self.next_due();
        let arrival_first = match (arrives, due) {
            (Some(arrives), Some((due, _))) => arrives <= due,
            (arrives, _) => arrives.is_some(),
        };
        let time = if arrival_first {
            arrives
        } else {
            due.map(|(due, _)| due)
        };
        let Some(time) = time.filter(|time| *time <= end) else {
            self.now = end;
            return false;
        };
        self.now = time.max(self.now);
        if arrival_first {
            let flying = self.lose_next();
            self.receive(flying);
        } else if let Some((_, at)) = due {
            self.hand_in(at, Input::Timer);
        }
        true
    }

    pub fn step(&mut self) {
        let far = self.now.after(3600 * SECOND);
        assert!(self.step_until(far), "nothing happens any more");
    }

    fn receive(&mut self, flying: Flying) {
        let host = &mut self.hosts[flying.to];
        if host.dead {
            return;
        }
        if host.paused {
            host.waiting.push_back(flying);
            return;
        }
        let Flying {
            to, class, bytes, ..
        } = flying;
        let (channel, segment) = (Channel(0), bytes.len());
        self.hand_in(
            to,
            Input::Datagrams {
                class,
                channel,
                bytes,
                segment,
            },
        );
    }

    pub fn run_for(&mut self, nanos: u64) {
        let end = self.now.after(nanos);
        while self.step_until(end) {}
    }

    /// Runs until something holds; false if it does not within `nanos`.
    pub fn runs_until(&mut self, nanos: u64, holds: impl Fn(&Self) -> bool) -> bool {
        let end = self.now.after(nanos);
        while !holds(self) {
            if !self.step_until(end) {
                return holds(self);
            }
        }
        true
    }

    pub fn run_until(&mut self, what: &str, holds: impl Fn(&Self) -> bool) {
        let done = self.runs_until(60 * SECOND, holds);
        assert!(done, "never: {what}; {}", self.states());
    }

    /// Runs until the next thing to happen is that such a datagram arrives.
    pub fn run_to(&mut self, wanted: impl Fn(&Flying) -> bool) -> bool {
        self.runs_until(10 * SECOND, |net| net.next().is_some_and(&wanted))
    }

    /// All who live are on one ring of just them.
    pub fn is_whole(&self) -> bool {
        let alive = self.alive();
        let first = self.ring(alive[0]);
        alive.iter().all(|&at| {
            self.phase(at) == "operational" && self.ring(at) == first && self.members(at) == alive
        })
    }

    pub fn come_together(&mut self) {
        self.run_until("one ring", |net| net.is_whole() && net.is_taken());
    }

    fn is_taken(&self) -> bool {
        let regular = |&at: &usize| {
            let kind = self.hosts[at].app.conf;
            kind == Some(ConfigurationKind::Regular(self.ring(at)))
        };
        self.alive().iter().all(regular)
    }

    pub fn submit(&mut self, at: usize, service: rota_core::contract::Service, payload: &[u8]) {
        let now = self.now;
        let host = &mut self.hosts[at];
        let counter = host.engine.submit(now, service, payload);
        let counter = counter.expect("there is room");
        let sent = host.app.submitted(counter, service, payload);
        let me = host.me;
        self.emit(me, EventKind::Send(sent));
        self.carry_out(at);
    }

    /// Everybody has got back its own messages, and all have delivered the same in the last configuration.
    pub fn is_drained(&self) -> bool {
        let alive = self.alive();
        let own = |&at: &usize| self.hosts[at].app.has_all_its_own();
        let counts = |at: usize| self.hosts[at].app.in_conf;
        alive.iter().all(own) && alive.iter().all(|&at| counts(at) == counts(alive[0]))
    }

    /// How long agreement may take once nothing fails any more.
    pub fn converges_within(&self) -> u64 {
        let timers = self.timers();
        5 * (timers.token_loss + timers.consensus)
    }

    /// Everything works again: all who live must come together in time, deliver everything, and stay; and
    /// nothing that was seen may break a property.
    pub fn rest(mut self) -> Self {
        self.heal();
        self.held.clear();
        for at in self.alive() {
            (self.hosts[at].stalled, self.hosts[at].disk) = (false, Disk::Works);
            if self.hosts[at].paused {
                self.resume(at, false);
            }
            self.carry_out(at);
        }
        // What is broken by now is noticed first.
        let (within, notice) = (self.converges_within(), 2 * self.timers().token_loss);
        self.run_for(notice);
        let done = self.runs_until(within - notice, |net| net.is_whole() && net.is_taken());
        assert!(done, "no agreement: {}", self.states());
        let done = self.runs_until(20 * SECOND, Self::is_drained);
        assert!(done, "not everything is delivered: {}", self.states());
        let before = self.ring(self.alive()[0]);
        self.run_for(10 * self.timers().token_loss);
        assert!(self.is_whole(), "no rest: {}", self.states());
        assert_eq!(self.ring(self.alive()[0]), before, "a ring for no reason");
        self.check(true);
        self
    }

    /// Checks all properties of what was seen so far.
    pub fn check(&mut self, at_rest: bool) {
        if at_rest {
            self.trace.quiesce();
        }
        let report = check_all(&self.trace, &Options::default());
        let counts = |property: &str| property != "C7" || !self.numbers_lost;
        let violations = report.violations.iter();
        let found: Vec<_> = violations.filter(|v| counts(v.property)).collect();
        assert!(found.is_empty(), "{found:#?}");
    }

    pub fn states(&self) -> String {
        let state = |at: usize| {
            let host = &self.hosts[at];
            let dead = if host.dead { " (dead)" } else { "" };
            let members = self.members(at);
            let state = host.engine.status().state;
            format!("{at}{dead}: on a ring of {members:?}, {state}; ")
        };
        (0..self.hosts.len()).map(state).collect()
    }

    /// The configurations that an application has seen, newest last.
    pub fn confs(&self, at: usize) -> &[Configuration] {
        &self.hosts[at].app.confs
    }

    /// The members of the newest transitional configuration, as indices.
    pub fn transitional(&self, at: usize) -> Vec<usize> {
        let is_transitional =
            |conf: &&Configuration| matches!(conf.kind, ConfigurationKind::Transitional { .. });
        let conf = self.confs(at).iter().rev().find(is_transitional);
        let members = &conf.expect("it had one").members;
        let index = |process: &Process| usize::from(process.node.get()) - 1;
        members.iter().map(index).collect()
    }
}

/// A stored number of a ring.
pub fn stored(ring_seq: u64) -> Vec<(LogId, u64, Bytes)> {
    let bytes = Bytes::copy_from_slice(&ring_seq.to_le_bytes());
    vec![(RING_SEQ_LOG, 0, bytes)]
}
