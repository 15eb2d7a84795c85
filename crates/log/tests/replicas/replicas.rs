//! Replicas, and the faults that they meet.

use std::io;
use std::ops::AddAssign;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use rota_log::machine::{Answer, Batch, Outcome, Pack};
use rota_log::replicated::{Around, Replicated};
use rota_log::store::{Missing, Options, ReadError, Run, Step, Store, Writing};
use rota_multiring::{Place, Rank};
use rota_replica::{Command, Frozen as _, Machine as _};

use crate::model::Model;
use crate::sim::{Keep, Random, SimDir};
use crate::writers;

const REPLICAS: usize = 3;
const MESSAGES: u64 = 120;

/// What has happened.
#[derive(Clone, Copy, Default, Debug)]
pub struct Counts {
    pub checkpoints: u64,
    pub restarts: u64,
    /// Replicas that have lost all.
    pub losses: u64,
    pub states_of_others: u64,
    pub refused: u64,
    pub again: u64,
    pub trimmed: u64,
    pub sealed: u64,
    pub deleted: u64,
    /// Entries that were read.
    pub read: u64,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.checkpoints += other.checkpoints;
        self.restarts += other.restarts;
        self.losses += other.losses;
        self.states_of_others += other.states_of_others;
        self.refused += other.refused;
        self.again += other.again;
        self.trimmed += other.trimmed;
        self.sealed += other.sealed;
        self.deleted += other.deleted;
        self.read += other.read;
    }
}

type Stores = Arc<Mutex<[Option<Arc<Store<SimDir>>>; REPLICAS]>>;

/// The other replicas, for one that needs entries.
struct Others {
    me: usize,
    stores: Stores,
}

impl Others {
    fn some(&self, missing: Missing) -> Option<Run> {
        let stores = self.stores.lock().unwrap();
        let others = stores.iter().enumerate().filter(|(at, _)| *at != self.me);
        let mut open = others.filter_map(|(_, store)| store.as_ref());
        open.find_map(|store| {
            store
                .read(missing.log, missing.from, missing.to, 3_000)
                .ok()
        })
    }

    /// Where the log begins elsewhere.
    fn floor(&self, missing: Missing) -> Option<u64> {
        let stores = self.stores.lock().unwrap();
        let others = stores.iter().enumerate().filter(|(at, _)| *at != self.me);
        let mut open = others.filter_map(|(_, store)| store.as_ref());
        open.find_map(
            |store| match store.read(missing.log, missing.from, missing.to, 1) {
                Err(ReadError::Trimmed { first }) if first > missing.from => Some(first),
                _ => None,
            },
        )
    }
}

impl Around<SimDir> for Others {
    fn changed(&self, _: Option<&[Bytes]>) {}

    fn get_all(&self, store: &Store<SimDir>, _: &dyn Fn() -> bool) -> io::Result<()> {
        while let Some(missing) = store.missing().first().copied() {
            match (self.some(missing), self.floor(missing)) {
                (Some(run), _) => store.fill(&run)?,
                (None, Some(u64::MAX)) => store.delete(missing.log),
                (None, Some(first)) => store.trim(missing.log, first),
                (None, None) => panic!("no replica has {missing:?}"),
            }
        }
        Ok(())
    }
}

struct Replica {
    dir: SimDir,
    machine: Option<Replicated<SimDir>>,
    store: Option<Arc<Store<SimDir>>>,
    applied: usize,
    /// Which messages it has, and the state.
    checkpoint: (usize, Vec<u8>),
}

struct Replicas {
    random: Random,
    options: Options,
    stores: Stores,
    all: Vec<Replica>,
    messages: Vec<(Place, Vec<u8>)>,
    /// The model before each message, and what that is answered.
    models: Vec<Model>,
    answers: Vec<Vec<u8>>,
    /// As far as any replica ever came.
    reached: usize,
    counts: Counts,
}

/// A whole run.
pub fn run(seed: u64) -> Counts {
    let mut replicas = Replicas::new(seed);
    while (replicas.messages.len() as u64) < MESSAGES {
        replicas.step();
    }
    replicas.end();
    replicas.counts
}

