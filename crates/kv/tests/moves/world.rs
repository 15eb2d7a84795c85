//! A small world: three partitions with replicas of different speed, whose rings lag behind each other; clients;
//! processes that move slots, are taken for dead, and die; restarts from states. The answers have to be linearizable,
//! and the state has to be the same as if one partition alone had had all keys.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use rota_check::history::{self, Step as Told};
use rota_core::contract::NodeId;
use rota_core::random::Random;
use rota_kv::moving::{Mover, Next};
use rota_kv::outlook::{Outlook, Past, Signal};
use rota_kv::store::{
    Action, Answer, Answered, Batch, Life, Looking, Only, Operation, Outcome, Pack, Step, Store,
    Witness,
};
use rota_kv::{Map, Partition, Partitions, Slots};
use rota_multiring::Place;
use rota_replica::{Command, Frozen as _, Machine as _};

use super::answers::merged;
use super::disturb::{self, Disturbance};
use super::rings::{ALL, Rings, ring_of};

const PARTITIONS: u16 = 3;
const REPLICAS: u16 = 2;
const CLIENTS: usize = 5;
const KEYS: u64 = 24;
const STEPS: u32 = 6_000;
/// So few keys are settled at each message that slots often come and go while others have not settled.
const SETTLED: usize = 2;

fn node(number: u16) -> NodeId {
    NodeId::new(number).expect("not 0")
}

fn key(number: u64) -> String {
    format!("key{number}")
}

/// What is ordered.
struct Ordered {
    bytes: Vec<u8>,
    place: Place,
    /// What each partition has answered, by any of its replicas.
    answers: BTreeMap<Partition, Answer>,
    /// Which of them have told it.
    told: Partitions,
    /// Whom whoever has asked waits for.
    awaited: Partitions,
}

#[derive(Clone)]
struct AtOutlook(Arc<Mutex<Outlook>>);

impl AtOutlook {
    fn lock(&self) -> MutexGuard<'_, Outlook> {
        self.0.lock().expect("nobody panics")
    }
}

impl Witness for AtOutlook {
    fn began(&mut self, _: Option<Place>, past: &Past) {
        self.lock().begin(past.last(), past);
    }

    fn delivered(&mut self, place: Place, of: &Partitions) {
        self.lock().on_delivered(place, of);
    }

    fn mapped(&mut self, _: &Arc<Map>) {}
}

struct Replica {
    partition: Partition,
    store: Store,
    outlook: AtOutlook,
    done: usize,
    most: u64,
    /// A state that it may begin with again, and how much was done then.
    kept: (Vec<u8>, usize),
    /// Answers that wait: which, and what each stands behind.
    waits: Vec<(usize, Option<Place>)>,
}

/// A client that waits for an answer.
struct Waiting {
    ordered: usize,
    step: Told,
    /// Which key each operation is of.
    keys: Vec<String>,
    look: Option<Look>,
}

/// Something that one replica is looked at for, when a message without commands is delivered there.
struct Look {
    at: usize,
    pack: Vec<u8>,
    /// What it has found, and what that stands behind.
    found: Option<(Answer, Option<Place>)>,
    is_told: bool,
}

/// A process that moves slots.
struct Moving {
    mover: Mover,
    at: usize,
    waits_for: Option<usize>,
}

#[derive(Default)]
pub struct Counts {
    pub answered: u64,
    pub retried: u64,
    pub restarts: u64,
    pub moved: u64,
    pub failed: u64,
    pub looked: u64,
    pub cleared: u64,
    pub late: u64,
    /// Messages that were delivered where keys were not settled.
    pub unsettled: u64,
}

pub struct World {
    random: Random,
    now: u64,
    ordered: Vec<Ordered>,
    rings: Rings,
    replicas: Vec<Replica>,
    signals: Vec<(usize, usize, Signal)>,
    clients: Vec<Option<Waiting>>,
    movers: Vec<Moving>,
    /// Steps of moves that nobody waits for any more, and that are ordered all the same.
    late: Vec<(Step, u64)>,
    last: u64,
    history: Vec<Told>,
    pub counts: Counts,
}

fn map() -> Map {
    let all: Vec<Partition> = (1..=PARTITIONS).map(Partition).collect();
    Map::even(&all).expect("there are some")
}

fn state(store: &mut Store) -> Vec<u8> {
    let mut bytes = Vec::new();
    store.freeze().write(&mut bytes).expect("memory");
    bytes
}

