//! Time, hosts, rings and links.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use rota_core::contract::{
    Checked, Engine, Incarnation, Input, NodeId, Output, Process, Session, StartState, Time,
};
use rota_core::random::Random;
use rota_core::timing::{Timers, Timing};
use rota_multiring::level::Mode as Leveling;
use rota_multiring::{Constants, Feed, Leveled, Rank, RingOf, RingsLearner};
use rota_paxos::uring::{URing, URingConfig};

use super::disk::Mode;
use super::host::{Host, Life, RingEngine};
use super::judge::{Judge, payload};
use super::links::Links;
use super::partitions::PartitionOf;
use super::situations::Seen;
use super::trace::Trace;

pub const MILLI: u64 = 1_000_000;
/// Faults end after this time,
const TROUBLE: u64 = 8_000 * MILLI;
/// and after so much more all has to be well.
const CALM: u64 = 20_000 * MILLI;

/// A ring: whose it is, and its links, by the places of hosts among its members.
pub struct RingWorld {
    pub of: RingOf,
    pub config: URingConfig,
    pub hosts: Vec<usize>,
    pub links: Links,
    /// When it has a majority again, if it was taken from it.
    pub returns: u64,
    /// The instance of the last message or notice that it has handed to any of its processes.
    pub handed: u64,
}

pub struct World {
    pub random: Random,
    pub now: u64,
    pub hosts: Vec<Host>,
    pub partitions: Vec<PartitionOf>,
    pub rings: Vec<RingWorld>,
    pub judge: Judge,
    /// Of all disks.
    pub mode: Mode,
    pub counts: BTreeMap<&'static str, u64>,
    /// When something goes wrong next, and when something is submitted.
    pub fault: u64,
    next_submit: u64,
    submits: u64,
    /// Rings keep up with a rate, and not with each other.
    is_paced: bool,
    /// Applications keep states.
    wants_points: bool,
    /// Rings keep what states need.
    pub has_accounts: bool,
    /// Partitions subscribe to rings, and leave them.
    pub has_changes: bool,
    /// When somebody wishes that next.
    pub next_wish: u64,
    /// What each partition needed of a ring when its account was seen first.
    pub opened: BTreeMap<(usize, u32), u64>,
    pub trace: Trace,
    pub seen: Seen,
}

pub fn node_id(host: usize) -> NodeId {
    NodeId::new(host as u16 + 1).expect("not 0")
}

impl World {
    pub fn new(seed: u64) -> Self {
        let mut world = Self::without_observers(seed);
        world.draw_observers(seed);
        world
    }

    /// What a seed gave before some hosts observed.
    pub fn without_observers(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let hosts = 3 + random.below(4) as usize;
        let rings = 2 + random.below(3) as usize;
        let mode = [Mode::Async, Mode::Sync][random.below(2) as usize];
        let mut world = Self {
            now: 1,
            hosts: (0..hosts).map(|_| Host::default()).collect(),
            partitions: Vec::new(),
            rings: Vec::new(),
            judge: Judge::default(),
            mode,
            counts: BTreeMap::new(),
            fault: [0, 1500][random.below(2) as usize] * MILLI,
            next_submit: 0,
            submits: 1 + random.below(10),
            is_paced: random.below(5) == 0,
            wants_points: random.below(3) > 0,
            has_accounts: random.below(3) > 0,
            has_changes: random.below(3) > 0,
            next_wish: 0,
            opened: BTreeMap::new(),
            trace: Trace::default(),
            seen: Seen::default(),
            random,
        };
        for index in 0..rings {
            let ring = world.draw_ring(index, hosts);
            world.rings.push(ring);
        }
        for host in 0..hosts {
            world.hosts[host].again = world.below(400) * MILLI;
        }
        world.draw_partitions();
        world
    }

