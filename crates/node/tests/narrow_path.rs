//! Paths that take less than Ethernet, in network namespaces that the tests make for themselves.

mod namespace;

use std::collections::VecDeque;
use std::fmt::{self, Write as _};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use namespace::in_namespace;
use rota_core::contract::{Burst, Class, Delivery, NodeId, Service, Target};
use rota_net::socket::Progress;
use rota_net::sockets::Wait;
use rota_net::{Sockets, Transport};
use rota_node::{Node, NodeConfig, StartError};
use socket2::{Domain, Protocol, Socket, Type};

const PATIENCE: Duration = Duration::from_secs(20);
/// Messages of each node; the largest are cut into several packets.
const EACH: usize = 60;
/// Full datagrams of a path MTU of 1300: a few bytes are kept for larger counters, and for the wrapper
/// in which a recovery sends a packet again.
const FULL: RangeInclusive<usize> = 1245..=1272;

fn id(number: u16) -> NodeId {
    NodeId::new(number).unwrap()
}

/// Starts all nodes, and waits until they are on one ring: a message of before is for fewer.
fn start(config: &NodeConfig) -> Vec<Node> {
    let start = |node| Node::start(config.clone(), node).unwrap();
    let nodes: Vec<Node> = config.members().into_iter().map(start).collect();
    for node in &nodes {
        wait_for_members(node, nodes.len());
    }
    nodes
}

fn wait_for_members(node: &Node, count: usize) {
    loop {
        let next = node.recv_timeout(PATIENCE).expect("no configuration");
        if let Delivery::Configuration(configuration) = next
            && configuration.members.len() == count
        {
            return;
        }
    }
}

/// Submits small and large messages everywhere; all nodes have to deliver all of them in one order.
fn all_deliver_the_same(nodes: &[Node]) {
    for number in 0..EACH {
        for (index, node) in nodes.iter().enumerate() {
            let payload = vec![number as u8; [20, 700, 30_000][(number + index) % 3]];
            node.submit_blocking(Service::Agreed, &payload).unwrap();
        }
    }
    let orders: Vec<_> = nodes
        .iter()
        .map(|node| order(node, EACH * nodes.len()))
        .collect();
    assert!(orders.iter().all(|order| *order == orders[0]));
}

/// The next `count` messages of a node: who sent them, and how many bytes.
fn order(node: &Node, count: usize) -> Vec<(NodeId, u64, usize)> {
    let deadline = Instant::now() + PATIENCE;
    let mut found = Vec::new();
    while found.len() < count {
        let left = deadline.saturating_duration_since(Instant::now());
        match node.recv_timeout(left) {
            Ok(Delivery::Message(message)) => {
                let id = message.id;
                found.push((id.process.node, id.counter, message.payload.len()));
            }
            Ok(_) => {}
            Err(error) => panic!("{} of {count}: {error}, {:?}", found.len(), node.status()),
        }
    }
    found
}

/// The number of IP fragments that this namespace has sent, of both IP versions.
fn fragments() -> u64 {
    let read = |path| std::fs::read_to_string(path).unwrap();
    let v4 = read("/proc/thread-self/net/snmp");
    let mut ip = v4.lines().filter(|line| line.starts_with("Ip: "));
    let (names, values) = (ip.next().unwrap(), ip.next().unwrap());
    let mut fields = names.split(' ').zip(values.split(' '));
    let v4 = fields.find(|(name, _)| *name == "FragCreates").unwrap().1;
    let v6 = read("/proc/thread-self/net/snmp6");
    let v6 = v6
        .lines()
        .find_map(|line| line.strip_prefix("Ip6FragCreates"));
    v4.parse::<u64>().unwrap() + v6.map_or(0, |count| count.trim().parse().unwrap())
}

struct SetWhenDropped<'a>(&'a AtomicBool);

impl Drop for SetWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

/// The size of the largest datagram that reaches the group while `during` runs.
fn largest_in_group(group: SocketAddr, during: impl FnOnce()) -> usize {
    let SocketAddr::V4(v4) = group else {
        panic!("{group} is not IPv4")
    };
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP)).unwrap();
    socket.set_reuse_address(true).unwrap();
    socket.bind(&group.into()).unwrap();
    socket
        .join_multicast_v4(v4.ip(), &Ipv4Addr::LOCALHOST)
        .unwrap();
    let socket = UdpSocket::from(socket);
    socket
        .set_read_timeout(Some(Duration::from_millis(10)))
        .unwrap();
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        // The scope waits for the observer, also when `during` panics.
        let _end = SetWhenDropped(&over);
        let observer = scope.spawn(|| {
            let (mut largest, mut buffer) = (0, vec![0; 65_536]);
            while !over.load(SeqCst) {
                largest = largest.max(socket.recv(&mut buffer).unwrap_or(0));
            }
            largest
        });
        during();
        over.store(true, SeqCst);
        observer.join().unwrap()
    })
}

