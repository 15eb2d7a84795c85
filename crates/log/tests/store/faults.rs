//! One fault at a time.

use std::time::Duration;

use rota_log::store::{Missing, Options, ReadError, Scrub, Step, Store, Tails, Writing};

use crate::sim::{Keep, Random, SimDir};
use crate::world::{on_disk, records, run};
use crate::{EIO, ENOSPC};

fn options() -> Options {
    Options {
        segment_bytes: 4_000,
        cache_bytes: 1_000_000,
        unwritten_bytes: 4_000,
        index_bytes: 500,
        indexes: 2,
        trim_every: Duration::ZERO,
        writing: Writing::Caller,
    }
}

fn open(dir: &SimDir) -> Store<SimDir> {
    Store::open(dir.clone(), options()).unwrap()
}

fn append(store: &Store<SimDir>, log: u64, from: u64, to: u64) {
    let mut at = from;
    while at < to {
        let next = to.min(at + 3);
        store.append(log, at, (next - at) as u32, records(log, at, next));
        at = next;
    }
}

fn write_all(store: &Store<SimDir>) {
    while store.step() != Step::Idle {}
}

fn files(dir: &SimDir) -> Vec<String> {
    let names = dir.world().names.keys().cloned().collect::<Vec<_>>();
    names
        .into_iter()
        .filter(|name| name.ends_with(".seg"))
        .collect()
}

fn read_all(store: &Store<SimDir>, log: u64, from: u64, to: u64) {
    let mut at = from;
    while at < to {
        let run = store.read(log, at, to, 700).unwrap();
        assert_eq!(run.bytes(), &records(log, at, run.next()));
        at = run.next();
    }
}

#[test]
fn a_full_disk_makes_a_gap_and_a_trim_still_goes_through() {
    let dir = SimDir::default();
    let store = open(&dir);
    append(&store, 1, 1, 60);
    write_all(&store);
    let before = files(&dir).len();
    dir.world().always = Some(("write", ENOSPC));
    append(&store, 2, 1, 200);
    let status = store.status();
    assert!(status.is_failing && status.gaps > 0 && status.errors > 0);
    assert!(status.unwritten_bytes <= 4_000);
    let [
        Missing {
            log: 2,
            from: 1,
            to,
        },
    ] = store.missing()[..]
    else {
        panic!("{:?}", store.missing());
    };
    assert!(store.sync(store.mark()).is_err());
    let error = store.read(2, 5, 200, 100).unwrap_err();
    assert!(matches!(error, ReadError::Missing { from: 1, to: until } if until == to));
    // The spare lets the floors be written where no file gets larger; here every write fails.
    store.trim(1, 60);
    store.step();
    assert_eq!(files(&dir).len(), before);
    dir.world().always = None;
    write_all(&store);
    assert!(
        !files(&dir)
            .iter()
            .any(|name| name.starts_with("l0000000000000001"))
    );
    assert!(store.sync(store.mark()).is_err());
    for at in (1..to).step_by(7) {
        store.fill(&run(2, at, to.min(at + 7))).unwrap();
    }
    store.sync(store.mark()).unwrap();
    read_all(&store, 2, 1, 200);
}

#[test]
fn floors_are_durable_before_files_go() {
    let dir = SimDir::default();
    let store = open(&dir);
    append(&store, 1, 1, 60);
    let mark = store.mark();
    let tails = store.sync(mark).unwrap();
    store.trim(1, 50);
    write_all(&store);
    drop(store);
    dir.world().lose_power(&mut Random(1), Keep::All);
    let store = open(&dir);
    assert_eq!(store.begin(&[(1, 1, 60)], Some(&tails)).unwrap(), []);
    let error = store.read(1, 49, 60, 100).unwrap_err();
    assert!(matches!(error, ReadError::Trimmed { first: 50 }));
    read_all(&store, 1, 50, 60);
}

