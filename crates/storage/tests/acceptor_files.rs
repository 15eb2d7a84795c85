//! An acceptor's log in a real directory, and what is no log.

mod sim;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use rota_storage::acceptor::{
    AcceptorLog, DiskLog, FetchError, Fetched, Kind, LogOpenError, LogOptions, Mode, RecordRef,
    inspect, read_all,
};
use sim::{Random, SimDir, identity, open, options};

fn vote(instance: u64, bytes: &[u8]) -> RecordRef<'_> {
    RecordRef {
        kind: Kind::Vote,
        first: instance,
        last: instance,
        head: &[],
        bytes,
    }
}

fn larger() -> LogOptions {
    let mut options = LogOptions::new(identity());
    options.segment_bytes = 1 << 20;
    options
}

#[test]
fn every_mode_hands_back_what_it_was_given() {
    let directory = tempfile::tempdir().unwrap();
    for (name, mode) in [("m", Mode::MEMORY), ("a", Mode::ASYNC), ("s", Mode::Sync)] {
        let path = directory.path().join(name);
        fs::create_dir(&path).unwrap();
        let mut options = larger();
        options.mode = mode;
        let mut log = AcceptorLog::open(path.clone(), options.clone()).unwrap();
        for instance in 0..3000_u64 {
            log.append(&[vote(instance, &[instance as u8; 900])])
                .unwrap();
            if instance % 10 == 9 {
                log.commit().unwrap();
                log.maintain().unwrap();
            }
        }
        log.trim(500).unwrap();
        log.commit().unwrap();
        assert_eq!((log.first(), log.last()), (500, Some(2999)));
        log.close().unwrap();
        let mut log = AcceptorLog::open(path, options).unwrap();
        let survives = mode != Mode::MEMORY;
        assert_eq!(log.last(), survives.then_some(2999));
        let (mut from, mut found) = (log.first(), 0);
        loop {
            let fetched = log.fetch(from, u64::MAX, 100_000).unwrap();
            for record in &fetched.records {
                assert_eq!(record.first, 500 + found);
                assert_eq!(record.bytes, vec![record.first as u8; 900]);
                found += 1;
            }
            match fetched.next {
                Some(next) => from = next,
                None => break,
            }
        }
        assert_eq!(found, if survives { 2500 } else { 0 });
    }
}

#[test]
fn segments_serve_again_so_the_room_taken_stays_bounded() {
    let directory = tempfile::tempdir().unwrap();
    let mut log = DiskLog::open(directory.path().to_owned(), larger()).unwrap();
    for instance in 0..20_000_u64 {
        log.append(&[vote(instance, &[7; 1000])]).unwrap();
        if instance % 500 == 499 {
            log.trim(instance - 400).unwrap();
            log.commit().unwrap();
            log.maintain().unwrap();
        }
    }
    assert!(log.end().segment > 15);
    let files = fs::read_dir(directory.path()).unwrap().count();
    // Mark, lock, two or three segments, two spare ones and one that is being made.
    assert!(files <= 8, "{files}");
    let seen = inspect(directory.path().to_owned(), 0..0).unwrap();
    assert_eq!((seen.damage.len(), seen.last), (0, Some(19_999)));
}

#[test]
fn one_process_at_a_time_has_it() {
    let directory = tempfile::tempdir().unwrap();
    let log = DiskLog::open(directory.path().to_owned(), larger()).unwrap();
    let refused = DiskLog::open(directory.path().to_owned(), larger());
    assert!(matches!(refused, Err(LogOpenError::InUse(_))));
    drop(log);
    DiskLog::open(directory.path().to_owned(), larger()).unwrap();
    for entry in std::fs::read_dir(directory.path()).unwrap() {
        let metadata = entry.unwrap().metadata().unwrap();
        let mode = metadata.permissions().mode();
        assert_eq!(mode & 0o077, 0, "bodies of messages are in there");
    }
    let missing = directory.path().join("missing");
    let refused = DiskLog::open(missing.clone(), larger());
    assert!(matches!(refused, Err(LogOpenError::NoDirectory(path)) if path == missing));
}

/// A disk forgets a part of a file while the log is open: what lies before it and behind it is told.
#[test]
fn a_piece_ends_before_a_record_that_is_damaged() {
    let dir = SimDir::default();
    let mut log = open(&dir).unwrap();
    for instance in 0..9 {
        log.append(&[vote(instance, &[instance as u8 + 1; 250])])
            .unwrap();
    }
    log.commit().unwrap();
    let mut world = dir.world();
    let mut damaged = 0;
    for inode in &mut world.inodes {
        let record = inode.seen.windows(250).position(|bytes| bytes == [5; 250]);
        if let Some(at) = record {
            inode.seen[at..at + 250].fill(0);
            damaged += 1;
        }
    }
    drop(world);
    assert_eq!(damaged, 1);
    let spans = |fetched: &Fetched| fetched.records.iter().map(|r| r.first).collect::<Vec<_>>();
    let before = log.fetch(0, 8, usize::MAX).unwrap();
    assert_eq!((spans(&before), before.next), (vec![0, 1, 2, 3], Some(4)));
    for last in [4, 8] {
        let refused = log.fetch(4, last, usize::MAX);
        assert!(matches!(refused, Err(FetchError::Damaged(_))));
    }
    let behind = log.fetch(5, 8, usize::MAX).unwrap();
    assert_eq!((spans(&behind), behind.next), (vec![5, 6, 7, 8], None));
    assert!(!log.has_failed(), "it takes further votes");
}

