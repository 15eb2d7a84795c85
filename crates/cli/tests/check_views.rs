//! The traces of nodes with one order over primary views, read and judged.

use std::path::PathBuf;

use rota_check::trace::Trace;
use rota_check::{Options, check_uniform};
use rota_core::contract::{Delivery, NodeId, Service};
use rota_net::{EngineName, Node, NodeConfig, PrimaryName};

const SERVICES: [Service; 5] = [
    Service::Reliable,
    Service::Fifo,
    Service::Causal,
    Service::Agreed,
    Service::Safe,
];
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
            let service = SERVICES[number % SERVICES.len()];
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

/// Three nodes, of which the last leaves midway; what they write down is judged.
fn run(engine: EngineName, port: u16) {
    let dir = tempfile::tempdir().expect("a directory");
    let files: Vec<PathBuf> = (1..=3).map(|id| dir.path().join(format!("{id}"))).collect();
    let start = |id: u16| {
        let mut config = NodeConfig::loopback(3, port);
        config.engine = engine;
        config.primary = PrimaryName::Static;
        config.trace = Some(files[usize::from(id) - 1].clone());
        Node::start(config, NodeId::new(id).expect("not 0")).expect("free ports")
    };
    let mut nodes: Vec<Node> = (1..=3).map(start).collect();
    for node in &nodes {
        all_are_there(node, nodes.len());
    }
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
