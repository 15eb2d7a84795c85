//! A driver with an acceptor's log, on a disk that is slow, fails or hangs.

use super::durable::Durable;
use super::durable_tests::{
    Idle, PATIENCE, Script, answers, arrived, config, id, me, persist, token,
};
use super::log_keeper::{FETCH_BYTES, SLOW};
use super::log_opening::Opener;
use super::log_thread::WAITING_LIMIT;
use super::*;
use crate::config::{EngineName, PaxosConfig, VoteStorage};
use bytes::Bytes;
use rota_core::contract::{LogId, LogRecord, Output, PersistId};
use rota_paxos::{STATE_LOG, VOTES_LOG, VoteHead};
use rota_storage::acceptor::{
    Access, DiskLog, FileDir, Identity, LogDisk, LogFile, LogOptions, Mode, RealFile,
};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The outcome of a sync.
#[derive(Clone, Copy, Debug)]
pub(super) enum Outcome {
    Good,
    Fails,
    Panics,
}

/// Once it is closed, syncs of segments wait for the test.
pub(super) struct Gate {
    pub(super) closed: AtomicBool,
    pub(super) full: AtomicBool,
    pub(super) begun: Mutex<Sender<()>>,
    pub(super) outcomes: Mutex<Receiver<Outcome>>,
    pub(super) syncs: AtomicU64,
    /// The attempts at a new segment, for which there is no room.
    pub(super) tried: AtomicU64,
    /// The openings of the log, and the attempts.
    pub(super) openings: AtomicU64,
}

/// A directory with a gate.
struct GatedDir(FileDir, Arc<Gate>);

#[derive(Clone)]
struct GatedFile {
    file: RealFile,
    gate: Option<Arc<Gate>>,
    is_new: bool,
}

impl LogFile for GatedFile {
    fn read_at(&self, at: u64, buf: &mut [u8]) -> io::Result<usize> {
        self.file.read_at(at, buf)
    }

    fn write_at(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        if let Some(gate) = self.gate.as_ref().filter(|_| self.is_new)
            && gate.full.load(SeqCst)
        {
            gate.tried.fetch_add(1, SeqCst);
            return Err(io::Error::from_raw_os_error(libc::ENOSPC));
        }
        self.file.write_at(at, bytes)
    }

    fn append_at(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.append_at(at, bytes)
    }

    fn sync(&self) -> io::Result<()> {
        if let Some(gate) = self.gate.as_ref().filter(|gate| gate.closed.load(SeqCst)) {
            gate.syncs.fetch_add(1, SeqCst);
            let _ = gate.begun.lock().unwrap().send(());
            let outcome = gate.outcomes.lock().unwrap().recv();
            match outcome.unwrap_or(Outcome::Good) {
                Outcome::Good => {}
                Outcome::Fails => return Err(io::Error::from_raw_os_error(libc::EIO)),
                Outcome::Panics => panic!("as the test wants it"),
            }
        }
        self.file.sync()
    }

    fn bytes(&self) -> io::Result<u64> {
        self.file.bytes()
    }
}

impl LogDisk for GatedDir {
    type File = GatedFile;

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn has_directory(&self) -> bool {
        self.0.has_directory()
    }

    fn lock(&mut self) -> io::Result<()> {
        self.0.lock()
    }

    fn names(&self) -> io::Result<Vec<String>> {
        self.0.names()
    }

    fn open(&self, name: &str, access: Access) -> io::Result<GatedFile> {
        let gate = (name != "mark").then(|| Arc::clone(&self.1));
        Ok(GatedFile {
            file: self.0.open(name, access)?,
            gate,
            is_new: name == "spare.new",
        })
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.0.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.0.remove(name)
    }

    fn sync_names(&self) -> io::Result<()> {
        self.0.sync_names()
    }
}

pub(super) struct World {
    pub(super) driver: Driver<Script>,
    /// The other node.
    pub(super) other: Sockets,
    pub(super) gate: Arc<Gate>,
    pub(super) begun: Receiver<()>,
    pub(super) outcomes: Sender<Outcome>,
    pub(super) directory: tempfile::TempDir,
}

