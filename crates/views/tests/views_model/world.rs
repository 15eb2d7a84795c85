//! Processes over rings and a network, driven by chance.

use bytes::Bytes;
use rota_core::contract::{
    Channel, Class, Engine, Incarnation, Input, MessageId, NodeId, Output, Process, Service,
    StartState, SubmitError, Time,
};
use rota_core::primary::Rule;
use rota_ring::RING_SEQ_LOG;
use rota_views::{Backlog, ViewEngine};

use super::judge::{Judge, Saw, payload};
use super::path::Sequencer;
use super::rings::{Below, Port, Rings};

const FRAME_BYTES: usize = 48;
const BACKLOG_BYTES: usize = 1500;

struct Life {
    engine: ViewEngine<Sequencer, Below>,
    port: Port,
    saw: Saw,
    counter: u64,
    /// It has been in a view.
    remembers: bool,
}

#[derive(Default)]
struct Host {
    life: Option<Life>,
    lives: u64,
}

struct Flight {
    from: usize,
    to: usize,
    bytes: Bytes,
}

pub struct World {
    has_disks: bool,
    rng: u64,
    now: u64,
    hosts: Vec<Host>,
    rings: Rings,
    network: Vec<Flight>,
    judge: Judge,
    pub wrong: Option<String>,
    /// What the engines of all lives counted.
    pub counts: std::collections::BTreeMap<&'static str, u64>,
    pub full: u64,
}

fn node(at: usize) -> NodeId {
    NodeId::new(at as u16 + 1).expect("not 0")
}

impl World {
    /// In every third one nobody has a disk.
    pub fn new(seed: u64, nodes: usize) -> Self {
        let mut world = Self {
            has_disks: !seed.is_multiple_of(3),
            rng: seed,
            now: 0,
            hosts: (0..nodes).map(|_| Host::default()).collect(),
            rings: Rings::default(),
            network: Vec::new(),
            judge: Judge::default(),
            wrong: None,
            counts: Default::default(),
            full: 0,
        };
        (0..nodes).for_each(|at| world.start(at));
        world
    }

    pub fn views(&self) -> usize {
        self.judge.views()
    }

    /// Messages that no application got though all know them as delivered.
    pub fn unseen(&self) -> usize {
        self.judge.unseen.len()
    }

    /// A number below `end` (splitmix64).
    fn below(&mut self, end: usize) -> usize {
        self.rng = self.rng.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.rng ^ (self.rng >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % end as u64) as usize
    }

    fn start(&mut self, at: usize) {
        let configured = (0..self.hosts.len()).map(node).collect();
        let host = &mut self.hosts[at];
        if host.life.is_some() {
            return;
        }
        host.lives += 1;
        let me = Process {
            node: node(at),
            incarnation: Incarnation(host.lives),
        };
        let port = Port::new(me);
        let backlog = Backlog::new(FRAME_BYTES, 400, BACKLOG_BYTES);
        let rule = Rule::StaticMajority { configured };
        let mut engine = ViewEngine::new(port.below.clone(), rule, Sequencer::default(), backlog);
        let record = (RING_SEQ_LOG, 0, Bytes::from_static(&[1; 8]));
        let records = (host.lives > 1 && self.has_disks).then_some(record);
        let records = records.into_iter().collect();
        let start = StartState {
            me,
            seed: 0,
            records,
            lost_some: false,
        };
        engine.handle(Time(self.now), Input::Start(start));
        host.life = Some(Life {
            engine,
            port,
            saw: Saw::default(),
            counter: 0,
            remembers: false,
        });
        self.group(&[at]);
    }

    /// These, as far as they live, form a configuration.
    fn group(&mut self, who: &[usize]) {
        let hosts = self.hosts.iter_mut().enumerate();
        let hosts = hosts.filter(|(at, _)| who.contains(at));
        let lives = hosts.filter_map(|(_, host)| host.life.as_mut());
        let mut ports: Vec<&mut Port> = lives.map(|life| &mut life.port).collect();
        self.rings.group(&mut ports);
    }

    /// Whether a view is sure to have a living member that remembers if this node forgets, too.
    fn may_forget(&self, at: usize) -> bool {
        let others = self
            .hosts
            .iter()
            .enumerate()
            .filter(|(other, _)| *other != at);
        let forgot = others.filter(|(_, host)| {
            let remembers = host.life.as_ref().is_some_and(|life| life.remembers);
            // Without disks who has been in no view yet is as good as one that forgets.
            let may_have_lived = host.lives > 1 || !self.has_disks;
            may_have_lived && !remembers || host.life.is_none()
        });
        forgot.count() < self.hosts.len() / 2
    }

    fn crash(&mut self, at: usize) {
        if !self.may_forget(at) {
            return;
        }
        if let Some(life) = self.hosts[at].life.take() {
            self.count(&life);
        }
    }

    fn count(&mut self, life: &Life) {
        for (name, count) in life.engine.status().counters {
            *self.counts.entry(name).or_default() += count;
        }
    }

