//! Processes that observe rings, on real sockets: they deliver what the others order, and nobody waits for them.

mod several;

use std::thread;
use std::time::{Duration, Instant};

use rota_core::contract::{NodeId, SubmitError};
use rota_multiring::Rank;
use rota_node::rings::{RingsPublisher, RingsStartError};
use rota_node::{EngineName, PaxosConfig, RingsConfig, RingsNode, VoteStorage};

use several::take;

fn id(number: u16) -> NodeId {
    NodeId::new(number).expect("not 0")
}

/// Three that order two rings, and two that observe both.
fn config(port: u16) -> RingsConfig {
    let mut config = RingsConfig::loopback(5, 2, port);
    config.common.paxos = Some(PaxosConfig {
        storage: VoteStorage::Memory,
        observers: Some(vec![4, 5]),
        ..PaxosConfig::default()
    });
    config.rings[1].engine = Some(EngineName::RingPaxos);
    config
}

fn start(config: &RingsConfig, node: u16) -> RingsNode {
    RingsNode::start(config, id(node)).expect("it starts")
}

/// Submits messages of all sizes to both rings.
fn load(publisher: &RingsPublisher, count: usize) {
    for message in 0..count {
        let mut payload = vec![7; [10, 700, 40_000, 300_000][message % 4]];
        payload[..8].copy_from_slice(&(message as u64).to_le_bytes());
        let ring = Rank(1 + (message / 3) as u16 % 2);
        let taken = publisher.submit_blocking(ring, &payload);
        taken.expect("it is taken");
    }
}

fn states(node: &RingsNode) -> Vec<String> {
    let status = node.status().expect("it runs");
    let states = status.rings.iter().map(|(_, ring)| ring.state.clone());
    states.collect()
}

#[test]
fn an_observer_delivers_the_same_order_and_is_in_no_ring() {
    let config = config(20_400);
    let nodes: Vec<RingsNode> = (1..=5).map(|node| start(&config, node)).collect();
    let publisher = nodes[0].publisher();
    let all: Vec<_> = thread::scope(|scope| {
        scope.spawn(move || load(&publisher, 300));
        nodes.iter().map(|node| take(node, 300)).collect()
    });
    assert!(all[0].windows(2).all(|pair| pair[0].0 < pair[1].0));
    assert!(all.iter().all(|one| *one == all[0]));
    for (at, node) in nodes.iter().enumerate() {
        let wanted = ["operational: 1, 2, 3", "observes: 1, 2, 3"][usize::from(at >= 3)];
        for state in states(node) {
            assert!(state.starts_with(wanted), "node {}: {state}", at + 1);
        }
    }
    let fourth = &nodes[3];
    let refused = fourth.submit(Rank(1), b"x");
    assert_eq!(refused, Err(SubmitError::Unsupported));
    let refused = fourth.publisher().submit_blocking(Rank(2), b"x");
    assert_eq!(refused, Err(SubmitError::Unsupported));
    // What is ordered late comes at once, too: not with the next time-out.
    let mut slowest = Duration::ZERO;
    for message in 0..20_u64 {
        thread::sleep(Duration::from_millis(20));
        let began = Instant::now();
        nodes[1]
            .submit(Rank(1), &message.to_le_bytes())
            .expect("it is taken");
        assert_eq!(take(fourth, 1)[0].1, message.to_le_bytes());
        slowest = slowest.max(began.elapsed());
    }
    assert!(slowest < Duration::from_secs(3), "{slowest:?}");
}

/// Nodes that observe come and go, and so does an acceptor: the order goes on, and an observer that begins late gets all
/// that is kept.
#[test]
fn observers_come_and_go_and_nobody_waits_for_them() {
    let config = config(20_440);
    let [one, two, three] = [1, 2, 3].map(|node| start(&config, node));
    load(&one.publisher(), 60);
    let first = take(&two, 60);
    let late = start(&config, 4);
    assert_eq!(take(&late, 60), first, "from the beginning");
    // It asks the first acceptor, which is gone from now on.
    one.stop().expect("it had not failed");
    load(&two.publisher(), 40);
    let second = take(&two, 40);
    assert_eq!(take(&late, 40), second);
    late.stop().expect("it had not failed");
    load(&two.publisher(), 40);
    let third = take(&two, 40);
    assert_eq!(take(&three, 140)[100..], third[..]);
    let again = start(&config, 4);
    assert_eq!(take(&again, 140), [first, second, third].concat());
}

#[test]
fn no_replica_of_a_partition_only_observes_its_rings() {
    let config = config(20_480);
    let refused = RingsNode::start_as(&config, id(4), (1, &[2]));
    let error = refused.expect_err("it could order nothing");
    assert!(matches!(error, RingsStartError::Observes(2)), "{error}");
    assert!(
        error
            .to_string()
            .contains("take the node out of `observers`"),
        "{error}"
    );
}