/// Mode async that syncs as soon as it can.
pub(super) const ASYNC: Mode = Mode::Async {
    interval: Duration::ZERO,
    bytes: 1,
};

/// No files are got ready beside: they are synced, too.
pub(super) fn world(mode: Mode) -> World {
    let world = world_with(mode, 0);
    world.gate.closed.store(true, SeqCst);
    world
}

pub(super) fn world_with(mode: Mode, spares: usize) -> World {
    world_on(false, mode, spares)
}

/// On a disk that `is_full` as soon as the log is open, before another segment is got ready.
fn world_on(is_full: bool, mode: Mode, spares: usize) -> World {
    let directory = tempfile::tempdir().unwrap();
    let ((begun_here, begun), (outcomes, outcomes_here)) = (channel(), channel());
    let gate = Arc::new(Gate {
        closed: AtomicBool::new(false),
        full: AtomicBool::new(false),
        begun: Mutex::new(begun_here),
        outcomes: Mutex::new(outcomes_here),
        syncs: AtomicU64::new(0),
        tried: AtomicU64::new(0),
        openings: AtomicU64::new(0),
    });
    let mut options = LogOptions::new(Identity {
        cluster: 1,
        node: id(1),
        log: LogId(1),
    });
    (options.mode, options.spares) = (mode, spares);
    options.boot_id = [1; 16];
    options.segment_bytes = 4 << 20;
    let (path, gated) = (directory.path().to_owned(), Arc::clone(&gate));
    let opener: Opener<GatedDir> = Box::new(move || {
        gated.openings.fetch_add(1, SeqCst);
        let dir = GatedDir(FileDir::new(path.clone()), Arc::clone(&gated));
        let log = DiskLog::open_on(dir, options.clone()).map_err(DriverError::Votes);
        gated.full.fetch_or(is_full, SeqCst);
        log
    });
    let durable = Durable::with_log(opener, mode).unwrap();
    let config = config();
    let sockets = Sockets::open(&config.network(), id(1)).unwrap();
    let other = Sockets::open(&config.network(), id(2)).unwrap();
    let driver =
        Driver::with_durable(Script::default(), sockets, (me(), 1), &config, durable).unwrap();
    World {
        driver,
        other,
        gate,
        begun,
        outcomes,
        directory,
    }
}

impl World {
    pub(super) fn say(&mut self, outputs: impl IntoIterator<Item = Output>) {
        self.driver.engine.outputs.extend(outputs);
        self.turn();
    }

    pub(super) fn turn(&mut self) {
        self.driver.turn(&mut Idle, Some(1_000_000)).unwrap();
    }

    /// Turns until the engine has been told of `count` requests; says which, and whether they failed.
    pub(super) fn answers(&mut self, count: usize) -> Vec<(u64, bool)> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let found = answers(&self.driver.engine.heard);
            if found.len() >= count {
                return found;
            }
            assert!(Instant::now() < deadline, "{found:?}");
            self.turn();
        }
    }

    /// The answer to the next fetch: positions and lengths.
    pub(super) fn fetched(&mut self) -> Vec<(u64, usize)> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let heard = &mut self.driver.engine.heard;
            let at = heard
                .iter()
                .position(|input| matches!(input, Input::Fetched { .. }));
            if let Some(Input::Fetched { records, .. }) = at.map(|at| heard.remove(at)) {
                return records.iter().map(|r| (r.0, r.1.len())).collect();
            }
            assert!(Instant::now() < deadline);
            self.turn();
        }
    }

    pub(super) fn sync_has_begun(&self) {
        assert_eq!(self.begun.recv_timeout(PATIENCE), Ok(()));
    }

    pub(super) fn arrived(&mut self) -> Vec<u8> {
        arrived(&mut self.other)
    }

    pub(super) fn failures(&self) -> u64 {
        self.driver.stats().persist_failures
    }
}