    fn draw_ring(&mut self, index: usize, hosts: usize) -> RingWorld {
        // The last one is everybody's.
        let all: Vec<usize> = (0..hosts).collect();
        let members = match index {
            0 => all,
            _ => {
                let first = self.below(hosts as u64) as usize;
                let count = 3.max(self.below(hosts as u64 + 1) as usize).min(hosts);
                (0..count).map(|at| (first + at) % hosts).collect()
            }
        };
        let (per_round, origin) = match self.is_paced {
            true => (1, 0),
            false => ([1, 1, 1, 3][self.below(4) as usize], self.below(3)),
        };
        let mode = match self.below(4) {
            // A ring that follows a rate is left behind by those that others pull.
            _ if self.is_paced => Leveling::Paper {
                delta: 5 * MILLI,
                lambda: 400,
            },
            0 => Leveling::Horizon,
            _ => Leveling::Pull,
        };
        // Ranks are not in the order in which rings are drawn.
        let of = RingOf {
            constants: Constants {
                rank: Rank(([5, 2, 9, 1][index]) as u16),
                per_round: NonZeroU32::new(per_round).expect("not 0"),
                origin,
            },
            mode,
        };
        let nodes: Vec<NodeId> = members.iter().map(|host| node_id(*host)).collect();
        let mut config = URingConfig::new(nodes.clone(), &Timers::derive(Timing::Default, 3));
        config.acceptors = nodes[..3].to_vec();
        config.proposer.frame_bytes = 200;
        config.proposer.message_bytes = 2000;
        config.proposer.backlog_bytes = 8000;
        config.proposer.window_bytes = 4000;
        config.batch_bytes = 1500;
        config.word_bytes = 2000;
        config.learner.waiting_bytes = [600, 8 << 20][self.below(2) as usize];
        config.acceptor.kept_instances = [100, 400, 4000][self.below(3) as usize];
        config.learner.feeds_merge = true;
        let room = 6000 + self.below(30_000) as usize;
        RingWorld {
            of,
            config,
            links: Links::new(members.len(), room),
            hosts: members,
            returns: 0,
            handed: 0,
        }
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.random.below(end)
    }

