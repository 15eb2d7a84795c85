//! Clients walk through the keys (`SCAN`) while slots move between partitions, and keys come, change and go: a walk shows
//! each key that was there all the time, none that was not there, and it ends.

use std::collections::BTreeSet;

use bytes::Bytes;
use rota_core::random::Random;
use rota_kv::moving::{Mover, Next};
use rota_kv::redis::{Done, Walk, Work, assemble, done};
use rota_kv::store::{Action, Answer, Answered, Batch, Life, Only, Operation, Outcome, Store};
use rota_kv::{Map, Partition, Partitions, Slots};
use rota_multiring::{Place, Rank};
use rota_replica::{Command, Machine as _};

const PARTITIONS: [Partition; 3] = [Partition(1), Partition(2), Partition(3)];
const KEYS: u64 = 60;
const STEPS: u32 = 1_000;
const SEEDS: u64 = 4;
/// So few keys are settled at each message that walks meet keys that have come and gone and are not settled.
const SETTLED: usize = 1;

fn key(number: u64) -> Bytes {
    format!("key{number}").into()
}

fn slot(key: &[u8]) -> u16 {
    rota_resp::slot::of(key)
}

/// A walk that has begun.
struct Walking {
    /// The partition that is walked through; all, if there is none.
    of: Option<Partition>,
    from: Bytes,
    count: u32,
    /// The keys that have been there since the walk began.
    stayed: BTreeSet<Bytes>,
    seen: BTreeSet<Bytes>,
    steps: u64,
}

#[derive(Default, Debug)]
struct Counts {
    /// Walks that have ended.
    walks: u64,
    moved: u64,
    /// Moves during which some walk was under way.
    beneath: u64,
    /// Steps of walks that met a partition whose keys were not settled.
    unsettled: u64,
}

struct World {
    random: Random,
    at: u64,
    stores: Vec<Store>,
    /// The keys that are there.
    keys: BTreeSet<Bytes>,
    walks: Vec<Walking>,
    mover: Option<(Mover, Partition)>,
    moves: u64,
    counts: Counts,
}

impl World {
    fn new(seed: u64) -> Self {
        let map = Map::even(&PARTITIONS).expect("three");
        let store = |me| Store::new(me, map.clone()).settling(SETTLED);
        Self {
            random: Random::new(seed),
            at: 0,
            stores: PARTITIONS.map(store).into(),
            keys: BTreeSet::new(),
            walks: Vec::new(),
            mover: None,
            moves: 0,
            counts: Counts::default(),
        }
    }

    fn map(&self) -> Map {
        self.stores[0].map().as_ref().clone()
    }

    fn store(&self, of: Partition) -> &Store {
        &self.stores[usize::from(of.0) - 1]
    }

    /// What the partitions answer to each operation; `None`: the slots are frozen.
    fn order(&mut self, mut batch: Batch<'_>) -> Option<Vec<Vec<Outcome>>> {
        self.at += 1;
        let (map, place) = (
            self.map(),
            Place {
                round: self.at,
                rank: Rank(1),
                instance: self.at,
                index: 0,
            },
        );
        batch.epoch = map.epoch();
        let (to, bytes): (Partitions, _) = (batch.to(&map), batch.alone());
        let mut outcomes = vec![Vec::new(); batch.operations.len()];
        let mut is_done = true;
        for partition in to {
            let store = &mut self.stores[usize::from(partition.0) - 1];
            let command = Command {
                place,
                client: 1,
                bytes: &bytes,
            };
            let answered = store.apply(command);
            store.check();
            let answered = Answered::decode(&answered).expect("an answer");
            let [answer] = answered.answers.try_into().expect("one");
            match answer {
                Answer::Outcomes(own) => own
                    .into_iter()
                    .for_each(|(at, outcome)| outcomes[at as usize].push(outcome)),
                Answer::Moving => is_done = false,
                other => panic!("{other:?}"),
            }
        }
        is_done.then_some(outcomes)
    }

    fn write(&mut self) {
        let key = key(self.random.below(KEYS));
        let is_set = self.random.below(3) > 0;
        let action = match is_set {
            true => Action::Set {
                value: b"value",
                life: Life::Ever,
                only: Only::Always,
                get: false,
            },
            false => Action::Delete,
        };
        let batch = Batch {
            operations: vec![Operation::Key(&key, action)],
            ..Batch::default()
        };
        if self.order(batch).is_none() {
            return;
        }
        match is_set {
            true => {
                self.keys.insert(key);
            }
            false => {
                self.keys.remove(&key);
                for walk in &mut self.walks {
                    walk.stayed.remove(&key);
                }
            }
        }
    }

    /// The keys that a walk has to show, if it began now.
    fn own(&self, of: Option<Partition>) -> BTreeSet<Bytes> {
        let map = self.map();
        let is_own = |key: &&Bytes| of.is_none_or(|of| map.of_slot(slot(key)) == of);
        self.keys.iter().filter(is_own).cloned().collect()
    }

