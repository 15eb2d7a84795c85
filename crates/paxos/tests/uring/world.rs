//! The world: time, chance, and faults.

use std::collections::BTreeMap;

use bytes::Bytes;
use rota_core::contract::{
    self, Channel, Checked, Delivery, Engine, Incarnation, Input, MessageId, NodeId, Output,
    Process, Session, StartState, Time,
};
use rota_core::shares::Capacity;
use rota_core::timing::{Timers, Timing};
use rota_paxos::uring::{AcceptorConfig, Arbiter, Multicast, URing, URingConfig};

use super::datagrams::{self, Datagrams};
use super::devices::Pace;
use super::disk::Mode;
use super::judge::{Judge, payload};
use super::links::Links;
use super::lists::Lists;
use super::node::{Life, Node};
use super::resumed::Resumed;
use super::worse::Worse;

pub const MILLI: u64 = 1_000_000;

/// Faults end after this time.
const TROUBLE: u64 = 8_000 * MILLI;
/// By then all have started.
pub const BEGUN: u64 = 4_000 * MILLI;
/// After that all has to be well again.
const CALM: u64 = 20_000 * MILLI;

/// The coordination service.
#[derive(Default)]
pub struct Service {
    stored: BTreeMap<u64, Bytes>,
    /// When it is answered, whom, and what was asked.
    asked: Vec<(u64, usize, u64, Bytes)>,
    /// It answers nobody until then.
    pub stopped: u64,
}

pub struct World {
    rng: u64,
    pub now: u64,
    pub pace: Pace,
    pub config: URingConfig,
    pub nodes: Vec<Node>,
    pub links: Links,
    /// Of Ring Paxos.
    pub datagrams: Datagrams,
    pub judge: Judge,
    /// Whose disk is to be bad for good, as soon as that may be.
    pub wears_out: Option<usize>,
    /// Of before all acceptors have lost their stores.
    pub former: Option<Judge>,
    pub counts: BTreeMap<&'static str, u64>,
    /// When something goes wrong next.
    pub fault: u64,
    pub service: Service,
    /// When faults end.
    pub ends: u64,
    /// Applications keep states.
    pub resumed: Option<Resumed>,
    /// What is worse than in most worlds.
    pub worse: Option<Worse>,
    /// Lists of acceptors are ordered.
    pub lists: Option<Lists>,
    submits: u64,
    next_submit: u64,
    /// When each message that its own process was not handed yet was taken.
    pub taken: BTreeMap<MessageId, u64>,
    /// The longest time until a process was handed its own message.
    pub slowest: u64,
}

pub fn node_id(index: usize) -> NodeId {
    NodeId::new(index as u16 + 1).expect("not 0")
}

