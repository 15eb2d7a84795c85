//! Rings that decide what is given to them, and replicas that hear of it in any order, change their subscriptions, and
//! begin again.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;

use bytes::Bytes;
use rota_check::multicast::{Event, MulticastReport, check_multicast};
use rota_core::random::Random;
use rota_multiring::{Constants, Instance, Rank, Wish};

use super::judge::Trace;
use super::replica::{Replica, Ring, Value, WAITING};

/// The steps of the part in which anything may happen.
const STEPS: u64 = 2500;
/// The turns, at most, until all is at rest.
const CALM: u64 = 1000;

/// Makes another stream of random numbers of a seed.
const LATE: u64 = 0x6c61_7465;

/// Some of these rings: one in four.
fn some<'a>(random: &mut Random, rings: impl Iterator<Item = &'a Ring>) -> BTreeSet<Rank> {
    let some = rings.filter(|_| random.below(4) == 0);
    some.map(|ring| ring.of.rank).collect()
}

pub struct World {
    random: Random,
    /// Says which rings a replica hears of late.
    late: Random,
    rings: Vec<Ring>,
    replicas: Vec<Replica>,
    pub trace: Trace,
    /// Notices that were given, with the replica that did and the ring that is to order each: some are ordered late.
    given: Vec<(usize, (usize, Bytes))>,
    /// All that were ordered: some are ordered again.
    ordered: Vec<(usize, Bytes)>,
    pub counts: BTreeMap<&'static str, u64>,
}