#[test]
#[ignore = "needs root, for a network namespace"]
fn unless_set_datagrams_fill_the_path_and_are_never_fragmented() {
    in_namespace(&["link set lo mtu 1300 up"], || {
        let config = NodeConfig::loopback(3, 28_000);
        let Transport::Multicast(group) = config.transport else {
            panic!()
        };
        let nodes = start(&config);
        let largest = largest_in_group(group, || all_deliver_the_same(&nodes));
        assert!(FULL.contains(&largest), "{largest}");
        assert_eq!(fragments(), 0);
        for node in nodes {
            let net = node.status().unwrap().net;
            assert_eq!((net.gso_fallback, net.send_errors), (0, 0), "{net:?}");
        }
    });
}

#[test]
#[ignore = "needs root, for a network namespace"]
fn ipv6_headers_are_longer_and_datagrams_shorter() {
    in_namespace(&["link set lo mtu 1300 up"], || {
        let mut config = NodeConfig::loopback(2, 28_000);
        config.transport = Transport::Unicast;
        for node in &mut config.nodes {
            node.address = "::1".parse().unwrap();
        }
        assert_eq!(config.datagram_size(id(1)).bytes, 1252);
        all_deliver_the_same(&start(&config));
        assert_eq!(fragments(), 0);
    });
}

#[test]
#[ignore = "needs root, for a network namespace"]
fn the_narrowest_of_all_paths_counts_whether_an_interface_or_a_route_says_so() {
    let network = [
        "link set lo up",
        "link add one mtu 1400 type veth peer name two mtu 1400",
        "address add 10.9.0.1/24 dev one",
        "link set one up",
        "link set two up",
        "route add 239.1.0.0/16 dev one",
        "route add 239.2.0.0/16 dev one mtu 1350",
        "route add 10.9.0.3 dev one mtu 1320",
    ];
    in_namespace(&network, || {
        let size = |group: &str, peer: &str| {
            let mut config = NodeConfig::loopback(2, 28_000);
            config.transport = Transport::Multicast(group.parse().unwrap());
            config.nodes[0].address = "10.9.0.1".parse().unwrap();
            config.nodes[1].address = peer.parse().unwrap();
            let size = config.datagram_size(id(1));
            (size.bytes, size.to_string())
        };
        let expected = |bytes, text: &str| (bytes, format!("path MTU of {text}"));
        let interface = size("239.1.0.1:7000", "10.9.0.2");
        assert_eq!(interface, expected(1372, "1400 towards 10.9.0.2"));
        let route_to_group = size("239.2.0.1:7000", "10.9.0.2");
        assert_eq!(route_to_group, expected(1322, "1350 towards 239.2.0.1"));
        let route_to_peer = size("239.2.0.1:7000", "10.9.0.3");
        assert_eq!(route_to_peer, expected(1292, "1320 towards 10.9.0.3"));
        let interface_of_group = size("239.1.0.1:7000", "10.9.0.1");
        assert_eq!(interface_of_group, expected(1372, "1400 towards 239.1.0.1"));
    });
}

#[test]
#[ignore = "needs root, for a network namespace"]
fn larger_datagrams_that_were_asked_for_arrive_in_fragments_and_a_warning_says_so() {
    in_namespace(&["link set lo mtu 1300 up"], || {
        let config = NodeConfig {
            datagram_bytes: Some(9000),
            ..NodeConfig::loopback(3, 28_000)
        };
        let log = Log::default();
        tracing::subscriber::with_default(log.clone(), || config.ring_config_at(id(1)).unwrap());
        let log = log.0.lock().unwrap().clone();
        assert!(log.contains("datagram_bytes=9000 path_mtu=1300 "), "{log}");
        let Transport::Multicast(group) = config.transport else {
            panic!()
        };
        let nodes = start(&config);
        let largest = largest_in_group(group, || all_deliver_the_same(&nodes));
        assert!((8900..=9000).contains(&largest), "{largest}");
        assert!(fragments() > 0);
        for node in nodes {
            // The kernel does not cut a burst into segments that are fragmented then.
            let net = node.status().unwrap().net;
            assert_eq!((net.gso_fallback, net.send_errors), (1, 0), "{net:?}");
        }
    });
}

