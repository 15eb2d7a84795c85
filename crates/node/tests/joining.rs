//! A node that two others have not been configured with, on real sockets.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use rota_core::contract::{Burst, Class, Incarnation, NodeId, Process, RingId, Target};
use rota_net::socket::Progress;
use rota_net::sockets::{Arrival, Wait};
use rota_net::{NodeAddress, Sockets, Transport};
use rota_node::NodeConfig;
use rota_ring::wire::{DATA_OVERHEAD_BYTES, MergeDetect, Packet};

const PATIENCE: Duration = Duration::from_secs(5);

fn id(node: u16) -> NodeId {
    NodeId::new(node).unwrap()
}

/// Nodes 1 and 2 know each other; node 3, at another address, knows them, too.
struct Cluster {
    listed: NodeConfig,
    joiner: NodeConfig,
    one: Sockets,
    two: Sockets,
    three: Sockets,
}

impl Cluster {
    fn new(base_port: u16, open_membership: bool, multicast: bool) -> Self {
        let mut listed = NodeConfig::loopback(2, base_port);
        listed.open_membership = open_membership;
        if !multicast {
            listed.transport = Transport::Unicast;
        }
        let mut joiner = listed.clone();
        joiner.nodes.push(NodeAddress {
            id: 3,
            name: None,
            host: None,
            address: IpAddr::from([127, 0, 0, 3]),
            data_port: base_port + 5,
            token_port: base_port + 6,
        });
        let open = |config: &NodeConfig, node| Sockets::open(&config.network(), id(node)).unwrap();
        Self {
            one: open(&listed, 1),
            two: open(&listed, 2),
            three: open(&joiner, 3),
            listed,
            joiner,
        }
    }

    fn presence(&self, node: u16) -> Burst {
        let process = Process {
            node: id(node),
            incarnation: Incarnation(5),
        };
        let ring = RingId {
            ring_seq: 1,
            rep: process.node,
            incarnation: process.incarnation,
        };
        let presence = MergeDetect {
            cluster: self.listed.wire_cluster(),
            sender: process,
            ring,
        };
        Burst::single(Packet::MergeDetect(presence).encode())
    }
}

/// Something that says nothing about its sender.
fn payload(mark: u8) -> Burst {
    Burst::single(vec![mark; DATA_OVERHEAD_BYTES + 4])
}

fn send(sockets: &mut Sockets, class: Class, to: Target, burst: Burst) {
    let mut out = sockets.seal(class, to, burst);
    assert_eq!(sockets.send(&mut out).unwrap(), Progress::Done);
}

/// The first bytes of what comes until `count` datagrams have.
fn receive(sockets: &mut Sockets, class: Class, count: usize) -> Vec<u8> {
    let mut arrivals: VecDeque<Arrival> = VecDeque::new();
    let deadline = Instant::now() + PATIENCE;
    while arrivals.len() < count {
        assert!(Instant::now() < deadline, "{} of {count}", arrivals.len());
        let nanos = Some(10_000_000);
        let wait = Wait {
            nanos,
            ..Wait::default()
        };
        sockets.wait(wait).unwrap();
        while sockets.receive(class, &mut arrivals).unwrap() {}
    }
    arrivals.iter().map(|arrival| arrival.bytes[0]).collect()
}

/// Reads until a burst was dropped for its source.
fn drops_a_stranger(sockets: &mut Sockets, class: Class) {
    let before = sockets.stats().foreign_source;
    let deadline = Instant::now() + PATIENCE;
    let mut arrivals = VecDeque::new();
    while sockets.stats().foreign_source == before {
        assert!(Instant::now() < deadline, "nothing was dropped");
        sockets.receive(class, &mut arrivals).unwrap();
    }
    assert!(arrivals.is_empty(), "{arrivals:?}");
}

