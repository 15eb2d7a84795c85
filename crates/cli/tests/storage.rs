//! `rota storage inspect`, as a person runs it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rota_core::contract::{LogId, NodeId};
use rota_storage::acceptor::{DiskLog, Identity, Kind, LogOptions, RecordRef};

fn options() -> LogOptions {
    let mut options = LogOptions::new(Identity {
        cluster: 7,
        node: NodeId::new(3).unwrap(),
        log: LogId(2),
    });
    options.segment_bytes = 64 << 10;
    options
}

fn put(log: &mut DiskLog, kind: Kind, first: u64, last: u64, bytes: &[u8]) {
    log.append(&[RecordRef {
        kind,
        first,
        last,
        head: &[],
        bytes,
    }])
    .unwrap();
    log.commit().unwrap();
}

/// Two segments and a trim.
fn filled(path: &Path) -> DiskLog {
    let mut log = DiskLog::open(path.to_owned(), options()).unwrap();
    put(&mut log, Kind::Promise, 0, u64::MAX, b"round 1");
    put(&mut log, Kind::State, 2, 0, b"who");
    for instance in 0..90 {
        put(&mut log, Kind::Vote, instance, instance, &[1; 1000]);
    }
    put(&mut log, Kind::Skip, 90, 99, b"");
    log.trim(10).unwrap();
    log.commit().unwrap();
    log
}

fn inspect(path: &Path, options: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rota"))
        .args(["storage", "inspect"])
        .arg(path)
        .args(options)
        .output()
        .unwrap()
}

fn json(path: &Path, options: &[&str]) -> (Option<i32>, serde_json::Value) {
    let output = inspect(path, &[options, &["--json"]].concat());
    let value = serde_json::from_slice(&output.stdout);
    (output.status.code(), value.unwrap())
}

fn files(path: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(path).unwrap().map(|entry| entry.unwrap());
    let file = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().unwrap();
        (name, fs::read(entry.path()).unwrap())
    };
    entries.map(file).collect()
}

#[test]
fn a_log_in_use_is_shown_and_nothing_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let log = filled(directory.path());
    let before = files(directory.path());
    let (code, seen) = json(directory.path(), &["--records", "88..95"]);
    assert_eq!(code, Some(0), "{seen}");
    assert_eq!(seen["sound"], true);
    assert_eq!(
        (&seen["cluster"], &seen["node"], &seen["ring"]),
        (&7.into(), &3.into(), &2.into())
    );
    assert_eq!(
        (&seen["opened"], &seen["closed"]),
        (&1.into(), &false.into())
    );
    assert_eq!(
        (&seen["first"], &seen["last"], &seen["instances"]),
        (&10.into(), &99.into(), &90.into())
    );
    assert_eq!(seen["segments"].as_array().unwrap().len(), 2);
    assert_eq!(seen["segments"][0]["records"]["promise"], 1);
    assert_eq!(
        (&seen["state"][0]["kind"], &seen["state"][0]["first"]),
        (&"state".into(), &2.into())
    );
    assert_eq!(seen["state"][1]["kind"], "promise");
    let listed = seen["records"].as_array().unwrap();
    let firsts: Vec<u64> = listed
        .iter()
        .map(|r| r["first"].as_u64().unwrap())
        .collect();
    assert_eq!(firsts, [88, 89, 90]);
    assert_eq!(files(directory.path()), before);
    log.close().unwrap();
    let output = inspect(directory.path(), &[]);
    let text = String::from_utf8(output.stdout).unwrap();
    for line in [
        "log        of cluster 7, node 3, ring 2",
        "opened     1 times, closed in order",
        "instances  90 kept, the last is 99; trimmed before 10",
        "promise    from 0, 7 bytes",
        "state      key 2, 3 bytes",
        "verdict    sound",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} in {text}");
    }
}

#[test]
fn damage_is_shown_with_file_and_offset() {
    let directory = tempfile::tempdir().unwrap();
    filled(directory.path()).close().unwrap();
    let path = directory.path().join("segment-0000000000000001");
    let mut bytes = fs::read(&path).unwrap();
    bytes[20_000] ^= 4;
    fs::write(&path, &bytes).unwrap();
    let (code, seen) = json(directory.path(), &[]);
    assert_eq!((code, &seen["sound"]), (Some(1), &false.into()));
    let damage = &seen["damage"][0];
    assert!(
        damage["file"]
            .as_str()
            .unwrap()
            .ends_with("segment-0000000000000001")
    );
    let offset = damage["offset"].as_u64().unwrap();
    assert!((20_000 - 1032..=20_000).contains(&offset), "{offset}");
    let output = inspect(directory.path(), &[]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("DAMAGE") && text.contains("verdict    damaged"),
        "{text}"
    );
}

#[test]
fn what_is_no_log_is_wrong_use() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("missing");
    for (path, options, said) in [
        (directory.path(), &[][..], "no acceptor's log"),
        (&missing, &[], "does not exist"),
        (directory.path(), &["--records", "3-4"], "two numbers"),
    ] {
        let output = inspect(path, options);
        assert_eq!(output.status.code(), Some(2));
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.contains(said), "{text}");
    }
}

/// A log that changes all the time is never called damaged.
#[test]
fn a_log_that_is_being_written_to_is_sound() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_owned();
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let segment = Arc::new(AtomicU64::new(0));
    let reached = segment.clone();
    let writer = std::thread::spawn(move || {
        let mut log = DiskLog::open(path, options()).unwrap();
        let mut instance = 0;
        while stopped.try_recv().is_err() {
            put(&mut log, Kind::Vote, instance, instance, &[1; 3000]);
            instance += 1;
            if instance.is_multiple_of(40) {
                log.trim(instance - 20).unwrap();
            }
            log.maintain().unwrap();
            segment.store(log.end().segment, Ordering::Relaxed);
        }
    });
    while !directory.path().join("mark").exists() {
        std::thread::yield_now();
    }
    let mut looks = 0;
    while looks < 30 || reached.load(Ordering::Relaxed) <= 3 {
        looks += 1;
        let output = inspect(directory.path(), &[]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
    }
    stop.send(()).unwrap();
    writer.join().unwrap();
}