pub(super) fn put(log: LogId, position: u64, bytes: impl Into<Bytes>) -> LogRecord {
    LogRecord::Put {
        log,
        position,
        bytes: bytes.into().into(),
    }
}

/// A vote's bytes.
pub(super) fn vote(round: u64, span: u64, payload: &[u8]) -> Vec<u8> {
    let mut bytes = VoteHead { round, span }.encode().to_vec();
    bytes.extend(payload);
    bytes
}

pub(super) fn request(id: u64, records: Vec<LogRecord>) -> Output {
    let id = PersistId(id);
    Output::Persist { id, records }
}

/// A vote in the instance that has the request's number, and some state.
pub(super) fn vote_of(id: u64) -> Output {
    let bytes = vote(1, 1, b"value");
    request(
        id,
        vec![put(STATE_LOG, 0, vec![id as u8]), put(VOTES_LOG, id, bytes)],
    )
}

pub(super) fn fetch(log: LogId, from: u64, to: u64) -> Output {
    Output::Fetch { log, from, to }
}

#[test]
fn without_room_for_another_segment_votes_go_on_and_it_is_tried_again_once_in_a_while() {
    let mut world = world_on(true, Mode::Sync, 1);
    let begun = Instant::now();
    for number in 1..=30 {
        world.say([request(
            number,
            vec![put(VOTES_LOG, number, vote(1, 1, b"value"))],
        )]);
        let answered = world.answers(number as usize);
        assert_eq!(answered.last(), Some(&(number, false)));
        // The thread that writes it has a chance to say that there is no room.
        std::thread::sleep(Duration::from_millis(2));
    }
    // It may not have had a processor yet.
    while world.gate.tried.load(SeqCst) == 0 {
        std::thread::yield_now();
    }
    let tried = world.gate.tried.load(SeqCst);
    assert!(
        (1..=2 + begun.elapsed().as_secs()).contains(&tried),
        "{tried}"
    );
    // When there is room again it is got ready.
    world.gate.full.store(false, SeqCst);
    let spare = world.directory.path().join("spare.new");
    let deadline = Instant::now() + PATIENCE;
    for number in 31.. {
        if spare.metadata().is_ok_and(|file| file.len() > 0) {
            break;
        }
        assert!(Instant::now() < deadline);
        world.say([request(
            number,
            vec![put(VOTES_LOG, number, vote(1, 1, b"value"))],
        )]);
        world.answers(number as usize);
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn what_gathers_while_the_disk_writes_is_one_group() {
    let mut world = world(Mode::Sync);
    world.say([vote_of(1), token(1, Some(1))]);
    world.sync_has_begun();
    world.say(
        (2..=9)
            .map(vote_of)
            .chain([token(2, Some(9)), token(3, None)]),
    );
    assert_eq!((world.answers(0), world.arrived()), (vec![], vec![3]));
    world.outcomes.send(Outcome::Good).unwrap();
    assert_eq!(world.answers(1), [(1, false)]);
    assert_eq!(world.arrived(), [1]);
    world.sync_has_begun();
    world.outcomes.send(Outcome::Good).unwrap();
    let all: Vec<_> = (1..=9).map(|id| (id, false)).collect();
    assert_eq!(world.answers(9), all);
    assert_eq!(world.arrived(), [2]);
    assert_eq!((world.gate.syncs.load(SeqCst), world.failures()), (2, 0));
}

#[test]
fn the_ring_is_woken_once_for_a_group() {
    let mut world = world(Mode::Sync);
    world.say((1..=50).map(vote_of));
    world.sync_has_begun();
    let waits = world.driver.stats().waits;
    let outcomes = world.outcomes.clone();
    let opens = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(50));
        // The requests handed over behind the first are a group of their own.
        for _ in 0..2 {
            outcomes.send(Outcome::Good).unwrap();
        }
    });
    while answers(&world.driver.engine.heard).len() < 50 {
        world.driver.turn(&mut Idle, None).unwrap();
    }
    opens.join().unwrap();
    let waits = world.driver.stats().waits - waits;
    assert!((1..=3).contains(&waits), "{waits}");
}