impl World {
    fn new(seed: u64) -> Self {
        let replica = |at: u16| {
            let partition = Partition(at / REPLICAS + 1);
            let outlook = Outlook::new(partition);
            let outlook = AtOutlook(Arc::new(Mutex::new(outlook)));
            let store = Store::new(partition, map()).settling(SETTLED);
            let store = store.with_witness(Box::new(outlook.clone()));
            let kept = (state(&mut Store::new(partition, map())), 0);
            Replica {
                partition,
                store,
                outlook,
                done: 0,
                most: 0,
                kept,
                waits: Vec::new(),
            }
        };
        Self {
            random: Random::new(seed),
            now: 1,
            ordered: Vec::new(),
            rings: Rings::default(),
            replicas: (0..PARTITIONS * REPLICAS).map(replica).collect(),
            signals: Vec::new(),
            clients: (0..CLIENTS).map(|_| None).collect(),
            movers: Vec::new(),
            late: Vec::new(),
            last: 0,
            history: Vec::new(),
            counts: Counts::default(),
        }
    }

    fn draw(&mut self, below: usize) -> usize {
        self.random.below(below as u64) as usize
    }

    /// Ordered at once, at a round of its ring's own, so that rings lag behind each other.
    fn order(&mut self, batch: &Batch<'_>, to: &Partitions) -> usize {
        let ring = ring_of(to);
        let step = 1 + self.random.below(20);
        let has = |replica: &&Replica| ring == ALL || replica.partition.0 == ring;
        let newest = self.replicas.iter().filter(has);
        let least = newest.map(|replica| replica.most).max().unwrap_or(0);
        let last = self.ordered.len();
        let place = self.rings.order(ring, last, (least, step));
        self.ordered.push(Ordered {
            bytes: batch.alone(),
            place,
            answers: BTreeMap::new(),
            told: Partitions::new(),
            awaited: to.clone(),
        });
        last
    }

    fn next(&self, at: usize) -> Option<usize> {
        let replica = &self.replicas[at];
        self.rings.next(replica.partition, replica.done)
    }

    fn deliver(&mut self, at: usize) {
        let Some(next) = self.next(at) else { return };
        let ordered = &mut self.ordered[next];
        let replica = &mut self.replicas[at];
        replica.done += 1;
        replica.most = replica.most.max(ordered.place.round);
        self.counts.unsettled += u64::from(!replica.store.is_settled());
        let answered = replica.store.apply(Command {
            place: ordered.place,
            client: 1,
            bytes: &ordered.bytes,
        });
        let answered = Answered::decode(&answered).expect("an answer");
        let [answer] = answered.answers.try_into().expect("one");
        let before = ordered.answers.insert(replica.partition, answer.clone());
        assert!(
            before.is_none_or(|before| before == answer),
            "replicas differ"
        );
        if ordered.awaited.contains(&replica.partition) {
            replica.waits.push((next, answered.behind));
        }
        self.look_here(at, next);
        self.say(at);
        self.tell(at);
    }

    fn say(&mut self, at: usize) {
        let signal = self.replicas[at].outlook.lock().own();
        let others = (0..self.replicas.len()).filter(|to| *to != at);
        // What was said before is not news any more.
        self.signals.retain(|(from, ..)| *from != at);
        self.signals.extend(others.map(|to| (at, to, signal)));
    }

    fn tell(&mut self, at: usize) {
        let replica = &mut self.replicas[at];
        let waits = std::mem::take(&mut replica.waits);
        for (ordered, behind) in waits {
            match replica.outlook.lock().may_tell(behind) {
                true => drop(self.ordered[ordered].told.insert(replica.partition)),
                false => replica.waits.push((ordered, behind)),
            }
        }
        for waiting in self.clients.iter_mut().flatten() {
            if let Some(look) = waiting.look.as_mut().filter(|look| look.at == at)
                && let Some((_, behind)) = &look.found
            {
                look.is_told |= replica.outlook.lock().may_tell(*behind);
            }
        }
    }

    /// What clients wanted to look at here when this is delivered.
    fn look_here(&mut self, at: usize, delivered: usize) {
        let store = &self.replicas[at].store;
        for waiting in self.clients.iter_mut().flatten() {
            if waiting.ordered == delivered
                && let Some(look) = waiting.look.as_mut().filter(|look| look.at == at)
            {
                let answers = store.look_at_pack(&look.pack, &mut Looking::default());
                let [answer] = answers.try_into().expect("one");
                look.found = Some((answer, store.last()));
            }
        }
    }

