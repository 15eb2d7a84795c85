//! A driver whose disk is slow, fails or hangs.

use super::durable::Durable;
use super::store::{Found, Record, Store};
use super::*;
use crate::config::{PrimaryName, ResetPrimary};
use crate::engine::NodeEngine;
use bytes::Bytes;
use rota_core::contract::{
    Burst, Channel, Class, Incarnation, LogId, LogRecord, Output, PersistError, PersistId, Service,
    SubmitError, Target, Time, TimerReason,
};
use rota_core::primary::{PRIMARY_LOG, first_record};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU16, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

pub(super) const PATIENCE: Duration = Duration::from_secs(5);
static PORTS: AtomicU16 = AtomicU16::new(28_000);

/// Hands out what the test wants, and remembers what it is told.
#[derive(Debug, Default)]
pub(super) struct Script {
    pub(super) outputs: VecDeque<Output>,
    pub(super) heard: Vec<Input>,
}

impl Engine for Script {
    fn handle(&mut self, _: Time, input: Input) {
        self.heard.push(input);
    }
    fn submit(&mut self, _: Time, _: Service, _: &[u8]) -> Result<u64, SubmitError> {
        Err(SubmitError::Unsupported)
    }
    fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }
    fn poll_delivery(&mut self) -> Option<Delivery> {
        None
    }
    fn reading(&self) -> Class {
        Class::Token
    }
    fn next_timer(&self) -> Option<(Time, TimerReason)> {
        None
    }
    fn status(&self) -> Status {
        Status::default()
    }
}

pub(super) struct Idle;

impl App for Idle {
    fn deliver(&mut self, _: Delivery) {}
    fn fill(&mut self, _: Time, _: &mut dyn Submitter) {}
    fn stop(&self) -> bool {
        false
    }
}

/// Writes nothing before the test says what becomes of it.
struct Gated {
    begun: Sender<u64>,
    gate: Receiver<Result<(), PersistError>>,
}

impl Store for Gated {
    fn store(&mut self, record: &Record) -> Result<(), PersistError> {
        let value = match record {
            Record::RingId(number) => *number,
            Record::Primaries(bytes) | Record::Electorates(bytes) => u64::from(bytes[0]),
        };
        let _ = self.begun.send(value);
        self.gate.recv().expect("the gate opens")
    }
}

struct World {
    driver: Driver<Script>,
    /// The other node.
    other: Sockets,
    begun: Receiver<u64>,
    gate: Sender<Result<(), PersistError>>,
}

pub(super) fn id(node: u16) -> NodeId {
    NodeId::new(node).unwrap()
}

pub(super) fn config() -> NodeConfig {
    NodeConfig::loopback(2, PORTS.fetch_add(10, Relaxed))
}

pub(super) fn me() -> Process {
    Process {
        node: id(1),
        incarnation: Incarnation(7),
    }
}

fn world() -> World {
    world_that_found(Found::default())
}

fn world_that_found(found: Found) -> World {
    let ((begun_here, begun), (gate, gate_here)) = (channel(), channel());
    let store = Gated {
        begun: begun_here,
        gate: gate_here,
    };
    let durable = Durable::with_store(found, Box::new(store)).unwrap();
    let config = config();
    let sockets = Sockets::open(&config.network(), id(1)).unwrap();
    let other = Sockets::open(&config.network(), id(2)).unwrap();
    let driver =
        Driver::with_durable(Script::default(), sockets, (me(), 1), &config, durable).unwrap();
    World {
        driver,
        other,
        begun,
        gate,
    }
}

pub(super) fn persist(id: u64, value: u64) -> Output {
    let record = LogRecord::Put {
        log: LogId(1),
        position: 0,
        bytes: value.to_le_bytes().to_vec().into(),
    };
    Output::Persist {
        id: PersistId(id),
        records: vec![record],
    }
}