#[test]
fn a_stranger_is_not_heard_unless_membership_is_open() {
    let mut cluster = Cluster::new(21_200, false, false);
    let hello = cluster.presence(3);
    send(&mut cluster.three, Class::Token, Target::Others, hello);
    drops_a_stranger(&mut cluster.one, Class::Token);
    drops_a_stranger(&mut cluster.two, Class::Token);
}

#[test]
fn a_stranger_that_says_hello_is_reached_from_then_on() {
    let mut cluster = Cluster::new(21_210, true, false);
    let hello = cluster.presence(3);
    let Cluster {
        one, two, three, ..
    } = &mut cluster;
    send(three, Class::Data, Target::Node(id(1)), payload(1));
    drops_a_stranger(one, Class::Data);
    send(three, Class::Token, Target::Others, hello);
    receive(one, Class::Token, 1);
    receive(two, Class::Token, 1);
    send(one, Class::Token, Target::Node(id(3)), payload(2));
    send(one, Class::Token, Target::Others, payload(3));
    assert_eq!(receive(three, Class::Token, 2), [2, 3]);
    assert_eq!(receive(two, Class::Token, 1), [3]);
    send(two, Class::Data, Target::Others, payload(4));
    assert_eq!(receive(three, Class::Data, 1), [4]);
    assert_eq!(receive(one, Class::Data, 1), [4]);
    send(three, Class::Data, Target::Others, payload(5));
    assert_eq!(receive(one, Class::Data, 1), [5]);
    assert_eq!(receive(two, Class::Data, 1), [5]);
}

#[test]
fn with_multicast_a_stranger_hears_the_group_and_is_heard_there() {
    let mut cluster = Cluster::new(21_220, true, true);
    let hello = cluster.presence(3);
    let Cluster {
        one, two, three, ..
    } = &mut cluster;
    send(three, Class::Token, Target::Others, hello);
    receive(one, Class::Token, 1);
    receive(two, Class::Token, 1);
    send(three, Class::Data, Target::Others, payload(5));
    assert_eq!(receive(one, Class::Data, 1), [5]);
    assert_eq!(receive(two, Class::Data, 1), [5]);
    send(one, Class::Data, Target::Others, payload(6));
    assert_eq!(receive(three, Class::Data, 1), [6]);
    assert_eq!(receive(two, Class::Data, 1), [6]);
}

#[test]
fn a_stranger_that_comes_back_elsewhere_is_reached_there() {
    let mut cluster = Cluster::new(21_230, true, false);
    let hello = cluster.presence(3);
    send(
        &mut cluster.three,
        Class::Token,
        Target::Others,
        hello.clone(),
    );
    receive(&mut cluster.one, Class::Token, 1);
    cluster.joiner.nodes[2].address = IpAddr::from([127, 0, 0, 4]);
    cluster.joiner.nodes[2].token_port += 2;
    cluster.joiner.nodes[2].data_port += 2;
    cluster.three = Sockets::open(&cluster.joiner.network(), id(3)).unwrap();
    send(&mut cluster.three, Class::Token, Target::Others, hello);
    receive(&mut cluster.one, Class::Token, 1);
    send(
        &mut cluster.one,
        Class::Token,
        Target::Node(id(3)),
        payload(7),
    );
    assert_eq!(receive(&mut cluster.three, Class::Token, 1), [7]);
}

#[test]
fn nobody_takes_a_configured_nodes_place() {
    let mut cluster = Cluster::new(21_240, true, false);
    let (as_two, foreign) = (cluster.presence(2), {
        cluster.listed.cluster += 1;
        cluster.presence(3)
    });
    let Cluster {
        one, two, three, ..
    } = &mut cluster;
    send(three, Class::Token, Target::Node(id(1)), as_two);
    drops_a_stranger(one, Class::Token);
    send(three, Class::Token, Target::Node(id(1)), foreign);
    drops_a_stranger(one, Class::Token);
    send(one, Class::Token, Target::Node(id(2)), payload(8));
    assert_eq!(receive(two, Class::Token, 1), [8]);
}