#[test]
fn a_sync_that_fails_ends_it_for_good() {
    let mut world = world(Mode::Sync);
    world.say([vote_of(1), token(1, Some(1))]);
    world.sync_has_begun();
    world.say([vote_of(2), token(2, Some(2)), token(3, None)]);
    world.outcomes.send(Outcome::Fails).unwrap();
    assert_eq!(world.answers(2), [(1, true), (2, true)]);
    world.say([vote_of(3), token(4, Some(3))]);
    assert_eq!(world.answers(3)[2], (3, true));
    assert_eq!(world.arrived(), [3]);
    assert_eq!((world.failures(), world.driver.stats().unsupported), (3, 0));
    // The disk was not asked again, and nothing is read from it.
    assert_eq!(world.gate.syncs.load(SeqCst), 1);
    world.say([fetch(VOTES_LOG, 0, 9)]);
    assert_eq!(world.fetched(), []);
}

#[test]
fn a_thread_that_panics_fails_all() {
    let mut world = world(Mode::Sync);
    world.say([vote_of(1)]);
    world.sync_has_begun();
    world.outcomes.send(Outcome::Panics).unwrap();
    assert_eq!(world.answers(1), [(1, true)]);
    world.say([vote_of(2), token(1, Some(2))]);
    assert_eq!(world.answers(2), [(1, true), (2, true)]);
    assert_eq!((world.arrived(), world.failures()), (vec![], 2));
}

#[test]
fn with_async_no_answer_waits_for_the_disk_and_a_failed_sync_ends_it_too() {
    let mut world = world(ASYNC);
    world.say([vote_of(1)]);
    assert_eq!(world.answers(1), [(1, false)]);
    world.sync_has_begun();
    for id in 2..20 {
        world.say([vote_of(id), token(id as u8, Some(id))]);
        assert_eq!(world.answers(id as usize).last(), Some(&(id, false)));
    }
    assert_eq!(world.arrived().len(), 18);
    assert_eq!(world.gate.syncs.load(SeqCst), 1, "one at a time");
    world.outcomes.send(Outcome::Fails).unwrap();
    let deadline = Instant::now() + PATIENCE;
    let mut next = 20;
    while !world
        .answers(next as usize - 1)
        .last()
        .is_some_and(|last| last.1)
    {
        assert!(Instant::now() < deadline);
        world.say([vote_of(next)]);
        next += 1;
    }
    assert_eq!(world.gate.syncs.load(SeqCst), 1);
}

#[test]
fn a_disk_that_hangs_does_not_keep_a_node_from_stopping() {
    let mut world = world(Mode::Sync);
    world.say([vote_of(1)]);
    world.sync_has_begun();
    let started = Instant::now();
    drop(world.driver);
    assert!(started.elapsed() < PATIENCE);
    world.outcomes.send(Outcome::Good).unwrap();
}

#[test]
fn more_than_may_wait_is_refused_and_what_waits_becomes_durable() {
    let mut world = world(Mode::Sync);
    let mib = Bytes::from(vote(1, 1, &vec![7; 1 << 20]));
    let large = |id| request(id, vec![put(VOTES_LOG, id, mib.clone())]);
    let fits = WAITING_LIMIT as u64 / (1 << 20) - 1;
    world.say([large(1)]);
    world.sync_has_begun();
    world.say((2..=fits + 1).map(large));
    // Those behind it are refused, also where there would be room.
    world.say([vote_of(fits + 2)]);
    assert_eq!(world.answers(0), []);
    // From now on all is good.
    world.outcomes = channel().0;
    let answers = world.answers(fits as usize + 2);
    let failed = answers.iter().filter(|(_, failed)| *failed);
    let failed: Vec<u64> = failed.map(|(id, _)| *id).collect();
    assert_eq!(failed, [fits + 1, fits + 2]);
    assert_eq!(world.failures(), 2);
}

