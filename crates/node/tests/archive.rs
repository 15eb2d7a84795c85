//! Acceptors whose decided values have left memory: real nodes, logs on a real disk, and a node that was away.

use std::num::NonZeroU64;
use std::time::{Duration, Instant};

use rota_core::contract::{Delivery, NodeId, Service};
use rota_node::{EngineName, Node, NodeConfig, PaxosConfig, VoteStorage};

const PATIENCE: Duration = Duration::from_secs(60);

/// The bytes of decided values that an acceptor keeps in memory.
const MEMORY: u64 = 256 << 10;

/// The messages that are ordered while a node is away, and their bytes.
const MESSAGES: u64 = 3000;
const SIZE: usize = 4000;

/// Instances whose votes may not be durable yet: what is under way stays in memory.
const UNDER_WAY: u64 = 4 << 20;

fn id(number: u16) -> NodeId {
    NodeId::new(number).expect("not 0")
}

fn start(config: &NodeConfig, number: u16) -> Node {
    Node::start(config.clone(), id(number)).expect("it starts")
}

fn payload(number: u64) -> Vec<u8> {
    let mut payload: Vec<u8> = (0..SIZE)
        .map(|at| (number as usize * 7 + at) as u8)
        .collect();
    payload[..8].copy_from_slice(&number.to_le_bytes());
    payload
}

/// Takes messages until the one of this number, which have to follow each other from `next` on.
fn take(node: &Node, mut next: u64, upto: u64) {
    while next < upto {
        match node.recv_timeout(PATIENCE) {
            Ok(Delivery::Message(message)) => {
                assert_eq!(message.payload, payload(next), "message {next}");
                next += 1;
            }
            Ok(Delivery::Configuration(_)) => {}
            other => panic!("{other:?} before {next}: {:?}", node.status()),
        }
    }
}

fn counter(node: &Node, name: &str) -> u64 {
    node.status().expect("it runs").engine.counters[name]
}

/// Waits until it has as little in memory as it may: what was learnt last becomes durable a little later.
fn expect_little(node: &Node) {
    let deadline = Instant::now() + PATIENCE;
    // The names of values that are in the log alone stay, in a table that grows by doubling.
    let names = || 2 * 64 * counter(node, "uring_votes_in_log");
    while counter(node, "uring_memory_bytes") > MEMORY + names() {
        assert!(Instant::now() < deadline, "{:?}", node.status());
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn who_was_away_is_told_what_left_memory(engine: EngineName, storage: VoteStorage, port: u16) {
    let dir = tempfile::tempdir().expect("a directory");
    let mut config = NodeConfig::loopback(3, port);
    config.engine = engine;
    config.state_dir = Some(dir.path().to_owned());
    config.paxos = Some(PaxosConfig {
        storage,
        memory_bytes: NonZeroU64::new(MEMORY),
        ..PaxosConfig::default()
    });
    let nodes = [1, 2].map(|number| start(&config, number));
    let third = start(&config, 3);
    let publisher = nodes[0].publisher();
    let submit = |numbers: std::ops::Range<u64>| {
        for number in numbers {
            let taken = publisher.submit_blocking(Service::Agreed, &payload(number));
            taken.expect("it is taken");
        }
    };
    submit(0..10);
    take(&third, 0, 10);
    third.stop().expect("it runs");
    std::thread::scope(|scope| {
        scope.spawn(|| submit(10..MESSAGES));
        // The application of the second is slow meanwhile.
        for node in &nodes {
            take(node, 0, MESSAGES);
            let most = nodes.iter().map(|node| counter(node, "uring_memory_bytes"));
            assert!(most.max() < Some(MEMORY + UNDER_WAY), "{:?}", node.status());
        }
    });
    for node in &nodes {
        expect_little(node);
        assert!(counter(node, "uring_votes_in_log") * 33_000 > MESSAGES * SIZE as u64 / 2);
    }
    // It begins without a state: it is told everything from the first message on.
    let third = start(&config, 3);
    take(&third, 0, MESSAGES);
    submit(MESSAGES..MESSAGES + 10);
    take(&third, MESSAGES, MESSAGES + 10);
    let read = nodes
        .iter()
        .map(|node| counter(node, "uring_votes_read_back"));
    assert!(read.sum::<u64>() > 100, "{:?}", nodes[0].status());
    let failed = nodes.iter().map(|node| counter(node, "uring_reads_failed"));
    assert_eq!(failed.sum::<u64>(), 0);
    nodes.iter().chain([&third]).for_each(expect_little);
}

#[test]
fn who_was_away_is_told_what_left_memory_along_the_ring() {
    who_was_away_is_told_what_left_memory(EngineName::URingPaxos, VoteStorage::Sync, 27_400);
}

#[test]
fn who_was_away_is_told_what_left_memory_by_multicast() {
    who_was_away_is_told_what_left_memory(EngineName::RingPaxos, VoteStorage::Async, 27_450);
}