    fn begin_walk(&mut self) {
        let of = match self.random.below(4) {
            at @ 0..3 => Some(PARTITIONS[at as usize]),
            _ => None,
        };
        self.walks.push(Walking {
            of,
            from: Bytes::new(),
            count: 1 + self.random.below(6) as u32,
            stayed: self.own(of),
            seen: BTreeSet::new(),
            steps: 0,
        });
    }

    /// A walk goes on by a step.
    fn walk(&mut self) {
        if self.walks.len() < 3 {
            self.begin_walk();
        }
        let at = self.random.below(self.walks.len() as u64) as usize;
        let mut walk = self.walks.swap_remove(at);
        let works = [Work::Walk(Walk {
            from: walk.from.clone(),
            count: walk.count,
            pattern: None,
            kind: None,
        })];
        self.counts.unsettled += u64::from(self.stores.iter().any(|store| !store.is_settled()));
        let (batch, answering) = assemble(&works, walk.of);
        let outcomes = self.order(batch).expect("a walk waits for no move");
        let Done::Walked(keys, next) = done(&works, answering, Some(outcomes)).remove(0) else {
            panic!("a walk");
        };
        let own = self.own(walk.of);
        for key in keys {
            assert!(own.contains(&key), "{key:?} is not there");
            assert!(walk.seen.insert(key.clone()), "{key:?} was shown twice");
        }
        walk.steps += 1;
        match next {
            Some(next) => {
                assert!(next > walk.from, "it does not go on: {next:?}");
                assert!(walk.steps <= KEYS, "it does not end");
                walk.from = next;
                self.walks.push(walk);
            }
            None => {
                let missed: Vec<_> = walk.stayed.difference(&walk.seen).collect();
                assert!(missed.is_empty(), "{:?} missed {missed:?}", walk.of);
                self.counts.walks += 1;
            }
        }
    }

    fn begin_move(&mut self) {
        let [from, to] = [0; 2].map(|_| PARTITIONS[self.random.below(3) as usize]);
        let mut wanted = Vec::new();
        for number in 0..KEYS {
            let slot = slot(&key(number));
            if self.map().of_slot(slot) == from && self.random.below(2) == 0 {
                wanted.push(slot);
            }
        }
        let wanted: Slots = wanted.into_iter().collect();
        if from != to && !wanted.is_empty() {
            self.moves += 1;
            self.mover = Some((Mover::new((1, self.moves), (from, to), wanted), from));
        }
    }

    /// The move goes on by a step.
    fn go_on(&mut self) {
        let Some((mut mover, from)) = self.mover.take() else {
            return self.begin_move();
        };
        match mover.go_on() {
            Next::Look => mover.looked(self.store(from).snapshot()),
            Next::Ask => mover.answered(true),
            Next::Order(step) => {
                let epoch = self.map().epoch();
                let batch = Batch {
                    operations: vec![Operation::Step(step)],
                    ..Batch::default()
                };
                let outcomes = self.order(batch).expect("a step is always done");
                mover.heard(outcomes.first().and_then(|of| of.first()));
                if self.map().epoch() > epoch {
                    self.on_moved();
                }
            }
            Next::Ended(_) => return,
        }
        self.mover = Some((mover, from));
    }

    /// What a walk through one partition has to show is what stays there.
    fn on_moved(&mut self) {
        self.counts.moved += 1;
        self.counts.beneath += u64::from(!self.walks.is_empty());
        let map = self.map();
        for walk in &mut self.walks {
            let of = walk.of;
            let stays = |key: &Bytes| of.is_none_or(|of| map.of_slot(slot(key)) == of);
            walk.stayed.retain(stays);
        }
    }
}

/// A world of a seed.
fn run(seed: u64) -> Counts {
    let mut world = World::new(seed);
    for _ in 0..STEPS {
        match world.random.below(10) {
            0..3 => world.write(),
            3..6 => world.walk(),
            _ => world.go_on(),
        }
    }
    world.counts
}

#[cfg(not(feature = "mutants"))]
#[test]
fn a_walk_misses_no_key_that_stays_while_slots_move_and_ends() {
    let mut all = Counts::default();
    for seed in 0..SEEDS {
        let counts = run(seed);
        all.walks += counts.walks;
        all.moved += counts.moved;
        all.beneath += counts.beneath;
        all.unsettled += counts.unsettled;
    }
    // It happened.
    assert!(all.walks > 5 * SEEDS, "{all:?}");
    assert!(all.beneath > 2 * SEEDS, "{all:?}");
    assert!(all.unsettled > 5 * SEEDS, "{all:?}");
}

#[cfg(feature = "mutants")]
#[test]
fn each_broken_version_is_found_out() {
    use rota_kv::mutants::{Mutant, set};
    use std::panic::catch_unwind;

    set(Some(Mutant::T20));
    let found = (0..SEEDS).find_map(|seed| catch_unwind(|| run(seed)).err());
    set(None);
    let said = found.expect("it is found");
    let said = said.downcast_ref::<String>().expect("words");
    println!("T20: {said}");
    assert!(said.contains("missed"), "{said}");
}
