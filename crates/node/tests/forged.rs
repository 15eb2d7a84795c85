//! A host in the same network that has no key, and makes up what a network says of its hosts.

mod namespace;

use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::{Duration, Instant};

use namespace::in_namespace;
use rota_core::contract::{Burst, Class, Delivery, NodeId, Service, Target};
use rota_net::socket::Progress;
use rota_net::{KeyRing, Sockets, Transport};
use rota_node::{Node, NodeConfig};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(20);
const ATTACKED: Duration = Duration::from_secs(3);

fn sum(bytes: &[u8]) -> [u8; 2] {
    let pairs = bytes
        .chunks(2)
        .map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)));
    let mut sum: u32 = pairs.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    (!(sum as u16)).to_be_bytes()
}

/// The word that no process listens at a port: see [`icmp`].
fn port_unreachable(from: u16, to: u16, payload: &[u8]) -> Vec<u8> {
    icmp((3, 3), (from, to), payload)
}

/// The message of a network about a datagram between these ports of the loopback with this beginning.
fn icmp((kind, code): (u8, u8), (from, to): (u16, u16), payload: &[u8]) -> Vec<u8> {
    let host = Ipv4Addr::LOCALHOST.octets();
    let length = |header: usize| u16::try_from(header + payload.len()).unwrap().to_be_bytes();
    let mut ip = vec![0x45, 0, 0, 0, 0, 1, 0, 0, 64, 17, 0, 0];
    ip[2..4].copy_from_slice(&length(28));
    ip.extend(host.into_iter().chain(host));
    let check = sum(&ip);
    ip[10..12].copy_from_slice(&check);
    let mut packet = vec![kind, code, 0, 0, 0, 0, 2, 40];
    packet.extend(ip);
    packet.extend([from.to_be_bytes(), to.to_be_bytes(), length(8), [0; 2]].concat());
    packet.extend(payload);
    let check = sum(&packet);
    packet[2..4].copy_from_slice(&check);
    packet
}

/// Three nodes on one ring, sealed.
fn three(port: u16) -> (TempDir, NodeConfig, Vec<Node>) {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("cluster.key");
    KeyRing::generate().unwrap().create(&path).unwrap();
    let mut config = NodeConfig::loopback(3, port);
    config.transport = Transport::Unicast;
    (config.insecure, config.key_file) = (false, Some(path));
    let start = |node: NodeId| Node::start(config.clone(), node).unwrap();
    let nodes: Vec<Node> = config.members().into_iter().map(start).collect();
    for node in &nodes {
        loop {
            let next = node.recv_timeout(PATIENCE).expect("no configuration");
            if matches!(next, Delivery::Configuration(now) if now.members.len() == 3) {
                break;
            }
        }
    }
    (dir, config, nodes)
}

/// Counters of all nodes, added up.
fn counted(nodes: &[Node], name: &str) -> u64 {
    let of = |node: &Node| {
        let status = node.status().expect("it runs");
        status.engine.counters.get(name).copied().unwrap_or(0)
    };
    nodes.iter().map(of).sum()
}

/// Messages that say of each node that it is not there, with all that an outsider can know of what was refused: addresses, ports, and
/// the length and kind of a token.
#[test]
#[ignore = "needs root, for a network namespace and raw sockets"]
fn refusals_that_somebody_makes_up_change_no_ring() {
    in_namespace(&["link set lo up"], || {
        let (_key, config, nodes) = three(25_300);
        let raw = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::ICMPV4)).unwrap();
        let to = SockAddr::from(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0));
        let ports: Vec<u16> = config
            .nodes
            .iter()
            .flat_map(|node| [node.token_port, node.data_port])
            .collect();
        let (before, end) = (counted(&nodes, "configurations"), Instant::now() + ATTACKED);
        let mut rounds = 0_u32;
        while Instant::now() < end {
            for from in &ports {
                for at in &ports {
                    let payload = vec![rota_core::wire::VERSION; rounds as usize % 200];
                    raw.send_to(&port_unreachable(*from, *at, &payload), &to)
                        .unwrap();
                }
            }
            rounds += 1;
            if rounds.is_multiple_of(50) {
                nodes[0]
                    .submit_blocking(Service::Agreed, b"goes on")
                    .unwrap();
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        assert!(rounds > 100, "{rounds}");
        assert_eq!(counted(&nodes, "configurations"), before);
        assert_eq!(counted(&nodes, "members_dead"), 0);
        assert!(
            counted(&nodes, "net_unreachable_unproved") > 100,
            "the messages came to nobody"
        );
        for node in &nodes {
            let mut delivered = 0;
            while delivered < rounds / 50 {
                match node.recv_timeout(PATIENCE).expect("messages") {
                    Delivery::Message(_) => delivered += 1,
                    other => panic!("{other:?}"),
                }
            }
        }
    });
}

/// The kernel hands to whatever is sent next what a network has said of something that was sent before, or what somebody says in
/// its name: that says nothing of what is sent next, which leaves.
#[test]
#[ignore = "needs root, for a network namespace and raw sockets"]
fn what_is_said_of_earlier_datagrams_keeps_no_later_one() {
    in_namespace(&["link set lo up"], || {
        let mut config = NodeConfig::loopback(2, 25_340);
        config.transport = Transport::Unicast;
        let mut one = Sockets::open(&config.network(), config.members()[0]).unwrap();
        let mut two = Sockets::open(&config.network(), config.members()[1]).unwrap();
        let raw = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::ICMPV4)).unwrap();
        let to = SockAddr::from(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0));
        // A network, a host or a protocol is not there; too large; forbidden; too old; a parameter is wrong.
        let said = [
            (3, 0),
            (3, 1),
            (3, 2),
            (3, 3),
            (3, 4),
            (3, 5),
            (3, 9),
            (3, 13),
            (11, 0),
            (12, 0),
        ];
        let mut sent = 0;
        for kind in said {
            for class in [Class::Token, Class::Data] {
                let port = |node: usize| match class {
                    Class::Token => config.nodes[node].token_port,
                    Class::Data => config.nodes[node].data_port,
                };
                for times in 1..4 {
                    for _ in 0..times {
                        let message = icmp(kind, (port(0), port(1)), b"something earlier");
                        raw.send_to(&message, &to).unwrap();
                    }
                    let bytes = vec![7; 3 * 200];
                    let burst = Burst {
                        bytes,
                        segment: 200,
                    };
                    let mut out = one.seal(class, Target::Others, burst);
                    assert_eq!(one.send(&mut out).unwrap(), Progress::Done, "{kind:?}");
                    sent += 3;
                }
            }
        }
        let stats = one.stats();
        assert_eq!((stats.send_errors, stats.gso_fallback), (0, 0), "{stats:?}");
        assert_eq!(stats.datagrams_out, sent);
        let mut arrivals = std::collections::VecDeque::new();
        for class in [Class::Token, Class::Data] {
            while two.receive(class, &mut arrivals).unwrap() {}
        }
        assert_eq!(two.stats().datagrams_in, sent);
    });
}