    fn submit(&mut self, at: usize) {
        let bytes = match self.below(4) {
            0 => self.below(380),
            _ => self.below(20),
        };
        let service = Service::ALL[self.below(5)];
        let now = Time(self.now);
        let Some(life) = &mut self.hosts[at].life else {
            return;
        };
        let id = MessageId {
            process: life.port.process,
            counter: life.counter + 1,
        };
        match life.engine.submit(now, service, &payload(id, bytes)) {
            Ok(counter) => {
                assert_eq!(counter, id.counter);
                life.counter = counter;
                self.judge.sent(id, service, bytes);
            }
            Err(SubmitError::Full) => self.full += 1,
            Err(error) => panic!("{error}"),
        }
        self.carry_out(at);
    }

    fn carry_out(&mut self, at: usize) {
        let Some(life) = &mut self.hosts[at].life else {
            return;
        };
        life.remembers |= life.engine.view().is_some();
        self.judge.undelivered(life.engine.undelivered());
        let mut sent = Vec::new();
        while let Some(output) = life.engine.poll_output() {
            match output {
                Output::Send { burst, .. } => sent.push(Bytes::from(burst.bytes)),
                other => panic!("{other:?}"),
            }
        }
        for bytes in sent {
            let others = (0..self.hosts.len()).filter(|to| *to != at);
            let flights = others.map(|to| Flight {
                from: at,
                to,
                bytes: bytes.clone(),
            });
            self.network.extend(flights);
        }
    }

    fn turn(&mut self, at: usize, input: Input) {
        if let Some(life) = &mut self.hosts[at].life {
            life.engine.handle(Time(self.now), input);
            self.carry_out(at);
        }
    }

    /// A datagram arrives, if those two can hear each other.
    fn arrive(&mut self) {
        if self.network.is_empty() {
            return;
        }
        let next = self.below(self.network.len());
        let Flight { from, to, bytes } = self.network.swap_remove(next);
        let conf = |at: usize| self.hosts[at].life.as_ref().map(|life| life.port.conf());
        if conf(from).is_some() && conf(from) == conf(to) {
            let input = Input::Datagrams {
                class: Class::Data,
                channel: Channel(0),
                segment: bytes.len(),
                bytes,
            };
            self.turn(to, input);
        }
    }

    /// The application takes something.
    fn take(&mut self, at: usize) -> bool {
        let Some(life) = &mut self.hosts[at].life else {
            return false;
        };
        let Some(got) = life.engine.poll_delivery() else {
            return false;
        };
        let judged = self.judge.delivered(life.port.process, &mut life.saw, &got);
        if let Err(wrong) = judged {
            self.wrong.get_or_insert(wrong);
        }
        true
    }

    /// What the rings do.
    fn order(&mut self, at: usize, what: usize) {
        let Self { hosts, rings, .. } = self;
        let Some(life) = &mut hosts[at].life else {
            return;
        };
        match what {
            0 => rings.originate(&life.port),
            1 | 2 => rings.receive(&life.port, what),
            _ => rings.deliver(&mut life.port),
        }
    }

    pub fn step(&mut self) {
        self.now += 1_000_000;
        let nodes = self.hosts.len();
        let at = self.below(nodes);
        match self.below(1000) {
            0 => self.crash(at),
            1..=5 => self.start(at),
            // Busy times in turns with calm ones.
            6..=9 if self.now >> 29 & 1 == 0 || self.below(20) == 0 => {
                let who = self.below(1 << nodes) | self.below(1 << nodes);
                let who: Vec<usize> = (0..nodes).filter(|at| who >> at & 1 == 1).collect();
                self.group(&who);
            }
            10..=80 => self.submit(at),
            81..=250 => self.turn(at, Input::Timer),
            251..=430 => {
                for _ in 0..=self.below(3) {
                    self.take(at);
                }
            }
            431..=650 => self.arrive(),
            _ => {
                let what = self.below(6);
                self.order(at, what);
            }
        }
    }

    /// All are together, and nothing goes wrong any more, until all is delivered.
    pub fn settle(&mut self) {
        let nodes = self.hosts.len();
        (0..nodes).for_each(|at| self.start(at));
        self.group(&(0..nodes).collect::<Vec<_>>());
        for _ in 0..600 {
            self.now += 1_000_000;
            for at in 0..nodes {
                for what in 0..6 {
                    self.order(at, what);
                }
                self.turn(at, Input::Timer);
                while self.take(at) {}
                self.carry_out(at);
            }
            for _ in 0..self.network.len() {
                self.arrive();
            }
        }
        let lives = self.hosts.iter().filter_map(|host| host.life.as_ref());
        let alive: Vec<(Process, &Saw)> =
            lives.map(|life| (life.port.process, &life.saw)).collect();
        let settled = self.judge.settled(&alive);
        self.wrong = self.wrong.take().or(settled.err());
        let lives: Vec<Life> = self
            .hosts
            .iter_mut()
            .filter_map(|host| host.life.take())
            .collect();
        let positions: Vec<u64> = lives
            .iter()
            .map(|life| life.engine.next_position())
            .collect();
        if positions.windows(2).any(|pair| pair[0] != pair[1]) {
            let wrong = format!("VS5: next positions {positions:?}");
            self.wrong.get_or_insert(wrong);
        }
        lives.iter().for_each(|life| self.count(life));
    }
}