    fn hear(&mut self) {
        if self.signals.is_empty() {
            return;
        }
        let which = self.draw(self.signals.len());
        let (from, to, signal) = self.signals.swap_remove(which);
        let partition = self.replicas[from].partition;
        let mut outlook = self.replicas[to].outlook.lock();
        let before = outlook.own();
        outlook.on_signal(node(from as u16 + 1), partition, signal);
        let is_news = before != outlook.own();
        drop(outlook);
        self.tell(to);
        if is_news {
            self.say(to);
        }
    }

    /// It begins anew with a state of before. Whoever moved slots there is gone.
    fn restart(&mut self, at: usize) {
        let replica = &mut self.replicas[at];
        let outlook = Outlook::new(replica.partition);
        replica.outlook = AtOutlook(Arc::new(Mutex::new(outlook)));
        let store = Store::new(replica.partition, map()).settling(SETTLED);
        replica.store = store.with_witness(Box::new(replica.outlook.clone()));
        let mut bytes = &replica.kept.0[..];
        replica.store.install(&mut bytes).expect("its own state");
        replica.store.check();
        replica.done = replica.kept.1;
        replica.waits.clear();
        for waiting in self.clients.iter_mut().flatten() {
            if let Some(look) = waiting.look.as_mut().filter(|look| look.at == at) {
                // Nobody tells it.
                (look.at, look.found) = (usize::MAX, None);
            }
        }
        self.counts.restarts += 1;
        self.movers.retain(|moving| moving.at != at);
        for other in (0..self.replicas.len()).filter(|other| *other != at) {
            let signal = self.replicas[other].outlook.lock().own();
            self.signals.push((other, at, signal));
        }
    }

    fn keep(&mut self, at: usize) {
        let replica = &mut self.replicas[at];
        replica.kept = (state(&mut replica.store), replica.done);
    }

    /// A client asks for something, by the map that some replica has.
    fn ask(&mut self, client: usize) {
        let at = self.draw(self.replicas.len());
        let map = Arc::clone(self.replicas[at].store.map());
        match self.random.below(40) {
            0..8 => return self.ask_to_look(client, &map),
            8 if self.random.below(4) == 0 => return self.ask_to_clear(client, &map),
            _ => {}
        }
        let mut keys = BTreeSet::from([key(self.random.below(KEYS))]);
        for _ in 0..self.random.below(3) / 2 * 2 {
            keys.insert(key(self.random.below(KEYS)));
        }
        let keys: Vec<String> = keys.into_iter().collect();
        let mut step = self.told(client);
        // Who has taken a key away is not seen: whoever does that does nothing else.
        let others = if keys.len() > 1 { 5 } else { 6 };
        let kinds: Vec<usize> = keys.iter().map(|_| self.draw(others)).collect();
        let values: Vec<String> = keys.iter().map(|_| self.value()).collect();
        let mut operations = Vec::new();
        for ((key, kind), value) in keys.iter().zip(kinds).zip(&values) {
            let action = match kind {
                0 => Action::Get,
                5 => Action::Take,
                _ => Action::Set {
                    value: value.as_bytes(),
                    life: match kind {
                        2 => Life::Until(1 << 40),
                        _ => Life::Ever,
                    },
                    only: Only::Always,
                    get: true,
                },
            };
            match kind {
                0 => {}
                5 => step.writes.push((key.clone(), None)),
                _ => step.writes.push((key.clone(), Some(value.clone()))),
            }
            operations.push(Operation::Key(key.as_bytes(), action));
        }
        let batch = Batch {
            stamp: self.now,
            epoch: map.epoch(),
            conditions: Vec::new(),
            operations,
        };
        let ordered = self.order(&batch, &batch.to(&map));
        self.clients[client] = Some(Waiting {
            ordered,
            step,
            keys,
            look: None,
        });
    }

    const fn told(&self, client: usize) -> Told {
        Told {
            client: client as u64,
            began: self.now,
            ended: None,
            place: None,
            reads: Vec::new(),
            writes: Vec::new(),
        }
    }