/// The next number of these dice.
pub fn roll(dice: &mut u64) -> u64 {
    *dice = dice.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *dice;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl World {
    pub fn new(seed: u64) -> Self {
        let mut world = Self {
            rng: seed,
            now: 1,
            pace: Pace::default(),
            config: URingConfig::new(Vec::new(), &Timers::derive(Timing::Default, 3)),
            nodes: Vec::new(),
            links: Links::new(0, 0),
            datagrams: Datagrams::default(),
            judge: Judge::default(),
            wears_out: None,
            former: None,
            counts: BTreeMap::new(),
            fault: 0,
            service: Service::default(),
            ends: TROUBLE,
            resumed: None,
            worse: None,
            lists: None,
            submits: 0,
            next_submit: 0,
            taken: BTreeMap::new(),
            slowest: 0,
        };
        let mode = [Mode::Memory, Mode::Async, Mode::Sync][world.below(3) as usize];
        let mixed = world.below(6) == 0;
        let acceptors = [1, 3, 3, 3, 5][world.below(5) as usize];
        let nodes = acceptors + world.below(3) as usize;
        let config = &mut world.config;
        config.ring = (0..nodes).map(node_id).collect();
        world.mix();
        let ring = world.config.ring.clone();
        world.config.acceptors = ring[..acceptors].to_vec();
        world.mix();
        let has_service = world.below(4) == 0;
        let forgets = mode == Mode::Memory && world.below(2) == 0;
        let only_as_member = world.below(3) == 0;
        let waits = [600, 8 << 20][world.below(2) as usize];
        let keeps = [40, 400, 100_000][world.below(3) as usize];
        let at_disk = [16 << 20, 16 << 20, 20_000, 8000][world.below(4) as usize];
        let config = &mut world.config;
        config.proposer.frame_bytes = 200;
        config.proposer.message_bytes = 2000;
        config.proposer.backlog_bytes = 8000;
        config.proposer.window_bytes = 4000;
        config.batch_bytes = 1500;
        config.word_bytes = 2000;
        config.learner.waiting_bytes = waits;
        config.acceptor.disk_bytes = at_disk;
        config.acceptor.kept_instances = keeps;
        config.learner.only_as_member = only_as_member;
        config.acceptor.forgets = forgets;
        if has_service {
            config.arbiter = Arbiter::Service;
        }
        world.judge.only_as_member = only_as_member;
        let room = 6000 + world.below(30_000) as usize;
        world.links = Links::new(nodes, room);
        world.links.per_milli = [0, 0, 20_000, 1000][world.below(4) as usize];
        world.nodes = (0..nodes).map(|_| Node::default()).collect();
        for index in 0..nodes {
            let keeps = [keeps, keeps, 60, 1000][world.below(4) as usize];
            let modes = [Mode::Memory, Mode::Async, Mode::Sync];
            let own = modes[world.below(3) as usize];
            world.nodes[index].keeps = keeps;
            world.nodes[index].mode = if mixed { own } else { mode };
        }
        world.submits = 1 + world.below(40);
        world.pace = Pace {
            latency: [
                (MILLI, 0),
                (MILLI, 0),
                (MILLI, 0),
                (20 * MILLI, 180 * MILLI),
            ][world.below(4) as usize],
            per_milli: [0, 0, 20_000, 2_000][world.below(4) as usize],
        };
        if world.pace.latency.1 > 0 {
            // A disk that takes long for anything takes much at once.
            world.config.acceptor.disk_bytes = world.config.acceptor.disk_bytes.max(200_000);
        }
        world.config.patience.disk = [400, 3_100][world.below(2) as usize] * MILLI;
        for index in 0..nodes {
            let late = if world.below(8) == 0 { 3000 } else { 400 };
            world.nodes[index].again = world.below(late) * MILLI;
        }
        let acceptors = world.config.acceptors.clone();
        let keeps = acceptors
            .iter()
            .map(|node| world.nodes[usize::from(node.get()) - 1].keeps);
        world.judge.keeps = keeps.min().unwrap_or(0);
        world.fault = [0, 1500][world.below(2) as usize] * MILLI;
        world
    }

    /// The ring in another order.
    fn mix(&mut self) {
        for at in (1..self.config.ring.len()).rev() {
            let other = self.below(at as u64 + 1) as usize;
            self.config.ring.swap(at, other);
        }
    }

    pub fn below(&mut self, end: u64) -> u64 {
        roll(&mut self.rng) % end
    }

    pub fn add(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    pub fn is_calm(&self) -> bool {
        self.now > self.ends
    }

    // What happens by itself.

    /// Everything that is due.
    fn step(&mut self) {
        for index in 0..self.nodes.len() {
            let node = &self.nodes[index];
            if node.life.is_none() && node.again <= self.now && !node.retired {
                self.start(index);
            }
            self.answer(index);
            self.open_again(index);
            self.timer(index);
        }
        self.serve();
        self.move_links();
        self.move_datagrams();
        for index in 0..self.nodes.len() {
            self.deliver(index);
        }
    }

    /// The coordination service answers what has reached it, and whom it can.
    fn serve(&mut self) {
        let now = self.now;
        if self.service.stopped > now && !self.is_calm() {
            return;
        }
        let asked = std::mem::take(&mut self.service.asked);
        let (due, rest) = asked.into_iter().partition(|(at, ..)| *at <= now);
        self.service.asked = rest;
        let due: Vec<(u64, usize, u64, Bytes)> = due;
        for (_, index, number, wanted) in due {
            let stored = self.service.stored.entry(number).or_insert(wanted);
            let chosen = stored.clone();
            if self.is_awake(index) && self.below(10) > 0 {
                self.handle(index, Input::Arbitrated { number, chosen });
            }
        }
    }

    fn next_time(&self) -> u64 {
        let mut times = vec![self.now + 50 * MILLI, self.fault, self.next_submit];
        for node in &self.nodes {
            match &node.life {
                None if node.retired => {}
                None => times.push(node.again),
                Some(life) if life.stopped > self.now => times.push(life.stopped),
                Some(life) => {
                    times.extend(node.answers);
                    times.extend(node.device.reopens);
                    times.extend(life.engine.next_timer().map(|(at, _)| at.0));
                    times.extend((life.busy > self.now).then_some(life.busy));
                }
            }
        }
        times.extend(self.service.asked.iter().map(|(at, ..)| *at));
        times.extend(self.datagrams.next_time());
        for link in self.links.links.values() {
            if link.up.is_none() && !link.cut {
                times.push(link.retry);
            }
            let ways = link.ways.iter();
            times.extend(ways.filter_map(|way| way.next_time()));
        }
        times.retain(|at| *at > self.now);
        times.into_iter().min().unwrap_or(self.now + MILLI)
    }

    fn start(&mut self, index: usize) {
        let seed = self.below(u64::MAX);
        // Who runs the nodes brings their files up to date: else a node whose store is gone could found another ring.
        let acceptors = self.acceptors();
        let node = &mut self.nodes[index];
        node.lives += 1;
        let me = Process {
            node: node_id(index),
            incarnation: Incarnation(node.lives),
        };
        let records = match node.mode {
            Mode::Memory => Vec::new(),
            Mode::Async | Mode::Sync => node.disk.found(),
        };
        let settings = URingConfig {
            acceptor: AcceptorConfig {
                kept_instances: node.keeps,
                forgets: self.config.acceptor.forgets && node.mode == Mode::Memory,
                ..self.config.acceptor
            },
            acceptors,
            ..self.config.clone()
        };
        let mut engine = Checked::new(URing::new(settings));
        if let Some(resumed) = self.resumed.as_mut().filter(|_| !node.has_old_log)
            && let Some(next) = resumed.begin(engine.get_mut(), &self.judge)
        {
            self.judge.resume(me, next);
        }
        let lost_some = node.disk.lost_some;
        node.device.reopens = None;
        let start = StartState {
            me,
            seed,
            records,
            lost_some,
        };
        engine.handle(Time(self.now), Input::Start(start));
        node.life = Some(Life {
            me,
            engine,
            submitted: 0,
            busy: 0,
            seen: 0,
            former: node.has_old_log,
            stopped: 0,
        });
        self.drain(index);
    }

    pub fn handle(&mut self, index: usize, input: Input) {
        let now = Time(self.now);
        if let Some(life) = &mut self.nodes[index].life {
            life.engine.handle(now, input);
            life.engine.reading();
            self.drain(index);
        }
    }

    /// Carries out what a process wants.
    pub fn drain(&mut self, index: usize) {
        self.look_at(index);
        while let Some(output) = self.output(index) {
            match output {
                Output::Persist { id, records } => self.persist(index, id, records),
                Output::LinkSend {
                    peer,
                    session,
                    bytes,
                    ..
                } => {
                    let to = usize::from(peer.get()) - 1;
                    let at = self.now + 20_000 + self.below(200_000);
                    let link = self.links.between(index, to);
                    assert_eq!(link.up, Some(session.0), "sent to a session that has ended");
                    let (room, per_milli) = (self.links.room, self.links.per_milli);
                    let now = self.now;
                    let way = self.links.way(index, to);
                    let per_milli = [way.per_milli, per_milli][usize::from(way.per_milli == 0)];
                    let last = way.under_way.back().map_or(0, |(at, _)| *at);
                    let takes = (bytes.len() as u64 * MILLI)
                        .checked_div(per_milli)
                        .unwrap_or(0);
                    let last = last.max(now) + takes;
                    way.bytes += bytes.len();
                    assert!(way.bytes <= room, "more than the link takes");
                    way.under_way.push_back((at.max(last), bytes.into_bytes()));
                }
                Output::Arbitrate { number, wanted } => {
                    let asked = (self.now + self.below(20 * MILLI), index, number, wanted);
                    self.service.asked.push(asked);
                }
                Output::Reopen => self.reopen(index),
                Output::Send { burst, .. } => self.multicast(index, &burst),
                other => panic!("{other:?}"),
            }
        }
    }

    fn look_at(&mut self, index: usize) {
        let Some(life) = &mut self.nodes[index].life else {
            return;
        };
        if let Some(config) = life.engine.get().config()
            && config.number > life.seen
        {
            life.seen = config.number;
            let judge = self.former.as_mut().filter(|_| life.former);
            judge.unwrap_or(&mut self.judge).on_config(life.me, config);
        }
        let learnt = life.engine.get().learnt();
        let judge = self.former.as_mut().filter(|_| life.former);
        judge.unwrap_or(&mut self.judge).on_learnt(learnt);
        self.look_at_list(index);
    }

    fn output(&mut self, index: usize) -> Option<Output> {
        self.nodes[index].life.as_mut()?.engine.poll_output()
    }

    pub fn is_awake(&self, index: usize) -> bool {
        let life = self.nodes[index].life.as_ref();
        life.is_some_and(|life| life.stopped <= self.now)
    }

    fn timer(&mut self, index: usize) {
        if !self.is_awake(index) {
            return;
        }
        for _ in 0..100 {
            let life = self.nodes[index].life.as_ref();
            let at = life.and_then(|life| life.engine.next_timer());
            if at.is_none_or(|(at, _)| at.0 > self.now) {
                return;
            }
            self.handle(index, Input::Timer);
        }
        let life = self.nodes[index].life.as_ref();
        let timer = life.and_then(|life| life.engine.next_timer());
        self.judge
            .found(format!("timer: it never ends, {timer:?} at {}", self.now));
    }

    fn move_links(&mut self) {
        let keys: Vec<(usize, usize)> = self.links.links.keys().copied().collect();
        for (one, other) in keys {
            let link = self.links.between(one, other);
            if link.up.is_none() && !link.cut && link.retry <= self.now {
                self.connect(one, other);
            }
            self.arrive(one, other);
            self.arrive(other, one);
        }
    }

    fn connect(&mut self, one: usize, other: usize) {
        let retry = self.now + 20 * MILLI + self.below(100 * MILLI);
        let process = |node: &Node| node.life.as_ref().map(|life| life.me);
        let ends = (process(&self.nodes[one]), process(&self.nodes[other]));
        let awake = self.is_awake(one) && self.is_awake(other);
        let (Some(me), Some(peer)) = ends else {
            self.links.between(one, other).retry = retry;
            return;
        };
        if !awake {
            self.links.between(one, other).retry = retry;
            return;
        }
        self.links.sessions += 1;
        let session = Session(self.links.sessions);
        let bytes = self.links.room;
        self.links.between(one, other).up = Some(session.0);
        for (at, peer) in [(one, peer), (other, me)] {
            self.handle(at, Input::LinkUp { peer, session });
            let peer = peer.node;
            self.handle(
                at,
                Input::Writable {
                    peer,
                    session,
                    bytes,
                },
            );
        }
    }

    fn arrive(&mut self, from: usize, to: usize) {
        if !self.is_awake(to) {
            return;
        }
        let now = self.now;
        loop {
            let link = self.links.between(from, to);
            let Some(session) = link.up.map(Session) else {
                return;
            };
            let way = self.links.way(from, to);
            if way.held > now {
                return;
            }
            let Some((_, bytes)) = way.under_way.pop_front_if(|(at, _)| *at <= now) else {
                return;
            };
            way.bytes -= bytes.len();
            let room = self.links.room - self.links.way(from, to).bytes;
            self.handle(
                to,
                Input::LinkMessage {
                    peer: node_id(from),
                    session,
                    channel: Channel::default(),
                    bytes,
                },
            );
            self.handle(
                from,
                Input::Writable {
                    peer: node_id(to),
                    session,
                    bytes: room,
                },
            );
        }
    }

    /// The application takes what there is, and what the engine has for it then.
    fn deliver(&mut self, index: usize) {
        while self.deliver_some(index) {
            self.timer(index);
        }
    }

    fn deliver_some(&mut self, index: usize) -> bool {
        let now = self.now;
        let Some(life) = &mut self.nodes[index].life else {
            return false;
        };
        if life.busy > now || life.stopped > now {
            return false;
        }
        let mut some = false;
        while let Some(delivery) = life.engine.poll_delivery() {
            let judge = self.former.as_mut().filter(|_| life.former);
            judge
                .unwrap_or(&mut self.judge)
                .on_delivery(life.me, &delivery);
            if let Delivery::Message(message) = &delivery
                && message.id.process == life.me
                && let Some(at) = self.taken.remove(&message.id)
            {
                self.slowest = self.slowest.max(now - at);
            }
            some = true;
        }
        if let Some(resumed) = self.resumed.as_mut().filter(|_| !life.former) {
            let who = (life.engine.get_mut(), life.me);
            resumed.look_at(who, self.now, &mut self.judge);
        }
        some || life.engine.next_timer().is_some_and(|(at, _)| at.0 <= now)
    }

    fn submit(&mut self, index: usize) {
        let now = Time(self.now);
        let Some(life) = &mut self.nodes[index].life else {
            return;
        };
        let id = MessageId {
            process: life.me,
            counter: life.submitted + 1,
        };
        let service =
            [contract::Service::Safe, contract::Service::Agreed][(id.counter % 2) as usize];
        if let Ok(counter) = life.engine.submit(now, service, &payload(id)) {
            assert_eq!(counter, id.counter);
            life.submitted = counter;
            if now.0 > BEGUN {
                self.taken.insert(id, now.0);
            }
        }
        self.drain(index);
    }

    pub fn mend(&mut self) {
        for link in self.links.links.values_mut() {
            link.cut = false;
            link.ways
                .iter_mut()
                .for_each(|way| (way.held, way.per_milli) = (0, 0));
        }
    }

    fn is_settled(&self) -> bool {
        let mut there = self.nodes.iter().filter(|node| !node.retired);
        let all_have_all = there.all(|node| {
            node.life.as_ref().is_some_and(|life| {
                let sent = self.judge.last(life.me) == life.submitted;
                sent && life.engine.get().is_settled() && self.judge.is_at_end(life.me)
            })
        });
        let lives = self.nodes.iter().filter_map(|node| node.life.as_ref());
        all_have_all && self.judge.agree(lives.map(|life| life.me))
    }

    pub fn go(&mut self) {
        while self.judge.wrong.is_none() {
            self.step();
            let wrong = self.former.as_mut().and_then(|former| former.wrong.take());
            if let Some(wrong) = wrong {
                self.judge.found(format!("former: {wrong}"));
            }
            if self.is_calm() {
                self.mend();
                self.mend_disks();
                self.end_former();
                self.order_last_list();
                if self.is_settled() && self.has_reached_list() {
                    return self.judge_end();
                }
                if self.now > self.ends + CALM {
                    let state = self.states();
                    return self.judge.found(format!("silence: {state}"));
                }
            } else {
                self.judge_standing();
                if self.now >= self.fault {
                    self.trouble();
                }
                self.submit_what_is_due();
            }
            self.now = self.next_time();
        }
    }

    /// Without troubles, until then: all submit.
    pub fn goes_until(&mut self, end: u64) {
        while self.now < end && self.judge.wrong.is_none() {
            self.step();
            self.submit_what_is_due();
            self.now = self.next_time();
        }
    }

    fn submit_what_is_due(&mut self) {
        if self.now < self.next_submit {
            return;
        }
        self.next_submit = self.now + self.below(20 * MILLI);
        for _ in 0..self.below(self.submits) {
            let index = self.below(self.nodes.len() as u64) as usize;
            if self.is_awake(index) {
                self.submit(index);
            }
        }
    }

    /// The link between these is cut.
    pub fn cut(&mut self, one: usize, other: usize) {
        self.disconnect(one, other);
        self.links.between(one, other).cut = true;
    }

    /// Who belongs to what was before is started again.
    fn end_former(&mut self) {
        for index in 0..self.nodes.len() {
            if self.nodes[index]
                .life
                .as_ref()
                .is_some_and(|life| life.former)
            {
                self.kill(index);
                self.put_away(index);
            }
        }
    }

    fn judge_end(&mut self) {
        (0..self.nodes.len()).for_each(|index| self.judge_life(index));
        self.judge.judge_own();
    }

    /// A life has ended: what it has counted.
    pub fn judge_life(&mut self, index: usize) {
        let Some(life) = &self.nodes[index].life else {
            return;
        };
        for (name, count) in life.engine.status().counters {
            *self.counts.entry(name).or_default() += count;
            // Nobody here says what others could not understand, or refers to a value that they lack.
            let wide = self.links.per_milli == 0 && self.worse.is_none();
            if (name == "uring_messages_refused" || wide && name == "uring_values_put_off")
                && count > 0
            {
                self.judge
                    .found(format!("refused: {:?}, {count} messages", life.me));
            }
        }
    }

    pub fn states(&self) -> String {
        let state = |node: &Node| match &node.life {
            Some(life) => {
                let engine = life.engine.get();
                let last = self.judge.last(life.me);
                let status = life.engine.status();
                format!(
                    "{}.{}: {} (learnt {}, sent {}, last {last}, end {}, {:?}, bad {}, hangs {}, reopens {:?}, waiting {})",
                    life.me.node,
                    life.me.incarnation.0,
                    status.state,
                    engine.learnt(),
                    life.submitted,
                    self.judge.is_at_end(life.me),
                    life.engine.next_timer(),
                    node.device.bad_until,
                    node.device.hangs_until,
                    node.device.reopens,
                    node.disk.waiting.len(),
                )
            }
            None => "dead".to_owned(),
        };
        let states: Vec<String> = self.nodes.iter().map(state).collect();
        let modes: Vec<Mode> = self.nodes.iter().map(|node| node.mode).collect();
        format!("{modes:?} {}", states.join("; "))
    }
}

/// A run with votes in memory in which nothing fails, but datagrams are lost: so many of a hundred.
pub fn run_with_losses(seed: u64, lost: u64) -> World {
    let mut world = World::new(seed);
    for node in &mut world.nodes {
        (node.mode, node.keeps) = (Mode::Memory, 100_000);
    }
    world.links.per_milli = 0;
    world.config.acceptor.forgets = true;
    world.fault = u64::MAX;
    world.datagrams = Datagrams::new(seed);
    (world.datagrams.lost, world.datagrams.late) = (lost, 0);
    world.config.multicast = Some(datagrams::SETTINGS);
    world.go();
    world
}

pub fn world(seed: u64, multicast: bool) -> World {
    let mut world = World::new(seed);
    if multicast {
        world.datagrams = Datagrams::new(seed);
        let slow = Capacity::new(4_000_000);
        world.config.multicast = Some(Multicast {
            capacity: (seed % 3 == 2).then_some(slow),
            ..datagrams::SETTINGS
        });
    }
    world
}

/// A run with values along the ring, or multicast.
pub fn run(seed: u64, multicast: bool) -> World {
    let mut world = world(seed, multicast);
    world.go();
    world
}

/// The same where applications keep states, and get everything.
pub fn run_resumed(seed: u64) -> World {
    let mut world = world(seed, seed.is_multiple_of(2));
    world.config.learner.only_as_member = false;
    world.judge.only_as_member = false;
    world.resumed = Some(Resumed::new(seed));
    world.go();
    world
}

/// The same in a world that is worse.
pub fn run_worse(seed: u64, multicast: bool) -> World {
    let mut world = world(seed, multicast);
    world.make_worse();
    world.go();
    world
}
