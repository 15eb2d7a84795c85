//! Every change of a byte and every cut of a small log is found, or leads to the records up to one that was not durable
//! yet.

mod sim;

use std::collections::BTreeMap;

use rota_storage::acceptor::{DiskLog, Kind, LogOpenError, Record};
use sim::{Keep, Random, SimDir, Told, append, open, options, record, told};

type Files = BTreeMap<String, Vec<u8>>;

/// A log, what it told after each record, and after how many all was known to be durable.
struct Sample {
    files: Files,
    history: Vec<Told>,
    durable: usize,
}

fn put(log: &mut DiskLog<SimDir>, history: &mut Vec<Told>, what: Record) {
    if what.kind == Kind::Trim {
        log.trim(what.first).unwrap();
    } else {
        append(log, &[what]).unwrap();
    }
    history.push(told(log));
}

/// The first `synced` records are durable, two at a time; of the rest all has come to the disk, too.
fn sample(synced: usize) -> Sample {
    let mut records = vec![
        record(Kind::Configuration, 0, 0, b"one"),
        record(Kind::State, 1, 0, b"a name"),
        record(Kind::State, 0, 0, b"old"),
        record(Kind::Promise, 0, u64::MAX, b"round 1"),
    ];
    for instance in 0..22 {
        let bytes = vec![instance as u8; 100 + 37 * instance as usize];
        records.push(record(Kind::Vote, instance, instance, &bytes));
    }
    records.extend([
        record(Kind::Skip, 22, 40, b"round 1"),
        record(Kind::Vote, 30, 30, b"in its middle"),
        record(Kind::Trim, 12, 12, b""),
        record(Kind::Promise, 5, u64::MAX, b"round 2"),
        record(Kind::Decided, 20, 20, b""),
        record(Kind::State, 0, 0, b"newer"),
        record(Kind::State, 7, 0, b""),
        record(Kind::Vote, 41, 41, b"the last but one"),
        record(Kind::Vote, 42, 42, &[3; 200]),
        record(Kind::Vote, 43, 43, b""),
    ]);
    let dir = SimDir::default();
    let mut log = open(&dir).unwrap();
    let mut history = vec![told(&mut log)];
    for (at, what) in records.into_iter().enumerate() {
        put(&mut log, &mut history, what);
        if at < synced && at % 2 == 1 {
            log.sync().unwrap();
        }
    }
    log.write().unwrap();
    dir.world().lose_power(&mut Random(1), Keep::All);
    let files = dir.world().files();
    assert!(files.len() >= 5, "{:?}", files.keys());
    Sample {
        files,
        history,
        durable: synced,
    }
}

enum Outcome {
    Found,
    Kept(usize),
}

impl Sample {
    /// The outcome of opening changed files. The log never tells anything but what was written.
    fn outcome(&self, files: &Files, case: &dyn Fn() -> String) -> Outcome {
        match open(&SimDir::with(files)) {
            Err(LogOpenError::Damaged(_)) => Outcome::Found,
            Err(error) => panic!("{}: {error}", case()),
            Ok(mut log) => {
                let now = told(&mut log);
                let kept = self.history.iter().rposition(|then| *then == now);
                let kept = kept.unwrap_or_else(|| panic!("{}: {now:?} was never so", case()));
                assert!(
                    kept >= self.durable,
                    "{}: {kept} of {}",
                    case(),
                    self.durable
                );
                // The contents that it tells are on the disk, too.
                Outcome::Kept(kept)
            }
        }
    }
}

fn every_change(sample: &Sample) {
    let whole = sample.history.len() - 1;
    let (mut found, mut cut) = (0, 0);
    for (name, bytes) in &sample.files {
        for at in 0..bytes.len() {
            // Most of the files is zeros, where one change will do.
            let changes = [1 << (at % 8), 0xff];
            for change in &changes[..1 + usize::from(bytes[at] != 0)] {
                let mut files = sample.files.clone();
                files.get_mut(name).unwrap()[at] ^= change;
                match sample.outcome(&files, &|| format!("{name} byte {at} ^ {change}")) {
                    Outcome::Found => found += 1,
                    Outcome::Kept(kept) => cut += usize::from(kept < whole),
                }
            }
        }
    }
    // Both outcomes are tried often.
    assert!(found > 1000, "{found}");
    let unsynced = whole > sample.durable;
    assert!((cut > 100) == unsynced, "{cut}");
}

