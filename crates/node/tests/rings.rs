//! Processes of several rings, on real sockets.

mod several;

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use rota_core::contract::NodeId;
use rota_multiring::{Place, Rank};
use rota_node::rings::LevelingName;
use rota_node::{EngineName, PaxosConfig, RingsConfig, RingsNode, VoteStorage};

use several::take;

const PATIENCE: Duration = Duration::from_secs(30);

fn id(number: u16) -> NodeId {
    NodeId::new(number).expect("not 0")
}

fn config(nodes: u16, rings: u16, port: u16) -> RingsConfig {
    let mut config = RingsConfig::loopback(nodes, rings, port);
    config.common.paxos = Some(PaxosConfig {
        storage: VoteStorage::Memory,
        ..PaxosConfig::default()
    });
    config
}

/// All that submit to all rings get one order, whatever engine orders each, and however each keeps up.
#[test]
fn three_processes_of_three_rings_deliver_one_order() {
    let mut config = config(3, 3, 25_300);
    config.rings[1].engine = Some(EngineName::RingPaxos);
    config.rings[1].per_round = std::num::NonZeroU32::new(2);
    config.rings[2].leveling = LevelingName::Horizon;
    config.rings[2].origin = 7;
    let dir = tempfile::TempDir::new().expect("a directory");
    config.common.trace = Some(dir.path().join("{node}.jsonl"));
    let nodes: Vec<RingsNode> = [1, 2, 3]
        .map(|node| RingsNode::start(&config, id(node)).expect("it starts"))
        .into();
    let each = 400;
    thread::scope(|scope| {
        for (number, node) in nodes.iter().enumerate() {
            let publisher = node.publisher();
            scope.spawn(move || {
                for message in 0..each {
                    let ring = Rank(1 + (message + number) as u16 % 3);
                    let size = [10, 700, 40_000][message % 3];
                    let mut payload = vec![number as u8; size];
                    payload[..8].copy_from_slice(&(message as u64).to_le_bytes());
                    publisher
                        .submit_blocking(ring, &payload)
                        .expect("it is taken");
                }
            });
        }
        let all: Vec<_> = nodes.iter().map(|node| take(node, 3 * each)).collect();
        assert!(all[0].windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert!(all[0] == all[1] && all[0] == all[2]);
        let mut of_each: BTreeMap<Rank, usize> = BTreeMap::new();
        for (place, _) in &all[0] {
            *of_each.entry(place.rank).or_default() += 1;
        }
        assert_eq!(of_each.values().sum::<usize>(), 3 * each);
        assert_eq!(of_each.len(), 3);
    });
    for node in nodes {
        node.stop().expect("it had not failed");
    }
    let report = several::judged(dir.path());
    assert_eq!(report.counters.deliveries, 9 * each as u64);
    assert_eq!((report.counters.rings, report.counters.learners), (3, 3));
    let checked = |name: &str| {
        let of = report.verdicts.iter().find(|of| of.property == name);
        of.expect("it is judged").checked
    };
    for name in ["AM-I", "AM-P", "AM-M", "AM-C", "AM-O"] {
        assert!(checked(name) > 0, "{name}");
    }
}

/// A process that delivers some of the rings gets the same order of these.
#[test]
fn who_subscribes_to_some_gets_a_part_of_the_same_order() {
    let config = config(3, 3, 25_340);
    let subscribe: [&[u16]; 3] = [&[1, 2, 3], &[1, 3], &[3, 2]];
    let start = |at: usize| RingsNode::start_with(&config, id(at as u16 + 1), Some(subscribe[at]));
    let nodes: Vec<RingsNode> = (0..3).map(|at| start(at).expect("it starts")).collect();
    for message in 0..300_u64 {
        let node = &nodes[message as usize % 3];
        let ring = Rank(1 + (message / 7) as u16 % 3);
        let publisher = node.publisher();
        publisher
            .submit_blocking(ring, &message.to_le_bytes())
            .expect("it is taken");
    }
    let all = take(&nodes[0], 300);
    for (node, rings) in nodes.iter().zip(subscribe).skip(1) {
        let has = |place: &Place| rings.contains(&place.rank.0);
        let part: Vec<_> = all
            .iter()
            .filter(|(place, _)| has(place))
            .cloned()
            .collect();
        assert_eq!(take(node, part.len()), part);
    }
}

/// One message, and everything else is idle: the others skip up to it when they are asked, and nothing moves any more then.
#[test]
fn an_idle_ring_delays_nobody_and_costs_nothing() {
    let config = config(3, 12, 25_380);
    let nodes = [1, 2, 3].map(|node| RingsNode::start(&config, id(node)).expect("it starts"));
    for round in 0..20_u64 {
        let (node, ring) = (
            &nodes[round as usize % 3],
            Rank(1 + (5 * round) as u16 % 12),
        );
        node.submit(ring, &round.to_le_bytes())
            .expect("it is taken");
        let began = Instant::now();
        for node in &nodes {
            let got = take(node, 1);
            assert_eq!(got[0].1, round.to_le_bytes());
        }
        if round > 5 {
            assert!(
                began.elapsed() < Duration::from_secs(3),
                "{:?}",
                began.elapsed()
            );
        }
    }
    let skips = || -> u64 {
        let status = nodes[0].status().expect("it runs");
        let of = status.rings.iter();
        of.map(|(_, of)| of.counters["uring_instances_learnt"])
            .sum()
    };
    let before = skips();
    thread::sleep(Duration::from_millis(700));
    assert_eq!(skips(), before, "idle rings order nothing");
    let status = nodes[0].status().expect("it runs");
    assert!(
        status.waits_for.is_empty() && status.point.is_some(),
        "{status:?}"
    );
}

/// A ring that this process is not on.
#[test]
fn what_a_node_is_not_on_it_cannot_have() {
    let mut config = config(2, 2, 25_480);
    config.rings[1].nodes = Some(vec![2]);
    let error = RingsNode::start_with(&config, id(1), Some(&[2])).expect_err("it is not on it");
    assert_eq!(error.to_string(), "this node is not on ring 2");
    let nowhere = RingsNode::start_with(&config, id(7), Some(&[])).expect_err("it is on none");
    assert_eq!(
        nowhere.to_string(),
        "this node is on no ring that it subscribes to"
    );
    let node = RingsNode::start(&config, id(1)).expect("it starts");
    let refused = node.submit(Rank(2), b"x");
    assert_eq!(refused, Err(rota_core::contract::SubmitError::Unsupported));
}

/// A ring without a majority stops whoever delivers it, and nobody else; when it has one again, they go on where they were.
#[test]
fn a_ring_without_majority_stops_those_who_deliver_it() {
    let dir = tempfile::TempDir::new().expect("a directory");
    let mut config = config(3, 2, 25_580);
    config.common.paxos = Some(PaxosConfig {
        storage: VoteStorage::Async,
        ..PaxosConfig::default()
    });
    config.common.state_dir = Some(dir.path().to_owned());
    config.rings[1].nodes = Some(vec![1, 2]);
    let start = |node| RingsNode::start(&config, id(node)).expect("it starts");
    let (one, two, three) = (start(1), start(2), start(3));
    one.submit(Rank(2), b"first").expect("it is taken");
    assert_eq!(take(&one, 1), take(&two, 1));
    two.stop().expect("it had not failed");
    for number in 0..100_u64 {
        let publisher = three.publisher();
        publisher
            .submit_blocking(Rank(1), &number.to_le_bytes())
            .expect("it is taken");
    }
    // The third has the first ring only, of which two of three are there.
    assert_eq!(take(&three, 100).len(), 100);
    let waits = || one.status().expect("it runs").waits_for;
    let until = Instant::now() + PATIENCE;
    while waits().is_empty() && Instant::now() < until {
        thread::sleep(Duration::from_millis(20));
    }
    assert!(
        waits().iter().all(|need| need.rank == Rank(2)),
        "{:?}",
        waits()
    );
    let two = start(2);
    let all = take(&one, 100);
    assert!(all.windows(2).all(|pair| pair[0].0 < pair[1].0));
    // A process that comes back delivers what it finds in its logs, from the beginning.
    assert_eq!(take(&two, 101)[1..], all);
}

/// A single process waits for what it skips itself.
#[test]
fn one_process_alone_goes_on_where_another_ring_is_idle() {
    let config = config(1, 2, 25_700);
    let node = RingsNode::start(&config, id(1)).expect("it starts");
    for ring in [2, 1, 2, 2, 1, 1] {
        let payload = vec![ring as u8];
        while node.submit(Rank(ring), &payload).is_err() {
            thread::sleep(Duration::from_millis(10));
        }
        let taken = take(&node, 1);
        assert_eq!(taken[0].1, payload);
    }
}

/// A process that subscribes to nothing votes all the same.
#[test]
fn who_delivers_nothing_serves_its_rings() {
    let config = config(3, 2, 25_720);
    let one = RingsNode::start(&config, id(1)).expect("it starts");
    let two = RingsNode::start_with(&config, id(2), Some(&[])).expect("it starts");
    let three = RingsNode::start(&config, id(3)).expect("it starts");
    // The rings are founded by all.
    while one.submit(Rank(1), &[0]).is_err() {
        thread::sleep(Duration::from_millis(10));
    }
    take(&one, 1);
    drop(three);
    for number in 0..50_u8 {
        let ring = Rank(1 + u16::from(number % 2));
        while one.submit(ring, &[number]).is_err() {
            thread::sleep(Duration::from_millis(10));
        }
    }
    assert_eq!(take(&one, 50).len(), 50);
    let heard = two.recv_timeout(Duration::from_millis(50));
    assert!(heard.is_err(), "{heard:?}");
}
