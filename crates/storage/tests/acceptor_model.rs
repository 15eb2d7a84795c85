//! Seeded runs against a plain model: appends, trims, syncs, faults, crashes and losses of power, in segments
//! so small that they are always being recycled.

mod sim;

use std::collections::BTreeMap;

use rota_storage::acceptor::{
    AppendError, DiskLog, FetchError, Group, Kind, LogOptions, Mode, Record,
};
use sim::{Keep, Random, SimDir, append, options, record, try_told};

/// The contents of a naive acceptor after these records.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Plain {
    first: u64,
    instances: BTreeMap<u64, (Kind, Vec<u8>)>,
    /// The promise that holds in each of some instances.
    promises: BTreeMap<u64, Vec<u8>>,
    configuration: Option<Vec<u8>>,
    decided: Option<(u64, Vec<u8>)>,
    keyed: BTreeMap<u64, Vec<u8>>,
}

/// No instance of a run is beyond.
const END: u64 = 4000;

impl Plain {
    fn after(records: &[Record]) -> Self {
        let mut plain = Self::default();
        let mut promises: Vec<&Record> = Vec::new();
        for what in records {
            let held = (what.kind, what.bytes.clone());
            match what.kind {
                Kind::Vote | Kind::Skip => {
                    for instance in what.first..=what.last {
                        plain.instances.insert(instance, held.clone());
                    }
                }
                Kind::Promise => promises.push(what),
                Kind::Configuration => plain.configuration = Some(held.1),
                Kind::Decided => plain.decided = Some((what.first, held.1)),
                Kind::State => {
                    plain.keyed.insert(what.first, held.1);
                }
                Kind::Trim => plain.first = plain.first.max(what.first),
            }
            plain.instances = plain.instances.split_off(&plain.first);
        }
        plain.promised(|at| promises.iter().rev().find(|p| p.first <= at).copied());
        plain
    }

    fn promised<'a>(&mut self, by: impl Fn(u64) -> Option<&'a Record>) {
        for at in (self.first..END).step_by(7) {
            if let Some(promise) = by(at) {
                self.promises.insert(at, promise.bytes.clone());
            }
        }
    }

    /// The contents that a log tells, in the same terms.
    fn told(log: &mut DiskLog<SimDir>) -> Result<Self, FetchError> {
        let told = try_told(log)?;
        let mut plain = Self {
            first: told.first,
            ..Self::default()
        };
        for what in &told.instances {
            for instance in what.first..=what.last {
                let before = plain
                    .instances
                    .insert(instance, (what.kind, what.bytes.clone()));
                assert_eq!(before, None, "{instance} is told twice");
            }
        }
        let newest = |kind| told.state.iter().rev().find(|r| r.kind == kind);
        plain.configuration = newest(Kind::Configuration).map(|r| r.bytes.clone());
        plain.decided = newest(Kind::Decided).map(|r| (r.first, r.bytes.clone()));
        for what in told.state.iter().filter(|r| r.kind == Kind::State) {
            let before = plain.keyed.insert(what.first, what.bytes.clone());
            assert_eq!(before, None, "key {} is told twice", what.first);
        }
        let promises = told.state.iter().filter(|r| r.kind == Kind::Promise);
        let promises: Vec<&Record> = promises.collect();
        plain.promised(|at| promises.iter().rev().find(|p| p.first <= at).copied());
        Ok(plain)
    }
}

/// Nothing was appended.
const fn is_refusal(error: &AppendError) -> bool {
    matches!(error, AppendError::NoSpace(_) | AppendError::TooLong { .. })
}

struct Run {
    random: Random,
    dir: SimDir,
    options: LogOptions,
    /// All that was appended, or tried.
    records: Vec<Record>,
    /// So many are durable; so many are known to the system.
    durable: usize,
    written: usize,
    now: u64,
    trimmed: u64,
    /// The group for the next records, and the one for those behind them.
    groups: [Group; 2],
    seen: Seen,
}

/// The events that the runs have come across.
#[derive(Debug, Default)]
struct Seen {
    crashes: u64,
    lost: u64,
    no_room: u64,
    failed: u64,
    recycled: u64,
    closed: u64,
    refused: u64,
    groups: u64,
}