/// A token that can be told from others by `mark`.
pub(super) fn token(mark: u8, after: Option<u64>) -> Output {
    Output::Send {
        class: Class::Token,
        channel: Channel(0),
        to: Target::Others,
        burst: Burst::single(vec![mark; 60]),
        after: after.map(PersistId),
    }
}

impl World {
    fn say(&mut self, outputs: impl IntoIterator<Item = Output>) {
        self.driver.engine.outputs.extend(outputs);
        self.turn();
    }

    fn turn(&mut self) {
        self.driver.turn(&mut Idle, Some(1_000_000)).unwrap();
    }

    /// Turns until the engine has been told of `count` requests; says which, and whether they failed.
    fn answers(&mut self, count: usize) -> Vec<(u64, bool)> {
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

    /// The marks of the tokens that have reached the other node.
    fn arrived(&mut self) -> Vec<u8> {
        arrived(&mut self.other)
    }
}

/// The marks of the tokens that have come.
pub(super) fn arrived(at: &mut Sockets) -> Vec<u8> {
    let mut arrivals = VecDeque::new();
    while at.receive(Class::Token, &mut arrivals).unwrap() {}
    arrivals
        .iter()
        .flat_map(|arrival| arrival.bytes.chunks(arrival.segment))
        .map(|datagram| datagram[0])
        .collect()
}

pub(super) fn answers(heard: &[Input]) -> Vec<(u64, bool)> {
    let answer = |input: &Input| match input {
        Input::Persisted { id } => Some((id.0, false)),
        Input::PersistFailed { id, .. } => Some((id.0, true)),
        _ => None,
    };
    heard.iter().filter_map(answer).collect()
}

#[test]
fn sends_wait_for_the_disk_in_their_order_and_nothing_else_does() {
    let mut world = world();
    world.say([
        token(1, None),
        persist(5, 40),
        token(2, Some(5)),
        token(3, None),
        token(4, Some(5)),
    ]);
    assert_eq!(world.begun.recv_timeout(PATIENCE), Ok(40));
    assert_eq!(world.arrived(), [1, 3]);
    assert_eq!(answers(&world.driver.engine.heard), []);
    // Meanwhile the node hears the others, and answers them.
    let greeting = Burst::single(vec![9; 60]);
    let mut out = world.other.seal(Class::Token, Target::Others, greeting);
    world.other.send(&mut out).unwrap();
    let deadline = Instant::now() + PATIENCE;
    let heard = |world: &World| {
        let mut heard = world.driver.engine.heard.iter();
        heard.any(|input| matches!(input, Input::Datagrams { .. }))
    };
    while !heard(&world) {
        assert!(Instant::now() < deadline);
        world.turn();
    }
    world.say([token(6, None)]);
    assert_eq!(world.arrived(), [6]);
    world.gate.send(Ok(())).unwrap();
    assert_eq!(world.answers(1), [(5, false)]);
    assert_eq!(world.arrived(), [2, 4]);
    world.say([token(7, Some(5))]);
    assert_eq!(world.arrived(), [7], "durable already");
}

#[test]
fn sends_that_wait_for_what_failed_are_not_made() {
    let mut world = world();
    world.say([persist(1, 4), token(1, Some(1))]);
    assert_eq!(world.begun.recv_timeout(PATIENCE), Ok(4));
    world.say([persist(2, 8), token(2, Some(2)), token(3, None)]);
    world.gate.send(Err(PersistError::NoSpace)).unwrap();
    assert_eq!(world.answers(1), [(1, true)]);
    assert_eq!(world.arrived(), [3]);
    world.gate.send(Ok(())).unwrap();
    assert_eq!(world.answers(2), [(1, true), (2, false)]);
    assert_eq!(world.arrived(), [2]);
    assert_eq!(world.driver.stats().persist_failures, 1);
}

#[test]
fn a_newer_ring_id_overtakes_those_that_wait_and_answers_for_them() {
    let mut world = world();
    world.say([persist(1, 4)]);
    assert_eq!(world.begun.recv_timeout(PATIENCE), Ok(4));
    world.say([persist(2, 8), token(2, Some(2)), persist(3, 12)]);
    world.gate.send(Ok(())).unwrap();
    assert_eq!(world.begun.recv_timeout(PATIENCE), Ok(12));
    assert_eq!(world.answers(1), [(1, false)]);
    assert_eq!(world.arrived(), [0_u8; 0]);
    world.gate.send(Ok(())).unwrap();
    assert_eq!(world.answers(3), [(1, false), (2, false), (3, false)]);
    assert_eq!(world.arrived(), [2]);
}

fn remember(id: u64, mark: u8) -> Output {
    let record = LogRecord::Put {
        log: PRIMARY_LOG,
        position: 0,
        bytes: vec![mark; 3].into(),
    };
    Output::Persist {
        id: PersistId(id),
        records: vec![record],
    }
}

/// A world whose node keeps what it knows of primaries.
fn world_of_primaries() -> World {
    let found = Found {
        primaries: Some(Bytes::from_static(&[1])),
        ..Found::default()
    };
    world_that_found(found)
}

#[test]
fn ring_ids_and_primaries_do_not_overtake_each_other_and_are_answered_in_order() {
    let mut world = world_of_primaries();
    world.say([persist(1, 40)]);
    assert_eq!(world.begun.recv_timeout(PATIENCE), Ok(40));
    world.say([persist(2, 41), remember(3, 7), persist(4, 42)]);
    world.gate.send(Ok(())).unwrap();
    assert_eq!(world.answers(1), [(1, false)]);
    assert_eq!(world.begun.recv_timeout(PATIENCE), Ok(7));
    world.gate.send(Ok(())).unwrap();
    assert_eq!(world.begun.recv_timeout(PATIENCE), Ok(42));
    world.turn();
    assert_eq!(world.answers(1), [(1, false)], "2 is not durable yet");
    world.gate.send(Ok(())).unwrap();
    let all = [(1, false), (2, false), (3, false), (4, false)];
    assert_eq!(world.answers(4), all);
}

#[test]
fn a_record_of_primaries_that_fails_fails_alone() {
    let mut world = world_of_primaries();
    world.say([remember(1, 7), token(1, Some(1))]);
    assert_eq!(world.begun.recv_timeout(PATIENCE), Ok(7));
    world.say([persist(2, 40), remember(3, 8), token(2, Some(2))]);
    let error = PersistError::Io("as the test wants it".to_owned());
    world.gate.send(Err(error)).unwrap();
    assert_eq!(world.begun.recv_timeout(PATIENCE), Ok(40));
    world.gate.send(Ok(())).unwrap();
    assert_eq!(world.begun.recv_timeout(PATIENCE), Ok(8));
    assert_eq!(world.answers(2), [(1, true), (2, false)]);
    assert_eq!(world.arrived(), [2]);
    world.gate.send(Ok(())).unwrap();
    assert_eq!(world.answers(3)[2], (3, false));
    let (kept, _) = world.driver.io.durable().records();
    assert_eq!(kept[1], (PRIMARY_LOG, 0, Bytes::from_static(&[8; 3])));
}

#[test]
fn the_answer_wakes_a_sleeping_loop() {
    let mut world = world();
    world.say([persist(1, 4)]);
    let gate = world.gate.clone();
    let opens = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(50));
        gate.send(Ok(())).unwrap();
    });
    let started = Instant::now();
    while answers(&world.driver.engine.heard).is_empty() {
        world.driver.turn(&mut Idle, None).unwrap();
    }
    assert!(started.elapsed() < PATIENCE);
    opens.join().unwrap();
}

