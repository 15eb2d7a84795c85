//! A small world: replicas of one partition with memories of different sizes, that lag behind each other and begin again
//! with states of before; slots that come and go; and watchers that ask now one replica and now another one. What a
//! watcher was told has to make, of what it had, the keys that a replica without a bound has at the same place.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, mpsc};

use bytes::Bytes;
use rota_core::random::Random;
use rota_kv::changes::{Changes, Part, Prefix};
use rota_kv::outlook::Past;
use rota_kv::store::{
    Action, Batch, Change, Changed, Copied, Entry, Freeze, Life, MOST_TOLD_BYTES, Only, OnlyLife,
    Operation, Step, Store, Told, Value, Witness,
};
use rota_kv::{Map, Partition, Partitions};
use rota_multiring::{Place, Rank};
use rota_replica::{Command, Frozen as _, Machine as _};
use rota_resp::slot;

const ONE: Partition = Partition(1);
const TWO: Partition = Partition(2);
/// The bytes that the memory of each replica has.
const BYTES: [usize; 3] = [1 << 20, 20_000, 3_000];
const KEYS: u64 = 24;
const STEPS: u32 = 800;
const WATCHERS: usize = 6;
const PREFIXES: [&str; 6] = ["", "a", "a1", "b", "{t}", "{t}1"];

/// The keys that begin so, and what each has; `None`: it is too large to be told.
type Seen = BTreeMap<Bytes, Option<Value>>;

/// The witness of a store.
#[derive(Clone)]
struct Memory(Arc<Mutex<Changes>>);

impl Memory {
    fn lock(&self) -> MutexGuard<'_, Changes> {
        self.0.lock().expect("nobody panics")
    }
}

impl Witness for Memory {
    fn began(&mut self, applied: Option<Place>, _: &Past) {
        self.lock().begin(applied);
    }

    fn delivered(&mut self, _: Place, _: &Partitions) {}

    fn mapped(&mut self, _: &Arc<Map>) {}

    fn changed(&mut self, changed: Changed) {
        self.lock().push(changed);
    }
}

/// The witness of the store that forgets nothing.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<Changed>>>);

impl Witness for Log {
    fn began(&mut self, _: Option<Place>, _: &Past) {}

    fn delivered(&mut self, _: Place, _: &Partitions) {}

    fn mapped(&mut self, _: &Arc<Map>) {}

    fn changed(&mut self, changed: Changed) {
        self.0.lock().expect("nobody panics").push(changed);
    }
}

struct Replica {
    store: Store,
    memory: Memory,
    done: usize,
    /// The last command of several partitions that is stable there.
    stable: Option<Place>,
    /// A state that it may begin with again, and how much was done then.
    kept: (Vec<u8>, usize),
}

/// A watcher that waits at a replica.
struct Waiting {
    at: usize,
    after: Option<Place>,
    news: mpsc::Receiver<Option<Place>>,
}

struct Watcher {
    prefix: Prefix,
    begins: &'static str,
    after: Option<Place>,
    seen: Seen,
    waiting: Option<Waiting>,
}

#[derive(Default)]
pub struct Counts {
    pub told: usize,
    pub trimmed: u32,
    pub held: u32,
    pub woken: u32,
    pub moved: u32,
    pub restarts: u32,
}

pub struct World {
    random: Random,
    now: u64,
    ordered: Vec<(Place, Vec<u8>)>,
    /// A replica that forgets nothing and is never behind: all changes, and its keys behind each command.
    whole: Store,
    log: Log,
    states: Vec<Seen>,
    replicas: Vec<Replica>,
    watchers: Vec<Watcher>,
    moves: u64,
    pub counts: Counts,
}

fn new_store() -> Store {
    let map = Map::even(&[ONE, TWO]).expect("two");
    Store::new(ONE, map).settling(1)
}

fn state(store: &mut Store) -> Vec<u8> {
    let mut bytes = Vec::new();
    store.freeze().write(&mut bytes).expect("memory");
    bytes
}

/// Keys of both partitions; those with a tag are in one slot of the first.
fn key(number: u64) -> String {
    match number % 3 {
        0 => format!("a{number}"),
        1 => format!("b{number}"),
        _ => format!("{{t}}{number}"),
    }
}

fn seen(value: &Value) -> Option<Value> {
    (value.bytes() <= MOST_TOLD_BYTES).then(|| value.clone())
}