    pub fn add(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    pub fn is_calm(&self) -> bool {
        self.now > TROUBLE
    }

    pub fn is_awake(&self, host: usize) -> bool {
        let life = self.hosts[host].life.as_ref();
        life.is_some_and(|life| life.stopped <= self.now)
    }

    pub fn ranks(&self) -> Vec<u16> {
        let ranks = self.rings.iter().map(|ring| ring.of.constants.rank.0);
        ranks.collect()
    }

    fn start(&mut self, host: usize) {
        let now = Time(self.now);
        let seed = self.below(u64::MAX);
        // Where points are wanted all rings are needed all the time: some never want one.
        let keeps = match self.wants_points {
            true => self.now + self.below(1500) * MILLI,
            false => u64::MAX,
        };
        let takes = [3, usize::MAX][self.below(2) as usize];
        let this = &mut self.hosts[host];
        this.lives += 1;
        let me = Process {
            node: node_id(host),
            incarnation: Incarnation(this.lives),
        };
        let kept = this.kept.clone();
        let point = kept.as_ref().map(|kept| kept.resume.point);
        let mut engines = BTreeMap::new();
        for (index, ring) in self.rings.iter().enumerate() {
            if !ring.hosts.contains(&host) {
                continue;
            }
            let mut engine = Checked::new(Leveled::new(URing::new(ring.config.clone()), ring.of));
            let mut states = kept.iter().flat_map(|kept| &kept.resume.rings);
            if let Some(state) = states.find(|state| state.of == ring.of.constants) {
                let inner = engine.get_mut().get_mut();
                Feed::resume(inner, state.founded, state.base.clone());
            }
            let disk = this.disks.entry(index).or_default();
            let (records, lost_some) = (disk.found(), disk.lost_some);
            engine.handle(
                now,
                Input::Start(StartState {
                    me,
                    seed: seed ^ index as u64,
                    records,
                    lost_some,
                }),
            );
            engines.insert(index, engine);
        }
        let learner = self.learner(host);
        let others = self.partition_of(host).hosts.iter();
        let others = others.filter_map(|other| self.hosts[*other].life.as_ref()?.learner.point());
        let catches_up = others.map(|point| point.round).max().unwrap_or(0);
        self.hosts[host].life = Some(Life {
            me,
            engines,
            learner,
            state: kept.map(|kept| kept.state).unwrap_or_default(),
            began: point,
            told: Vec::new(),
            submitted: BTreeMap::new(),
            is_trimmed: false,
            lacks: None,
            keeps,
            stopped: 0,
            busy: 0,
            takes,
            catches_up,
        });
        self.note_start(host);
        self.count_beginning(host);
        self.open_accounts(host);
        self.turn(host);
    }

    /// Of the rings with which a life begins.
    fn learner(&self, host: usize) -> RingsLearner {
        let kept = self.hosts[host].kept.as_ref();
        let resume = kept.map(|kept| &kept.resume);
        let of = |ring: &usize| self.rings[*ring].of.constants;
        let begins = self.begins_with(host);
        let learner = RingsLearner::new(begins.iter().map(of), resume.map(|resume| resume.point));
        if !self.has_changes || self.partition_of(host).only_reads {
            return learner;
        }
        let on = (0..self.rings.len()).filter(|ring| self.rings[*ring].hosts.contains(&host));
        let known: Vec<_> = on.map(|ring| of(&ring)).collect();
        let spent = resume.map_or(&[][..], |resume| &resume.spent);
        let learner = learner.of_partition(self.partition(host), known, spent);
        let on = 0..self.rings.len();
        let observed = on.filter(|ring| self.observes(host, *ring));
        learner.observes(observed.map(|ring| self.rings[ring].of.constants.rank))
    }

    pub fn engine(&mut self, host: usize, ring: usize) -> Option<&mut RingEngine> {
        self.hosts[host].life.as_mut()?.engines.get_mut(&ring)
    }

    pub fn handle(&mut self, host: usize, ring: usize, input: Input) {
        let now = Time(self.now);
        if let Some(engine) = self.engine(host, ring) {
            engine.handle(now, input);
            self.drain(host, ring);
        }
    }

    /// Carries out what an engine wants.
    pub fn drain(&mut self, host: usize, ring: usize) {
        while let Some(output) = self
            .engine(host, ring)
            .and_then(|engine| engine.poll_output())
        {
            match output {
                Output::Persist { id, records } => {
                    let takes = 1 + self.below(3);
                    let this = &mut self.hosts[host];
                    let disk = this.disks.entry(ring).or_default();
                    disk.waiting.push_back((id, records));
                    let due = self.now + takes * MILLI;
                    this.answers.entry(ring).or_insert(due);
                }
                Output::LinkSend { peer, bytes, .. } => {
                    let to = usize::from(peer.get()) - 1;
                    let at = self.now + 20_000 + self.below(200_000);
                    let (from, to) = (self.place(ring, host), self.place(ring, to));
                    let way = self.rings[ring].links.way(from, to);
                    let last = way.under_way.back().map_or(0, |(at, _)| *at);
                    way.bytes += bytes.len();
                    way.under_way.push_back((at.max(last), bytes.into_bytes()));
                }
                other => panic!("{other:?}"),
            }
        }
    }

    /// The place of a host among the members of a ring.
    fn place(&self, ring: usize, host: usize) -> usize {
        let mut hosts = self.rings[ring].hosts.iter();
        let place = hosts.position(|other| *other == host);
        place.expect("it is on it")
    }

    fn submit(&mut self, host: usize) {
        let now = Time(self.now);
        let rings = self.hosts[host].life.as_ref();
        let rings: Vec<usize> =
            rings.map_or(Vec::new(), |life| life.engines.keys().copied().collect());
        let ring = rings[self.below(rings.len() as u64) as usize];
        let Some(life) = &mut self.hosts[host].life else {
            return;
        };
        let counter = life.submitted.entry(ring).or_default();
        let id = rota_core::contract::MessageId {
            process: life.me,
            counter: *counter + 1,
        };
        let engine = life.engines.get_mut(&ring).expect("it is on it");
        let service = rota_core::contract::Service::Safe;
        let payload = payload(ring, id);
        if engine.submit(now, service, &payload).is_ok() {
            *counter += 1;
            self.note_sent((ring, id), &payload);
            self.judge_order(host, ring);
        }
        self.drain(host, ring);
    }

    fn step(&mut self) {
        for host in 0..self.hosts.len() {
            let this = &self.hosts[host];
            if this.life.is_none() && this.again <= self.now {
                self.start(host);
            }
            self.answer(host);
            self.fire(host);
        }
        self.bring_back();
        for ring in 0..self.rings.len() {
            self.move_links(ring);
        }
        for host in 0..self.hosts.len() {
            self.turn(host);
            self.recover(host);
        }
        self.judge_forgotten();
        self.look_around();
    }

    /// Disks answer.
    fn answer(&mut self, host: usize) {
        if !self.is_awake(host) {
            return;
        }
        let (now, mode) = (self.now, self.mode);
        let due = self.hosts[host].answers.extract_if(.., |_, at| *at <= now);
        let due: Vec<usize> = due.map(|(ring, _)| ring).collect();
        for ring in due {
            let disk = self.hosts[host].disks.entry(ring).or_default();
            let Some((id, _)) = disk.waiting.back() else {
                continue;
            };
            let id = *id;
            disk.answer(id, mode);
            if mode == Mode::Async && self.random.below(8) == 0 {
                let count = self.random.below(disk.unsynced() as u64 + 1) as usize;
                disk.sync(count);
            }
            self.handle(host, ring, Input::Persisted { id });
        }
        let this = &mut self.hosts[host];
        if let Some((_, kept)) = this.writes.take_if(|(at, _)| *at <= now) {
            this.transfers = 0;
            this.kept = Some(kept.clone());
            self.note_durable(host, &kept);
            self.mark(host);
            self.unpin(host);
        }
    }

    /// Timers that are due.
    fn fire(&mut self, host: usize) {
        for ring in 0..self.rings.len() {
            for _ in 0..100 {
                let now = self.now;
                let is_awake = self.is_awake(host);
                let engine = self.engine(host, ring);
                let at = engine.and_then(|engine| engine.next_timer());
                if !is_awake || at.is_none_or(|(at, _)| at.0 > now) {
                    break;
                }
                self.handle(host, ring, Input::Timer);
            }
        }
    }

    fn move_links(&mut self, ring: usize) {
        let keys: Vec<(usize, usize)> = self.rings[ring].links.links.keys().copied().collect();
        for (one, other) in keys {
            let now = self.now;
            let link = self.rings[ring].links.between(one, other);
            if link.up.is_none() && !link.cut && link.retry <= now {
                self.connect(ring, (one, other));
            }
            self.arrive(ring, (one, other));
            self.arrive(ring, (other, one));
        }
    }

    fn connect(&mut self, ring: usize, (one, other): (usize, usize)) {
        let hosts = [one, other].map(|place| self.rings[ring].hosts[place]);
        let retry = self.now + 20 * MILLI + self.below(100 * MILLI);
        let is_there = hosts.iter().all(|host| self.is_awake(*host));
        let who = hosts.map(|host| self.hosts[host].life.as_ref().map(|life| life.me));
        let ([Some(me), Some(peer)], true) = (who, is_there) else {
            self.rings[ring].links.between(one, other).retry = retry;
            return;
        };
        let links = &mut self.rings[ring].links;
        links.sessions += 1;
        let (session, bytes) = (Session(links.sessions), links.room);
        links.between(one, other).up = Some(session.0);
        for (host, peer) in [(hosts[0], peer), (hosts[1], me)] {
            self.handle(host, ring, Input::LinkUp { peer, session });
            let peer = peer.node;
            let room = Input::Writable {
                peer,
                session,
                bytes,
            };
            self.handle(host, ring, room);
        }
    }

    fn arrive(&mut self, ring: usize, (from, to): (usize, usize)) {
        let hosts = [from, to].map(|place| self.rings[ring].hosts[place]);
        while self.is_awake(hosts[1]) {
            let now = self.now;
            let links = &mut self.rings[ring].links;
            let Some(session) = links.between(from, to).up.map(Session) else {
                return;
            };
            let way = links.way(from, to);
            let Some((_, bytes)) = way.under_way.pop_front_if(|(at, _)| *at <= now) else {
                return;
            };
            way.bytes -= bytes.len();
            let room = way.bytes;
            let room = links.room - room;
            let heard = Input::LinkMessage {
                peer: node_id(hosts[0]),
                session,
                channel: rota_core::contract::Channel::default(),
                bytes,
            };
            self.handle(hosts[1], ring, heard);
            let writable = Input::Writable {
                peer: node_id(hosts[1]),
                session,
                bytes: room,
            };
            self.handle(hosts[0], ring, writable);
        }
    }

    fn next_time(&self) -> u64 {
        let mut times = vec![
            self.now + 50 * MILLI,
            self.fault,
            self.next_submit,
            self.next_wish,
        ];
        for host in &self.hosts {
            times.extend(host.answers.values());
            times.extend(host.writes.as_ref().map(|(at, _)| *at));
            times.extend(host.fetches.as_ref().map(|fetched| fetched.at));
            match &host.life {
                None => times.push(host.again),
                Some(life) => {
                    times.extend([life.stopped, life.busy]);
                    let timers = life.engines.values();
                    let timers = timers.filter_map(|engine| engine.next_timer());
                    times.extend(timers.map(|(at, _)| at.0));
                }
            }
        }
        for ring in &self.rings {
            times.push(ring.returns);
            for link in ring.links.links.values() {
                times.extend((link.up.is_none() && !link.cut).then_some(link.retry));
                times.extend(link.ways.iter().filter_map(|way| way.next_time()));
            }
        }
        times.retain(|at| *at > self.now);
        times.into_iter().min().unwrap_or(self.now + MILLI)
    }

    fn is_settled(&self) -> bool {
        let ranks = self.ranks();
        self.hosts.iter().all(|host| {
            host.life.as_ref().is_some_and(|life| {
                let mut engines = life.engines.iter();
                engines.all(|(ring, engine)| self.has_learnt(*ring, engine))
                    && (self.is_helpless(host) && host.fetches.is_none()
                        || self.has_all(host, life, &ranks))
            })
        })
    }

    /// An engine has handed out all of its own messages, and everything that its ring has handed to anybody. What it has
    /// submitted itself does not say that: a message is settled for its sender when that has heard of the decision, and
    /// the last change of a partition's subscriptions is told to one of its replicas first.
    fn has_learnt(&self, ring: usize, engine: &RingEngine) -> bool {
        let inner = engine.get().get();
        inner.is_settled() && inner.learnt() > self.rings[ring].handed
    }

    /// It was told everything that anybody was, its wishes have come true, and nothing waits.
    fn has_all(&self, host: &Host, life: &Life, ranks: &[u16]) -> bool {
        let mut rings = life.learner.rings();
        rings.all(|of| life.learner.waiting_bytes(of.rank) == 0)
            && (life.learner.pending().is_none() && life.learner.wishes() == 0)
            && life.learner.standby().next().is_none()
            && self
                .judge
                .has_all(&self.partitions[host.partition], life, ranks)
    }

    pub fn go(&mut self) {
        self.note_replicas();
        while self.judge.wrong.is_none() {
            self.step();
            if self.is_calm() {
                self.mend();
                self.hosts.iter_mut().for_each(|host| host.wants = None);
                self.let_go();
                if self.is_settled() {
                    return self.judge_end();
                }
                if self.now > TROUBLE + CALM {
                    let state = self.states();
                    return self.judge.found(format!("silence: {state}"));
                }
            } else {
                if self.now >= self.fault {
                    self.trouble();
                }
                self.submit_what_is_due();
                self.wish_what_is_due();
            }
            self.now = self.next_time();
        }
    }

    fn submit_what_is_due(&mut self) {
        if self.now < self.next_submit {
            return;
        }
        self.next_submit = self.now + self.below(20 * MILLI);
        for _ in 0..self.below(self.submits) {
            let host = self.below(self.hosts.len() as u64) as usize;
            if self.is_awake(host) {
                self.submit(host);
            }
        }
    }

    fn judge_end(&mut self) {
        let ranks = self.ranks();
        for host in &self.hosts {
            if let Some(life) = host.life.as_ref().filter(|life| !life.is_trimmed) {
                let partition = &self.partitions[host.partition];
                self.judge.judge_end(partition, life, &ranks);
            }
        }
        self.judge_rings();
        let helpless: Vec<usize> = (0..self.hosts.len())
            .filter(|host| self.is_helpless(&self.hosts[*host]))
            .collect();
        for host in &helpless {
            let mut replicas = self.partition_of(*host).hosts.iter();
            let has_lost = replicas.any(|other| self.hosts[*other].has_lost);
            if !self.has_account(*host) || has_lost {
                continue;
            }
            if self.was_too_late(*host) {
                self.add("too late for an account");
                continue;
            }
            let state = self.states();
            self.judge
                .found(format!("helpless: {host}, and no state was lost: {state}"));
        }
        let helpless = helpless.len() as u64;
        self.counts.insert("helpless at the end", helpless);
        for index in 0..self.hosts.len() {
            self.count(index);
        }
        self.count_overlaps();
        self.judge_trace();
    }

    /// What a life has counted.
    pub fn count(&mut self, host: usize) {
        let Some(life) = &self.hosts[host].life else {
            return;
        };
        for engine in life.engines.values() {
            for (name, count) in engine.status().counters {
                *self.counts.entry(name).or_default() += count;
            }
        }
    }

    pub fn states(&self) -> String {
        let state = |host: &Host| match &host.life {
            None => "dead".to_owned(),
            Some(life) => {
                let engines = life.engines.iter().map(|(ring, engine)| {
                    let (status, inner) = (engine.status(), engine.get().get());
                    let (learnt, told) = (inner.learnt(), Feed::told(inner));
                    format!("{ring}: {} (learnt {learnt}, told {told})", status.state)
                });
                let engines: Vec<String> = engines.collect();
                format!(
                    "{:?} of {}, at {:?}, waits for {:?}, pending {:?}, wishes {}, trimmed {}: {}",
                    life.me,
                    host.partition,
                    life.learner.point(),
                    life.learner.needs(),
                    life.learner.pending(),
                    life.learner.wishes(),
                    life.is_trimmed,
                    engines.join(", ")
                )
            }
        };
        let states: Vec<String> = self.hosts.iter().map(state).collect();
        states.join("; ")
    }
}