#[test]
#[ignore = "needs root, for a network namespace"]
fn a_path_too_narrow_for_the_smallest_datagram_is_an_error_with_a_way_out() {
    in_namespace(&["link set lo mtu 539 up"], || {
        let mut config = NodeConfig::loopback(2, 28_000);
        let error = Node::start(config.clone(), id(1)).unwrap_err();
        assert!(matches!(error, StartError::Config(_)), "{error:?}");
        let text = error.to_string();
        for part in ["path MTU of 539", "511 bytes", "512", "set datagram_bytes"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        config.datagram_bytes = Some(512);
        all_deliver_the_same(&start(&config));
    });
    in_namespace(&["link set lo mtu 540 up"], || {
        all_deliver_the_same(&start(&NodeConfig::loopback(2, 28_000)));
        assert_eq!(fragments(), 0);
    });
}

/// The message of a router that dropped a datagram from `from` to `to`: its link takes `mtu` bytes (RFC 1191). It
/// quotes the headers of IP and UDP.
fn fragmentation_needed(from: SocketAddrV4, to: SocketAddrV4, mtu: u16) -> Vec<u8> {
    let mut message = vec![3, 4, 0, 0, 0, 0];
    message.extend(mtu.to_be_bytes());
    message.extend([0x45, 0, 0x05, 0xDC, 0, 1, 0x40, 0, 64, 17, 0, 0]);
    message.extend(from.ip().octets());
    message.extend(to.ip().octets());
    message.extend(from.port().to_be_bytes());
    message.extend(to.port().to_be_bytes());
    message.extend([0x05, 0xC8, 0, 0]);
    let words = message
        .as_chunks::<2>()
        .0
        .iter()
        .map(|word| u16::from_be_bytes(*word));
    let sum = words.fold(0_u32, |sum, word| sum + u32::from(word));
    let sum = (sum & 0xFFFF) + (sum >> 16);
    let checksum = !((sum & 0xFFFF) + (sum >> 16)) as u16;
    message[2..4].copy_from_slice(&checksum.to_be_bytes());
    message
}

#[test]
#[ignore = "needs root, for a network namespace"]
fn who_says_that_a_datagram_was_too_large_is_not_believed() {
    in_namespace(&["link set lo up"], || {
        let config = NodeConfig::loopback(2, 28_000);
        let [mut one, mut two] =
            [1, 2].map(|node| Sockets::open(&config.network(), id(node)).unwrap());
        let [from, to] = [0, 1].map(|index| config.nodes[index].token());
        let (SocketAddr::V4(v4_from), SocketAddr::V4(v4_to)) = (from, to) else {
            panic!()
        };
        let router = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::ICMPV4)).unwrap();
        let said = fragmentation_needed(v4_from, v4_to, 1300);
        router
            .send_to(&said, &SocketAddr::new(to.ip(), 0).into())
            .unwrap();
        let burst = Burst {
            bytes: vec![7; 128],
            segment: 64,
        };
        let mut out = one.seal(Class::Token, Target::Node(id(2)), burst);
        assert_eq!(one.send(&mut out).unwrap(), Progress::Done);
        let soon = Wait {
            nanos: Some(100_000_000),
            ..Wait::default()
        };
        let mut arrivals = VecDeque::new();
        two.wait(soon).unwrap();
        two.receive(Class::Token, &mut arrivals).unwrap();
        let arrived: usize = arrivals.iter().map(|arrival| arrival.bytes.len()).sum();
        assert_eq!(arrived, 128);
        one.wait(soon).unwrap();
        let stats = one.stats();
        let counted = (stats.too_large, stats.send_errors, stats.gso_fallback);
        assert_eq!(counted, (1, 0, 0));
        // Anybody could have said it: what leaves is as large as before, and so it is from a node that starts now.
        assert_eq!(config.datagram_size(id(1)).bytes, 1472);
    });
}

/// Keeps the fields of log lines.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<String>>);

impl tracing::Subscriber for Log {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        event.record(&mut Fields(&mut self.0.lock().unwrap()));
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

struct Fields<'a>(&'a mut String);

impl tracing::field::Visit for Fields<'_> {
    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn fmt::Debug) {
        // Writing to a string cannot fail.
        let _ = write!(self.0, "{field}={value:?} ");
    }
}