fn told(told: &Told) -> Option<Value> {
    match told {
        Told::Text(bytes) => Some(Value::Text(bytes.clone())),
        Told::Fields(fields) => Some(Value::Fields(fields.iter().cloned().collect())),
        Told::ManyFields(fields) => Some(Value::Fields(fields.clone())),
        Told::Large(_) => None,
    }
}

impl World {
    fn new(seed: u64) -> Self {
        let replica = |most| {
            let memory = Memory(Arc::new(Mutex::new(Changes::new(most))));
            Replica {
                store: new_store().with_witness(Box::new(memory.clone())),
                memory,
                done: 0,
                stable: None,
                kept: (state(&mut new_store()), 0),
            }
        };
        let log = Log::default();
        let watcher = |at: usize| Watcher {
            prefix: Prefix::new(Bytes::from_static(PREFIXES[at].as_bytes())),
            begins: PREFIXES[at],
            after: None,
            seen: Seen::new(),
            waiting: None,
        };
        Self {
            random: Random::new(seed),
            now: 1_000,
            ordered: Vec::new(),
            whole: new_store().with_witness(Box::new(log.clone())),
            log,
            states: Vec::new(),
            replicas: BYTES.map(replica).into(),
            watchers: (0..WATCHERS).map(watcher).collect(),
            moves: 0,
            counts: Counts::default(),
        }
    }

    fn draw(&mut self, below: usize) -> usize {
        self.random.below(below as u64) as usize
    }

    fn life(&mut self) -> Life {
        match self.draw(6) {
            0 => Life::Keep,
            1 => Life::For(1 + self.random.below(60)),
            2 => Life::Until(self.now + self.random.below(30)),
            _ => Life::Ever,
        }
    }

    /// Has a batch done: by the replica without a bound at once.
    fn order(&mut self, operations: Vec<Operation<'_>>) {
        self.now += self.random.below(12);
        let passes = self.random.below(2) == 0;
        let batch = Batch {
            stamp: self.now,
            epoch: self.whole.map().epoch(),
            operations: operations
                .into_iter()
                .chain(passes.then_some(Operation::Time))
                .collect(),
            ..Batch::default()
        };
        let at = self.ordered.len() as u64 + 1;
        let place = Place {
            round: at,
            rank: Rank((at % 2) as u16),
            instance: at,
            index: 0,
        };
        let bytes = batch.alone();
        self.whole.apply(Command {
            place,
            client: 1,
            bytes: &bytes,
        });
        self.whole.check();
        let entries = self.whole.entries();
        self.states.push(
            entries
                .map(|(key, entry)| (key.clone(), seen(&entry.value)))
                .collect(),
        );
        self.ordered.push((place, bytes));
    }

    fn command(&mut self) {
        let count = 1 + self.draw(4);
        let keys: Vec<String> = (0..count).map(|_| key(self.random.below(KEYS))).collect();
        let value = match self.draw(12) {
            0 => vec![b'x'; MOST_TOLD_BYTES + 1],
            _ => vec![b'a' + self.random.below(26) as u8; self.draw(300)],
        };
        let mut operations = Vec::new();
        for key in &keys {
            let life = self.life();
            let action = match self.draw(10) {
                0 => Action::Delete,
                1 => Action::Take,
                2 => Action::SetFields(vec![(b"f", &value), (b"g", b"1")]),
                3 => Action::DeleteFields(vec![b"f"]),
                4 => Action::Append(&value),
                5 => Action::Lives(life, OnlyLife::Always),
                6 => Action::Get,
                _ => Action::Set {
                    value: &value,
                    life,
                    only: Only::Always,
                    get: false,
                },
            };
            operations.push(Operation::Key(key.as_bytes(), action));
        }
        if self.draw(60) == 0 {
            operations.push(Operation::Clear(None));
        }
        self.order(operations);
    }

