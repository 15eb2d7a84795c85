use std::collections::BTreeSet;

use rota_paxos::{STATE_LOG, VOTES_LOG, VoteHead};

use super::*;

const LOG: LogId = LogId(1);

const SYNC: DisksPlan = DisksPlan {
    mode: DiskMode::Sync,
    latency: (10, 10),
    slow: 0,
    slow_for: 1000,
    lag: 100,
    per_milli: 0,
    unreadable: 0,
    lies: false,
    hides_failures: false,
};
const ASYNC: DisksPlan = DisksPlan {
    mode: DiskMode::Async,
    ..SYNC
};

fn put(position: u64) -> LogRecord {
    let bytes = vec![position as u8].into();
    LogRecord::Put {
        log: LOG,
        position,
        bytes,
    }
}

fn positions(disk: &Disk) -> Vec<u64> {
    disk.records().iter().map(|&(_, at, _)| at).collect()
}

/// Position 1 is durable, 2 and 3 are on their way.
fn half_written() -> Disk {
    let (mut disk, mut rng) = (Disk::default(), Rng::new(1));
    disk.persist(PersistId(1), vec![put(1)], 10);
    disk.persist(PersistId(2), vec![put(2), put(3)], 20);
    assert!(disk.written(None, 9, &mut rng).is_none());
    assert!(matches!(
        disk.written(None, 10, &mut rng),
        Some(Input::Persisted { id: PersistId(1) })
    ));
    disk
}

#[test]
fn what_was_not_reported_as_durable_may_be_lost_or_kept_or_torn() {
    let mut rng = Rng::new(1);
    for (loss, left) in [
        (DiskLoss::Nothing, vec![1, 2, 3]),
        (DiskLoss::Unsynced, vec![1]),
        (DiskLoss::Everything, vec![]),
    ] {
        let mut disk = half_written();
        disk.crash(10, Crash::Process, loss, &mut rng);
        assert_eq!(positions(&disk), left, "{loss:?}");
    }
    let mut seen = BTreeSet::new();
    for _ in 0..50 {
        let mut disk = half_written();
        disk.crash(10, Crash::Process, DiskLoss::Torn, &mut rng);
        seen.insert(positions(&disk));
    }
    assert_eq!(seen.len(), 3, "{seen:?}");
}

#[test]
fn a_write_that_fails_is_reported_and_leaves_nothing() {
    let (mut disk, mut rng) = (Disk::default(), Rng::new(1));
    disk.fails = Some(PersistError::NoSpace);
    disk.persist(PersistId(4), vec![put(1)], 5);
    let answer = disk.written(None, 5, &mut rng);
    assert!(matches!(answer, Some(Input::PersistFailed { .. })));
    disk.crash(5, Crash::Process, DiskLoss::Nothing, &mut rng);
    assert!(positions(&disk).is_empty());
}

#[test]
fn a_fetch_answers_with_what_lies_within_its_bounds() {
    let disk = half_written();
    let Input::Fetched { records, .. } = disk.fetch(LOG, 1, 2) else {
        panic!("not an answer");
    };
    assert_eq!(records.len(), 1);
}

/// The requests that are answered by a time, and whether each went well.
fn answers(disk: &mut Disk, plan: &DisksPlan, now: u64) -> Vec<(u64, bool)> {
    let mut rng = Rng::new(now);
    let answers = std::iter::from_fn(|| disk.written(Some(plan), now, &mut rng));
    let answers = answers.map(|answer| match answer {
        Input::Persisted { id } => (id.0, true),
        Input::PersistFailed { id, .. } => (id.0, false),
        other => panic!("{other:?}"),
    });
    answers.collect()
}

#[test]
fn what_waits_is_written_together_and_answered_in_order() {
    let (mut disk, mut rng) = (Disk::default(), Rng::new(1));
    disk.hand_over(PersistId(1), vec![put(1)]);
    assert_eq!(disk.begin(&SYNC, 5, &mut rng), Some(15));
    for id in 2..5 {
        disk.hand_over(PersistId(id), vec![put(id)]);
        assert_eq!(disk.begin(&SYNC, 6, &mut rng), None, "it is busy");
    }
    assert_eq!(answers(&mut disk, &SYNC, 14), []);
    assert_eq!(answers(&mut disk, &SYNC, 15), [(1, true)]);
    assert_eq!(disk.begin(&SYNC, 15, &mut rng), Some(25));
    assert_eq!(
        answers(&mut disk, &SYNC, 25),
        [(2, true), (3, true), (4, true)]
    );
    assert_eq!(disk.begin(&SYNC, 25, &mut rng), None);
    let slow = DisksPlan {
        slow: 1_000_000,
        ..SYNC
    };
    disk.hand_over(PersistId(5), vec![put(5)]);
    let done = disk.begin(&slow, 30, &mut rng).expect("it begins");
    assert!((40..=1030).contains(&done), "{done}");
}