/// Files of chance, and good files with parts of each other in them.
#[test]
fn garbage_is_refused_or_is_no_record() {
    let dir = SimDir::default();
    let mut log = open(&dir).unwrap();
    for instance in 0..30 {
        let bytes = vec![instance as u8; 250];
        log.append(&[vote(instance, &bytes)]).unwrap();
        log.commit().unwrap();
    }
    drop(log);
    let good = dir.world().files();
    let names: Vec<&String> = good.keys().collect();
    let (mut refused, mut opened) = (0, 0);
    for seed in 0..3000 {
        let mut random = Random(seed);
        let mut files = good.clone();
        for _ in 0..=random.below(3) {
            let into = names[random.below(names.len() as u64) as usize];
            let from = names[random.below(names.len() as u64) as usize];
            let bytes = files.get_mut(into).unwrap();
            let len = random.below(300).min(bytes.len() as u64) as usize;
            let at = random.below((bytes.len() - len) as u64 + 1) as usize;
            match random.below(3) {
                0 => bytes[at..at + len].fill_with(|| random.below(256) as u8),
                1 => bytes.fill_with(|| random.below(256) as u8),
                _ => {
                    let source = &good[from];
                    let start = random.below((source.len() - len.min(source.len())) as u64 + 1);
                    let part = source.iter().skip(start as usize).take(len);
                    bytes
                        .iter_mut()
                        .skip(at)
                        .zip(part)
                        .for_each(|(to, from)| *to = *from);
                }
            }
        }
        match DiskLog::open_on(SimDir::with(&files), options()) {
            Err(LogOpenError::Damaged(_)) => refused += 1,
            Err(error) => panic!("{seed}: {error}"),
            Ok(mut log) => {
                opened += 1;
                let fetched = log.fetch(0, u64::MAX, usize::MAX).unwrap();
                assert_eq!(fetched.next, None, "{seed}: a record is damaged");
                for record in fetched.records {
                    assert_eq!(record.bytes, vec![record.first as u8; 250], "{seed}");
                }
            }
        }
    }
    assert!(refused > 500 && opened > 100, "{refused} {opened}");
}

#[test]
fn a_log_that_is_being_written_to_is_sound_and_is_not_changed_by_looking() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_owned();
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let mut log = DiskLog::open(path.clone(), larger()).unwrap();
    let writer = std::thread::spawn(move || {
        let mut instance = 0;
        while stopped.try_recv().is_err() {
            log.append(&[vote(instance, &[1; 3000])]).unwrap();
            log.commit().unwrap();
            instance += 1;
            if instance.is_multiple_of(400) {
                log.trim(instance - 200).unwrap();
            }
            log.maintain().unwrap();
        }
        log.end()
    });
    for _ in 0..40 {
        let seen = inspect(path.clone(), 0..0).unwrap();
        assert!(seen.damage.is_empty(), "{:?}", seen.damage);
        assert_eq!(seen.identity, Some(identity()));
    }
    stop.send(()).unwrap();
    let end = writer.join().unwrap();
    let files = |path: &std::path::Path| {
        let names = fs::read_dir(path)
            .unwrap()
            .map(|entry| entry.unwrap().path());
        let mut files: Vec<_> = names.map(|name| (fs::read(&name).unwrap(), name)).collect();
        files.sort();
        files
    };
    let before = files(&path);
    let seen = inspect(path.clone(), 3..9).unwrap();
    assert_eq!(seen.segments.last().unwrap().end, end.offset);
    assert_eq!((seen.durable, seen.life, seen.closed), (end, 1, false));
    assert!(files(&path) == before);
}

/// An operator who has nothing else left reads a log that nobody has open, and leaves it as it is.
#[test]
fn all_of_a_log_is_read_and_nothing_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log");
    let lost = read_all(path.clone());
    assert!(matches!(lost, Err(LogOpenError::NoDirectory(_))));
    fs::create_dir(&path).unwrap();
    assert!(matches!(read_all(path.clone()), Err(LogOpenError::Lost(_))));
    let mut options = larger();
    options.mode = Mode::ASYNC;
    let mut log = DiskLog::open(path.clone(), options).unwrap();
    for instance in 0..3000_u64 {
        let bytes = [instance as u8; 900];
        let again = [vote(instance, &[1; 500]), vote(instance, &bytes)];
        log.append(&again).unwrap();
        log.commit().unwrap();
    }
    let state = RecordRef {
        kind: Kind::State,
        first: 4,
        last: 4,
        head: &[],
        bytes: b"name",
    };
    log.append(&[state]).unwrap();
    log.trim(500).unwrap();
    log.commit().unwrap();
    assert!(matches!(
        read_all(path.clone()),
        Err(LogOpenError::InUse(_))
    ));
    drop(log);
    let files = || {
        let entries = fs::read_dir(&path)
            .unwrap()
            .map(|entry| entry.unwrap().path());
        let mut files: Vec<_> = entries
            .map(|file| (file.clone(), fs::read(file).unwrap()))
            .collect();
        files.sort();
        files
    };
    let before = files();
    let contents = read_all(path.clone()).unwrap();
    assert_eq!(files(), before);
    // No run of the machine was named: perhaps it was another.
    assert!(contents.lost_some);
    assert_eq!((contents.identity, contents.life), (identity(), 1));
    assert_eq!(contents.state.len(), 1);
    assert_eq!(contents.votes.len(), 2500);
    for (at, vote) in (500..).zip(&contents.votes) {
        assert_eq!((vote.first, &vote.bytes), (at, &vec![at as u8; 900]));
    }
    let segment = path.join("segment-0000000000000002");
    let mut bytes = fs::read(&segment).unwrap();
    bytes[20_000] ^= 1;
    fs::write(&segment, bytes).unwrap();
    assert!(matches!(read_all(path), Err(LogOpenError::Damaged(_))));
}