    /// Gives the slots of some keys to the other partition, or gets them back with other keys in them.
    fn shift(&mut self) {
        self.moves += 1;
        let of = (self.moves, 1);
        let names: Vec<String> = (0..3).map(|_| key(self.random.below(KEYS))).collect();
        let map = Arc::clone(self.whole.map());
        let is_own = |name: &String| map.of_key(name.as_bytes()) == ONE;
        let from = if is_own(&names[0]) { ONE } else { TWO };
        let own = |name: &&String| is_own(name) == (from == ONE);
        let slots = names
            .iter()
            .filter(own)
            .map(|name| slot::of(name.as_bytes()));
        let slots = slots.collect();
        let to = if from == ONE { TWO } else { ONE };
        if to == ONE {
            let last = self.ordered.last().map(|(place, _)| *place).expect("some");
            let until = (self.draw(2) == 0).then(|| self.now + 1 + self.random.below(40));
            let copied = |name: &String| {
                let value = Value::Text(Bytes::from_static(b"copied"));
                let entry = Entry::new(value, last, until);
                let key = Bytes::from(name.clone());
                (
                    key,
                    Some(Copied {
                        entry,
                        is_more: false,
                    }),
                )
            };
            let keys = names.iter().filter(own).map(copied).collect();
            let at = 0;
            self.order(vec![Operation::Step(Step::Copy { of, to, at, keys })]);
        }
        let freeze = Freeze {
            of,
            from,
            to,
            slots,
        };
        self.order(vec![Operation::Step(Step::Freeze(freeze))]);
        for _ in 0..self.draw(3) {
            self.command();
        }
        let end = match self.draw(5) {
            0 => Step::End(of),
            _ => Step::Give(of),
        };
        self.order(vec![Operation::Step(end)]);
        self.counts.moved += 1;
    }

    fn deliver(&mut self, at: usize) -> Option<String> {
        let replica = &mut self.replicas[at];
        let (place, bytes) = self.ordered.get(replica.done)?;
        let place = *place;
        replica.store.apply(Command {
            place,
            client: 1,
            bytes,
        });
        replica.done += 1;
        let log = self.log.0.lock().expect("nobody panics");
        let changed = log.iter().find(|changed| changed.place == place)?;
        for watcher in &mut self.watchers {
            let is_here = |waiting: &&mut Waiting| waiting.at == at && waiting.after < Some(place);
            let Some(waiting) = watcher.waiting.as_mut().filter(is_here) else {
                continue;
            };
            let concerns = changed
                .changes
                .iter()
                .any(|change| watcher.prefix.is_of(change));
            match waiting.news.try_recv() {
                Ok(up_to) => {
                    watcher.after = watcher.after.max(up_to);
                    watcher.waiting = None;
                    self.counts.woken += 1;
                }
                Err(_) if concerns => return Some(format!("{changed:?} wakes nobody")),
                Err(_) => {}
            }
        }
        None
    }

    fn restart(&mut self, at: usize) {
        let replica = &mut self.replicas[at];
        replica.store = new_store().with_witness(Box::new(replica.memory.clone()));
        let mut bytes = &replica.kept.0[..];
        replica.store.install(&mut bytes).expect("its own state");
        replica.done = replica.kept.1;
        replica.stable = None;
        for watcher in &mut self.watchers {
            watcher.waiting.take_if(|waiting| waiting.at == at);
        }
        self.counts.restarts += 1;
    }

    /// The keys that begin so at a place.
    fn state_at(&self, place: Option<Place>, begins: &str) -> Seen {
        let count = self.ordered.partition_point(|(of, _)| Some(*of) <= place);
        let state = count.checked_sub(1).map(|last| &self.states[last]);
        let all = state.into_iter().flatten();
        let own = all.filter(|(key, _)| key.starts_with(begins.as_bytes()));
        own.map(|(key, value)| (key.clone(), value.clone()))
            .collect()
    }

    /// A watcher asks a replica.
    fn read(&mut self, which: usize, at: usize) -> Option<String> {
        let most = 1 + self.draw(4);
        let (watcher, replica) = (&self.watchers[which], &self.replicas[at]);
        let (after, begins) = (watcher.after, watcher.begins);
        let mut memory = replica.memory.lock();
        match memory.read(&watcher.prefix, after, (replica.stable, most)) {
            Err(trimmed) => {
                drop(memory);
                if Some(trimmed.first) <= after {
                    return Some(format!("{trimmed:?} for {after:?}"));
                }
                // It reads the keys as they are there.
                let seen = self.state_at(Some(trimmed.first), begins);
                let watcher = &mut self.watchers[which];
                (watcher.after, watcher.seen) = (Some(trimmed.first), seen);
                self.counts.trimmed += 1;
                None
            }
            Ok(part) => {
                if part.is_all && part.told.is_empty() && self.watchers[which].waiting.is_none() {
                    let (tell, news) = mpsc::channel();
                    let then = move |up_to| {
                        let _ = tell.send(up_to);
                    };
                    memory.wait(&watcher.prefix, part.next, Box::new(then));
                    let after = part.next;
                    drop(memory);
                    self.watchers[which].waiting = Some(Waiting { at, after, news });
                } else {
                    drop(memory);
                }
                self.counts.held += u32::from(part.waits.is_some());
                self.check((which, at), part, most)
            }
        }
    }