    /// A client only looks at one key, at a replica of its partition.
    fn ask_to_look(&mut self, client: usize, map: &Map) {
        let key = key(self.random.below(KEYS));
        let partition = map.of_key(key.as_bytes());
        let of = self.draw(usize::from(REPLICAS));
        let at = usize::from((partition.0 - 1) * REPLICAS) + of;
        let batch = Batch {
            stamp: self.now,
            epoch: map.epoch(),
            operations: vec![Operation::Key(key.as_bytes(), Action::Get)],
            ..Batch::default()
        };
        let pack = batch.alone();
        let marker = Batch {
            stamp: self.now,
            ..Batch::default()
        };
        let ordered = self.order(&marker, &[partition].into());
        let look = Look {
            at,
            pack,
            found: None,
            is_told: false,
        };
        self.clients[client] = Some(Waiting {
            ordered,
            step: self.told(client),
            keys: vec![key],
            look: Some(look),
        });
    }

    fn ask_to_clear(&mut self, client: usize, map: &Map) {
        let batch = Batch {
            stamp: self.now,
            epoch: map.epoch(),
            operations: vec![Operation::Clear(None)],
            ..Batch::default()
        };
        let mut step = self.told(client);
        step.writes = (0..KEYS).map(|number| (key(number), None)).collect();
        let ordered = self.order(&batch, &batch.to(map));
        self.clients[client] = Some(Waiting {
            ordered,
            step,
            keys: Vec::new(),
            look: None,
        });
        self.counts.cleared += 1;
    }

    /// Something is done that no client waits for.
    fn disturb(&mut self) {
        let at = self.draw(self.replicas.len());
        let map = Arc::clone(self.replicas[at].store.map());
        let value = self.value();
        let what = Disturbance::draw(&mut self.random, &value);
        let batch = what.batch((self.now, map.epoch()));
        self.order(&batch, &batch.to(&map));
    }

    fn value(&mut self) -> String {
        self.last += 1;
        format!("v{}", self.last)
    }

    /// A client that waits hears its answer, if all have told it; sometimes it waits no longer.
    fn look(&mut self, client: usize) {
        let Some(waiting) = &mut self.clients[client] else {
            return self.ask(client);
        };
        let ordered = &self.ordered[waiting.ordered];
        let is_told = match &waiting.look {
            Some(look) => look.is_told,
            None => ordered.told.is_superset(&ordered.awaited),
        };
        if !is_told && self.random.below(200) > 0 {
            return;
        }
        let Some(mut waiting) = self.clients[client].take() else {
            return;
        };
        if !is_told {
            self.history.push(waiting.step);
            return;
        }
        let ordered = &self.ordered[waiting.ordered];
        let found = waiting.look.take().and_then(|look| look.found);
        let is_look = found.is_some();
        let outcomes = match found {
            Some((answer, _)) => merged([&answer].into_iter()),
            None => merged(ordered.awaited.iter().map(|of| &ordered.answers[of])),
        };
        let Some(outcomes) = outcomes else {
            self.counts.retried += 1;
            return;
        };
        let found = |outcome: &Outcome| match outcome {
            Outcome::Text(text) => Some(String::from_utf8(text.to_vec()).expect("text")),
            _ => None,
        };
        let reads = waiting.keys.iter().zip(&outcomes);
        waiting.step.reads = reads
            .map(|(key, (_, outcome))| (key.clone(), found(outcome)))
            .collect();
        let Place {
            round,
            rank,
            instance,
            index,
        } = ordered.place;
        self.counts.looked += u64::from(is_look);
        waiting.step.place = Some((round, rank.0, instance, index));
        waiting.step.ended = Some(self.now);
        self.counts.answered += 1;
        self.history.push(waiting.step);
    }

    fn begin_move(&mut self) {
        let at = self.draw(self.replicas.len());
        let from = self.replicas[at].partition;
        let to = Partition(self.draw(usize::from(PARTITIONS)) as u16 + 1);
        let map = self.replicas[at].store.map();
        let keys = (0..KEYS).map(key).chain(disturb::keys());
        let keys = keys.map(|key| rota_resp::slot::of(key.as_bytes()));
        let own: Vec<u16> = keys.filter(|slot| map.of_slot(*slot) == from).collect();
        let wanted: Slots = own
            .into_iter()
            .filter(|_| self.random.below(2) == 0)
            .collect();
        if from == to || wanted.is_empty() || self.movers.len() >= 2 {
            return;
        }
        self.last += 1;
        self.movers.push(Moving {
            mover: Mover::new((at as u64, self.last), (from, to), wanted),
            at,
            waits_for: None,
        });
    }

