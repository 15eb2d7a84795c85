//! Dynamic linear voting between many layers, over a model of the promises of an engine: chance decides after every
//! step which processes hear each other or die, and which writes reach the disk. In every run, each primary has a
//! quorum of the one before, and when all are together again one is primary.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use bytes::Bytes;
use rota_core::contract::{
    Class, Configuration, ConfigurationKind, Delivery, Engine, Incarnation, Input, LogRecord,
    Message, MessageId, NodeId, Output, PersistError, PersistId, Process, RingId, Service,
    StartState, Status, SubmitError, Time, TimerReason,
};
use rota_core::primary::{PRIMARY_LOG, Primary, Rule};

/// The engine below a layer, as the model works it.
#[derive(Default)]
struct Inner {
    deliveries: VecDeque<Delivery>,
    submitted: VecDeque<(u64, Bytes)>,
    counter: u64,
}

#[derive(Clone, Default)]
struct Below(Rc<RefCell<Inner>>);

impl Engine for Below {
    fn handle(&mut self, _: Time, _: Input) {}

    fn submit(&mut self, _: Time, _: Service, payload: &[u8]) -> Result<u64, SubmitError> {
        let mut inner = self.0.borrow_mut();
        inner.counter += 1;
        let submitted = (inner.counter, Bytes::copy_from_slice(payload));
        inner.submitted.push_back(submitted);
        Ok(inner.counter)
    }

    fn poll_output(&mut self) -> Option<Output> {
        None
    }

    fn poll_delivery(&mut self) -> Option<Delivery> {
        self.0.borrow_mut().deliveries.pop_front()
    }

    fn reading(&self) -> Class {
        Class::Data
    }

    fn next_timer(&self) -> Option<(Time, TimerReason)> {
        None
    }

    fn status(&self) -> Status {
        Status::default()
    }
}

/// A regular configuration: what is ordered in it, and how far each member has received that.
struct Conf {
    ring: RingId,
    members: Vec<Process>,
    order: Vec<Message>,
    received: Vec<usize>,
}

struct Life {
    layer: Primary<Below>,
    below: Below,
    process: Process,
    conf: usize,
    /// What of its configuration's order was delivered.
    delivered: usize,
    writing: Option<(PersistId, Bytes)>,
    /// What its application has.
    current: Option<Session>,
    catches_up: bool,
}

struct Host {
    disk: Option<Bytes>,
    life: Option<Life>,
    lives: u64,
}

struct World {
    rng: u64,
    now: u64,
    rule: Rule,
    hosts: Vec<Host>,
    confs: Vec<Conf>,
    /// What was reported.
    primaries: Vec<Session>,
    /// What became primary, reported or not.
    formed: Vec<Session>,
}

/// A ring, and its nodes.
type Session = (RingId, Vec<NodeId>);

/// More than half of the nodes of the one before, or half of them and the smallest.
fn has_quorum(after: &Session, before: &Session) -> bool {
    let count = before
        .1
        .iter()
        .filter(|node| after.1.contains(node))
        .count();
    2 * count > before.1.len() || 2 * count == before.1.len() && after.1.contains(&before.1[0])
}

fn node(at: usize) -> NodeId {
    NodeId::new(at as u16 + 1).expect("not 0")
}

impl World {
    fn new(seed: u64, nodes: usize) -> Self {
        let first: Vec<NodeId> = (0..nodes).map(node).collect();
        let host = || Host {
            disk: None,
            life: None,
            lives: 0,
        };
        let mut world = Self {
            rng: seed,
            now: 0,
            rule: Rule::DynamicLinear { first },
            hosts: (0..nodes).map(|_| host()).collect(),
            confs: Vec::new(),
            primaries: Vec::new(),
            formed: Vec::new(),
        };
        (0..nodes).for_each(|at| world.start(at));
        world
    }

    /// A number below `end` (splitmix64).
    fn below(&mut self, end: usize) -> usize {
        self.rng = self.rng.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.rng ^ (self.rng >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % end as u64) as usize
    }

    fn start(&mut self, at: usize) {
        let host = &mut self.hosts[at];
        if host.life.is_some() {
            return;
        }
        host.lives += 1;
        let process = Process {
            node: node(at),
            incarnation: Incarnation(host.lives),
        };
        let below = Below::default();
        let mut layer = Primary::new(below.clone(), self.rule.clone());
        let records = host.disk.iter();
        let start = StartState {
            me: process,
            seed: 0,
            records: records
                .map(|bytes| (PRIMARY_LOG, 0, bytes.clone()))
                .collect(),
            lost_some: false,
        };
        layer.handle(Time(self.now), Input::Start(start));
        host.life = Some(Life {
            layer,
            below,
            process,
            conf: usize::MAX,
            delivered: 0,
            writing: None,
            current: None,
            catches_up: false,
        });
        self.group(&[at]);
    }