#[test]
fn every_changed_byte_of_a_synced_log_is_found_or_is_in_no_record() {
    every_change(&sample(36));
}

#[test]
fn every_changed_byte_of_an_unsynced_tail_cuts_it_there() {
    every_change(&sample(30));
}

#[test]
fn every_cut_of_a_segment_is_found() {
    for synced in [30, 36] {
        let sample = sample(synced);
        for (name, bytes) in &sample.files {
            for len in 0..bytes.len() {
                let mut files = sample.files.clone();
                files.get_mut(name).unwrap().truncate(len);
                let outcome = sample.outcome(&files, &|| format!("{name} cut at {len}"));
                if name.starts_with("segment") {
                    assert!(matches!(outcome, Outcome::Found), "{name} cut at {len}");
                }
            }
        }
    }
}

#[test]
fn every_end_that_became_zeros_is_found_below_what_is_known_to_be_durable() {
    for synced in [30, 36] {
        let sample = sample(synced);
        for (name, bytes) in &sample.files {
            for at in 0..bytes.len() {
                let mut files = sample.files.clone();
                files.get_mut(name).unwrap()[at..].fill(0);
                sample.outcome(&files, &|| format!("{name} zero from {at}"));
            }
        }
    }
}

#[test]
fn every_file_that_is_missing_or_has_another_ones_name_is_found() {
    let sample = sample(36);
    let names: Vec<&String> = sample.files.keys().filter(|n| *n != "spare.new").collect();
    assert!(names.len() >= 4);
    for name in &names {
        let mut files = sample.files.clone();
        let bytes = files.remove(*name).unwrap();
        // The first segment was trimmed, and only not dropped yet.
        let needed = !name.starts_with("spare") && *name != "segment-0000000000000001";
        let outcome = sample.outcome(&files, &|| format!("{name} missing"));
        assert_eq!(matches!(outcome, Outcome::Found), needed, "{name}");
        for other in names
            .iter()
            .filter(|other| *other != name && other.starts_with("segment"))
        {
            let mut files = sample.files.clone();
            files.insert((*other).clone(), bytes.clone());
            let outcome = sample.outcome(&files, &|| format!("{name} as {other}"));
            assert!(matches!(outcome, Outcome::Found), "{name} as {other}");
        }
    }
}

/// After a loss of power the mark may be older than what was synced. Then the records themselves say it.
#[test]
fn damage_before_the_last_synced_group_is_found_with_an_old_mark_too() {
    let sample = sample(36);
    let dir = SimDir::with(&sample.files);
    let log = open(&dir).unwrap();
    let last = log.end();
    drop(log);
    // A mark that knows of nothing but the newest segment's beginning: as right after it began.
    let mut older = SimDir::default();
    let mut marks = Vec::new();
    let full = {
        let mut log = open(&older).unwrap();
        for instance in 0..6 {
            append(
                &mut log,
                &[record(Kind::Vote, instance, instance, &[9; 100])],
            )
            .unwrap();
            log.sync().unwrap();
            marks.push(older.world().files()["mark"].clone());
        }
        let end = log.end();
        drop(log);
        end.offset
    };
    assert!(last.segment > 1 && full < 8192);
    let files = older.world().files();
    let name = "segment-0000000000000001";
    for (known, mark) in marks.iter().enumerate() {
        for at in 4096..full as usize {
            let mut files = files.clone();
            files.insert("mark".to_owned(), mark.clone());
            files.get_mut(name).unwrap()[at] ^= 0x10;
            older = SimDir::with(&files);
            match open(&older) {
                Err(LogOpenError::Damaged(damage)) => {
                    assert!(damage.file.ends_with(name) && damage.offset <= at as u64);
                }
                Err(error) => panic!("{error}"),
                // The last group alone is not told from a write that was cut off.
                Ok(log) => assert_eq!((log.last(), known < 5), (Some(4), true), "{at}"),
            }
        }
    }
}

#[test]
fn segments_of_impossible_sizes_are_refused() {
    for bytes in [0, 4096, 8191, 8193, 12_000, (2 << 30) + 4096, u64::MAX] {
        let mut options = options();
        options.segment_bytes = bytes;
        let refused = DiskLog::open_on(SimDir::default(), options);
        assert!(matches!(refused, Err(LogOpenError::SegmentBytes(found)) if found == bytes));
    }
}