#[test]
fn a_store_that_panics_fails_its_request_and_all_later_ones() {
    struct Bad;
    impl Store for Bad {
        fn store(&mut self, _: &Record) -> Result<(), PersistError> {
            panic!("as the test wants it");
        }
    }
    let mut world = world();
    *world.driver.io.durable() = Durable::with_store(Found::default(), Box::new(Bad)).unwrap();
    world.say([persist(1, 4), token(1, Some(1))]);
    assert_eq!(world.answers(1), [(1, true)]);
    world.say([persist(2, 8), token(2, Some(2))]);
    assert_eq!(world.answers(2), [(1, true), (2, true)]);
    assert_eq!(world.arrived(), [0_u8; 0]);
}

#[test]
fn a_disk_that_hangs_does_not_keep_a_node_from_stopping() {
    let mut world = world();
    world.say([persist(1, 4)]);
    assert_eq!(world.begun.recv_timeout(PATIENCE), Ok(4));
    let started = Instant::now();
    drop(world.driver);
    assert!(started.elapsed() < PATIENCE);
    world.gate.send(Ok(())).unwrap();
}

#[test]
fn what_is_not_kept_is_refused() {
    let mut world = world();
    let bytes = Bytes::from_static(&[0; 8]);
    let put = |log, position, bytes: Bytes| LogRecord::Put {
        log: LogId(log),
        position,
        bytes: bytes.into(),
    };
    let wrong = [
        vec![],
        // Without a file for it.
        vec![put(2, 0, bytes.clone())],
        vec![put(1, 0, bytes.clone()), put(2, 0, bytes.clone())],
        vec![put(1, 1, bytes.clone())],
        vec![put(1, 0, bytes.slice(..7))],
        vec![LogRecord::Trim {
            log: LogId(1),
            position: 0,
        }],
    ];
    for (number, records) in (1..).zip(wrong) {
        let id = PersistId(number);
        world.say([
            Output::Persist { id, records },
            token(number as u8, Some(number)),
        ]);
        assert_eq!(world.answers(number as usize).last(), Some(&(number, true)));
        assert_eq!(world.driver.stats().unsupported, number);
    }
    assert_eq!(world.arrived(), [0_u8; 0]);
}

