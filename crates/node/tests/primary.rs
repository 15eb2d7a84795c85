//! Nodes with a rule for primary configurations, on real sockets and real disks.

use std::path::Path;
use std::time::{Duration, Instant};

use rota_core::contract::{ConfigurationKind, Delivery, NodeId, RingId, Service, SubmitError};
use rota_node::{Node, NodeConfig, PrimaryName, ResetPrimary};

const PATIENCE: Duration = Duration::from_secs(20);
/// Two safe rounds and two writes take far less.
const LONG_ENOUGH: Duration = Duration::from_millis(400);

fn id(number: u16) -> NodeId {
    NodeId::new(number).unwrap()
}

fn static_majority(base_port: u16) -> NodeConfig {
    NodeConfig {
        primary: PrimaryName::Static,
        ..NodeConfig::loopback(3, base_port)
    }
}

fn dynamic(base_port: u16, state: &Path) -> NodeConfig {
    NodeConfig {
        primary: PrimaryName::Dynamic,
        state_dir: Some(state.to_owned()),
        ..NodeConfig::loopback(3, base_port)
    }
}

fn start(config: &NodeConfig, node: u16) -> Node {
    Node::start(config.clone(), id(node)).unwrap()
}

/// The next delivery that is a regular configuration of so many, or says that the last one is primary.
struct Seen {
    ring: RingId,
    members: usize,
    primary: bool,
}

fn seen(node: &Node, now: &mut Option<Seen>, deadline: Instant) -> bool {
    let left = deadline.saturating_duration_since(Instant::now());
    match node.recv_timeout(left) {
        Ok(Delivery::Configuration(configuration)) => {
            *now = match configuration.kind {
                ConfigurationKind::Regular(ring) => Some(Seen {
                    ring,
                    members: configuration.members.len(),
                    primary: false,
                }),
                ConfigurationKind::Transitional { .. } => None,
            };
        }
        Ok(Delivery::Primary(ring)) => {
            let now = now.as_mut().expect("in a regular configuration");
            assert_eq!(now.ring, ring);
            now.primary = true;
        }
        Ok(_) => {}
        Err(_) => return false,
    }
    true
}

/// Waits until a configuration of so many is primary.
fn expect_primary(node: &Node, members: usize) -> RingId {
    let deadline = Instant::now() + PATIENCE;
    let mut now = None;
    while seen(node, &mut now, deadline) {
        if let Some(now) = now.as_ref().filter(|now| now.primary)
            && now.members == members
        {
            return now.ring;
        }
    }
    panic!("no primary of {members}: {:?}", node.status());
}

/// The same; and the application says that it has got the state, as whoever has not been in all primaries
/// from the first on has to.
fn expect_carried(node: &Node, members: usize) {
    let ring = expect_primary(node, members);
    node.caught_up(ring);
    let deadline = Instant::now() + PATIENCE;
    while !node.status().is_some_and(|status| status.caught_up) {
        assert!(Instant::now() < deadline, "{:?}", node.status());
    }
}

/// Waits for a configuration of so many, which does not become primary.
fn expect_none(node: &Node, members: usize) {
    let deadline = Instant::now() + PATIENCE;
    let mut now = None;
    while now.as_ref().is_none_or(|now: &Seen| now.members != members) {
        assert!(seen(node, &mut now, deadline), "{:?}", node.status());
    }
    let until = Instant::now() + LONG_ENOUGH;
    while seen(node, &mut now, until) {
        assert!(!now.as_ref().is_some_and(|now| now.primary), "of {members}");
    }
    let now = now.expect("still there");
    assert_eq!(now.members, members);
    assert_eq!(node.status().unwrap().primary, None);
}

#[test]
fn two_of_three_are_a_static_majority_and_one_is_none() {
    let config = static_majority(24_000);
    let mut nodes: Vec<Node> = (1..=3).map(|node| start(&config, node)).collect();
    for node in &nodes {
        expect_primary(node, 3);
    }
    nodes.remove(0).stop().unwrap();
    let rings: Vec<RingId> = nodes.iter().map(|node| expect_primary(node, 2)).collect();
    assert_eq!(rings[0], rings[1]);
    nodes.remove(0).stop().unwrap();
    expect_none(&nodes[0], 1);
    let _again = start(&config, 1);
    expect_primary(&nodes[0], 2);
    assert!(!nodes[0].status().unwrap().caught_up, "nothing is known");
}

#[test]
fn messages_are_as_large_as_without_the_layer_and_come_as_they_were() {
    let config = NodeConfig {
        message_bytes: Some(3000),
        backlog_bytes: Some(3000),
        ..static_majority(24_020)
    };
    let nodes = [start(&config, 1), start(&config, 2)];
    expect_primary(&nodes[0], 2);
    let payload: Vec<u8> = (0..3000).map(|byte| byte as u8).collect();
    let refused = nodes[1].submit(Service::Safe, &[0; 3001]);
    assert_eq!(refused, Err(SubmitError::TooLarge { limit: 3000 }));
    nodes[1].submit(Service::Safe, &payload).unwrap();
    let deadline = Instant::now() + PATIENCE;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if let Delivery::Message(message) = nodes[0].recv_timeout(left).unwrap() {
            assert_eq!(message.payload, payload);
            assert_eq!(message.id.counter, 1, "the layer's own are not counted");
            return;
        }
    }
}

#[test]
fn nodes_with_different_rules_are_different_clusters() {
    let config = static_majority(24_040);
    let plain = NodeConfig {
        primary: PrimaryName::None,
        ..config.clone()
    };
    let (layered, other) = (start(&config, 1), start(&plain, 2));
    expect_none(&layered, 1);
    let status = other.status().unwrap();
    assert!(status.engine.counters["datagrams_foreign_cluster"] > 0);
    other.stop().unwrap();
    let _other = start(&config, 2);
    expect_primary(&layered, 2);
}