impl Run {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        let mut options = options();
        options.spares = random.below(3) as usize;
        if random.one_in(3) {
            options.mode = Mode::ASYNC;
        }
        if random.one_in(4) {
            options.segment_bytes = 16 << 10;
        }
        Self {
            random,
            dir: SimDir::default(),
            options,
            records: Vec::new(),
            durable: 0,
            written: 0,
            now: 0,
            trimmed: 0,
            groups: Default::default(),
            seen: Seen::default(),
        }
    }

    fn draw(&mut self) -> Record {
        let len = match self.random.below(10) {
            0 => 0,
            1 => 400,
            _ => self.random.below(200),
        } as usize;
        let mut bytes = vec![self.random.below(256) as u8; len];
        bytes.extend(self.records.len().to_le_bytes());
        let near = self.now.saturating_sub(self.random.below(20));
        match self.random.below(20) {
            0 => record(Kind::Promise, near, u64::MAX, &bytes[len..]),
            1 => record(Kind::Configuration, 0, 0, &bytes[len..]),
            2 => record(Kind::Decided, near, near, &bytes[len..]),
            3 => {
                let last = near + self.random.below(30);
                self.now = self.now.max(last);
                record(Kind::Skip, near, last, &bytes)
            }
            4 => record(Kind::Vote, near, near, &bytes),
            5 => record(Kind::State, self.random.below(8), 0, &bytes[len..]),
            _ => {
                self.now += 1;
                record(Kind::Vote, self.now, self.now, &bytes)
            }
        }
    }

    /// Opens it, and holds what it tells against all that may be left.
    fn open(&mut self) -> Option<DiskLog<SimDir>> {
        if self.random.one_in(4) {
            let ahead = 1 + self.random.below(40) as usize;
            self.dir.world().fail_in(ahead, libc::EIO, 100);
        }
        let mut opened = DiskLog::open_on(self.dir.clone(), self.options.clone());
        if opened.is_err() {
            self.seen.refused += 1;
            // It can be opened again.
            if self.random.one_in(2) {
                return None;
            }
            self.dir.world().fail_in(usize::MAX / 2, 0, 0);
            opened = DiskLog::open_on(self.dir.clone(), self.options.clone());
        }
        self.dir.world().fail_in(usize::MAX / 2, 0, 0);
        let mut log = opened.unwrap_or_else(|error| panic!("{error}"));
        let told = Plain::told(&mut log).unwrap();
        let left = (self.durable..=self.records.len())
            .rev()
            .find(|n| Plain::after(&self.records[..*n]) == told);
        let Some(left) = left else {
            panic!(
                "of {} records {} were durable, and it is none of these: {told:?}; instead of {:?}",
                self.records.len(),
                self.durable,
                Plain::after(&self.records)
            );
        };
        self.seen.lost += (self.records.len() - left) as u64;
        self.records.truncate(left);
        self.now = self.now.min(END / 2);
        (self.durable, self.written) = (left, left);
        self.trimmed = log.first();
        Some(log)
    }

    /// Whether the log is still good.
    fn took(&mut self, result: Result<(), AppendError>) -> bool {
        match result {
            Ok(()) => true,
            Err(AppendError::NoSpace(_)) => {
                self.seen.no_room += 1;
                true
            }
            // More promises than are to be written again.
            Err(AppendError::TooLong { .. }) => true,
            Err(AppendError::Io(_)) => {
                self.seen.failed += 1;
                false
            }
            Err(error) => panic!("{error}"),
        }
    }

    fn append(&mut self, log: &mut DiskLog<SimDir>) -> bool {
        let batch: Vec<Record> = (0..=self.random.below(3)).map(|_| self.draw()).collect();
        let result = append(log, &batch);
        if !result.as_ref().is_err_and(is_refusal) {
            self.records.extend(batch);
        }
        self.took(result)
    }

    /// Appends a group as the thread of a log does. After a failure nothing is appended any more.
    fn append_group(&mut self, log: &mut DiskLog<SimDir>) -> bool {
        let count = self.random.below(8) as usize;
        let mut batch: Vec<Record> = (0..count).map(|_| self.draw()).collect();
        let [group, next] = &mut self.groups;
        for what in &batch {
            group.put(what.borrowed());
        }
        let first = self.now.saturating_sub(20);
        if first > self.trimmed && self.random.one_in(4) {
            group.trim(first);
            batch.push(record(Kind::Trim, first, first, b""));
            self.trimmed = first;
        }
        assert_eq!(group.is_empty(), batch.is_empty());
        log.place_behind(group, next);
        let result = log.append_group(group).map(|_| ());
        self.groups.swap(0, 1);
        self.records.extend(batch);
        let good = result.is_ok();
        self.seen.groups += u64::from(good);
        self.took(result) && good
    }

    fn trim(&mut self, log: &mut DiskLog<SimDir>) -> bool {
        let first = self.now.saturating_sub(self.random.below(30));
        if first <= self.trimmed {
            return true;
        }
        let result = log.trim(first).map(|_| ());
        if !matches!(result, Err(AppendError::NoSpace(_))) {
            self.records.push(record(Kind::Trim, first, first, b""));
            self.trimmed = first;
        }
        let good = self.took(result);
        if good && log.first() > 0 {
            let before = log.fetch(log.first() - 1, u64::MAX, 1);
            let first = log.first();
            assert!(matches!(before, Err(FetchError::Trimmed { first: at }) if at == first));
        }
        good
    }

    fn step(&mut self, log: &mut DiskLog<SimDir>) -> bool {
        match self.random.below(24) {
            0..8 => self.append(log),
            8..12 => self.append_group(log),
            12..18 => {
                let result = log.commit();
                let all = result.is_ok().then_some(self.records.len());
                self.written = all.unwrap_or(self.written);
                if self.options.mode == Mode::Sync {
                    self.durable = all.unwrap_or(self.durable);
                }
                self.took(result)
            }
            18 => {
                let result = log.sync();
                if result.is_ok() {
                    self.durable = self.records.len();
                }
                self.took(result)
            }
            19 | 20 => {
                let result = log.maintain().map(|_| ());
                self.took(result)
            }
            21 => {
                let result = log.settle();
                self.took(result)
            }
            22 => self.trim(log),
            _ => {
                match Plain::told(log) {
                    Ok(told) => assert_eq!(told, Plain::after(&self.records)),
                    // A fault that was put in.
                    Err(FetchError::Io(_) | FetchError::Failed) => {}
                    Err(error) => panic!("{error}"),
                }
                true
            }
        }
    }

    fn one_life(&mut self) {
        let Some(mut log) = self.open() else {
            return;
        };
        let fault = self.random.below(6);
        let ahead = 1 + self.random.below(120) as usize;
        let part = self.random.below(600) as usize;
        match fault {
            0 => self.dir.world().fail_in(ahead, libc::EIO, part),
            1 | 5 => self.dir.world().fail_in(ahead, libc::ENOSPC, part),
            2 => {
                let mut world = self.dir.world();
                world.power_until = Some(world.calls + ahead);
            }
            _ => {}
        }
        self.groups = Default::default();
        let mut good = true;
        for _ in 0..self.random.below(150) {
            good = !log.has_failed() && self.step(&mut log);
            if !good {
                break;
            }
        }
        self.seen.recycled += log.end().segment;
        let has_power = self.dir.world().power_until.is_none();
        if good && self.random.one_in(4) && log.close().is_ok() {
            self.seen.closed += 1;
            self.durable = self.records.len();
        }
        if has_power && self.random.one_in(3) {
            // The process alone has ended: what the system had is there.
            self.durable = self.durable.max(self.written);
            self.dir.world().fail_in(usize::MAX / 2, 0, 0);
        } else {
            self.seen.crashes += 1;
            let keep = [Keep::Nothing, Keep::All, Keep::Some, Keep::Some];
            let keep = keep[self.random.below(4) as usize];
            let mut random = Random(self.random.below(u64::MAX));
            self.dir.world().lose_power(&mut random, keep);
        }
    }
}

#[test]
fn whatever_happens_what_was_durable_is_there_and_nothing_that_was_not_written() {
    let seeds: u64 = std::env::var("ROTA_SEEDS").map_or(100, |seeds| seeds.parse().unwrap());
    let mut seen = Seen::default();
    for seed in 0..seeds {
        let mut run = Run::new(seed);
        println!("seed {seed}");
        for _ in 0..12 {
            run.one_life();
        }
        for (all, one) in [
            (&mut seen.crashes, run.seen.crashes),
            (&mut seen.lost, run.seen.lost),
            (&mut seen.no_room, run.seen.no_room),
            (&mut seen.failed, run.seen.failed),
            (&mut seen.recycled, run.seen.recycled),
            (&mut seen.closed, run.seen.closed),
            (&mut seen.refused, run.seen.refused),
            (&mut seen.groups, run.seen.groups),
        ] {
            *all += one;
        }
    }
    println!("{seen:?}");
    // All of it was come across.
    for often in [
        seen.crashes,
        seen.lost,
        seen.no_room,
        seen.failed,
        seen.recycled,
        seen.closed,
        seen.refused,
        seen.groups,
    ] {
        assert!(often > seeds / 10, "{seen:?}");
    }
}