/// Stores a ring id, and says what the engine was told at the start and by a fetch.
fn a_life(config: &NodeConfig, value: u64) -> [Vec<u64>; 2] {
    let sockets = Sockets::open(&config.network(), id(1)).unwrap();
    let mut driver = Driver::with_process(Script::default(), sockets, me(), 1, config).unwrap();
    let (log, from, to) = (LogId(1), 0, 1);
    let fetch = Output::Fetch { log, from, to };
    driver.engine.outputs.push_back(persist(1, value));
    let deadline = Instant::now() + PATIENCE;
    while answers(&driver.engine.heard).is_empty() {
        assert!(Instant::now() < deadline);
        driver.turn(&mut Idle, Some(1_000_000)).unwrap();
    }
    assert_eq!(answers(&driver.engine.heard), [(1, false)]);
    driver.engine.outputs.push_back(fetch);
    driver.turn(&mut Idle, Some(0)).unwrap();
    let number = |bytes: &Bytes| u64::from_le_bytes(bytes.as_ref().try_into().unwrap());
    let Input::Start(start) = &driver.engine.heard[0] else {
        panic!("not started");
    };
    assert!(start.records.iter().all(|r| (r.0, r.1) == (LogId(1), 0)));
    let started = start.records.iter().map(|r| number(&r.2)).collect();
    let Some(Input::Fetched { records, .. }) = driver.engine.heard.last() else {
        panic!("not fetched");
    };
    [started, records.iter().map(|r| number(&r.1)).collect()]
}