impl Replicas {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        let options = Options {
            segment_bytes: 1_000 + random.below(6_000),
            cache_bytes: 1_000 + random.below(20_000) as usize,
            unwritten_bytes: 2_000 + random.below(10_000) as usize,
            index_bytes: 100 + random.below(1_000),
            indexes: 1 + random.below(4) as usize,
            trim_every: Duration::ZERO,
            writing: Writing::Caller,
        };
        let replica = |_| Replica {
            dir: SimDir::default(),
            machine: None,
            store: None,
            applied: 0,
            checkpoint: (0, Vec::new()),
        };
        let mut replicas = Self {
            random,
            options,
            stores: Stores::default(),
            all: (0..REPLICAS).map(replica).collect(),
            messages: Vec::new(),
            models: vec![Model::default()],
            answers: Vec::new(),
            reached: 0,
            counts: Counts::default(),
        };
        (0..REPLICAS).for_each(|at| replicas.begin(at));
        replicas
    }

    fn any(&mut self) -> usize {
        self.random.below(REPLICAS as u64) as usize
    }

    /// What acceptors keep begins here: a majority of the replicas has states behind it.
    fn kept_from(&self) -> usize {
        let mut at: Vec<usize> = self
            .all
            .iter()
            .map(|replica| replica.checkpoint.0)
            .collect();
        at.sort_unstable();
        at[REPLICAS - 1 - REPLICAS / 2]
    }

    fn step(&mut self) {
        let at = self.any();
        match self.random.below(40) {
            0 => self.restart(at),
            1 => self.lose(at),
            2 | 3 => self.checkpoint(at),
            4..8 => drop(self.store(at).step()),
            8..12 => self.read(at),
            12..22 => self.order(),
            _ => self.deliver(at),
        }
    }

    fn store(&self, at: usize) -> &Arc<Store<SimDir>> {
        self.all[at].store.as_ref().expect("it runs")
    }

    /// Something more is asked for.
    fn order(&mut self) {
        let number = self.messages.len() as u64;
        let mut model = self.models.last().expect("there is one").clone();
        let message = writers::message(&mut self.random, &model, number);
        let mut answers = Vec::new();
        for batch in Pack::decode(&message).expect("it is one").0 {
            let batch = Batch::decode(batch).expect("it is one");
            let answer = model.apply(&batch);
            self.count(&batch, &answer);
            answer.put(&mut answers);
        }
        let place = Place {
            round: number / 3,
            rank: Rank(1 + (number % 3) as u16),
            instance: number,
            index: 0,
        };
        self.messages.push((place, message));
        self.models.push(model);
        self.answers.push(answers);
    }

    fn count(&mut self, batch: &Batch<'_>, answer: &Answer) {
        use rota_log::machine::Operation;
        let counts = &mut self.counts;
        let Answer::Outcomes(outcomes) = answer else {
            counts.refused += 1;
            return;
        };
        for (operation, outcome) in batch.operations.iter().zip(outcomes) {
            match (operation, outcome) {
                (_, Outcome::Fault(_)) => counts.refused += 1,
                (_, Outcome::Again(_)) => counts.again += 1,
                (_, Outcome::Gone(1..)) => counts.trimmed += 1,
                (Operation::Seal(_), Outcome::Done) => counts.sealed += 1,
                (Operation::Delete(_), Outcome::Done) => counts.deleted += 1,
                _ => {}
            }
        }
    }

    /// The next message comes to a replica.
    fn deliver(&mut self, at: usize) {
        let next = self.all[at].applied;
        let Some((place, message)) = self.messages.get(next) else {
            return;
        };
        assert!(next >= self.kept_from() || self.all[at].machine.is_some());
        let command = Command {
            place: *place,
            client: 1,
            bytes: message,
        };
        let machine = self.all[at].machine.as_mut().expect("it runs");
        let answer = machine.apply(command);
        assert_eq!(
            answer, self.answers[next],
            "message {next} is answered otherwise"
        );
        self.all[at].applied += 1;
        self.reached = self.reached.max(next + 1);
    }

    /// A state is written; more comes meanwhile.
    fn checkpoint(&mut self, at: usize) {
        let applied = self.all[at].applied;
        let frozen = self.all[at].machine.as_mut().expect("it runs").freeze();
        for _ in 0..self.random.below(4) {
            self.deliver(at);
        }
        let mut bytes = Vec::new();
        if frozen.write(&mut bytes).is_ok() {
            self.all[at].checkpoint = (applied, bytes);
            self.counts.checkpoints += 1;
        } else {
            assert!(!self.store(at).missing().is_empty(), "it has no reason");
        }
    }

    /// Starts with what it has, or what others have.
    fn begin(&mut self, at: usize) {
        let store = Store::open(self.all[at].dir.clone(), self.options.clone());
        let store = Arc::new(store.expect("its disk works"));
        self.stores.lock().unwrap()[at] = Some(Arc::clone(&store));
        let others = Others {
            me: at,
            stores: Arc::clone(&self.stores),
        };
        let mut machine = Replicated::new(Arc::clone(&store), Box::new(others));
        let (applied, state) = self.all[at].checkpoint.clone();
        match state.is_empty() {
            false => {
                machine.install(&mut &state[..]).expect("it is its own");
                machine.complete(&|| true).expect("others are there");
            }
            true => assert_eq!(store.begin(&[], None).expect("its disk works"), []),
        }
        let replica = &mut self.all[at];
        (replica.machine, replica.store, replica.applied) = (Some(machine), Some(store), applied);
        if applied < self.kept_from() {
            self.recover(at);
        }
    }

    /// What it needs next is not kept any more: it takes another one's state.
    fn recover(&mut self, at: usize) {
        let furthest = (0..REPLICAS).filter(|other| *other != at);
        let furthest = furthest.max_by_key(|other| self.all[*other].checkpoint.0);
        let state = self.all[furthest.expect("there are others")]
            .checkpoint
            .clone();
        assert!(state.0 >= self.kept_from(), "nobody has what is forgotten");
        // It is on its shelf first, and begun with then.
        self.all[at].checkpoint = state.clone();
        self.all[at].applied = state.0;
        let machine = self.all[at].machine.as_mut().expect("it runs");
        machine.install(&mut &state.1[..]).expect("it is sound");
        machine.complete(&|| true).expect("others are there");
        self.counts.states_of_others += 1;
    }

    /// The process stops, or the power goes, and comes back.
    fn restart(&mut self, at: usize) {
        self.stop(at);
        if self.random.one_in(2) {
            let keep = [Keep::Nothing, Keep::Some, Keep::All];
            let keep = keep[self.random.below(3) as usize];
            let mut world = self.all[at].dir.world();
            world.lose_power(&mut self.random, keep);
        }
        self.counts.restarts += 1;
        self.begin(at);
    }

    fn stop(&mut self, at: usize) {
        self.stores.lock().unwrap()[at] = None;
        self.all[at].machine = None;
        self.all[at].store = None;
    }

    /// All that it has is gone. Never so much that it is nowhere.
    fn lose(&mut self, at: usize) {
        let kept = self.kept_from();
        let mut others = (0..REPLICAS).filter(|other| *other != at);
        if !others.all(|other| self.all[other].checkpoint.0 >= kept) {
            return;
        }
        self.stop(at);
        self.all[at].dir = SimDir::default();
        let forgotten = kept > 0;
        self.all[at].checkpoint = (0, Vec::new());
        self.counts.losses += 1;
        match forgotten {
            // What a majority had is forgotten, though it is one less now.
            true => self.begin_behind(at, kept),
            false => self.begin(at),
        }
    }

    fn begin_behind(&mut self, at: usize, kept: usize) {
        let furthest = (0..REPLICAS).filter(|other| *other != at);
        let furthest = furthest.max_by_key(|other| self.all[*other].checkpoint.0);
        let state = self.all[furthest.expect("there are others")]
            .checkpoint
            .clone();
        assert!(state.0 >= kept, "nobody has what is forgotten");
        self.all[at].checkpoint = state;
        self.counts.states_of_others += 1;
        self.begin(at);
    }

    /// Some of what a replica has is as it is in the model.
    fn read(&mut self, at: usize) {
        let model = &self.models[self.all[at].applied];
        let names: Vec<Vec<u8>> = model.0.keys().cloned().collect();
        if names.is_empty() {
            return;
        }
        let name = names[self.random.below(names.len() as u64) as usize].clone();
        let most = 1 + self.random.below(3_000) as usize;
        self.read_log(at, &name, most);
    }

    /// All of a log, so many bytes at a time.
    fn read_log(&mut self, at: usize, name: &[u8], most: usize) {
        let model = self.models[self.all[at].applied].0[name].clone();
        let machine = self.all[at].machine.as_ref().expect("it runs");
        let log = machine.logs().get(name).expect("it is there").clone();
        assert_eq!(
            (log.first, log.next),
            (model.first, model.next()),
            "{name:?}"
        );
        assert_eq!(log.is_sealed, model.is_sealed);
        let (mut from, mut last) = (log.first, None);
        while from < log.next {
            let store = Arc::clone(self.store(at));
            let run = match store.read(log.id, from, log.next, most) {
                Ok(run) => run,
                Err(ReadError::Missing { .. }) => {
                    let others = Others {
                        me: at,
                        stores: Arc::clone(&self.stores),
                    };
                    others.get_all(&store, &|| true).expect("its disk works");
                    continue;
                }
                // It was trimmed at a place that this one has not come to again.
                Err(ReadError::Trimmed { first }) if self.all[at].applied < self.reached => {
                    from = first;
                    continue;
                }
                Err(error) => panic!("{name:?} {from}: {error}"),
            };
            for record in &run {
                let expected = &model.entries[record.position as usize - 1];
                assert!(
                    record.payload == &expected[..],
                    "{name:?} {}",
                    record.position
                );
                assert!(last < Some(record.place), "places grow");
                last = Some(record.place);
                self.counts.read += 1;
            }
            from = run.next();
        }
    }

    /// All have the same at the end.
    fn end(&mut self) {
        for at in 0..REPLICAS {
            while self.all[at].applied < self.messages.len() {
                self.deliver(at);
            }
            while self.store(at).step() != Step::Idle {}
            let model = self.models[self.messages.len()].clone();
            let machine = self.all[at].machine.as_ref().expect("it runs");
            assert_eq!(machine.logs().len(), model.0.len());
            for name in model.0.keys() {
                self.read_log(at, name, 2_000);
            }
        }
    }
}
