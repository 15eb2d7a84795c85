//! A replica that meets all faults, next to a model that meets none.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rota_log::store::{Missing, Options, ReadError, Scrub, Step, Store, Tails, Writing};

use crate::sim::{Keep, Random, SimDir};
use crate::world::{Command, Logs, apply, on_disk, records, run};
use crate::{EIO, ENOSPC};

const SEEDS: u64 = 400;

/// A checkpoint that the replica has.
#[derive(Clone, Default)]
struct Checkpoint {
    /// So many commands are in it.
    commands: usize,
    logs: Logs,
    /// The logs as they were when this replica completed one itself.
    own: Logs,
    tails: Vec<u8>,
}

struct Replica {
    seed: u64,
    random: Random,
    dir: SimDir,
    store: Option<Store<SimDir>>,
    options: Options,
    history: Vec<Command>,
    applied: usize,
    logs: Logs,
    /// Below that everything may be gone, if any trim was ever applied.
    trimmed: BTreeMap<u64, u64>,
    checkpoint: Checkpoint,
    /// The disk is failing now, or has failed since the last look.
    is_faulty: bool,
    /// Bytes were changed, and perhaps nobody has seen it yet.
    is_damaged: bool,
    synced: u64,
    lost: u64,
    repaired: u64,
}

impl Replica {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        let options = Options {
            segment_bytes: 2_000 + random.below(8_000),
            cache_bytes: 2_000 + random.below(20_000) as usize,
            unwritten_bytes: 3_000 + random.below(10_000) as usize,
            index_bytes: 100 + random.below(1_000),
            indexes: 1 + random.below(4) as usize,
            trim_every: Duration::ZERO,
            writing: Writing::Caller,
        };
        let dir = SimDir::default();
        let store = Store::open(dir.clone(), options.clone()).unwrap();
        assert_eq!(store.begin(&[], None).unwrap(), []);
        Self {
            seed,
            random,
            dir,
            store: Some(store),
            options,
            history: Vec::new(),
            applied: 0,
            logs: Logs::new(),
            trimmed: BTreeMap::new(),
            checkpoint: Checkpoint::default(),
            is_faulty: false,
            is_damaged: false,
            synced: 0,
            lost: 0,
            repaired: 0,
        }
    }

    fn store(&self) -> &Store<SimDir> {
        self.store.as_ref().unwrap()
    }

    fn any_log(&mut self) -> Option<u64> {
        let at = self.random.below(self.logs.len().max(1) as u64) as usize;
        self.logs.keys().nth(at).copied()
    }

    /// The next command of the history, or a new one.
    fn command(&mut self) {
        if self.applied == self.history.len() {
            let log = self.any_log();
            let is_new = self.logs.len() < 2 || (self.logs.len() < 4 && self.random.one_in(20));
            let command = match (self.random.below(12), log.filter(|_| !is_new)) {
                (0, Some(log)) => {
                    let (first, next) = self.logs[&log];
                    let first = first + self.random.below(next - first + 1);
                    Command::Trim { log, first }
                }
                (1, Some(log)) if self.random.one_in(10) => Command::Delete { log },
                (_, log) => {
                    let fresh = 1 + self.history.len() as u64;
                    let log = log.unwrap_or(fresh);
                    let first = self.logs.get(&log).map_or(1, |(_, next)| *next);
                    let count = 1 + self.random.below(12) as u32;
                    Command::Append { log, first, count }
                }
            };
            self.history.push(command);
        }
        let command = self.history[self.applied];
        self.applied += 1;
        apply(&mut self.logs, command);
        match command {
            Command::Append { log, first, count } => {
                let bytes = records(log, first, first + u64::from(count));
                self.store().append(log, first, count, bytes);
            }
            Command::Trim { log, first } => {
                self.store().trim(log, first);
                let trimmed = self.trimmed.entry(log).or_default();
                *trimmed = first.max(*trimmed);
            }
            Command::Delete { log } => {
                self.store().delete(log);
                self.trimmed.insert(log, u64::MAX);
            }
        }
    }

    fn checkpoint(&mut self) {
        self.store().step();
        let before = self.store().missing();
        let mark = self.store().mark();
        let (commands, logs) = (self.applied, self.logs.clone());
        for _ in 0..self.random.below(6) {
            self.command();
        }
        match self.store().sync(mark) {
            Ok(tails) => {
                // Unless it was trimmed meanwhile.
                let is_gone = |m: &Missing| self.trimmed.get(&m.log).is_some_and(|t| m.to <= *t);
                assert!(before.iter().all(is_gone), "a checkpoint with gaps");
                let mut bytes = Vec::new();
                tails.encode(&mut bytes);
                self.checkpoint = Checkpoint {
                    commands,
                    own: logs.clone(),
                    logs,
                    tails: bytes,
                };
                self.store().settle(mark);
                self.synced += 1;
            }
            Err(error) => {
                let has_reason = self.is_faulty || !before.is_empty() || self.is_damaged;
                assert!(has_reason, "no checkpoint: {error}");
            }
        }
    }

    /// Where a log surely begins.
    fn floor(&self, log: u64) -> u64 {
        let first = self.logs.get(&log).map_or(1, |(first, _)| *first);
        first.max(self.trimmed.get(&log).copied().unwrap_or(1))
    }

    /// Reads something, and looks whether it is right. Says where to go on, or why not.
    fn read(&self, log: u64, from: u64, to: u64, most: usize) -> Result<u64, ReadError> {
        let cached = self.store().cached(log, from, to, most);
        let calls = self.dir.world().calls;
        let read = match cached {
            Some(run) => Ok(run),
            None => self.store().read(log, from, to, most),
        };
        let run = match read {
            Ok(run) => run,
            Err(error) => {
                self.check_error(log, from, &error);
                return Err(error);
            }
        };
        assert!(run.first() == from && run.next() > from && run.next() <= to);
        assert_eq!(run.bytes(), &records(log, from, run.next()), "wrong bytes");
        assert!(run.bytes().len() <= most || run.next() == from + 1);
        assert!(self.dir.world().calls >= calls);
        Ok(run.next())
    }

    fn check_error(&self, log: u64, from: u64, error: &ReadError) {
        let (_, next) = self.logs[&log];
        match error {
            ReadError::Trimmed { first } => {
                assert!(from < *first && *first <= self.floor(log), "{error}");
            }
            ReadError::Missing { from: start, to } => {
                assert!(*start <= from && from < *to && *to <= next, "{error}");
                let missing = self.store().missing();
                let is_listed = |m: &Missing| m.log == log && m.from <= from && from < m.to;
                assert!(missing.iter().any(is_listed), "{error}");
            }
            ReadError::Damaged { from: start, to } => {
                assert!(self.is_damaged, "{error}");
                assert!(*start <= from && from < *to && *to <= next, "{error}");
            }
            ReadError::NotThere { next: said } => assert!(from >= next && *said == next),
            ReadError::Io { .. } => assert!(self.is_faulty, "{error}"),
        }
    }

    fn read_somewhere(&mut self) {
        let Some(log) = self.any_log() else { return };
        let (first, next) = self.logs[&log];
        let from = first + self.random.below(next - first + 2);
        let to = from + 1 + self.random.below(100);
        let most = self.random.below(6_000) as usize;
        match self.read(log, from, to.min(next).max(from), most) {
            Ok(_) | Err(_) => {}
        }
        if !self.is_damaged && !self.is_faulty && self.store().missing().is_empty() && from < next {
            let floor = self.floor(log);
            let stamp = crate::world::stamp(from.max(floor));
            let found = self.store().first_after(log, stamp).unwrap();
            let expected = (floor..next).find(|at| crate::world::stamp(*at) >= stamp);
            let is_right = found == expected || found.is_some_and(|at| at < floor);
            assert!(is_right, "{found:?} {expected:?}");
        }
    }

    /// Reads all, and gets what is missing or damaged from the others. Nothing fails now.
    fn heal(&mut self) {
        for missing in self.store().missing() {
            let Missing { log, from, to } = missing;
            let mut at = from;
            while at < to {
                let until = to.min(at + 1 + self.random.below(20));
                self.store().fill(&run(log, at, until)).unwrap();
                at = until;
            }
        }
        assert_eq!(self.store().missing(), []);
        for (log, (first, next)) in self.logs.clone() {
            let mut at = first;
            while at < next {
                let most = 1 + self.random.below(5_000) as usize;
                match self.read(log, at, next, most) {
                    Ok(next) => at = next,
                    Err(ReadError::Trimmed { first }) => at = first,
                    Err(ReadError::Damaged { from, to }) => self.repair(log, from, to),
                    Err(error) => panic!("{error}"),
                }
            }
        }
        // Damage to files whose records are in memory as well.
        for (log, from, to) in self.scrub() {
            self.repair(log, from, to);
        }
        assert_eq!(self.scrub(), []);
    }

    /// Reads all files, and what is wrong with them: nothing but what was done to them.
    fn scrub(&self) -> Vec<(u64, u64, u64)> {
        let (mut files, mut damaged) = (Scrub::new(self.store()), Vec::new());
        while let Some((log, found)) = files.next(|_| {}) {
            match found {
                Ok(()) => {}
                Err(ReadError::Damaged { from, to }) => {
                    assert!(self.is_damaged);
                    damaged.push((log, from, to));
                }
                Err(error) => assert!(self.is_faulty, "{error}"),
            }
        }
        damaged
    }

    fn repair(&mut self, log: u64, from: u64, to: u64) {
        let mut repair = self.store().repair(log, from, to).unwrap().unwrap();
        if self.random.one_in(5) {
            // Given up, and begun again.
            drop(repair);
            repair = self.store().repair(log, from, to).unwrap().unwrap();
        }
        while repair.wanted().0 < to {
            let (at, _) = repair.wanted();
            let until = to.min(at + 1 + self.random.below(20));
            repair.add(&run(log, at, until)).unwrap();
        }
        assert!(repair.finish().unwrap());
        self.repaired += 1;
    }

    fn stop_faults(&mut self) {
        let mut world = self.dir.world();
        world.always = None;
        world.fail_in(usize::MAX / 2, EIO, 0);
        drop(world);
        while self.store().step() != Step::Idle {}
        self.is_faulty = false;
    }

    fn fault(&mut self) {
        self.is_faulty = true;
        let code = [ENOSPC, EIO][self.random.below(2) as usize];
        let which = ["write", "sync", "rename", "sync names", "remove"];
        let which = which[self.random.below(5) as usize];
        let mut world = self.dir.world();
        match self.random.below(3) {
            0 => world.always = Some((which, code)),
            _ => {
                let (ahead, written) = (self.random.below(20), self.random.below(500));
                world.fail_in(1 + ahead as usize, code, written as usize);
            }
        }
        drop(world);
        for _ in 0..self.random.below(30) {
            match self.random.below(6) {
                0 => self.checkpoint(),
                1 => self.read_somewhere(),
                2 => drop(self.store().step()),
                _ => self.command(),
            }
        }
        self.lost += self.store().missing().len() as u64;
        if self.random.one_in(2) {
            self.dir.world().forget_what_is_clean();
            self.is_damaged = true;
        }
        self.stop_faults();
        if self.random.one_in(2) {
            self.heal();
        }
    }

    fn flip(&mut self) {
        let mut world = self.dir.world();
        let inodes: Vec<usize> = world
            .names
            .iter()
            .filter(|(name, _)| name.ends_with(".seg"))
            .map(|(_, inode)| *inode)
            .collect();
        if inodes.is_empty() {
            return;
        }
        let inode = inodes[self.random.below(inodes.len() as u64) as usize];
        let seen = &mut world.inodes[inode].seen;
        for _ in 0..1 + self.random.below(3) {
            let at = self.random.below(seen.len().max(1) as u64) as usize;
            seen.get_mut(at).into_iter().for_each(|byte| *byte ^= 0x10);
        }
        drop(world);
        self.is_damaged = true;
    }

    /// The process or the machine stops, and begins again with some checkpoint.
    fn restart(&mut self) {
        let loses_power = self.random.one_in(2);
        if loses_power {
            let until = self.dir.world().calls + 1 + self.random.below(40) as usize;
            self.dir.world().power_until = Some(until);
            self.is_faulty = true;
            for _ in 0..self.random.below(20) {
                match self.random.below(4) {
                    0 => self.checkpoint(),
                    1 => drop(self.store().step()),
                    _ => self.command(),
                }
            }
        }
        self.store = None;
        self.dir.world().always = None;
        if loses_power {
            let keep = [Keep::Nothing, Keep::Some, Keep::Some, Keep::All];
            let keep = keep[self.random.below(4) as usize];
            self.dir.world().lose_power(&mut self.random, keep);
        }
        self.dir.world().power_until = None;
        self.dir.world().fail_in(usize::MAX / 2, EIO, 0);
        self.is_faulty = false;
        self.begin();
    }

    fn begin(&mut self) {
        let files = self.dir.world().files();
        let had = on_disk(&files);
        let checkpoint = self.checkpoint.clone();
        self.check_durable(&checkpoint, &had);
        let has = match self.random.one_in(3) {
            true => self.destroy(files),
            false => had.clone(),
        };
        let tails = Tails::decode(&checkpoint.tails).filter(|_| !self.random.one_in(4));
        (self.applied, self.logs) = (checkpoint.commands, checkpoint.logs);
        if self.random.one_in(4) {
            // Another replica's checkpoint, which is newer.
            let ahead = self
                .random
                .below((self.history.len() - self.applied + 1) as u64);
            for command in &self.history[self.applied..self.applied + ahead as usize] {
                apply(&mut self.logs, *command);
            }
            self.applied += ahead as usize;
            self.checkpoint.commands = self.applied;
            self.checkpoint.logs = self.logs.clone();
        }
        let store = Store::open(self.dir.clone(), self.options.clone()).unwrap();
        let logs = self.logs.iter();
        let logs: Vec<_> = logs
            .map(|(log, (first, next))| (*log, *first, *next))
            .collect();
        let mut missing = store.begin(&logs, tails.as_ref()).unwrap();
        if self.random.one_in(6) {
            let again = store.begin(&logs, tails.as_ref()).unwrap();
            assert_eq!(again, missing, "a second time");
            missing = again;
        }
        assert_eq!(store.missing(), missing);
        self.store = Some(store);
        self.check_missing(&missing, &had, &has);
        if had != has {
            // What comes in its place is not durable before the next checkpoint.
            self.checkpoint.own.clear();
        }
        if self.random.one_in(2) {
            self.heal();
        }
    }

    /// A checkpoint that was completed is one.
    fn check_durable(&self, checkpoint: &Checkpoint, had: &BTreeMap<u64, Vec<u64>>) {
        for (log, (_, next)) in &checkpoint.own {
            let Some((first, _)) = checkpoint.logs.get(log) else {
                continue;
            };
            let trimmed = self.trimmed.get(log).copied().unwrap_or(1);
            let had: BTreeSet<u64> = had.get(log).into_iter().flatten().copied().collect();
            for at in (*first).max(trimmed)..*next {
                let is_there = had.contains(&at) || self.is_damaged;
                assert!(is_there, "record {at} of {log} was not durable");
            }
        }
    }

    /// Removes a file, or cuts it.
    fn destroy(&mut self, mut files: BTreeMap<String, Vec<u8>>) -> BTreeMap<u64, Vec<u64>> {
        let names: Vec<String> = files
            .keys()
            .filter(|name| name.ends_with(".seg"))
            .cloned()
            .collect();
        for _ in 0..self.random.below(3).min(names.len() as u64) {
            let name = &names[self.random.below(names.len() as u64) as usize];
            if self.random.one_in(2) {
                files.remove(name);
            } else if let Some(file) = files.get_mut(name) {
                file.truncate(self.random.below(file.len() as u64 + 1) as usize);
            }
        }
        self.dir = SimDir::with(&files);
        on_disk(&files)
    }

    /// What is said to be missing is what the files do not have.
    fn check_missing(
        &self,
        missing: &[Missing],
        had: &BTreeMap<u64, Vec<u64>>,
        has: &BTreeMap<u64, Vec<u64>>,
    ) {
        let set = |all: &BTreeMap<u64, Vec<u64>>, log| -> BTreeSet<u64> {
            all.get(log).into_iter().flatten().copied().collect()
        };
        for (log, (first, next)) in &self.logs {
            let said = missing.iter().filter(|missing| missing.log == *log);
            let said: BTreeSet<u64> = said.flat_map(|missing| missing.from..missing.to).collect();
            let (had, has) = (set(had, log), set(has, log));
            let floor = self.floor(*log);
            for at in *first..*next {
                let is_said = said.contains(&at);
                let is_there = has.contains(&at);
                let at_checkpoint = self.checkpoint.own.get(log);
                let is_old = at_checkpoint.is_some_and(|(_, next)| at < *next);
                if is_said && !self.is_damaged {
                    assert!(!is_there, "{at} of {log} is there");
                    // What was trimmed is missing only if it was destroyed, or came later.
                    let why = at >= floor || !is_old || had.contains(&at);
                    assert!(why, "{at} of {log} was trimmed");
                }
                if !is_said && at >= floor && !self.is_damaged {
                    assert!(is_there, "{at} of {log} is missing");
                }
            }
        }
    }

    fn live(&mut self) {
        let has_flips = self.seed.is_multiple_of(3);
        for _ in 0..250 {
            match self.random.below(60) {
                0..4 => self.checkpoint(),
                4..12 => drop(self.store().step()),
                12..22 => self.read_somewhere(),
                22 => self.restart(),
                23 => self.fault(),
                24 if has_flips => {
                    self.flip();
                    self.heal();
                }
                25 => self.heal(),
                26 => drop(self.scrub()),
                _ => self.command(),
            }
        }
        self.heal();
        self.checkpoint();
        self.restart();
        self.heal();
        let status = self.store().status();
        assert_eq!(status.missing_records, 0);
        assert!(!status.is_failing);
    }
}

#[test]
fn a_replica_that_lives_through_everything_never_reads_wrong_bytes() {
    let (mut synced, mut lost, mut repaired) = (0, 0, 0);
    let number = |name| std::env::var(name).ok()?.parse().ok();
    let (from, to) = match number("SEED") {
        Some(seed) => (seed, seed + 1),
        None => (0, number("SEEDS").unwrap_or(SEEDS)),
    };
    for seed in from..to {
        let mut replica = Replica::new(seed);
        let lived = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| replica.live()));
        if let Err(panic) = lived {
            eprintln!("again with SEED={seed}");
            std::panic::resume_unwind(panic);
        }
        synced += replica.synced;
        lost += replica.lost;
        repaired += replica.repaired;
    }
    if to - from > 1 {
        // It has seen all of it, and often.
        assert!(synced > 10 * SEEDS, "{synced} checkpoints");
        assert!(lost > SEEDS / 4, "{lost} gaps");
        assert!(repaired > SEEDS / 4, "{repaired} repairs");
    }
}