    /// These, as far as they live, form a configuration.
    fn group(&mut self, who: &[usize]) {
        let alive = |at: &usize| self.hosts[*at].life.is_some();
        let who: Vec<usize> = who.iter().copied().filter(alive).collect();
        let Some(&first) = who.first() else { return };
        let lives = who.iter().filter_map(|at| self.hosts[*at].life.as_ref());
        let (members, old): (Vec<Process>, Vec<usize>) =
            lives.map(|life| (life.process, life.conf)).unzip();
        let ring = RingId {
            ring_seq: self.confs.len() as u64 + 1,
            rep: node(first),
            incarnation: members[0].incarnation,
        };
        let regular = Configuration {
            kind: ConfigurationKind::Regular(ring),
            members: members.clone(),
        };
        for at in who {
            self.leave(at, ring, &members, &old);
            if let Some(life) = &mut self.hosts[at].life {
                let regular = Delivery::Configuration(regular.clone());
                life.below.0.borrow_mut().deliveries.push_back(regular);
                (life.conf, life.delivered) = (self.confs.len(), 0);
            }
        }
        self.confs.push(Conf {
            ring,
            received: vec![0; members.len()],
            members,
            order: Vec::new(),
        });
    }

    /// The transitional configuration: all that any of those who come along have received.
    fn leave(&mut self, at: usize, new: RingId, members: &[Process], old: &[usize]) {
        let Some(life) = &mut self.hosts[at].life else {
            return;
        };
        let Some(conf) = self.confs.get(life.conf) else {
            return;
        };
        let along = members.iter().zip(old);
        let along = along.filter(|(_, old)| **old == life.conf);
        let along: Vec<Process> = along.map(|(process, _)| *process).collect();
        let has = |process: &Process| {
            let place = conf.members.iter().position(|member| member == process);
            place.map_or(0, |place| conf.received[place])
        };
        let most = along.iter().map(has).max().unwrap_or(0);
        let mut inner = life.below.0.borrow_mut();
        inner
            .deliveries
            .push_back(Delivery::Configuration(Configuration {
                kind: ConfigurationKind::Transitional {
                    old: conf.ring,
                    new,
                },
                members: along,
            }));
        for message in conf.order.get(life.delivered..most).unwrap_or_default() {
            let message = Delivery::Message(message.clone());
            inner.deliveries.push_back(message);
        }
    }

    /// A message gets its place, or a member receives the next, or what is safe is delivered.
    fn order(&mut self, at: usize) {
        let what = self.below(4);
        let Some(life) = &mut self.hosts[at].life else {
            return;
        };
        let conf = &mut self.confs[life.conf];
        let mut inner = life.below.0.borrow_mut();
        match what {
            0 => {
                if let Some((counter, payload)) = inner.submitted.pop_front() {
                    conf.order.push(Message {
                        id: MessageId {
                            process: life.process,
                            counter,
                        },
                        service: Service::Safe,
                        seq: conf.order.len() as u64 + 1,
                        index: 0,
                        payload,
                    });
                }
            }
            1 | 2 => {
                let place = conf.members.iter().position(|m| *m == life.process);
                let received = &mut conf.received[place.expect("a member")];
                *received = conf.order.len().min(*received + 2);
            }
            _ => {
                let safe = conf.received.iter().copied().min().unwrap_or(0);
                if life.delivered < safe {
                    let message = conf.order[life.delivered].clone();
                    inner.deliveries.push_back(Delivery::Message(message));
                    life.delivered += 1;
                }
            }
        }
    }

    /// The layer's turn: its application takes something, its timer fires, its disk answers.
    fn turn(&mut self, at: usize, fails: bool) {
        let (take, answer) = (self.below(3), self.below(2) == 0);
        let fail = fails && self.below(20) == 0;
        let now = Time(self.now);
        for _ in 0..take {
            self.take(at);
        }
        let catch_up = self.below(4) == 0;
        let Host { disk, life, .. } = &mut self.hosts[at];
        let Some(life) = life else { return };
        if catch_up && std::mem::take(&mut life.catches_up) {
            life.layer.caught_up(now);
        }
        if life.layer.next_timer().is_some_and(|(due, _)| due <= now) {
            life.layer.handle(now, Input::Timer);
        }
        if answer && let Some((id, bytes)) = life.writing.take() {
            let input = if fail {
                let error = PersistError::NoSpace;
                Input::PersistFailed { id, error }
            } else {
                *disk = Some(bytes);
                Input::Persisted { id }
            };
            life.layer.handle(now, input);
        }
        while let Some(output) = life.layer.poll_output() {
            let Output::Persist { id, mut records } = output else {
                panic!("{output:?}");
            };
            match records.pop() {
                Some(LogRecord::Put { bytes, .. }) => life.writing = Some((id, bytes.into_bytes())),
                record => panic!("{record:?}"),
            }
        }
    }

