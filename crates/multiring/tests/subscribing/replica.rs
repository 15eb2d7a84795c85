//! A replica: its learner, what its rings have told it, and what it has delivered.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use bytes::Bytes;
use rota_check::multicast::Event;
use rota_core::contract::{Delivery, Incarnation, Message, MessageId, NodeId, Process, Service};
use rota_multiring::{
    Constants, Instance, Partition, Place, Rank, Resume, ResumeRing, RingsDelivery, RingsLearner,
    Round,
};
use rota_paxos::uring::Snapshot;

use super::judge::{FOUNDED, Trace, Who};

/// The bytes of a ring that may wait here; a ring of which so much waits tells no more.
pub const WAITING: usize = 3000;

/// What an instance carries.
#[derive(Clone, Debug)]
pub enum Value {
    /// So many messages.
    Messages(u32),
    Notice(Bytes),
}

/// A ring, and what it has decided: the instances from 1 on.
pub struct Ring {
    pub of: Constants,
    pub decided: Vec<Value>,
}

impl Ring {
    pub fn next(&self) -> Instance {
        self.decided.len() as Instance + 1
    }

    /// Instances without messages, up to the end of a round.
    pub fn skip(&mut self, round: Round) {
        let next = self.of.first_of(round + 1);
        let missing = next.saturating_sub(self.next()) as usize;
        let skips = std::iter::repeat_n(Value::Messages(0), missing);
        self.decided.extend(skips);
    }
}

/// A state that was kept, with the digest of everything before it.
#[derive(Clone)]
pub struct Kept {
    pub resume: Resume,
    pub digest: u64,
}

pub struct Replica {
    pub partition: Partition,
    pub part: String,
    pub who: Who,
    /// The rings with which its partition began.
    pub begins: Vec<Constants>,
    /// The rings of which it has not heard yet in this life: it is on none of them.
    pub unheard: BTreeSet<Rank>,
    pub learner: RingsLearner,
    /// By ring: the first instance that it was told nothing of.
    pub told: BTreeMap<Rank, Instance>,
    /// The same, as it was said that all before is told.
    passed: BTreeMap<Rank, Instance>,
    /// The last place that was delivered, and the round from which on others may be.
    last: Option<Place>,
    floor: Round,
    digest: u64,
    pub kept: Option<Kept>,
    /// It needs what is forgotten.
    pub is_over: bool,
}

fn message(seq: Instance, index: u16) -> Message {
    let process = Process {
        node: NodeId::new(1).expect("not 0"),
        incarnation: Incarnation(1),
    };
    Message {
        id: MessageId {
            process,
            counter: seq,
        },
        service: Service::Safe,
        seq,
        index,
        payload: vec![7; 60].into(),
    }
}

impl Replica {
    /// In its first life, which is not begun.
    pub fn new(node: u16, partition: Partition, begins: Vec<Constants>) -> Self {
        Self {
            partition,
            part: format!("p{partition}"),
            who: (node, 0),
            begins,
            unheard: BTreeSet::new(),
            learner: RingsLearner::new([], None),
            told: BTreeMap::new(),
            passed: BTreeMap::new(),
            last: None,
            floor: 0,
            digest: 0,
            kept: None,
            is_over: false,
        }
    }

    /// Begins a life, with a state or without one. `kept`: by ring, the first instance that the acceptors of this
    /// process have; `unheard`: the rings that it hears of later.
    pub fn begin(
        &mut self,
        rings: &[Ring],
        state: Option<Kept>,
        (kept, unheard): (&BTreeMap<Rank, Instance>, BTreeSet<Rank>),
        trace: &mut Trace,
    ) {
        if self.who.1 > 0 {
            trace.add(self.who, Event::Crash);
        }
        self.who.1 += 1;
        trace.add(self.who, Event::Start);
        let known = || rings.iter().map(|ring| ring.of);
        let (point, own, spent) = match &state {
            Some(Kept { resume, digest }) => {
                trace.install(self.who, &self.part, (resume, *digest));
                let own = resume.rings.iter().map(|ring| ring.of).collect();
                (Some(resume.point), own, resume.spent.clone())
            }
            None => (None, self.begins.clone(), Vec::new()),
        };
        for of in &own {
            trace.has(self.who, &self.part, (of.rank.0, 0));
        }
        let learner = RingsLearner::new(own.clone(), point);
        let heard = known().filter(|of| !unheard.contains(&of.rank));
        let learner = learner.of_partition(self.partition, heard, &spent);
        self.learner = learner.hears_of_rings([]);
        self.unheard = unheard;
        (self.last, self.floor, self.is_over) = (None, 0, false);
        self.digest = state.as_ref().map_or(0, |state| state.digest);
        self.told.clear();
        for of in known() {
            let begin = match point.filter(|_| own.contains(&of)) {
                Some(point) => point.next_of(&of),
                None => 1,
            };
            self.told.insert(of.rank, begin);
            let first = kept.get(&of.rank).copied().unwrap_or(1);
            let first = if self.unheard.contains(&of.rank) {
                1
            } else {
                first
            };
            self.miss(of.rank, first, trace);
        }
        self.passed = self.told.clone();
        self.kept = state;
    }

    /// It hears of a ring, and is on it.
    pub fn hear(&mut self, of: Constants, trace: &mut Trace) {
        if self.unheard.remove(&of.rank) {
            let told = self.learner.on_founded(of);
            told.into_iter().for_each(|told| self.take(told, trace));
        }
    }

