//! The traces that nodes of a ring, and nodes with one order over primary views, write down: read and judged.

use std::path::{Path, PathBuf};

use rota_check::trace::Trace;
use rota_check::{Options, Order, check_all, check_order, check_uniform};
use rota_core::contract::{Delivery, NodeId, Service};
use rota_node::{EngineName, Node, NodeConfig, PrimaryName};

const MESSAGES: usize = 200;

/// Waits for the configuration with so many members.
fn all_are_there(node: &Node, count: usize) {
    loop {
        let delivery = node.recv().expect("configurations");
        if matches!(delivery, Delivery::Configuration(now) if now.members.len() == count) {
            return;
        }
    }
}

fn submit(nodes: &[Node]) {
    for number in 0..MESSAGES {
        for node in nodes {
            let payload = vec![number as u8; 1 + number * 17];
            let service = Service::ALL[number % Service::ALL.len()];
            node.submit(service, &payload).expect("room");
        }
    }
}

fn take(nodes: &[Node], count: usize) {
    for node in nodes {
        let mut messages = 0;
        while messages < count {
            let delivery = node.recv().expect("all of them");
            messages += usize::from(matches!(delivery, Delivery::Message(_)));
        }
    }
}

/// Three nodes on this host that have met, and where they write down what they see.
fn nodes(dir: &Path, port: u16, engine: EngineName) -> (Vec<Node>, Vec<PathBuf>) {
    let files: Vec<PathBuf> = (1..=3).map(|id| dir.join(format!("{id}"))).collect();
    let start = |id: u16| {
        let mut config = NodeConfig::loopback(3, port);
        config.engine = engine;
        if matches!(engine, EngineName::FastCast | EngineName::Lcr) {
            config.primary = PrimaryName::Static;
        }
        config.state_dir = engine.has_votes().then(|| dir.to_owned());
        config.trace = Some(files[usize::from(id) - 1].clone());
        Node::start(config, NodeId::new(id).expect("not 0")).expect("free ports")
    };
    let nodes: Vec<Node> = (1..=3).map(start).collect();
    for node in &nodes {
        all_are_there(node, nodes.len());
    }
    (nodes, files)
}

#[test]
fn what_a_ring_of_nodes_writes_down_is_legal() {
    let dir = tempfile::tempdir().expect("a directory");
    let (nodes, files) = nodes(dir.path(), 27_310, EngineName::AcceleratedRing);
    submit(&nodes);
    submit(&nodes);
    take(&nodes, 6 * MESSAGES);
    drop(nodes);
    let trace = Trace::from_files(&files).expect("sound");
    let report = check_all(&trace, &Options::default());
    // Without a state directory numbers of rings begin anew with each process, and these have one life.
    assert!(report.holds(), "{:?}", report.violations);
    assert_eq!(report.counters.originated, 6 * MESSAGES as u64);
    assert_eq!(report.counters.deliveries, 18 * MESSAGES as u64);
    assert_eq!(report.counters.untraced, 0);
}

/// Nobody starts with what is not of the first place on, so that all have all.
fn run_votes(engine: EngineName, port: u16) {
    let dir = tempfile::tempdir().expect("a directory");
    let (mut nodes, files) = nodes(dir.path(), port, engine);
    submit(&nodes);
    take(&nodes, 3 * MESSAGES);
    drop(nodes.pop());
    submit(&nodes);
    take(&nodes, 2 * MESSAGES);
    drop(nodes);
    let trace = Trace::from_files(&files).expect("sound");
    assert_eq!(trace.shown_order(), Order::Whole);
    let report = check_order(&trace, &Options::default(), Order::Whole);
    assert!(report.holds(), "{:?}", report.violations);
    assert_eq!(report.counters.originated, 5 * MESSAGES as u64);
    assert_eq!(report.counters.deliveries, 13 * MESSAGES as u64);
    let other = check_order(&trace, &Options::default(), Order::Uniform);
    assert!(!other.holds(), "there are no views");
}

#[test]
fn what_nodes_with_u_ring_paxos_write_down_is_one_order() {
    run_votes(EngineName::URingPaxos, 27_370);
}

#[test]
fn what_nodes_with_ring_paxos_write_down_is_one_order() {
    run_votes(EngineName::RingPaxos, 27_390);
}

/// Three nodes, of which the last leaves midway; what they write down is judged.
fn run(engine: EngineName, port: u16) {
    let dir = tempfile::tempdir().expect("a directory");
    let (mut nodes, files) = nodes(dir.path(), port, engine);
    submit(&nodes);
    take(&nodes, 3 * MESSAGES);
    drop(nodes.pop());
    for node in &nodes {
        all_are_there(node, nodes.len());
    }
    submit(&nodes);
    take(&nodes, 2 * MESSAGES);
    drop(nodes);
    let trace = Trace::from_files(&files).expect("sound");
    assert!(trace.is_uniform());
    let report = check_uniform(&trace, &Options::default());
    assert!(report.holds(), "{:?}", report.violations);
    assert_eq!(report.counters.originated, 5 * MESSAGES as u64);
    assert_eq!(report.counters.deliveries, 13 * MESSAGES as u64);
    let counters = report.uniform.expect("they are counted");
    assert!(counters.survived_by_two > 0, "{counters:?}");
    assert_eq!(counters.orders, 1);
}

#[test]
fn what_nodes_with_fastcast_write_down_is_one_order_over_views() {
    run(EngineName::FastCast, 27_330);
}

#[test]
fn what_nodes_with_lcr_write_down_is_one_order_over_views() {
    run(EngineName::Lcr, 27_350);
}