    fn crash(&mut self, at: usize) {
        let written = self.below(2) == 0;
        let host = &mut self.hosts[at];
        if let Some(life) = host.life.take()
            && let Some((_, bytes)) = life.writing.filter(|_| written)
        {
            host.disk = Some(bytes);
        }
    }

    fn step(&mut self) {
        self.now += 10_000_000;
        let nodes = self.hosts.len();
        let at = self.below(nodes);
        match self.below(200) {
            0 => self.crash(at),
            1..=4 => self.start(at),
            5 | 6 => {
                let who = self.below(1 << nodes);
                let who: Vec<usize> = (0..nodes).filter(|at| who >> at & 1 == 1).collect();
                self.group(&who);
            }
            7..=100 => self.turn(at, true),
            _ => self.order(at),
        }
    }

    /// Two primaries of which the later does not follow the earlier: it has no quorum of it, nor of one
    /// that came between and that nobody got to report.
    fn split(&mut self) -> Option<String> {
        self.primaries.sort();
        self.formed.sort();
        let first = RingId {
            ring_seq: 0,
            rep: node(0),
            incarnation: Incarnation(0),
        };
        let mut before = (first, (0..self.hosts.len()).map(node).collect());
        for primary in &self.primaries {
            if !self.follows(primary, &before) {
                return Some(format!("{primary:?} after {before:?}"));
            }
            before.clone_from(primary);
        }
        None
    }

    fn follows(&self, after: &Session, before: &Session) -> bool {
        let mut between = self.formed.iter();
        has_quorum(after, before)
            || between.any(|one| {
                before.0 < one.0
                    && one.0 < after.0
                    && has_quorum(one, before)
                    && self.follows(after, one)
            })
    }

    /// Takes a delivery, and notes what it says of primaries.
    fn take(&mut self, at: usize) {
        let Some(life) = &mut self.hosts[at].life else {
            return;
        };
        let formed = |life: &Life| life.layer.status().counters["primary_formed"];
        let before = formed(life);
        let taken = life.layer.poll_delivery();
        if formed(life) > before {
            // The messages that say so are the layer's own, and come before what was taken.
            self.formed.extend(life.current.clone());
        }
        match taken {
            Some(Delivery::Configuration(Configuration {
                kind: ConfigurationKind::Regular(ring),
                members,
            })) => {
                let nodes = members.iter().map(|member| member.node).collect();
                life.current = Some((ring, nodes));
            }
            Some(Delivery::Primary(ring)) => {
                let current = life.current.clone().filter(|current| current.0 == ring);
                let current = current.expect("the current configuration is reported");
                if !self.primaries.contains(&current) {
                    self.primaries.push(current);
                }
                // Somebody brings it up to date, sooner or later or never.
                life.catches_up = true;
            }
            _ => {}
        }
    }

    /// All are together, and nothing goes wrong any more.
    fn heal(&mut self) -> bool {
        let nodes = self.hosts.len();
        (0..nodes).for_each(|at| self.start(at));
        self.group(&(0..nodes).collect::<Vec<_>>());
        for _ in 0..400 * nodes {
            self.now += 10_000_000;
            for at in 0..nodes {
                self.turn(at, false);
                self.order(at);
            }
        }
        let ring = self.confs.last().map(|conf| conf.ring);
        let mut lives = self.hosts.iter().filter_map(|host| host.life.as_ref());
        lives.all(|life| life.layer.primary() == ring)
    }
}

/// What goes wrong in a run of this seed; and how many primaries there were.
fn run(seed: u64) -> (Option<String>, usize) {
    let mut world = World::new(
        seed.wrapping_mul(0x2545_f491_4f6c_dd1d),
        2 + seed as usize % 4,
    );
    for _ in 0..2500 {
        world.step();
    }
    let before = world.primaries.len();
    let healed = world.heal();
    let split = world.split();
    let stuck = (!healed).then(|| "not primary when all are together".to_owned());
    (split.or(stuck), before)
}

#[test]
fn there_is_one_primary_at_most_and_one_in_the_end() {
    let mut primaries = 0;
    for seed in 0..600 {
        let (wrong, count) = run(seed);
        assert_eq!(wrong, None, "seed {seed}");
        primaries += count;
    }
    assert!(primaries > 600, "{primaries}");

    #[cfg(feature = "mutants")]
    {
        use rota_core::mutants::{Mutant, set};
        for mutant in [Mutant::P01, Mutant::P02, Mutant::P03, Mutant::P04] {
            set(Some(mutant));
            let found = (0..1000).any(|seed| run(seed).0.is_some());
            assert!(found, "{mutant} survives");
        }
        set(None);
    }
}