#[test]
fn with_a_state_directory_the_next_life_knows_the_ring_id() {
    let directory = tempfile::tempdir().unwrap();
    let mut config = config();
    config.state_dir = Some(directory.path().to_owned());
    assert_eq!(a_life(&config, 4), [vec![], vec![4]]);
    assert_eq!(a_life(&config, 1 << 40), [vec![4], vec![1 << 40]]);
    assert!(directory.path().join("node-1.ring").is_file());
    config.state_dir = None;
    assert_eq!(a_life(&config, 9), [vec![], vec![9]], "memory only");
    assert_eq!(a_life(&config, 9), [vec![], vec![9]], "memory only");
}

#[test]
fn a_state_directory_that_cannot_be_used_stops_the_start() {
    let directory = tempfile::tempdir().unwrap();
    let mut config = config();
    config.state_dir = Some(directory.path().join("missing"));
    let start = |config: &NodeConfig| {
        let sockets = Sockets::open(&config.network(), id(1)).unwrap();
        Driver::with_process(Script::default(), sockets, me(), 1, config)
    };
    let error = start(&config).unwrap_err().to_string();
    assert!(error.contains("missing"), "{error}");
    config.state_dir = Some(directory.path().to_owned());
    std::fs::write(directory.path().join("node-1.ring"), b"").unwrap();
    let error = start(&config).unwrap_err().to_string();
    assert!(error.contains("reset_ring_id"), "{error}");
    config.reset_ring_id = true;
    drop(start(&config).unwrap());
    config.reset_ring_id = false;
    drop(start(&config).unwrap());
}

/// The records of primaries that a node is told when it starts, or the reason why it does not; then it remembers
/// `mark`.
fn a_life_of_primaries(config: &NodeConfig, mark: u8) -> Result<Vec<Bytes>, String> {
    let sockets = Sockets::open(&config.network(), id(1)).unwrap();
    let driver = Driver::with_process(Script::default(), sockets, me(), 1, config);
    let mut driver = driver.map_err(|error| error.to_string())?;
    driver
        .engine
        .outputs
        .extend([remember(1, mark), persist(2, 5)]);
    let deadline = Instant::now() + PATIENCE;
    while answers(&driver.engine.heard).len() < 2 {
        assert!(Instant::now() < deadline);
        driver.turn(&mut Idle, Some(1_000_000)).unwrap();
    }
    let failed = config.primary != PrimaryName::Dynamic;
    assert_eq!(answers(&driver.engine.heard), [(1, failed), (2, false)]);
    let Input::Start(start) = &driver.engine.heard[0] else {
        panic!("not started");
    };
    let of_primaries = start.records.iter().filter(|(log, ..)| *log == PRIMARY_LOG);
    Ok(of_primaries.map(|(.., bytes)| bytes.clone()).collect())
}

#[test]
fn the_next_life_knows_what_was_remembered_and_a_lost_record_is_no_first_start() {
    let directory = tempfile::tempdir().unwrap();
    let mut config = config();
    config.state_dir = Some(directory.path().to_owned());
    assert_eq!(a_life_of_primaries(&config, 1), Ok(vec![]));
    config.primary = PrimaryName::Dynamic;
    // The node has run without the layer: an operator who switches it on has to say so.
    let refused = a_life_of_primaries(&config, 1).unwrap_err();
    assert!(refused.contains("reset_primary = \"first\""), "{refused}");
    config.reset_primary = Some(ResetPrimary::First);
    let first = vec![Bytes::from(first_record(&config.members()))];
    assert_eq!(a_life_of_primaries(&config, 2), Ok(first));
    // Nothing is wrong with the file now, so it is kept.
    let kept = |mark: u8| Ok(vec![Bytes::copy_from_slice(&[mark; 3])]);
    assert_eq!(a_life_of_primaries(&config, 3), kept(2));
    config.reset_primary = None;
    assert_eq!(a_life_of_primaries(&config, 4), kept(3));
    let path = directory.path().join("node-1.primary");
    std::fs::remove_file(&path).unwrap();
    let refused = a_life_of_primaries(&config, 5).unwrap_err();
    assert!(refused.contains("node-1.primary"), "{refused}");
    config.reset_primary = Some(ResetPrimary::Forgotten);
    let forgotten = vec![Bytes::from(first_record(&[]))];
    assert_eq!(a_life_of_primaries(&config, 6), Ok(forgotten));
    // With both files lost in different ways it is no first start either.
    config.reset_primary = None;
    config.reset_ring_id = true;
    std::fs::remove_file(&path).unwrap();
    std::fs::write(directory.path().join("node-1.ring"), b"?").unwrap();
    for _ in 0..2 {
        let refused = a_life_of_primaries(&config, 7).unwrap_err();
        assert!(refused.contains("node-1.primary"), "{refused}");
    }
}