    /// A process that moves slots goes on; sometimes it hears nothing, and sometimes others end its move.
    fn go_on(&mut self, which: usize) {
        if which >= self.movers.len() {
            return self.begin_move();
        }
        let mut moving = self.movers.remove(which);
        if let Some(ordered) = moving.waits_for {
            let ordered = &self.ordered[ordered];
            let is_told = ordered.told.is_superset(&ordered.awaited);
            if is_told {
                let mut answers = ordered.awaited.iter().map(|of| &ordered.answers[of]);
                let outcomes = merged(answers.by_ref()).expect("a step is always done");
                moving
                    .mover
                    .heard(outcomes.first().map(|(_, outcome)| outcome));
                moving.waits_for = None;
            } else if self.random.below(400) == 0 {
                moving.mover.heard(None);
                moving.waits_for = None;
            }
            self.movers.push(moving);
            return;
        }
        match moving.mover.go_on() {
            Next::Look => moving
                .mover
                .looked(self.replicas[moving.at].store.snapshot()),
            Next::Ask => moving.mover.answered(self.random.below(50) > 0),
            Next::Order(step) => {
                let stamp = self.now;
                match self.random.below(100) {
                    // It is lost, or seems so.
                    0 => {
                        moving.mover.heard(None);
                        if self.random.below(2) == 0 {
                            self.late.push((step, stamp));
                        }
                    }
                    _ => moving.waits_for = Some(self.step_of(step, stamp)),
                }
            }
            Next::Ended(Ok(_)) => {
                self.counts.moved += 1;
                return;
            }
            Next::Ended(Err(_)) => {
                self.counts.failed += 1;
                return;
            }
        }
        self.movers.push(moving);
    }

    fn step_of(&mut self, step: Step, stamp: u64) -> usize {
        let batch = Batch {
            stamp,
            operations: vec![Operation::Step(step)],
            ..Batch::default()
        };
        self.order(&batch, &batch.to(&map()))
    }

    fn order_late(&mut self) {
        if self.late.is_empty() {
            return self.disturb();
        }
        let which = self.draw(self.late.len());
        let (step, stamp) = self.late.swap_remove(which);
        self.step_of(step, stamp);
        self.counts.late += 1;
    }

    /// Some replica ends a move: rightly, if whoever carried it out is gone.
    fn end(&mut self, at: usize) {
        let store = &self.replicas[at].store;
        let frozen = store.frozen().map(|frozen| frozen.of);
        let of = frozen.or(store.aside().map(|(of, _)| of));
        let Some(of) = of else { return };
        let (stamp, to) = (self.now, self.replicas[at].partition);
        let step = match frozen {
            Some(_) => Step::End(of),
            None => Step::Forget { of, to },
        };
        self.step_of(step, stamp);
    }

    fn step(&mut self) {
        self.now += 1;
        let at = self.draw(self.replicas.len());
        match self.draw(1_000) {
            0..110 => {
                let client = self.draw(CLIENTS);
                self.look(client);
            }
            // The last replicas are slow.
            110..560 if at < 4 || self.draw(3) == 0 => self.deliver(at),
            110..560 => {}
            560..870 => self.hear(),
            870..970 => {
                let which = self.draw(2);
                self.go_on(which);
            }
            970..990 => self.keep(at),
            990..993 => self.end(at),
            993..996 => self.restart(at),
            996..998 => self.disturb(),
            _ => self.order_late(),
        }
    }

    /// Everything is delivered and heard, and no slots are frozen.
    fn settle(&mut self) {
        self.movers.clear();
        for _ in 0..20 {
            for at in 0..self.replicas.len() {
                while self.next(at).is_some() {
                    self.deliver(at);
                }
                self.say(at);
                self.end(at);
            }
            while !self.signals.is_empty() {
                self.hear();
            }
            (0..CLIENTS)
                .filter(|client| self.clients[*client].is_some())
                .collect::<Vec<_>>()
                .into_iter()
                .for_each(|client| self.look(client));
        }
        for at in 0..self.replicas.len() {
            while self.next(at).is_some() {
                self.deliver(at);
            }
        }
        let waiting = std::mem::take(&mut self.clients);
        let steps = waiting.into_iter().flatten().map(|waiting| waiting.step);
        self.history.extend(steps);
    }