#[test]
fn a_deleted_log_is_not_missed_and_is_forgotten_in_the_end() {
    let dir = SimDir::default();
    let store = open(&dir);
    append(&store, 1, 1, 60);
    append(&store, 2, 1, 20);
    let tails = store.sync(store.mark()).unwrap();
    store.delete(1);
    write_all(&store);
    assert!(
        files(&dir)
            .iter()
            .all(|name| name.starts_with("l0000000000000002"))
    );
    drop(store);
    let store = open(&dir);
    let logs = [(1, 1, 60), (2, 1, 20)];
    assert_eq!(store.begin(&logs, Some(&tails)).unwrap(), []);
    let error = store.read(1, 1, 60, 100).unwrap_err();
    assert!(matches!(error, ReadError::Trimmed { first: u64::MAX }));
    append(&store, 1, 60, 70);
    store.delete(1);
    let mark = store.mark();
    store.sync(mark).unwrap();
    store.settle(mark);
    let error = store.read(1, 1, 60, 100).unwrap_err();
    assert!(matches!(error, ReadError::NotThere { .. }));
}

#[test]
fn a_failed_sync_is_made_good_by_writing_anew() {
    let dir = SimDir::default();
    let store = open(&dir);
    append(&store, 1, 1, 20);
    write_all(&store);
    dir.world().always = Some(("sync", EIO));
    assert!(store.sync(store.mark()).is_err());
    dir.world().always = None;
    append(&store, 1, 20, 40);
    let tails = store.sync(store.mark()).unwrap();
    drop(store);
    dir.world().lose_power(&mut Random(1), Keep::Nothing);
    let store = open(&dir);
    assert_eq!(store.begin(&[(1, 1, 40)], Some(&tails)).unwrap(), []);
    read_all(&store, 1, 1, 40);
}

#[test]
fn what_a_failed_sync_lost_is_missing() {
    let dir = SimDir::default();
    let store = open(&dir);
    append(&store, 1, 1, 20);
    write_all(&store);
    dir.world().always = Some(("sync", EIO));
    assert!(store.sync(store.mark()).is_err());
    dir.world().always = None;
    dir.world().forget_what_is_clean();
    assert!(store.sync(store.mark()).is_err());
    let missing = store.missing();
    assert_eq!(
        missing,
        [Missing {
            log: 1,
            from: 1,
            to: 20
        }]
    );
    store.fill(&run(1, 1, 20)).unwrap();
    store.sync(store.mark()).unwrap();
}

#[test]
fn any_flipped_byte_of_a_file_is_seen_and_repaired() {
    let dir = SimDir::default();
    let store = open(&dir);
    append(&store, 1, 1, 25);
    let tails = store.sync(store.mark()).unwrap();
    drop(store);
    let files = dir.world().files();
    let names: Vec<&String> = files.keys().filter(|n| n.ends_with(".seg")).collect();
    for name in names {
        for at in 0..files[name].len() {
            let mut wrong = files.clone();
            wrong.get_mut(name).unwrap()[at] ^= 1;
            let has = on_disk(&wrong);
            let dir = SimDir::with(&wrong);
            let store = open(&dir);
            let missing = store.begin(&[(1, 1, 25)], Some(&tails)).unwrap();
            for Missing { log, from, to } in missing {
                assert!(at < 64, "{name} {at}");
                assert!((from..to).all(|at| !has.get(&1).unwrap_or(&vec![]).contains(&at)));
                store.fill(&run(log, from, to)).unwrap();
            }
            let mut next = 1;
            let mut repairs = 0;
            while next < 25 {
                match store.read(1, next, 25, 300) {
                    Ok(run) => {
                        assert_eq!(run.bytes(), &records(1, next, run.next()));
                        next = run.next();
                    }
                    Err(ReadError::Damaged { from, to }) => {
                        let mut repair = store.repair(1, from, to).unwrap().unwrap();
                        repair.add(&run(1, 1, 25)).unwrap();
                        assert!(repair.finish().unwrap());
                        repairs += 1;
                    }
                    Err(error) => panic!("{error}"),
                }
            }
            assert_eq!(repairs, u64::from(at >= 64), "{name} {at}");
            assert_eq!(store.status().repaired, repairs);
        }
    }
}