/// One request is answered at 15; another one waits.
fn answered(plan: &DisksPlan) -> Disk {
    let (mut disk, mut rng) = (Disk::default(), Rng::new(1));
    disk.hand_over(PersistId(1), vec![put(1), put(2)]);
    disk.begin(plan, 5, &mut rng);
    assert_eq!(answers(&mut disk, plan, 15), [(1, true)]);
    disk.hand_over(PersistId(2), vec![put(3), put(4)]);
    disk.begin(plan, 15, &mut rng);
    disk
}

/// All that may be left at a time.
fn left(plan: &DisksPlan, now: u64, what: Crash, loss: DiskLoss) -> BTreeSet<Vec<u64>> {
    let left = (0..200).map(|seed| {
        let mut disk = answered(plan);
        disk.crash(now, what, loss, &mut Rng::new(seed));
        positions(&disk)
    });
    left.collect()
}

#[test]
fn what_is_on_the_disk_survives_the_power_and_what_the_system_has_the_process() {
    let only = |list: &[u64]| BTreeSet::from([list.to_vec()]);
    for what in [Crash::Process, Crash::Power] {
        assert_eq!(left(&SYNC, 16, what, DiskLoss::Unsynced), only(&[1, 2]));
        assert_eq!(
            left(&SYNC, 16, what, DiskLoss::Nothing),
            only(&[1, 2, 3, 4])
        );
        let torn = left(&SYNC, 16, what, DiskLoss::Torn);
        assert_eq!(torn.len(), 3, "{torn:?}");
        assert!(torn.iter().all(|left| left.starts_with(&[1, 2])));
    }
    // The answer was no promise that it is on the disk.
    let process = |loss| left(&ASYNC, 16, Crash::Process, loss);
    assert_eq!(process(DiskLoss::Unsynced), only(&[1, 2]));
    let power = |now, loss| left(&ASYNC, now, Crash::Power, loss);
    assert!(power(16, DiskLoss::Unsynced).contains(&vec![]));
    assert!(power(16, DiskLoss::Torn).contains(&vec![1]));
    // In time it gets there.
    assert_eq!(power(115, DiskLoss::Unsynced), only(&[1, 2]));
}

#[test]
fn what_one_life_left_to_the_system_the_next_one_may_lose() {
    let mut lost = BTreeSet::new();
    for seed in 0..200 {
        let (mut disk, mut rng) = (answered(&ASYNC), Rng::new(seed));
        disk.crash(16, Crash::Process, DiskLoss::Nothing, &mut rng);
        assert_eq!(positions(&disk), [1, 2, 3, 4]);
        disk.crash(17, Crash::Power, DiskLoss::Torn, &mut rng);
        lost.insert(positions(&disk));
    }
    assert!(
        lost.contains(&vec![]) && lost.contains(&vec![1, 2, 3]),
        "{lost:?}"
    );
}

#[test]
fn nothing_goes_well_after_a_failure_until_another_life() {
    let mut left = BTreeSet::new();
    for full in [false, true] {
        for seed in 0..50 {
            let mut disk = answered(&SYNC);
            disk.fails = Some(if full {
                PersistError::NoSpace
            } else {
                PersistError::Io("it does not answer".into())
            });
            let mut rng = Rng::new(seed);
            let failed = disk.written(Some(&SYNC), 25, &mut rng);
            assert!(matches!(failed, Some(Input::PersistFailed { .. })));
            disk.fails = None;
            disk.hand_over(PersistId(3), vec![put(5)]);
            disk.begin(&SYNC, 30, &mut rng);
            assert_eq!(answers(&mut disk, &SYNC, 40), [(3, false)]);
            assert!(disk.is_broken());
            disk.hand_over(PersistId(4), vec![put(6)]);
            disk.crash(41, Crash::Process, DiskLoss::Nothing, &mut rng);
            assert!(!disk.is_broken());
            left.insert((full, positions(&disk)));
            disk.hand_over(PersistId(1), vec![put(7)]);
            disk.begin(&SYNC, 50, &mut rng);
            assert_eq!(answers(&mut disk, &SYNC, 60), [(1, true)]);
        }
    }
    // A first part of a failed write may be there.
    let all = [vec![1, 2], vec![1, 2, 3], vec![1, 2, 3, 4]];
    let mut expected: BTreeSet<_> = all.into_iter().map(|left| (false, left)).collect();
    expected.insert((true, vec![1, 2]));
    assert_eq!(left, expected);
}