#[test]
fn a_fetch_is_answered_in_parts_and_sees_what_was_asked_for_before() {
    let mut world = world(ASYNC);
    world.gate.closed.store(false, SeqCst);
    let large = vote(1, 1, &vec![7; FETCH_BYTES / 2]);
    let votes = (10..20).map(|at| put(VOTES_LOG, at, large.clone()));
    let skip = put(VOTES_LOG, 20, vote(1, 50, b""));
    let mut records: Vec<_> = votes
        .chain([skip, put(STATE_LOG, 3, &b"state"[..])])
        .collect();
    records.push(LogRecord::Trim {
        log: VOTES_LOG,
        position: 12,
    });
    let whole = large.len();
    world.say([
        request(1, records),
        fetch(VOTES_LOG, 0, 100),
        fetch(VOTES_LOG, 14, 15),
        fetch(VOTES_LOG, 19, 30),
        fetch(VOTES_LOG, 70, 100),
        fetch(VOTES_LOG, 30, 30),
        fetch(VOTES_LOG, 30, 35),
        fetch(STATE_LOG, 0, 8),
        fetch(STATE_LOG, 4, 8),
        fetch(LogId(1), 0, 8),
    ]);
    // A fetch of records that are not in the log is answered first.
    assert_eq!(world.fetched(), []);
    assert_eq!(world.fetched(), [(12, whole), (13, whole)]);
    assert_eq!(world.fetched(), [(14, whole)]);
    assert_eq!(world.fetched(), [(19, whole), (20, 16)]);
    assert_eq!(world.fetched(), []);
    assert_eq!(world.fetched(), []);
    assert_eq!(world.fetched(), [(30, 16)]);
    assert_eq!(world.fetched(), [(3, 5)]);
    assert_eq!(world.fetched(), []);
}

#[test]
fn what_is_not_kept_is_refused() {
    let mut world = world(Mode::Sync);
    let wrong = [
        vec![put(VOTES_LOG, 1, vote(1, 0, b""))],
        vec![put(STATE_LOG, 8, vec![])],
        vec![put(LogId(9), 0, vec![])],
        vec![put(STATE_LOG, 1, vec![]), put(LogId(1), 0, vec![0; 8])],
    ];
    for (number, records) in (1..).zip(wrong) {
        world.say([request(number, records)]);
        assert_eq!(world.answers(number as usize).last(), Some(&(number, true)));
        assert_eq!(world.driver.stats().unsupported, number);
    }
    assert_eq!((world.failures(), world.gate.syncs.load(SeqCst)), (0, 0));
    // Nor are votes, where there is no log for them.
    let config = config();
    let sockets = Sockets::open(&config.network(), id(1)).unwrap();
    world.driver = Driver::with_process(Script::default(), sockets, me(), 1, &config).unwrap();
    world.say([vote_of(1)]);
    assert_eq!(
        (world.answers(1), world.driver.stats().unsupported),
        (vec![(1, true)], 1)
    );
}

#[test]
fn a_disk_that_hangs_is_told_from_one_that_is_slow_and_one_that_fails() {
    let mut world = world(Mode::Sync);
    let seen = |world: &World| {
        let status = world.driver.status();
        let names = ["vote_groups", "vote_groups_slow", "votes_failed"];
        let counts = names.map(|name| status.counters[name]);
        let waits = ["votes_waiting_bytes", "votes_waiting_ms"].map(|name| status.counters[name]);
        (status.state, counts, waits)
    };
    let (calm, counts, waits) = seen(&world);
    assert_eq!((counts, waits), ([0; 3], [0; 2]));
    world.say([vote_of(1)]);
    world.sync_has_begun();
    std::thread::sleep(SLOW + Duration::from_millis(1));
    let (state, counts, [bytes, millis]) = seen(&world);
    assert!(
        state.starts_with(&format!("{calm}; its disk has had votes for ")),
        "{state}"
    );
    assert!(counts == [0; 3] && bytes > 0 && millis > 500);
    world.outcomes.send(Outcome::Good).unwrap();
    assert_eq!(world.answers(1), [(1, false)]);
    assert_eq!(seen(&world), (calm.clone(), [1, 1, 0], [0; 2]));
    world.say([vote_of(2)]);
    world.sync_has_begun();
    world.outcomes.send(Outcome::Fails).unwrap();
    assert_eq!(world.answers(2)[1], (2, true));
    let state = format!("{calm}; its log has failed, it votes for nothing");
    // Its thread answers before it has put everything away.
    while seen(&world).2 != [0; 2] {
        std::thread::yield_now();
    }
    assert_eq!(seen(&world), (state, [1, 1, 1], [0; 2]));
}

