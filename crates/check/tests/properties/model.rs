//! Random worlds of a model of membership's delivery rules, without packets and timers: rings that order messages under
//! loss, break, recover or fail to, and are installed. Runs by the rules have to be legal; with one rule broken, the
//! checker has to notice.

use std::collections::BTreeSet;

use rota_check::event::{Conf, Event, EventKind, Placed};
use rota_check::online::Online;
use rota_check::trace::Trace;
use rota_check::{Options, Report, check_all};
use rota_core::contract::ConfigurationKind::{self, Regular, Transitional};
use rota_core::contract::{Incarnation, MessageId, NodeId, Process, RingId, Service, Time};

use super::story::names;

/// Which rule is broken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Broken {
    Nothing,
    /// A message counts as safe when one aru has passed it, not two.
    SafeAfterOneAru,
    /// At installation each goes by its own safe line, not the highest of those who come along.
    OwnSafeLine,
    /// Safe messages above the line are delivered in the regular configuration.
    SafeInRegular,
    /// Behind a hole everything is delivered.
    NothingLeftOut,
    /// Behind a hole nothing is delivered.
    AllLeftOut,
    /// Obligations of a failed recovery are forgotten.
    ObligationsDropped,
}

/// A small generator (SplitMix64): the same worlds everywhere.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// What a member of the ring has.
#[derive(Clone, Default)]
struct Member {
    received: BTreeSet<u64>,
    aru: u64,
    /// Everything up to here had its turn.
    delivered: u64,
    /// What was delivered, in its turn or before it.
    done: BTreeSet<u64>,
    safe_line: u64,
    sent_aru: u64,
    known: u64,
    obligations: BTreeSet<usize>,
    crashed: bool,
}

struct World {
    dice: Dice,
    broken: Broken,
    members: Vec<Member>,
    /// What happened, in the order of time.
    log: Vec<Event>,
    /// Whether some are reliable or fifo.
    with_early: bool,
    /// Sender and service of each message, from 1.
    messages: Vec<(usize, Service)>,
    rings: u64,
}

const OLD: u64 = 5;

fn process(member: usize) -> Process {
    Process {
        node: NodeId::new(member as u16 + 1).expect("not 0"),
        incarnation: Incarnation(1),
    }
}

fn ring(number: u64, first: usize) -> RingId {
    RingId {
        ring_seq: number,
        rep: process(first).node,
        incarnation: Incarnation(1),
    }
}

fn conf(id: ConfigurationKind, members: &[usize]) -> EventKind {
    EventKind::Configuration(Conf {
        id,
        members: members.iter().copied().map(process).collect(),
    })
}

fn event(member: usize, kind: EventKind) -> Event {
    Event {
        time: Time(0),
        process: process(member),
        kind,
    }
}

impl World {
    fn new(seed: u64, broken: Broken) -> Self {
        let mut dice = Dice(seed);
        let count = 2 + dice.below(4) as usize;
        let everybody: Vec<usize> = (0..count).collect();
        let mut members = vec![Member::default(); count];
        let mut log = Vec::new();
        for (me, member) in members.iter_mut().enumerate() {
            let (alone, new) = (ring(1, me), ring(OLD, 0));
            member.obligations.insert(me);
            log.extend([
                event(me, EventKind::Start),
                event(me, conf(Regular(alone), &[me])),
                event(me, conf(Transitional { old: alone, new }, &[me])),
                event(me, conf(Regular(new), &everybody)),
            ]);
        }
        Self {
            dice,
            broken,
            members,
            log,
            with_early: seed % 2 == 1,
            messages: vec![(0, Service::Agreed)],
            rings: OLD,
        }
    }

    /// Everything that happens.
    fn run(mut self) -> Vec<Event> {
        self.order();
        for member in 0..self.members.len() {
            if self.dice.chance(15) {
                self.crash(member);
            }
        }
        let live = (0..self.members.len()).filter(|me| !self.members[*me].crashed);
        let live: Vec<usize> = live.collect();
        let mut todo: Vec<(Vec<usize>, u32)> = self.split(&live, 0);
        while let Some((group, depth)) = todo.pop() {
            let apart = self.recover(&group, depth);
            todo.extend(apart);
        }
        self.log
    }

    /// Visits of a token: messages get numbers, some are lost, and the safe line follows the aru.
    fn order(&mut self) {
        let (mut aru, mut aru_of) = (0, None);
        let loss = [0, 10, 40, 70][self.dice.below(4) as usize];
        for visit in 0..1 + self.dice.below(40) as usize {
            let holder = visit % self.members.len();
            let last = self.messages.len() as u64 - 1;
            for me in 0..self.members.len() {
                for seq in 1..=last {
                    if self.dice.chance(15 * (100 - loss) / 100) {
                        self.members[me].received.insert(seq);
                    }
                }
                self.deliver(me);
            }
            for _ in 0..self.dice.below(3) {
                self.originate(holder, loss);
            }
            self.deliver(holder);
            let me = &mut self.members[holder];
            if me.aru < aru || aru_of == Some(holder) || aru == last {
                (aru, aru_of) = (me.aru, Some(holder));
            }
            let line = match self.broken {
                Broken::SafeAfterOneAru => aru,
                _ => aru.min(me.sent_aru),
            };
            me.safe_line = me.safe_line.max(line);
            me.sent_aru = aru;
            me.known = self.messages.len() as u64 - 1;
            self.deliver(holder);
        }
    }