    /// All that was done, done again by one partition that has all keys.
    fn done_again(&mut self) -> Result<Store, String> {
        let one = Partition(1);
        let mut store = Store::new(one, Map::even(&[one]).expect("one"));
        let mut all: Vec<usize> = (0..self.ordered.len()).collect();
        all.sort_by_key(|ordered| self.ordered[*ordered].place);
        for ordered in all {
            let ordered = &self.ordered[ordered];
            let Pack(batches) = Pack::decode(&ordered.bytes).expect("a message");
            let mut batch = Batch::decode(batches[0]).expect("a batch");
            let is_step = matches!(batch.operations[..], [Operation::Step(_)]);
            let awaited = ordered.awaited.iter();
            let said: Option<Vec<&Answer>> = awaited.map(|of| ordered.answers.get(of)).collect();
            let said = said.ok_or("something is not delivered")?;
            let Some(outcomes) = merged(said.into_iter()).filter(|_| !is_step) else {
                continue;
            };
            batch.epoch = 1;
            let bytes = batch.alone();
            let answered = store.apply(Command {
                place: ordered.place,
                client: 1,
                bytes: &bytes,
            });
            let again = Answered::decode(&answered).expect("an answer").answers;
            let again = merged(again.iter());
            if again.as_ref() != Some(&outcomes) {
                return Err(format!(
                    "{:?}: {batch:?}: {outcomes:?}, and not {again:?}",
                    ordered.place
                ));
            }
        }
        Ok(store)
    }

    fn wrong(&mut self) -> Option<String> {
        let again = match self.done_again() {
            Ok(store) => store,
            Err(wrong) => return Some(wrong),
        };
        for replica in &self.replicas {
            replica.store.check();
            if replica.store.frozen().is_some() || replica.store.aside().is_some() {
                return Some("a move has no end".to_owned());
            }
        }
        let map = Arc::clone(self.replicas[0].store.map());
        for replica in &self.replicas {
            let of = |key: &Bytes| map.of_key(key) == replica.partition;
            let own = again.entries().filter(|(key, _)| of(key));
            if !replica.store.entries().eq(own) {
                return Some(format!("{:?} has other keys", replica.partition));
            }
        }
        for number in 0..KEYS {
            let key = key(number);
            let of = map.of_key(key.as_bytes());
            let has = again.get(key.as_bytes());
            for replica in &self.replicas {
                let own = replica.store.get(key.as_bytes());
                let expected = has.filter(|_| replica.partition == of);
                if own != expected || **replica.store.map() != *map {
                    return Some(format!("{key} of {of:?}: {own:?}, and not {expected:?}"));
                }
            }
        }
        let judged = history::judge(&self.history);
        judged.err().map(|wrong| wrong.to_string())
    }
}

/// The world as it was at its end, and what is wrong.
pub fn run(seed: u64) -> (World, Option<String>) {
    let mut world = World::new(seed);
    for _ in 0..STEPS {
        world.step();
    }
    world.settle();
    let wrong = world.wrong();
    (world, wrong)
}

#[cfg(not(feature = "mutants"))]
#[test]
fn slots_move_and_nothing_is_lost_doubled_or_seen_too_late() {
    let seeds = std::env::var("ROTA_SEEDS").map_or(200, |seeds| seeds.parse().expect("a number"));
    let mut all = Counts::default();
    for seed in 0..seeds {
        let (world, wrong) = run(seed);
        assert_eq!(wrong, None, "seed {seed}");
        all.answered += world.counts.answered;
        all.retried += world.counts.retried;
        all.restarts += world.counts.restarts;
        all.moved += world.counts.moved;
        all.failed += world.counts.failed;
        all.looked += world.counts.looked;
        all.cleared += world.counts.cleared;
        all.late += world.counts.late;
        all.unsettled += world.counts.unsettled;
    }
    let Counts {
        answered,
        retried,
        restarts,
        moved,
        failed,
        looked,
        cleared,
        late,
        unsettled,
    } = all;
    println!(
        "{seeds} seeds: {answered} answered, {retried} to be asked again, {moved} moves, {failed} that failed, {restarts} restarts, {looked} looks, {cleared} times cleared, {late} late steps, {unsettled} messages while keys settled"
    );
    assert!(answered > 50 * seeds && retried > seeds && moved > seeds / 2);
    assert!(unsettled > 50 * seeds);
    assert!(looked > 5 * seeds && cleared > seeds / 2 && late > seeds / 10);
    assert!(failed > 0 && restarts > seeds);
}