/// What a scrub of all files finds: the file, and the positions.
fn scrub(store: &Store<SimDir>) -> Vec<(u64, u64, u64)> {
    let (mut files, mut found) = (Scrub::new(store), Vec::new());
    while let Some((log, what)) = files.next(|_| {}) {
        match what {
            Ok(()) => {}
            Err(ReadError::Damaged { from, to }) => found.push((log, from, to)),
            Err(error) => panic!("{error}"),
        }
    }
    found
}

#[test]
fn a_scrub_finds_any_flipped_byte_that_nobody_reads() {
    let dir = SimDir::default();
    let store = open(&dir);
    append(&store, 1, 1, 25);
    append(&store, 2, 1, 5);
    write_all(&store);
    assert_eq!(scrub(&store), []);
    let names = files(&dir);
    assert!(names.len() > 1);
    for (number, name) in names.iter().enumerate() {
        let length = dir.world().files()[name].len();
        for at in 0..length {
            let inode = dir.world().names[name];
            dir.world().inodes[inode].seen[at] ^= 1;
            let found = scrub(&store);
            let [(log, from, to)] = found[..] else {
                panic!("{found:?}");
            };
            assert_eq!(files(&dir)[number], *name);
            let mut repair = store.repair(log, from, to).unwrap().unwrap();
            repair.add(&run(log, 1, to)).unwrap();
            assert!(repair.finish().unwrap());
            assert_eq!(scrub(&store), []);
        }
    }
    assert!(store.status().repaired > 1_000);
}

#[test]
fn foreign_tails_are_not_trusted() {
    let dir = SimDir::default();
    let store = open(&dir);
    append(&store, 1, 1, 40);
    let mut bytes = Vec::new();
    store.sync(store.mark()).unwrap().encode(&mut bytes);
    let other = open(&SimDir::default());
    append(&other, 1, 1, 20);
    write_all(&other);
    drop(store);
    let store = open(&dir);
    let theirs = other.sync(other.mark()).unwrap();
    assert_ne!(theirs.store(), Tails::decode(&bytes).unwrap().store());
    let missing = store.begin(&[(1, 1, 50)], Some(&theirs)).unwrap();
    assert_eq!(
        missing,
        [Missing {
            log: 1,
            from: 40,
            to: 50
        }]
    );
    read_all(&store, 1, 1, 40);
}

#[test]
fn a_position_for_a_size_leaves_as_much() {
    let dir = SimDir::default();
    let store = open(&dir);
    append(&store, 1, 1, 100);
    write_all(&store);
    let all = store.bytes(1);
    assert_eq!(all, records(1, 1, 100).len() as u64);
    assert_eq!(store.position_at_bytes(1, all + 1), None);
    for keep in (0..all).step_by(97) {
        let at = store.position_at_bytes(1, keep).unwrap_or(1);
        let left = records(1, at, 100).len() as u64;
        assert!(
            left >= keep && left <= keep + 4_000 + 3_100,
            "{keep} {left}"
        );
        assert!(store.bytes_from(1, at) >= left);
    }
}

#[test]
fn records_in_memory_need_no_disk_and_whole_chunks_are_not_copied() {
    let dir = SimDir::default();
    let store = open(&dir);
    let large = records(1, 1, 400);
    assert!(large.len() > 16 << 10);
    store.append(1, 1, 399, large.clone());
    write_all(&store);
    dir.world().always = Some(("read", EIO));
    let run = store.cached(1, 1, 400, usize::MAX).unwrap();
    assert_eq!(run.bytes().as_ptr(), large.as_ptr());
    let run = store.read(1, 300, 302, usize::MAX).unwrap();
    assert_eq!(run.bytes(), &records(1, 300, 302));
    append(&store, 1, 400, 420);
    let run = store.cached(1, 390, 420, usize::MAX).unwrap();
    assert_eq!(run.bytes(), &records(1, 390, 420));
    assert!(store.cached(1, 420, 421, 1).is_none());
    assert!(store.cached(2, 1, 2, 1).is_none());
}