    fn originate(&mut self, holder: usize, loss: u64) {
        let seq = self.messages.len() as u64;
        let services = [
            Service::Agreed,
            Service::Causal,
            Service::Safe,
            Service::Reliable,
            Service::Fifo,
        ];
        let choice = if self.with_early { 5 } else { 3 };
        let service = services[self.dice.below(choice) as usize];
        self.messages.push((holder, service));
        for me in 0..self.members.len() {
            if me == holder || !self.dice.chance(loss) {
                self.members[me].received.insert(seq);
            }
        }
        let placed = self.placed(seq, Regular(ring(OLD, 0)));
        self.log.push(event(holder, EventKind::Originated(placed)));
    }

    fn placed(&self, seq: u64, conf: ConfigurationKind) -> Placed {
        let (sender, service) = self.messages[seq as usize];
        Placed {
            message: MessageId {
                process: process(sender),
                counter: seq,
            },
            conf,
            position: seq << 16,
            service,
            hash: seq,
        }
    }

    fn say(&mut self, me: usize, seq: u64, conf: ConfigurationKind) {
        if self.members[me].done.insert(seq) {
            let placed = self.placed(seq, conf);
            self.log.push(event(me, EventKind::Delivered(placed)));
        }
    }

    /// Whether everything that its sender originated before it was delivered.
    fn is_its_senders_next(&self, me: usize, seq: u64) -> bool {
        let (sender, _) = self.messages[seq as usize];
        (1..seq)
            .all(|s| self.messages[s as usize].0 != sender || self.members[me].done.contains(&s))
    }

    /// Delivers what does not wait for its turn.
    fn deliver_early(&mut self, me: usize, conf: ConfigurationKind) {
        if !self.with_early {
            return;
        }
        let received = &self.members[me].received;
        let waiting: Vec<u64> = received
            .difference(&self.members[me].done)
            .copied()
            .collect();
        for seq in waiting {
            let due = match self.messages[seq as usize].1 {
                Service::Reliable => true,
                Service::Fifo => self.is_its_senders_next(me, seq),
                _ => false,
            };
            if due {
                self.say(me, seq, conf);
            }
        }
    }

    /// Delivers what may be delivered while the ring works.
    fn deliver(&mut self, me: usize) {
        loop {
            self.deliver_early(me, Regular(ring(OLD, 0)));
            let member = &mut self.members[me];
            while member.received.contains(&(member.aru + 1)) {
                member.aru += 1;
            }
            let seq = member.delivered + 1;
            if seq > member.aru {
                return;
            }
            let safe = self.messages[seq as usize].1 == Service::Safe;
            if safe && seq > member.safe_line {
                return;
            }
            member.delivered = seq;
            self.say(me, seq, Regular(ring(OLD, 0)));
        }
    }

    fn crash(&mut self, me: usize) {
        self.members[me].crashed = true;
        self.log.push(event(me, EventKind::Crash));
    }

    fn split(&mut self, members: &[usize], depth: u32) -> Vec<(Vec<usize>, u32)> {
        if members.is_empty() {
            return Vec::new();
        }
        let parts = 1 + self.dice.below(members.len() as u64);
        let mut split = vec![(Vec::new(), depth); parts as usize];
        for member in members {
            let part = self.dice.below(parts) as usize;
            split[part].0.push(*member);
        }
        split.retain(|(part, _)| !part.is_empty());
        split
    }

    /// A group recovers together, or fails to and falls apart.
    fn recover(&mut self, group: &[usize], depth: u32) -> Vec<(Vec<usize>, u32)> {
        let all = |world: &Self| {
            let sets = group.iter().flat_map(|me| &world.members[*me].received);
            sets.copied().collect::<BTreeSet<u64>>()
        };
        let obligations = group.iter().flat_map(|me| &self.members[*me].obligations);
        let obligations: BTreeSet<usize> = obligations.copied().collect();
        let lines = group.iter().map(|me| self.members[*me].safe_line);
        let line = lines.max().unwrap_or(0);
        let known = group.iter().map(|me| self.members[*me].known).max();
        let old = all(self);
        let high = known.max(old.last().copied()).unwrap_or(0);
        self.rings += 4;
        let new = ring(self.rings, group[0]);
        let mut installed: Vec<usize> = group.to_vec();
        if depth < 3 && self.dice.chance(40) {
            installed = self.fail(group, &old, &obligations);
        }
        for me in &installed {
            self.install(*me, group, new, (line, high), (&old, &obligations));
        }
        let mut rest: Vec<usize> = Vec::new();
        for me in group.iter().copied().filter(|me| !installed.contains(me)) {
            if self.dice.chance(20) {
                self.crash(me);
            } else {
                rest.push(me);
            }
        }
        if rest.is_empty() || installed.is_empty() {
            return self.split(&rest, depth + 1);
        }
        // Who has installed the ring meets nobody there, and goes on alone.
        for me in installed {
            self.leave_ring(me, new);
        }
        self.split(&rest, depth + 1)
    }

