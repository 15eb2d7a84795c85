//! A life of a log, on a disk that fails in it or loses its power, and what has to be there afterwards.

use rota_storage::acceptor::{AppendError, DiskLog, Kind, LogOpenError, Record, SpareJob, Upkeep};

use super::{Keep, Random, SimDir, SimFile, append, options, record, told};

pub fn vote(instance: u64) -> Record {
    SMALL.vote(instance)
}

/// A log that holds the first votes and a promise, all durable.
pub fn prepared() -> SimDir {
    SMALL.prepared()
}

/// The sizes of segments and votes.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    segment: u64,
    vote: usize,
}

/// One block in each segment, beside its head.
pub const SMALL: Sizes = Sizes {
    segment: 8 << 10,
    vote: 300,
};

/// Votes that cross blocks, and segments that are written in portions.
pub const LARGE: Sizes = Sizes {
    segment: 24 << 10,
    vote: 2300,
};

impl Sizes {
    fn open(self, dir: &SimDir) -> Result<DiskLog<SimDir>, LogOpenError> {
        let mut options = options();
        options.segment_bytes = self.segment;
        DiskLog::open_on(dir.clone(), options)
    }

    fn vote(self, instance: u64) -> Record {
        let bytes = vec![instance as u8; self.vote];
        record(Kind::Vote, instance, instance, &bytes)
    }

    fn prepared(self) -> SimDir {
        let dir = SimDir::default();
        let mut log = self.open(&dir).unwrap();
        append(&mut log, &[record(Kind::Promise, 0, u64::MAX, b"first")]).unwrap();
        for instance in 0..8 {
            append(&mut log, &[self.vote(instance)]).unwrap();
            log.commit().unwrap();
        }
        drop(log);
        dir
    }
}

/// When what need not be done before answers is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum When {
    /// After each commit.
    AtOnce,
    /// It is begun then, and what takes long comes some commits later, or when a segment may end.
    Late,
}

/// The promises of a life about what is durable, and its attempts.
#[derive(Clone, Copy, Debug, Default)]
struct Promised {
    votes: u64,
    tried: u64,
    trim: u64,
}

/// A portion of a new segment that is to be written, and the instance since which it waits.
type Held = Option<(SpareJob<SimFile>, u64)>;

/// No other file may be needed before it is written: there is one thread.
fn run_in_time(log: &DiskLog<SimDir>, sizes: Sizes, held: &mut Held, instance: u64) {
    let may_end = log.end().offset + 2 * sizes.vote as u64 > sizes.segment;
    let due = held.take_if(|(_, since)| may_end || instance >= *since + 5);
    if let Some((job, _)) = due {
        job.run();
    }
}

fn keep_up(
    log: &mut DiskLog<SimDir>,
    when: When,
    held: &mut Held,
    instance: u64,
) -> Result<(), AppendError> {
    if when == When::AtOnce {
        return log.maintain().map(|_| ());
    }
    match log.start_upkeep()? {
        Upkeep::Job(job) => {
            assert!(held.is_none(), "one at a time");
            *held = Some((job, instance));
        }
        Upkeep::UnderWay => assert!(held.is_some()),
        Upkeep::Done => {}
    }
    Ok(())
}

/// Opens the log, votes in 8..60, and trims meanwhile, so that segments serve again.
fn a_life(dir: &SimDir, when: When, sizes: Sizes) -> (Promised, Option<AppendError>) {
    let mut promised = Promised {
        votes: 8,
        tried: 8,
        trim: 0,
    };
    let Ok(mut log) = sizes.open(dir) else {
        return (promised, None);
    };
    let mut held = None;
    for instance in 8..60 {
        promised.tried = instance + 1;
        let trim = match instance {
            12 => 5,
            25 => 20,
            40 => 36,
            _ => promised.trim,
        };
        run_in_time(&log, sizes, &mut held, instance);
        let done = append(&mut log, &[sizes.vote(instance)])
            .and_then(|()| log.trim(trim).map(|_| ()))
            .and_then(|()| log.commit());
        if let Err(error) = done {
            return (promised, Some(error));
        }
        promised.votes = instance + 1;
        promised.trim = trim;
        if let Err(error) = keep_up(&mut log, when, &mut held, instance) {
            return (promised, Some(error));
        }
    }
    (promised, None)
}

fn check(dir: &SimDir, sizes: Sizes, promised: Promised, case: &dyn Fn() -> String) {
    let mut log = sizes
        .open(dir)
        .unwrap_or_else(|error| panic!("{}: {error}", case()));
    let told = told(&mut log);
    let promise = record(Kind::Promise, 0, u64::MAX, b"first");
    assert_eq!(told.state, [promise], "{}", case());
    assert!(told.first >= promised.trim, "{}", case());
    let votes = told.instances.len() as u64 + told.first;
    assert!(
        (promised.votes..=promised.tried).contains(&votes),
        "{}: {votes} {promised:?}",
        case()
    );
    let expected: Vec<Record> = (told.first..votes)
        .map(|instance| sizes.vote(instance))
        .collect();
    assert_eq!(told.instances, expected, "{}", case());
}

fn calls_of_a_life(start: &SimDir, when: When, sizes: Sizes) -> (usize, usize) {
    let whole = start.fork();
    let from = whole.world().calls;
    let (promised, error) = a_life(&whole, when, sizes);
    assert!(error.is_none() && promised.votes == 60);
    let calls = whole.world().calls - from;
    assert!(calls > 100, "{calls}");
    (from, calls)
}

/// Power goes at each call.
pub fn no_loss_takes_anything_back(when: When, sizes: Sizes) {
    let start = sizes.prepared();
    let (from, calls) = calls_of_a_life(&start, when, sizes);
    for last in 1..=calls {
        for (try_, keep) in [Keep::Nothing, Keep::All, Keep::Some, Keep::Some, Keep::Some]
            .into_iter()
            .enumerate()
        {
            let dir = start.fork();
            dir.world().power_until = Some(from + last);
            let (promised, _) = a_life(&dir, when, sizes);
            let mut random = Random((last * 8 + try_) as u64);
            dir.world().lose_power(&mut random, keep);
            check(&dir, sizes, promised, &|| {
                format!("{keep:?} {try_} at {last}")
            });
        }
    }
}

/// Each call fails.
pub fn every_error_has_its_outcome(when: When, sizes: Sizes) {
    let start = sizes.prepared();
    let (_, calls) = calls_of_a_life(&start, when, sizes);
    let mut no_space = 0;
    for call in 1..=calls {
        for (code, bytes) in [
            (libc::EIO, 0),
            (libc::EIO, 130),
            (libc::ENOSPC, 90),
            (libc::EROFS, 0),
        ] {
            let dir = start.fork();
            dir.world().fail_in(call, code, bytes);
            let (promised, error) = a_life(&dir, when, sizes);
            let case = || format!("{code} at {call}: {error:?}");
            match &error {
                // Refused when it was opened; nothing was tried.
                None => assert!(promised.votes == 8 || promised.votes == 60, "{}", case()),
                Some(AppendError::Io(_)) => {}
                Some(AppendError::NoSpace(_)) => {
                    assert_eq!(code, libc::ENOSPC, "{}", case());
                    no_space += 1;
                }
                Some(_) => panic!("{}", case()),
            }
            check(&dir.fork(), sizes, promised, &case);
            // Also if the power goes now.
            dir.world().lose_power(&mut Random(call as u64), Keep::Some);
            check(&dir, sizes, promised, &case);
        }
    }
    assert!(no_space > 0);
}
