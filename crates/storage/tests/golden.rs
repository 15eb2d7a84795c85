//! The bytes on disks are those of `testdata/golden`, and are read back as what they were.

#[path = "../../core/tests/golden/mod.rs"]
mod golden;
mod sim;

use std::fs;

use golden::Golden;
use rota_core::contract::{LogId, NodeId};
use rota_storage::acceptor::{DiskLog, Identity, Kind, LogOptions, Record};
use rota_storage::checkpoint::{Checkpoints, Manifest, Subject};
use rota_storage::{LifeFile, OnDamage, Opening, PrimaryFile, RingIdFile};
use sim::{SimDir, append, record, told};

/// The first page of a segment, and the bytes of it that are used.
const PAGE: usize = 4096;
const HEADER: usize = 64;
const MARK: usize = 84;

fn node() -> NodeId {
    NodeId::new(0x0203).expect("not 0")
}

fn options() -> LogOptions {
    let mut options = LogOptions::new(Identity {
        cluster: 0x0102_0304,
        node: node(),
        log: LogId(0x0405),
    });
    options.segment_bytes = 8 << 10;
    options.boot_id = *b"run-of-a-machine";
    options.least_life = 0x0607;
    options
}

/// One record of each kind, in the order in which a log has them.
fn records() -> Vec<Record> {
    vec![
        record(Kind::Promise, 0, u64::MAX, b"round"),
        record(Kind::State, 3, 3, b"snapshot"),
        record(Kind::Configuration, 0, 0, b"conf"),
        record(Kind::Vote, 0x0a0b, 0x0a0b, b"a vote"),
        record(Kind::Skip, 0x0a0c, 0x0aff, b"skip"),
        record(Kind::Decided, 0x0a0c, 0x0a0c, b"decided!"),
    ]
}

#[test]
fn an_acceptors_log() {
    let mut golden = Golden::open(env!("CARGO_MANIFEST_DIR"), "acceptor");
    let dir = SimDir::default();
    let mut log = DiskLog::open_on(dir.clone(), options()).expect("an empty directory");
    append(&mut log, &records()).expect("there is room");
    log.commit().expect("the disk works");
    let end = usize::try_from(log.end().offset).expect("a small segment");
    log.close().expect("the disk works");
    let files = dir.world().files();
    let segment = files
        .iter()
        .find(|(name, _)| name.starts_with("seg") || name.ends_with("1.log"));
    let names: Vec<&String> = files.keys().collect();
    let (_, segment) = segment.unwrap_or_else(|| panic!("{names:?}"));
    golden.compare("segment header", &segment[..HEADER]);
    golden.compare("records", &segment[PAGE..end]);
    golden.compare("mark", &files["mark"][..MARK]);
    golden.finish();
    let mut log = DiskLog::open_on(dir, options()).expect("its own log");
    let found = told(&mut log);
    let (votes, state): (Vec<Record>, Vec<Record>) = records()
        .into_iter()
        .partition(|record| record.kind.is_of_instances());
    assert_eq!(found.instances, votes);
    assert!(
        state.iter().all(|record| found.state.contains(record)),
        "{:?}",
        found.state
    );
}

#[test]
fn small_files() {
    /// The bytes of a slot, and the offset of the second.
    const SLOT: usize = 36;
    const SECOND: usize = 4096;
    let mut golden = Golden::open(env!("CARGO_MANIFEST_DIR"), "files");
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name);

    let ring_id = path("node.ring");
    let mut file = RingIdFile::open(ring_id.clone(), node(), OnDamage::Refuse).expect("a new file");
    file.store(0x0102_0304_0506_0708).expect("the disk works");
    drop(file);
    let bytes = fs::read(&ring_id).expect("it is there");
    golden.compare("ring id: first slot of a new file", &bytes[..SLOT]);
    golden.compare(
        "ring id: second slot, with the first value",
        &bytes[SECOND..SECOND + SLOT],
    );
    let file = RingIdFile::open(ring_id, node(), OnDamage::Refuse).expect("its own file");
    assert_eq!(file.value(), Some(0x0102_0304_0506_0708));

    let lives = path("node.lives");
    let mut file = LifeFile::open(lives.clone(), node()).expect("a new file");
    file.store(0x1112).expect("the disk works");
    drop(file);
    let bytes = fs::read(&lives).expect("it is there");
    golden.compare("number of openings", &bytes[SECOND..SECOND + SLOT]);
    let file = LifeFile::open(lives, node()).expect("its own file");
    assert_eq!(file.lives(), 0x1112);

    let primary = path("node.primary");
    let opening = || Opening {
        first: b"founders",
        lived_before: false,
        on_damage: OnDamage::Refuse,
    };
    let mut file = PrimaryFile::open(primary.clone(), node(), opening()).expect("a new file");
    file.store(b"primary!").expect("the disk works");
    drop(file);
    let bytes = fs::read(&primary).expect("it is there");
    golden.compare("primary: first copy", &bytes[..24 + 8 + 4]);
    let file = PrimaryFile::open(primary, node(), opening()).expect("its own file");
    assert_eq!(file.record(), b"primary!");
    golden.finish();
}

#[test]
fn a_checkpoint() {
    const CHUNK: u32 = 64;
    let mut golden = Golden::open(env!("CARGO_MANIFEST_DIR"), "checkpoint");
    let of = Subject {
        cluster: 0x0102_0304_0506_0708,
        partition: 0x090a_0b0c,
    };
    let dir = SimDir::default();
    let open = || Checkpoints::on(dir.clone(), of, 0x1112_1314_1516_1718, CHUNK);
    let mut checkpoints = open().expect("an empty directory");
    let state: Vec<u8> = (0..70).collect();
    let mut writing = checkpoints.begin().expect("the disk works");
    writing.write(&state).expect("the disk works");
    let written = writing.finish(b"point".to_vec()).expect("the disk works");
    let manifest = checkpoints.add(written);
    let bytes = golden.compare("manifest", &manifest.encode());
    assert_eq!(Manifest::decode(&bytes), Ok((*manifest).clone()));
    let files = dir.world().files();
    let names: Vec<&String> = files.keys().collect();
    let kept = |bytes: &[u8]| files.values().any(|file| file == bytes);
    assert!(kept(&bytes), "the manifest is a file: {names:?}");
    let states: Vec<&Vec<u8>> = files.values().filter(|file| **file == state).collect();
    assert_eq!(states.len(), 1, "the state is a file: {names:?}");
    golden.compare("state", states[0]);
    golden.compare("store", &files["store"]);
    drop(checkpoints);
    let mut again = open().expect("its own directory");
    let reading = again
        .newest_sound()
        .expect("the disk works")
        .expect("it is there");
    let chunks = [0, 1].map(|index| reading.chunk(index).expect("sound").expect("a chunk"));
    assert_eq!(chunks.concat(), state);
    golden.finish();
}