#[test]
fn a_sync_that_no_answer_waits_for_is_shown_while_it_hangs() {
    let mut world = world(ASYNC);
    let seen = |world: &World| {
        let status = world.driver.status();
        (status.state, status.counters["votes_syncing_ms"])
    };
    let (calm, _) = seen(&world);
    world.say([vote_of(1)]);
    assert_eq!(world.answers(1), [(1, false)]);
    world.sync_has_begun();
    std::thread::sleep(SLOW + Duration::from_millis(1));
    let (state, millis) = seen(&world);
    let says = format!("{calm}; its disk has been syncing for ");
    assert!(state.starts_with(&says) && millis > 500, "{state}");
    world.outcomes.send(Outcome::Good).unwrap();
    let deadline = Instant::now() + PATIENCE;
    while seen(&world) != (calm.clone(), 0) {
        assert!(Instant::now() < deadline);
    }
}

#[test]
fn a_ring_id_behind_votes_is_answered_behind_them() {
    let mut world = world(Mode::Sync);
    world.say([vote_of(1), persist(2, 40), vote_of(3)]);
    world.sync_has_begun();
    assert_eq!(world.answers(0), []);
    for _ in 0..2 {
        world.outcomes.send(Outcome::Good).unwrap();
    }
    assert_eq!(world.answers(3), [(1, false), (2, false), (3, false)]);
}

/// Runs a node that makes these requests; says what it was told at its start.
pub(super) fn a_life(
    config: &NodeConfig,
    requests: Vec<Vec<LogRecord>>,
) -> Vec<(LogId, u64, Bytes)> {
    let sockets = Sockets::open(&config.network(), id(1)).unwrap();
    let mut driver = Driver::with_process(Script::default(), sockets, me(), 1, config).unwrap();
    let count = requests.len();
    for (number, records) in (1..).zip(requests) {
        driver.engine.outputs.push_back(request(number, records));
    }
    let deadline = Instant::now() + PATIENCE;
    while answers(&driver.engine.heard).len() < count {
        assert!(Instant::now() < deadline);
        driver.turn(&mut Idle, Some(1_000_000)).unwrap();
    }
    assert!(
        answers(&driver.engine.heard)
            .iter()
            .all(|(_, failed)| !failed)
    );
    let Input::Start(start) = driver.engine.heard.remove(0) else {
        panic!("not started");
    };
    start.records
}

/// With a log of votes.
pub(super) fn voting(storage: VoteStorage, directory: Option<&Path>) -> NodeConfig {
    let mut config = config();
    config.engine = EngineName::URingPaxos;
    config.paxos = Some(PaxosConfig {
        acceptors: None,
        storage,
        ..PaxosConfig::default()
    });
    config.state_dir = directory.map(Path::to_owned);
    config
}