    /// What is wrong with what a watcher was told.
    fn check(&mut self, (which, at): (usize, usize), part: Part, most: usize) -> Option<String> {
        let (watcher, stable) = (&self.watchers[which], self.replicas[at].stable);
        let log = self.log.0.lock().expect("nobody panics");
        let behind = log.iter().filter(|of| Some(of.place) > watcher.after);
        let behind: Vec<&Changed> = behind
            .take_while(|of| Some(of.place) <= part.next)
            .collect();
        if let Some(early) = behind.iter().find(|of| of.behind > stable) {
            return Some(format!("{early:?} is told, but {stable:?} is stable"));
        }
        let mut expected = Vec::new();
        for changed in behind {
            let own = changed.changes.iter().filter(|of| watcher.prefix.is_of(of));
            let own: Vec<Change> = own.cloned().collect();
            if !own.is_empty() {
                expected.push((changed.place, own));
            }
        }
        drop(log);
        if part.told != expected {
            return Some(format!("{:?} is told, and not {expected:?}", part.told));
        }
        let before: usize = expected.iter().rev().skip(1).map(|(_, of)| of.len()).sum();
        if before >= most {
            return Some(format!("{before} are told though {most} are enough"));
        }
        let mut seen = watcher.seen.clone();
        for (place, changes) in &part.told {
            for change in changes {
                self.see(&mut seen, (*place, change), watcher.begins);
            }
            self.counts.told += changes.len();
        }
        let is = self.state_at(part.next, watcher.begins);
        if seen != is {
            return Some(format!(
                "{} has {seen:?}, but there is {is:?}",
                watcher.begins
            ));
        }
        let watcher = &mut self.watchers[which];
        (watcher.after, watcher.seen) = (watcher.after.max(part.next), seen);
        None
    }

    /// What a watcher makes of a change.
    fn see(&self, seen: &mut Seen, (place, change): (Place, &Change), begins: &str) {
        match change {
            Change::Set(key, value) => drop(seen.insert(key.clone(), told(value))),
            Change::Deleted(key) | Change::Expired(key) => drop(seen.remove(key)),
            Change::Cleared => seen.clear(),
            Change::Left(slots, _) => seen.retain(|key, _| !slots.has(slot::of(key))),
            // It reads the keys of these slots.
            Change::Arrived(slots, _) => {
                let all = self.state_at(Some(place), begins).into_iter();
                seen.extend(all.filter(|(key, _)| slots.has(slot::of(key))));
            }
        }
    }

    fn step(&mut self) -> Option<String> {
        let at = self.draw(BYTES.len());
        match self.draw(20) {
            0..4 => self.command(),
            4 if self.draw(4) == 0 && !self.ordered.is_empty() => self.shift(),
            4..12 => return self.deliver(at),
            12 if self.draw(4) == 0 => {
                let replica = &mut self.replicas[at];
                replica.kept = (state(&mut replica.store), replica.done);
            }
            13 if self.draw(8) == 0 => self.restart(at),
            14 => {
                let replica = &mut self.replicas[at];
                replica.stable = replica.stable.max(replica.store.last());
            }
            _ => {
                let which = self.draw(WATCHERS);
                return self.read(which, at);
            }
        }
        None
    }
}

/// What is wrong, and the world as it was then.
pub fn run(seed: u64) -> (World, Option<String>) {
    let mut world = World::new(seed);
    for _ in 0..STEPS {
        if let Some(wrong) = world.step() {
            return (world, Some(wrong));
        }
    }
    (world, None)
}

#[cfg(not(feature = "mutants"))]
#[test]
fn what_watchers_are_told_makes_the_keys_that_there_are() {
    let mut all = Counts::default();
    for seed in 0..400 {
        let (world, wrong) = run(seed);
        assert_eq!(wrong, None, "seed {seed}");
        let counts = world.counts;
        all.told += counts.told;
        all.trimmed += counts.trimmed;
        all.held += counts.held;
        all.woken += counts.woken;
        all.moved += counts.moved;
        all.restarts += counts.restarts;
    }
    println!(
        "{} changes told, {} trimmed, {} held up, {} woken, {} moves, {} restarts",
        all.told, all.trimmed, all.held, all.woken, all.moved, all.restarts
    );
    assert!(
        all.told > 20_000 && all.trimmed > 200 && all.held > 200,
        "too few"
    );
    assert!(
        all.woken > 200 && all.moved > 200 && all.restarts > 200,
        "too few"
    );
}