impl World {
    pub fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let ranks = [5, 2, 9, 1];
        let count = 2 + random.below(3) as usize;
        let ring = |rank: &u16| {
            let of = Constants {
                rank: Rank(*rank),
                per_round: NonZeroU32::new(1 + random.below(3) as u32).expect("not 0"),
                origin: random.below(3) * random.below(20),
            };
            let decided = Vec::new();
            Ring { of, decided }
        };
        let rings: Vec<Ring> = ranks[..count].iter().map(ring).collect();
        let mut trace = Trace::default();
        rings.iter().for_each(|ring| trace.genesis(&ring.of));
        let (mut replicas, mut node) = (Vec::new(), 0);
        let mut late = Random::new(seed ^ LATE);
        for partition in 1..=2 + random.below(2) as u32 {
            let all = rings.iter().map(|ring| ring.of);
            let mut begins: Vec<_> = all.filter(|_| random.below(2) == 0).collect();
            if begins.is_empty() {
                begins.push(rings[0].of);
            }
            for _ in 0..=random.below(3) {
                node += 1;
                let mut replica = Replica::new(node, partition, begins.clone());
                let others = rings.iter().filter(|ring| !begins.contains(&ring.of));
                let unheard = some(&mut late, others);
                replica.begin(&rings, None, (&BTreeMap::new(), unheard), &mut trace);
                replicas.push(replica);
            }
        }
        Self {
            random,
            late,
            rings,
            replicas,
            trace,
            given: Vec::new(),
            ordered: Vec::new(),
            counts: BTreeMap::new(),
        }
    }

    fn below(&mut self, end: u64) -> u64 {
        self.random.below(end)
    }

    fn any(&mut self, count: usize) -> usize {
        self.below(count as u64) as usize
    }

    fn add(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    /// The whole run.
    pub fn go(&mut self) -> MulticastReport {
        for _ in 0..STEPS {
            self.step();
        }
        self.come_to_rest();
        let lines = &self.trace.lines;
        let of = |is: fn(&Event) -> bool| lines.iter().filter(|line| is(&line.event)).count();
        let changes = [
            (
                "subscribed",
                of(|event| matches!(event, Event::Sub { from: 1.., .. })),
            ),
            ("left", of(|event| matches!(event, Event::Unsub { .. }))),
            ("delivered", of(|event| matches!(event, Event::Deliver(_)))),
        ];
        let changes = changes.map(|(what, count)| (what, count as u64));
        self.counts.extend(changes);
        check_multicast(&self.trace.lines)
    }

    fn step(&mut self) {
        let replica = self.any(self.replicas.len());
        if self.late.below(50) == 0 {
            self.hear(replica);
        }
        match self.below(100) {
            0..20 => self.decide(),
            20..70 => self.tell(replica),
            70..88 => {
                let most = [1, 3, 100][self.any(3)];
                self.replicas[replica].drain(most, &mut self.trace);
                self.hear_needs(replica);
            }
            88..92 => {
                self.give(replica);
            }
            92..95 => self.wish(replica),
            95..98 => {
                if self.replicas[replica].keep(&mut self.trace) {
                    self.add("states");
                }
            }
            98 if self.below(2) == 0 => self.begin_again(replica),
            98 => self.order_again(),
            _ => self.miss(replica),
        }
        let limit = WAITING + 3 * 200;
        for replica in &self.replicas {
            for ring in &self.rings {
                let waiting = replica.learner.waiting_bytes(ring.of.rank);
                assert!(waiting <= limit, "{waiting} bytes of ring {}", ring.of.rank);
            }
        }
    }

    /// A ring decides something. Some of them are slow.
    fn decide(&mut self) {
        let at = self.any(self.rings.len());
        let is_slow = at % 2 == 1 && self.below(4) > 0;
        if !self.given.is_empty() && self.below(3) == 0 {
            let next = self.any(self.given.len());
            let (_, (ring, notice)) = self.given.swap_remove(next);
            self.order(ring, notice);
        } else if !is_slow {
            let count = self.below(4).saturating_sub(1) as u32;
            self.rings[at].decided.push(Value::Messages(count));
        }
    }

    fn order(&mut self, ring: usize, notice: Bytes) {
        self.rings[ring].decided.push(Value::Notice(notice.clone()));
        self.ordered.push((ring, notice));
        self.add("notices");
    }

    /// What was ordered comes once more, from a proposer that had lost patience, in this ring or in another.
    fn order_again(&mut self) {
        if self.ordered.is_empty() {
            return;
        }
        let at = self.any(self.ordered.len());
        let (mut ring, notice) = self.ordered[at].clone();
        if self.below(3) == 0 {
            ring = self.any(self.rings.len());
        }
        self.rings[ring].decided.push(Value::Notice(notice));
        self.add("notices again");
    }

    fn tell(&mut self, replica: usize) {
        let ring = self.any(self.rings.len());
        for _ in 0..=self.below(6) {
            let passes = self.below(3) > 0;
            self.replicas[replica].tell(&self.rings[ring], passes, &mut self.trace);
        }
    }

    /// A replica hears of a ring that was there before.
    fn hear(&mut self, at: usize) {
        let replica = &mut self.replicas[at];
        let ring = self.late.below(self.rings.len() as u64) as usize;
        let of = self.rings[ring].of;
        if replica.unheard.contains(&of.rank) {
            let waits = replica.learner.has(of.rank);
            replica.hear(of, &mut self.trace);
            self.add(if waits {
                "waited for a ring"
            } else {
                "heard of a ring"
            });
        }
    }

    fn hear_needs(&mut self, replica: usize) {
        for need in self.replicas[replica].learner.take_needs() {
            if self.replicas[replica].unheard.contains(&need.rank) {
                continue;
            }
            let mut rings = self.rings.iter_mut();
            if let Some(ring) = rings.find(|ring| ring.of.rank == need.rank) {
                ring.skip(need.round);
            }
        }
    }

    /// A notice that a wish needs is on its way.
    fn give(&mut self, replica: usize) -> bool {
        let Some((rank, notice)) = self.replicas[replica].learner.next_notice() else {
            return false;
        };
        let ring = self.rings.iter().position(|ring| ring.of.rank == rank);
        let ring = ring.expect("a ring");
        // The process may know of more that is decided than its learner was told, and of less than there is.
        let (told, next) = (self.replicas[replica].told[&rank], self.rings[ring].next());
        let decided = told + self.late.below(next.saturating_sub(told) + 1);
        let learner = &mut self.replicas[replica].learner;
        learner.on_given_behind((rank, notice), decided);
        self.given.push((replica, (ring, notice.encode())));
        true
    }

    fn wish(&mut self, replica: usize) {
        let ring = self.any(self.rings.len());
        let rank = self.rings[ring].of.rank;
        let wish = match self.below(2) {
            0 => Wish::Subscribe(rank),
            _ => Wish::Leave(rank),
        };
        let taken = self.replicas[replica].learner.wish(wish);
        self.add(match taken {
            Ok(()) => "wishes",
            Err(_) => "wishes refused",
        });
    }

    /// A process ends, and another life of it begins: from the beginning, or behind its own state or that of another
    /// replica; sometimes with acceptors that have forgotten some of the rings that it does not have.
    fn begin_again(&mut self, at: usize) {
        self.add("lives");
        if self.below(2) == 0 {
            // What it had given and nobody has ordered is lost with it.
            self.given.retain(|(by, _)| *by != at);
        }
        let partition = self.replicas[at].partition;
        let others = self
            .replicas
            .iter()
            .filter(|other| other.partition == partition);
        let furthest = others.filter_map(|other| other.kept.clone());
        let furthest = furthest.max_by_key(|kept| kept.resume.point);
        let own = self.replicas[at].kept.clone();
        let state = match self.below(4) {
            _ if self.replicas[at].is_over => furthest,
            0 => None,
            1 => furthest,
            _ => own,
        };
        if state.is_some() {
            self.add("lives with a state");
        }
        let has = |ring: &Ring| match &state {
            Some(kept) => kept.resume.rings.iter().any(|other| other.of == ring.of),
            None => self.replicas[at].begins.contains(&ring.of),
        };
        let others = self.rings.iter().filter(|ring| !has(ring));
        let others: Vec<(Rank, Instance)> =
            others.map(|ring| (ring.of.rank, ring.next())).collect();
        let mut kept = BTreeMap::new();
        for (rank, next) in others {
            if self.below(3) == 0 {
                kept.insert(rank, 1 + self.below(next));
            }
        }
        // Also a ring of the state may be one of which this life has not heard yet; those of the file are there.
        let others = self.rings.iter();
        let others = others.filter(|ring| !self.replicas[at].begins.contains(&ring.of));
        let unheard = some(&mut self.late, others);
        self.replicas[at].begin(&self.rings, state, (&kept, unheard), &mut self.trace);
    }

    /// A ring has forgotten what a replica was not told.
    fn miss(&mut self, at: usize) {
        let ring = self.any(self.rings.len());
        let Ring { of, .. } = self.rings[ring];
        let ahead = self.rings[ring].next() - self.replicas[at].told[&of.rank];
        let is_unheard = self.replicas[at].unheard.contains(&of.rank);
        if self.below(4) > 0 || ahead == 0 || is_unheard {
            return;
        }
        let next = self.replicas[at].told[&of.rank] + 1 + self.below(ahead);
        self.replicas[at].miss(of.rank, next, &mut self.trace);
        self.add("missed");
    }

    /// Nobody wishes anything any more, and nothing is lost: all wishes come true, and all replicas have the same.
    fn come_to_rest(&mut self) {
        let is_at_rest = (0..CALM).any(|_| !self.calm_turn());
        if !is_at_rest {
            let what = self.replicas.iter().map(|replica| {
                let learner = &replica.learner;
                let (needs, point) = (learner.needs(), learner.point());
                format!("{:?} at {point:?} needs {needs:?}", replica.who)
            });
            let what: Vec<String> = what.collect();
            let wrong = format!("rest: there is none, {}", what.join("; "));
            self.trace.wrong.push(wrong);
        }
        for replica in &self.replicas {
            let (pending, wishes) = (replica.learner.pending(), replica.learner.wishes());
            if pending.is_some() || wishes > 0 {
                let what = format!("{wishes} wishes, and waits for {pending:?}");
                let wrong = format!("stuck: {:?} has {what}", replica.who);
                self.trace.wrong.push(wrong);
            }
        }
        let last = self.rings.iter().map(|ring| ring.of.round_of(ring.next()));
        let last = last.max().unwrap_or(0);
        self.rings.iter_mut().for_each(|ring| ring.skip(last));
        for _ in 0..CALM {
            if !self.calm_turn() {
                break;
            }
        }
        self.trace.add((0, 0), Event::Quiesce);
        let mut rings: BTreeMap<u32, Vec<Rank>> = BTreeMap::new();
        for replica in &self.replicas {
            let own = replica.learner.subscriptions();
            let own: Vec<Rank> = own.map_or_else(Vec::new, |own| own.rings().collect());
            let of = rings
                .entry(replica.partition)
                .or_insert_with(|| own.clone());
            if *of != own {
                let wrong = format!("rest: {:?} has {own:?}, and not {of:?}", replica.who);
                self.trace.wrong.push(wrong);
            }
        }
    }

    /// Whether anything has happened.
    fn calm_turn(&mut self) -> bool {
        let mut some = !self.given.is_empty();
        for (_, (ring, notice)) in std::mem::take(&mut self.given) {
            self.order(ring, notice);
        }
        for at in 0..self.replicas.len() {
            if self.replicas[at].is_over {
                self.add("recovered");
                self.recover(at);
                some = true;
            }
            for ring in &self.rings {
                some |= self.replicas[at].unheard.contains(&ring.of.rank);
                self.replicas[at].hear(ring.of, &mut self.trace);
                for _ in 0..20 {
                    some |= self.replicas[at].tell(ring, true, &mut self.trace);
                }
            }
            some |= self.replicas[at].drain(1000, &mut self.trace);
            self.hear_needs(at);
            some |= self.give(at);
        }
        some
    }

    /// Begins again with all that there is.
    fn recover(&mut self, at: usize) {
        let state = self.replicas[at].kept.clone();
        let all = (&BTreeMap::new(), BTreeSet::new());
        self.replicas[at].begin(&self.rings, state, all, &mut self.trace);
    }
}