    /// A recovery that fails midway: who has installed the ring all the same?
    fn fail(
        &mut self,
        group: &[usize],
        old: &BTreeSet<u64>,
        obligations: &BTreeSet<usize>,
    ) -> Vec<usize> {
        let whole = self.dice.chance(60);
        for me in group {
            for seq in old {
                if whole || self.dice.chance(50) {
                    self.members[*me].received.insert(*seq);
                }
            }
        }
        if !whole {
            return Vec::new();
        }
        let acknowledged: Vec<usize> = group
            .iter()
            .copied()
            .filter(|_| self.dice.chance(70))
            .collect();
        if self.broken != Broken::ObligationsDropped {
            for me in &acknowledged {
                self.members[*me].obligations.clone_from(obligations);
            }
        }
        if acknowledged.len() < group.len() || !self.dice.chance(70) {
            return Vec::new();
        }
        group
            .iter()
            .copied()
            .filter(|_| self.dice.chance(50))
            .collect()
    }

    fn install(
        &mut self,
        me: usize,
        group: &[usize],
        new: RingId,
        (line, high): (u64, u64),
        (old, obligations): (&BTreeSet<u64>, &BTreeSet<usize>),
    ) {
        let regular = ring(OLD, 0);
        let broken = self.broken;
        let line = match broken {
            Broken::OwnSafeLine => self.members[me].safe_line,
            _ => line,
        };
        self.members[me].received.extend(old);
        self.deliver_early(me, Regular(regular));
        let mut seq = self.members[me].delivered + 1;
        while seq <= high && old.contains(&seq) {
            let above = self.messages[seq as usize].1 == Service::Safe && seq > line;
            if above && broken != Broken::SafeInRegular {
                break;
            }
            self.say(me, seq, Regular(regular));
            seq += 1;
        }
        let between = Transitional { old: regular, new };
        self.log.push(event(me, conf(between, group)));
        let mut hole = false;
        for seq in seq..=high {
            let obliged = match broken {
                Broken::NothingLeftOut => true,
                Broken::AllLeftOut => false,
                _ => obligations.contains(&self.messages[seq as usize].0),
            };
            let due = match self.messages[seq as usize].1 {
                Service::Fifo => self.is_its_senders_next(me, seq),
                _ => !hole || obliged,
            };
            if !old.contains(&seq) {
                hole = true;
            } else if due {
                self.say(me, seq, between);
            }
        }
        self.log.push(event(me, conf(Regular(new), group)));
    }

    fn leave_ring(&mut self, me: usize, old: RingId) {
        self.rings += 4;
        let new = ring(self.rings, me);
        self.log
            .push(event(me, conf(Transitional { old, new }, &[me])));
        self.log.push(event(me, conf(Regular(new), &[me])));
    }
}

/// What the checker says of a world, all of which are at rest in the end.
fn judge(events: &[Event]) -> Report {
    let mut trace: Trace = events.iter().collect();
    trace.quiesce();
    check_all(&trace, &Options::default())
}

fn violated(broken: Broken, seeds: u64) -> BTreeSet<&'static str> {
    let reports = (0..seeds).map(|seed| judge(&World::new(seed, broken).run()));
    reports.flat_map(|report| names(&report)).collect()
}

#[test]
fn the_rules_are_legal_in_random_worlds() {
    let (mut holes, mut left_out, mut safe, mut early) = (0, 0, 0, 0);
    for seed in 0..3000 {
        let events = World::new(seed, Broken::Nothing).run();
        let report = judge(&events);
        assert_eq!(report.violations, [], "seed {seed}");
        let mut online = Online::new();
        let seen = events.iter().try_for_each(|event| online.observe(event));
        assert_eq!(seen, Ok(()), "seed {seed}");
        holes += report.counters.post_hole;
        left_out += report.counters.post_hole_left_out;
        safe += report.counters.transitional_safe;
        early += report.counters.early;
    }
    let enough = [holes, left_out, safe, early]
        .iter()
        .all(|count| *count > 1000);
    assert!(enough, "{holes} {left_out} {safe} {early}");
}

#[test]
fn each_broken_rule_is_noticed() {
    let cases: [(_, _, &[&str]); 6] = [
        (Broken::SafeAfterOneAru, 1000, &["F1"]),
        (Broken::OwnSafeLine, 300, &["V1", "O1"]),
        (Broken::SafeInRegular, 300, &["F1"]),
        (Broken::NothingLeftOut, 300, &["O2"]),
        (Broken::AllLeftOut, 300, &["S1"]),
        (Broken::ObligationsDropped, 4000, &["F1"]),
    ];
    for (broken, seeds, properties) in cases {
        let expected = properties.iter().copied().collect();
        assert_eq!(violated(broken, seeds), expected, "{broken:?}");
    }
}