#[test]
fn the_next_life_is_told_everything_state_first_and_then_votes_in_order() {
    for storage in [VoteStorage::Sync, VoteStorage::Async] {
        let directory = tempfile::tempdir().unwrap();
        let config = voting(storage, Some(directory.path()));
        let first = vec![
            vec![
                put(VOTES_LOG, 5, vote(1, 10, b"skip")),
                put(STATE_LOG, 2, &b"two"[..]),
            ],
            vec![
                put(VOTES_LOG, 3, vote(1, 1, b"three")),
                put(STATE_LOG, 0, &b"zero"[..]),
            ],
            // In the middle of the range.
            vec![
                put(VOTES_LOG, 8, vote(2, 1, b"eight")),
                put(STATE_LOG, 2, &b"new"[..]),
            ],
            vec![LogRecord::Trim {
                log: VOTES_LOG,
                position: 6,
            }],
        ];
        assert_eq!(a_life(&config, first), []);
        let bytes = |bytes: &[u8]| Bytes::copy_from_slice(bytes);
        let mut wanted = vec![
            (STATE_LOG, 0, bytes(b"zero")),
            (STATE_LOG, 2, bytes(b"new")),
            (VOTES_LOG, 6, bytes(&vote(1, 2, b"skip"))),
            (VOTES_LOG, 8, bytes(&vote(2, 1, b"eight"))),
            (VOTES_LOG, 9, bytes(&vote(1, 6, b"skip"))),
        ];
        let second = vec![
            vec![put(VOTES_LOG, 15, vote(2, 1, b""))],
            vec![put(STATE_LOG, 7, vec![])],
        ];
        assert_eq!(a_life(&config, second), wanted);
        wanted.insert(2, (STATE_LOG, 7, Bytes::new()));
        wanted.push((VOTES_LOG, 15, bytes(&vote(2, 1, b""))));
        assert_eq!(a_life(&config, Vec::new()), wanted);
        assert!(directory.path().join("node-1.votes/mark").is_file());
    }
}

#[test]
fn in_memory_all_is_answered_at_once_and_forgotten_at_the_end() {
    let config = voting(VoteStorage::Memory, None);
    let records = vec![
        put(VOTES_LOG, 5, vote(1, 10, b"")),
        put(STATE_LOG, 2, &b"two"[..]),
    ];
    for _ in 0..2 {
        assert_eq!(a_life(&config, vec![records.clone()]), []);
    }
    let sockets = Sockets::open(&config.network(), id(1)).unwrap();
    let mut driver = Driver::with_process(Script::default(), sockets, me(), 1, &config).unwrap();
    driver
        .engine
        .outputs
        .extend([request(1, records), fetch(VOTES_LOG, 0, 20)]);
    driver.carry_out().unwrap();
    assert_eq!(answers(&driver.engine.heard), [(1, false)]);
    let Some(Input::Fetched { records, .. }) = driver.engine.heard.last() else {
        panic!("not fetched");
    };
    assert_eq!(records[..], [(5, Bytes::from(vote(1, 10, b"")))]);
}

#[test]
fn a_log_that_cannot_be_used_stops_the_start() {
    let directory = tempfile::tempdir().unwrap();
    let start = |config: &NodeConfig| {
        let sockets = Sockets::open(&config.network(), id(1)).unwrap();
        let driver = Driver::with_process(Script::default(), sockets, me(), 1, config);
        driver.map_err(|error| error.to_string())
    };
    let config = voting(VoteStorage::Sync, Some(&directory.path().join("missing")));
    assert!(start(&config).unwrap_err().contains("missing"));
    let config = voting(VoteStorage::Sync, None);
    assert!(start(&config).unwrap_err().contains("state_dir"));
    let config = voting(VoteStorage::Sync, Some(directory.path()));
    drop(start(&config).unwrap());
    let mut other = config.clone();
    other.cluster ^= 1;
    assert!(start(&other).unwrap_err().contains("cluster"));
    let mark = directory.path().join("node-1.votes/mark");
    std::fs::write(mark, [0; 8192]).unwrap();
    assert!(start(&config).unwrap_err().contains("mark"));
}

/// Not a deadline: the disk is never asked.
#[test]
fn nothing_is_synced_that_was_not_asked_for() {
    let world = world(Mode::Sync);
    let begun = world.begun.recv_timeout(Duration::from_millis(300));
    assert_eq!(begun, Err(RecvTimeoutError::Timeout));
}