#[test]
fn the_last_primary_is_remembered_over_restarts_of_everybody() {
    let directory = tempfile::tempdir().unwrap();
    let config = dynamic(24_060, directory.path());
    let mut nodes: Vec<Node> = (1..=3).map(|node| start(&config, node)).collect();
    for node in &nodes {
        expect_carried(node, 3);
    }
    nodes.pop().unwrap().stop().unwrap();
    for node in &nodes {
        expect_carried(node, 2);
    }
    // 1 and 2 are the last primary. Half of it without the smallest is not enough.
    nodes.remove(0).stop().unwrap();
    expect_none(&nodes[0], 1);
    drop(nodes);
    // 2 and 3 are a majority of all; but they remember.
    let nodes = [start(&config, 2), start(&config, 3)];
    expect_none(&nodes[0], 2);
    let one = start(&config, 1);
    for node in [&one, &nodes[0], &nodes[1]] {
        expect_primary(node, 3);
    }
    for (node, caught_up) in [(&one, true), (&nodes[1], false)] {
        assert_eq!(node.status().unwrap().caught_up, caught_up);
    }
}

#[test]
fn half_of_the_last_primary_with_its_smallest_node_goes_on_alone() {
    let directory = tempfile::tempdir().unwrap();
    let config = dynamic(24_080, directory.path());
    let mut nodes: Vec<Node> = (1..=3).map(|node| start(&config, node)).collect();
    for members in [3, 2, 1] {
        expect_carried(&nodes[0], members);
        nodes.pop().unwrap().stop().unwrap();
    }
    let again = start(&config, 1);
    expect_primary(&again, 1);
}

#[test]
fn a_node_whose_record_is_lost_is_refused_and_does_not_count_until_it_was_in_a_primary() {
    let directory = tempfile::tempdir().unwrap();
    let mut config = dynamic(24_100, directory.path());
    let mut nodes: Vec<Node> = (1..=3).map(|node| start(&config, node)).collect();
    for node in &nodes {
        expect_carried(node, 3);
    }
    // The third goes first, and then the first: the second is never half of a primary with its smallest
    // node, however far the others come meanwhile.
    nodes.rotate_right(1);
    nodes.into_iter().for_each(drop);
    std::fs::remove_file(directory.path().join("node-3.primary")).unwrap();
    let error = Node::start(config.clone(), id(3)).unwrap_err().to_string();
    assert!(error.contains("node-3.primary"), "{error}");
    assert!(error.contains("reset_primary = \"forgotten\""), "{error}");
    config.reset_primary = Some(ResetPrimary::Forgotten);
    let three = start(&config, 3);
    config.reset_primary = None;
    let two = start(&config, 2);
    expect_none(&two, 2);
    let _one = start(&config, 1);
    let ring = expect_primary(&three, 3);
    // It counts again, and has the state as soon as its application says so.
    assert!(!three.status().unwrap().caught_up);
    three.caught_up(ring);
    let deadline = Instant::now() + PATIENCE;
    while !three.status().is_some_and(|status| status.caught_up) {
        assert!(Instant::now() < deadline);
    }
    three.stop().unwrap();
    two.stop().unwrap();
    let (three, _two) = (start(&config, 3), start(&config, 2));
    expect_primary(&three, 3);
}

#[test]
fn whoever_is_not_among_those_that_count_founds_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let config = NodeConfig {
        primary_nodes: Some(vec![1]),
        ..dynamic(24_120, directory.path())
    };
    let nodes = [start(&config, 2), start(&config, 3)];
    expect_none(&nodes[0], 2);
    let _one = start(&config, 1);
    expect_primary(&nodes[0], 3);
}

#[test]
fn lists_that_differ_make_no_second_primary_and_are_remembered() {
    let directory = tempfile::tempdir().unwrap();
    let listing = |nodes: &[u16]| NodeConfig {
        state_dir: Some(directory.path().to_owned()),
        primary_nodes: Some(nodes.to_vec()),
        ..static_majority(24_140)
    };
    let (small, large) = (listing(&[1]), listing(&[1, 2]));
    let (one, two) = (start(&small, 1), start(&large, 2));
    expect_primary(&one, 2);
    expect_primary(&two, 2);
    for (node, says) in [
        (&one, "node 2 has primary_nodes = 1 2, this node 1:"),
        (&two, "node 1 has primary_nodes = 1, this node 1 2:"),
    ] {
        let notes = node.status().unwrap().engine.notes;
        assert!(notes.iter().any(|note| note.starts_with(says)), "{notes:?}");
    }
    two.stop().unwrap();
    // By its own list it has a majority, and half of the other.
    expect_none(&one, 1);
    one.stop().unwrap();
    let one = start(&small, 1);
    expect_none(&one, 1);
    one.stop().unwrap();
    let reset = NodeConfig {
        reset_primary: Some(ResetPrimary::First),
        ..small.clone()
    };
    let one = start(&reset, 1);
    expect_primary(&one, 1);
    one.stop().unwrap();
    // Both electorates count: the configured one, and the one that was configured before.
    let one = start(&large, 1);
    expect_none(&one, 1);
    let two = start(&large, 2);
    expect_primary(&one, 2);
    let deadline = Instant::now() + PATIENCE;
    while one
        .status()
        .is_none_or(|status| !status.engine.notes.is_empty())
    {
        assert!(Instant::now() < deadline, "{:?}", one.status());
    }
    drop(two);
}