    /// Instances of a ring that it was not told are forgotten, before this one.
    pub fn miss(&mut self, rank: Rank, next: Instance, trace: &mut Trace) {
        let seq = self.told[&rank];
        if next <= seq {
            return;
        }
        self.told.insert(rank, next);
        self.passed.insert(rank, next);
        let missed = Delivery::Missed {
            seq,
            count: next - seq,
            own: 0,
        };
        let told = self.learner.on_delivery(rank, missed);
        told.into_iter().for_each(|told| self.take(told, trace));
    }

    /// It is told of the next instance of a ring; `passes`: and that all before the one behind that is told. Whether
    /// there was something to tell.
    pub fn tell(&mut self, ring: &Ring, passes: bool, trace: &mut Trace) -> bool {
        let rank = ring.of.rank;
        if self.learner.waiting_bytes(rank) > WAITING || self.unheard.contains(&rank) {
            return false;
        }
        let next = self.told[&rank];
        if let Some(value) = ring.decided.get(next as usize - 1) {
            self.told.insert(rank, next + 1);
            let deliveries: Vec<Delivery> = match value {
                Value::Messages(count) => (0..*count)
                    .map(|index| Delivery::Message(message(next, index as u16)))
                    .collect(),
                Value::Notice(bytes) => vec![Delivery::Notice {
                    seq: next,
                    bytes: bytes.clone(),
                }],
            };
            for delivery in deliveries {
                let told = self.learner.on_delivery(rank, delivery);
                told.into_iter().for_each(|told| self.take(told, trace));
            }
        } else if self.passed[&rank] == next {
            return false;
        }
        let next = self.told[&rank];
        if passes || ring.next() == next {
            self.passed.insert(rank, next);
            let told = self.learner.on_delivery(rank, Delivery::Passed { next });
            told.into_iter().for_each(|told| self.take(told, trace));
        }
        true
    }

    /// Delivers all that it can, but for so many messages at most. Whether there was any.
    pub fn drain(&mut self, most: usize, trace: &mut Trace) -> bool {
        let mut count = 0;
        while count < most
            && let Some(told) = self.learner.poll()
        {
            self.take(told, trace);
            count += 1;
        }
        self.learner.check();
        count > 0
    }

    fn take(&mut self, told: RingsDelivery, trace: &mut Trace) {
        let mut hasher = DefaultHasher::new();
        match told {
            RingsDelivery::Message(place, _) => {
                if place.round < self.floor {
                    trace
                        .wrong
                        .push(format!("told late: {place:?} behind a change"));
                }
                self.last = Some(place);
                trace.deliver(self.who, &self.part, place);
                (self.digest, place).hash(&mut hasher);
                self.digest = hasher.finish();
            }
            RingsDelivery::Subscribed(rank, point) => {
                self.change(point.round, trace);
                self.begins_with(rank, point.round, trace);
                trace.has(self.who, &self.part, (rank.0, point.round));
                (self.digest, rank, point).hash(&mut hasher);
                self.digest = hasher.finish();
            }
            RingsDelivery::Left(rank, point) => {
                self.change(point.round, trace);
                trace.has_left(self.who, &self.part, (rank.0, point.round));
                (self.digest, rank, point, "left").hash(&mut hasher);
                self.digest = hasher.finish();
            }
            RingsDelivery::Trimmed(..) => self.is_over = true,
            RingsDelivery::LastRing(_) => {}
            other => trace.wrong.push(format!("delivery: {other:?}")),
        }
    }

    /// The subscriptions change at the beginning of a round: everything before it was delivered, and nothing of it.
    fn change(&mut self, round: Round, trace: &mut Trace) {
        self.floor = round;
        if let Some(last) = self.last.filter(|last| last.round >= round) {
            trace
                .wrong
                .push(format!("told late: a change at {round} behind {last:?}"));
        }
    }

    /// A ring has come to where the subscription to it begins: what is submitted to it now is delivered.
    fn begins_with(&self, rank: Rank, round: Round, trace: &mut Trace) {
        let mut rings = self.learner.rings();
        let first = rings
            .find(|of| of.rank == rank)
            .map(|of| of.first_of(round));
        let told = self.told[&rank];
        if first.is_none_or(|first| told < first) {
            let wrong = format!("told early: {rank:?} is at {told}, and begins at {first:?}");
            trace.wrong.push(wrong);
        }
    }

    /// Keeps a state where it is, if it may.
    pub fn keep(&mut self, trace: &mut Trace) -> bool {
        let point = self.learner.point().filter(|_| !self.is_over);
        let (Some(point), None) = (point, self.learner.pending()) else {
            return false;
        };
        let Some(subscriptions) = self.learner.subscriptions() else {
            return false;
        };
        let ring = |of: &Constants| ResumeRing {
            of: *of,
            founded: FOUNDED,
            base: Snapshot {
                next: point.next_of(of),
                ..Snapshot::default()
            },
        };
        let resume = Resume {
            point,
            rings: self.learner.rings().map(ring).collect(),
            spent: subscriptions.spent().collect(),
        };
        let resume = Resume::decode(resume.encode().into()).expect("it is sound");
        let digest = self.digest;
        trace.keep(self.who, &self.part, (&resume, digest));
        self.kept = Some(Kept { resume, digest });
        true
    }
}