/// Writes that are answered, and losses of power between them; then the disk is what it once was.
#[test]
fn a_backup_is_what_the_disk_once_looked_like() {
    let mut found = BTreeSet::new();
    for seed in 0..200 {
        let plan = if seed % 2 == 0 { SYNC } else { ASYNC };
        let (mut disk, mut rng) = (Disk::default(), Rng::new(seed));
        let mut once = vec![Vec::new()];
        for id in 1..60 {
            let now = id * 10;
            let mut records = vec![put(id)];
            if id % 7 == 0 {
                records.push(LogRecord::Trim {
                    log: LOG,
                    position: id - rng.below(7),
                });
            }
            disk.hand_over(PersistId(id), records);
            disk.begin(&plan, now, &mut rng);
            disk.written(Some(&plan), now + 10, &mut rng);
            once.push(positions(&disk));
            if rng.percent(5) {
                disk.crash(now + 10, Crash::Power, DiskLoss::Unsynced, &mut rng);
            }
        }
        disk.crash(600, Crash::Process, DiskLoss::Backup, &mut rng);
        let left = positions(&disk);
        assert!(once.contains(&left), "seed {seed}: {left:?} of {once:?}");
        found.insert(left.last().copied());
    }
    assert!(found.len() > 10, "{found:?}");
}

fn vote(first: u64, span: u64) -> LogRecord {
    let head = VoteHead { round: 1, span };
    LogRecord::Put {
        log: VOTES_LOG,
        position: first,
        bytes: head.encode().to_vec().into(),
    }
}

/// The votes that are left of these: first instances, and how many each is for.
fn votes(records: Vec<LogRecord>) -> Vec<(u64, u64)> {
    let mut image = Image::default();
    image.apply(LogRecord::Put {
        log: STATE_LOG,
        position: 2,
        bytes: Bytes::from_static(b"state").into(),
    });
    records.into_iter().for_each(|record| image.apply(record));
    assert_eq!(image.between(STATE_LOG, 0, 8).len(), 1);
    let votes = image.between(VOTES_LOG, 0, u64::MAX);
    let span = |bytes: &Bytes| VoteHead::read(bytes).expect("a head").span;
    votes.iter().map(|(at, bytes)| (*at, span(bytes))).collect()
}

#[test]
fn a_vote_takes_the_place_of_what_was_kept_of_its_instances() {
    assert_eq!(votes(vec![vote(5, 10), vote(5, 1)]), [(5, 1), (6, 9)]);
    assert_eq!(
        votes(vec![vote(5, 10), vote(7, 2)]),
        [(5, 2), (7, 2), (9, 6)]
    );
    assert_eq!(
        votes(vec![vote(5, 3), vote(8, 3), vote(6, 4)]),
        [(5, 1), (6, 4), (10, 1)]
    );
    assert_eq!(votes(vec![vote(5, 1), vote(6, 1), vote(1, 10)]), [(1, 10)]);
    let trim = |position| LogRecord::Trim {
        log: VOTES_LOG,
        position,
    };
    assert_eq!(
        votes(vec![vote(5, 10), vote(15, 1), trim(8)]),
        [(8, 7), (15, 1)]
    );
    assert_eq!(votes(vec![vote(5, 10), trim(15)]), []);
    assert_eq!(
        votes(vec![vote(u64::MAX - 1, 1), vote(3, 2), trim(0)]),
        [(3, 2), (u64::MAX - 1, 1)]
    );
}

/// The same as if each instance were kept by itself.
#[test]
fn votes_for_ranges_are_kept_as_votes_for_each() {
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let (mut image, mut each) = (Image::default(), [0_u64; 40]);
        for round in 1..20 {
            let first = rng.below(30);
            if rng.percent(10) {
                each[..first as usize].fill(0);
                image.apply(LogRecord::Trim {
                    log: VOTES_LOG,
                    position: first,
                });
                continue;
            }
            let head = VoteHead {
                round,
                span: rng.range(1, 10),
            };
            each[first as usize..(first + head.span) as usize].fill(round);
            image.apply(LogRecord::Put {
                log: VOTES_LOG,
                position: first,
                bytes: head.encode().to_vec().into(),
            });
        }
        let mut kept = [0_u64; 40];
        for (at, bytes) in image.between(VOTES_LOG, 0, 40) {
            let head = VoteHead::read(&bytes).expect("a head");
            let range = &mut kept[at as usize..(at + head.span) as usize];
            assert!(
                range.iter().all(|round| *round == 0),
                "seed {seed}: they overlap"
            );
            range.fill(head.round);
        }
        assert_eq!(kept, each, "seed {seed}");
    }
}