/// Takes deliveries, and says one message when it is told to.
#[derive(Default)]
struct Talker {
    says: bool,
    heard: Vec<Delivery>,
}

impl App for Talker {
    fn deliver(&mut self, delivery: Delivery) {
        self.heard.push(delivery);
    }
    fn fill(&mut self, now: Time, submitter: &mut dyn Submitter) {
        if std::mem::take(&mut self.says) {
            submitter.submit(now, Service::Safe, b"hello").unwrap();
        }
    }
    fn stop(&self) -> bool {
        false
    }
}

impl Talker {
    /// Turns until something that was delivered last is as wanted; says how long that took.
    fn until(
        &mut self,
        driver: &mut Driver<NodeEngine>,
        wanted: fn(&Delivery) -> bool,
    ) -> Duration {
        let started = Instant::now();
        while !self.heard.last().is_some_and(wanted) {
            assert!(started.elapsed() < PATIENCE, "{:?}", self.heard);
            driver.turn(self, Some(10_000_000)).unwrap();
        }
        started.elapsed()
    }
}

/// A store that takes one record of primaries, the attempt, and then waits for the test.
struct Stalls {
    taken: usize,
    gate: Receiver<Result<(), PersistError>>,
}

impl Store for Stalls {
    fn store(&mut self, record: &Record) -> Result<(), PersistError> {
        if matches!(record, Record::RingId(_) | Record::Electorates(_)) {
            return Ok(());
        }
        self.taken += 1;
        if self.taken == 2 {
            return self.gate.recv().expect("the gate opens");
        }
        Ok(())
    }
}

#[test]
fn a_primary_is_reported_when_the_disk_can_and_deliveries_do_not_wait_for_long() {
    let none = PersistError::NoSpace;
    for outcome in [Ok(()), Err(none)] {
        let mut config = NodeConfig::loopback(1, PORTS.fetch_add(10, Relaxed));
        config.primary = PrimaryName::Dynamic;
        config.state_dir = Some("of no use here".into());
        let (gate, gate_here) = channel();
        let store = Stalls {
            taken: 0,
            gate: gate_here,
        };
        let found = Found {
            ring_id: None,
            primaries: Some(Bytes::from(first_record(&config.members()))),
            electorates: None,
        };
        let durable = Durable::with_store(found, Box::new(store)).unwrap();
        let sockets = Sockets::open(&config.network(), id(1)).unwrap();
        let engine = NodeEngine::new(&config, id(1)).unwrap();
        let mut driver =
            Driver::with_durable(engine, sockets, (me(), 1), &config, durable).unwrap();
        let mut app = Talker::default();
        let is_message = |delivery: &Delivery| matches!(delivery, Delivery::Message(_));
        let formed = Instant::now() + Duration::from_millis(100);
        while Instant::now() < formed {
            driver.turn(&mut app, Some(10_000_000)).unwrap();
        }
        app.says = true;
        let held = app.until(&mut driver, is_message);
        assert!(held > Duration::from_millis(500), "{held:?}");
        assert_eq!(app.heard.len(), 2, "{:?}", app.heard);
        gate.send(outcome).unwrap();
        let is_primary = |delivery: &Delivery| matches!(delivery, Delivery::Primary(_));
        app.until(&mut driver, is_primary);
    }
}
