//! Whole nodes in one process: the ring on real sockets.

use std::time::{Duration, Instant};

use rota_core::contract::{Configuration, ConfigurationKind, Delivery, MessageId, NodeId, Service};
use rota_net::{FaultConfig, Transport};
use rota_node::{Node, NodeConfig, StartError};

const PATIENCE: Duration = Duration::from_secs(20);

fn id(number: u16) -> NodeId {
    NodeId::new(number).unwrap()
}

/// Starts nodes and waits until all are on one ring.
fn start(config: &NodeConfig, count: u16) -> Vec<Node> {
    let nodes: Vec<Node> = (1..=count)
        .map(|node| Node::start(config.clone(), id(node)).unwrap())
        .collect();
    for node in &nodes {
        wait_for_members(node, usize::from(count));
    }
    nodes
}

/// The configuration with so many members, or the first message of somebody.
fn wait_for_members(node: &Node, count: usize) -> Configuration {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        match node.recv_timeout(left) {
            Ok(Delivery::Configuration(configuration)) => {
                let regular = matches!(configuration.kind, ConfigurationKind::Regular(_));
                if regular && configuration.members.len() == count {
                    return configuration;
                }
            }
            Ok(other) => panic!("{other:?} before {count} members"),
            Err(error) => panic!("not {count} members: {error}, {:?}", node.status()),
        }
    }
}

/// The next `count` messages that a node delivers.
fn messages(node: &Node, count: usize) -> Vec<(MessageId, Vec<u8>)> {
    let deadline = Instant::now() + PATIENCE;
    let mut found = Vec::new();
    while found.len() < count {
        let left = deadline.saturating_duration_since(Instant::now());
        match node.recv_timeout(left) {
            Ok(Delivery::Message(message)) => found.push((message.id, message.payload.to_vec())),
            Ok(_) => {}
            Err(error) => panic!("{} of {count}: {error}, {:?}", found.len(), node.status()),
        }
    }
    found
}

fn all_deliver_the_same(config: &NodeConfig, service: Service) {
    let nodes = start(config, 3);
    const EACH: usize = 200;
    for number in 0..EACH {
        for (index, node) in nodes.iter().enumerate() {
            let text = format!("{index} says {number}");
            node.submit_blocking(service, text.as_bytes()).unwrap();
        }
    }
    let orders: Vec<_> = nodes.iter().map(|node| messages(node, 3 * EACH)).collect();
    assert_eq!(orders[0], orders[1]);
    assert_eq!(orders[0], orders[2]);
    for node in nodes {
        node.stop().unwrap();
    }
}

#[test]
fn three_nodes_deliver_in_one_order_by_multicast() {
    all_deliver_the_same(&NodeConfig::loopback(3, 23_000), Service::Agreed);
}

#[test]
fn three_nodes_deliver_safely_by_unicast_without_offload() {
    let config = NodeConfig {
        transport: Transport::Unicast,
        offload: false,
        ..NodeConfig::loopback(3, 23_020)
    };
    all_deliver_the_same(&config, Service::Safe);
}

#[test]
fn lost_delayed_and_doubled_datagrams_change_nothing() {
    let faults = FaultConfig {
        seed: 5,
        loss: 0.1,
        duplicate: 0.05,
        reorder: 0.05,
        ..FaultConfig::default()
    };
    let config = NodeConfig {
        faults: Some(faults),
        ..NodeConfig::loopback(3, 23_070)
    };
    all_deliver_the_same(&config, Service::Agreed);
}

#[test]
fn a_slow_receiver_and_busy_polling_lose_nothing() {
    let config = NodeConfig {
        busy_poll_us: 20,
        ..NodeConfig::loopback(2, 23_080)
    };
    let nodes = start(&config, 2);
    const COUNT: usize = 20_000;
    let publisher = nodes[0].publisher();
    let sender = std::thread::spawn(move || {
        for number in 0..COUNT {
            publisher
                .submit_blocking(Service::Agreed, &number.to_le_bytes())
                .unwrap();
        }
    });
    std::thread::sleep(Duration::from_millis(50));
    let receivers = nodes.into_iter().map(|node| {
        std::thread::spawn(move || {
            let found = messages(&node, COUNT);
            (node, found)
        })
    });
    let received: Vec<_> = receivers
        .collect::<Vec<_>>()
        .into_iter()
        .map(|thread| thread.join().unwrap())
        .collect();
    sender.join().unwrap();
    for (_node, found) in &received {
        let numbers = found.iter().map(|(_, payload)| payload.clone());
        assert!(numbers.eq((0..COUNT).map(|number| number.to_le_bytes().to_vec())));
    }
}

