//! The traces that nodes write, read and judged.

use std::path::PathBuf;

use rota_check::trace::Trace;
use rota_check::{Options, check_all};
use rota_core::contract::{Delivery, NodeId, Service};
use rota_net::{Node, NodeConfig};

const SERVICES: [Service; 5] = [
    Service::Reliable,
    Service::Fifo,
    Service::Causal,
    Service::Agreed,
    Service::Safe,
];
const MESSAGES: usize = 400;

/// Waits for the configuration with so many members.
fn all_are_there(node: &Node, count: usize) {
    loop {
        let delivery = node.recv().expect("configurations");
        if matches!(delivery, Delivery::Configuration(now) if now.members.len() == count) {
            return;
        }
    }
}

#[test]
fn what_a_ring_of_nodes_writes_down_is_legal() {
    let dir = tempfile::tempdir().expect("a directory");
    let files: Vec<PathBuf> = (1..=3).map(|id| dir.path().join(format!("{id}"))).collect();
    let start = |id: u16| {
        let mut config = NodeConfig::loopback(3, 27_310);
        config.trace = Some(files[usize::from(id) - 1].clone());
        Node::start(config, NodeId::new(id).expect("not 0")).expect("free ports")
    };
    let nodes: Vec<Node> = (1..=3).map(start).collect();
    for node in &nodes {
        all_are_there(node, nodes.len());
    }
    for number in 0..MESSAGES {
        for node in &nodes {
            let payload = vec![number as u8; 1 + number * 7];
            let service = SERVICES[number % SERVICES.len()];
            node.submit(service, &payload).expect("room");
        }
    }
    for node in &nodes {
        let mut messages = 0;
        while messages < MESSAGES * nodes.len() {
            let delivery = node.recv().expect("all of them");
            messages += usize::from(matches!(delivery, Delivery::Message(_)));
        }
    }
    drop(nodes);
    let trace = Trace::from_files(&files).expect("sound");
    let report = check_all(&trace, &Options::default());
    // Without a state directory numbers of rings begin anew with each process, and these have one life.
    assert!(report.holds(), "{:?}", report.violations);
    assert_eq!(report.counters.originated, 3 * MESSAGES as u64);
    assert_eq!(report.counters.deliveries, 9 * MESSAGES as u64);
    assert_eq!(report.counters.untraced, 0);
}