#[test]
fn small_appends_take_little_more_memory_than_they_have_bytes() {
    let dir = SimDir::default();
    let options = Options {
        unwritten_bytes: 1 << 30,
        cache_bytes: 1 << 30,
        ..options()
    };
    let store = Store::open(dir, options).unwrap();
    let mut bytes = 0;
    for at in 1..20_000 {
        let record = records(1, at, at + 1);
        bytes += record.len();
        store.append(1, at, 1, record);
        if at % 3 == 0 {
            store.step();
        }
    }
    let cached = store.status().cached_bytes;
    assert!(cached < bytes + bytes / 2, "{cached} for {bytes}");
}

#[test]
fn what_was_trimmed_between_a_mark_and_its_sync_is_not_missed() {
    let dir = SimDir::default();
    let store = open(&dir);
    append(&store, 1, 1, 20);
    let mark = store.mark();
    store.trim(1, 20);
    let tails = store.sync(mark).unwrap();
    assert_eq!(files(&dir), Vec::<String>::new());
    drop(store);
    dir.world().lose_power(&mut Random(1), Keep::Nothing);
    let store = open(&dir);
    assert_eq!(store.begin(&[(1, 1, 20)], Some(&tails)).unwrap(), []);
}

/// Nothing waits any more, so nobody knows that the disk still fails.
#[test]
fn what_a_full_disk_did_not_take_is_deleted_and_the_disk_is_not_full_for_ever() {
    let dir = SimDir::default();
    let store = open(&dir);
    dir.world().always = Some(("write", ENOSPC));
    append(&store, 1, 1, 10);
    assert_eq!(store.step(), Step::Failed);
    assert!(store.status().is_failing);
    store.delete(1);
    dir.world().always = None;
    while store.step() == Step::Failed {}
    assert!(!store.status().is_failing);
}

/// What is below the floor is not asked for.
#[test]
fn a_file_that_cannot_be_read_is_replaced_though_its_front_is_trimmed() {
    let dir = SimDir::default();
    let store = open(&dir);
    append(&store, 1, 1, 200);
    write_all(&store);
    let tails = store.sync(store.mark()).unwrap();
    drop(store);
    let store = open(&dir);
    assert_eq!(store.begin(&[(1, 1, 200)], Some(&tails)).unwrap(), []);
    store.trim(1, 5);
    dir.world().always = Some(("read", EIO));
    let failed = store.read(1, 5, 200, 700);
    let Err(ReadError::Io { from: 5, to, .. }) = failed else {
        panic!("{failed:?}");
    };
    dir.world().always = None;
    let mut repair = store.repair(1, 5, to).unwrap().expect("it is the file");
    repair.add(&run(1, 5, to)).unwrap();
    assert!(repair.finish().unwrap());
    read_all(&store, 1, 5, 200);
}

/// A sync failed, and what was written cannot be read back: it is missing, and is got from others.
#[test]
fn what_cannot_be_read_back_is_missing() {
    let dir = SimDir::default();
    let store = open(&dir);
    append(&store, 1, 1, 20);
    write_all(&store);
    dir.world().always = Some(("sync", EIO));
    assert!(store.sync(store.mark()).is_err());
    dir.world().always = Some(("read", EIO));
    assert!(store.sync(store.mark()).is_err());
    dir.world().always = None;
    let missing = store.missing();
    assert!(!missing.is_empty(), "nobody would get it");
    for Missing { log, from, to } in missing {
        store.fill(&run(log, from, to)).unwrap();
    }
    write_all(&store);
    store.sync(store.mark()).unwrap();
    read_all(&store, 1, 1, 20);
}