#[test]
fn a_message_beyond_the_limit_is_refused_and_a_stopped_node_says_so() {
    let config = NodeConfig {
        message_bytes: Some(100),
        ..NodeConfig::loopback(1, 23_040)
    };
    let node = Node::start(config, id(1)).unwrap();
    assert!(node.submit(Service::Agreed, &[0; 101]).is_err());
    let publisher = node.publisher();
    publisher.submit(Service::Agreed, &[0; 100]).unwrap();
    assert_eq!(messages(&node, 1)[0].1, [0; 100]);
    assert!(node.status().is_some());
    node.stop().unwrap();
    assert!(publisher.submit(Service::Agreed, b"late").is_err());
}

#[test]
fn a_second_node_with_the_same_ports_does_not_start() {
    let config = NodeConfig::loopback(1, 23_050);
    let _node = Node::start(config.clone(), id(1)).unwrap();
    let error = Node::start(config, id(1)).unwrap_err();
    assert!(matches!(error, StartError::Socket(_)), "{error}");
}

#[test]
fn a_node_keeps_its_ring_id_file_to_itself_until_it_stops() {
    let directory = tempfile::tempdir().unwrap();
    let config = |base_port| NodeConfig {
        state_dir: Some(directory.path().to_owned()),
        ..NodeConfig::loopback(1, base_port)
    };
    let node = Node::start(config(23_090), id(1)).unwrap();
    // On other ports, as a copied configuration may have it.
    let error = Node::start(config(23_100), id(1)).unwrap_err();
    assert!(
        error.to_string().contains("in use by another process"),
        "{error}"
    );
    node.stop().unwrap();
    Node::start(config(23_100), id(1)).unwrap().stop().unwrap();
}

#[test]
fn a_trace_says_origin_before_delivery_and_ends_with_leave() {
    let path = std::env::temp_dir().join(format!("rota-trace-{}.jsonl", std::process::id()));
    let config = NodeConfig {
        trace: Some(path.clone()),
        ..NodeConfig::loopback(1, 23_060)
    };
    let node = Node::start(config, id(1)).unwrap();
    node.submit(Service::Safe, b"abc").unwrap();
    messages(&node, 1);
    node.stop().unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let line = |event: &str| {
        let found = text
            .lines()
            .position(|line| line.contains(&format!(r#""ev":"{event}""#)));
        found.unwrap_or_else(|| panic!("no {event} in {text}"))
    };
    let order = ["start", "send", "orig", "deliver", "leave"].map(line);
    assert!(order.is_sorted(), "{text}");
    assert!(line("conf") < line("orig"), "{text}");
    // The start of SHA-256("abc").
    assert_eq!(text.matches("ba7816bf8f01cfea").count(), 3, "{text}");
}

#[test]
fn who_stops_is_missed_at_once_and_who_starts_is_found() {
    let config = NodeConfig::loopback(3, 23_110);
    let mut nodes = start(&config, 3);
    let began = Instant::now();
    nodes.remove(1).stop().unwrap();
    let members = wait_for_members(&nodes[0], 2).members;
    let left: Vec<u16> = members.iter().map(|member| member.node.get()).collect();
    assert_eq!(left, [1, 3]);
    // Far below the 310 ms after which a token counts as lost, and that would be only the beginning.
    assert!(began.elapsed() < Duration::from_millis(300));
    let again = Node::start(config, id(2)).unwrap();
    wait_for_members(&again, 3);
    wait_for_members(&nodes[1], 2);
    wait_for_members(&nodes[1], 3);
    again.submit(Service::Safe, b"here again").unwrap();
    assert_eq!(messages(&nodes[0], 1)[0].1, b"here again");
}
