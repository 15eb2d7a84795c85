//! Bursts over real sockets on the loopback interface. A host where these cannot run is a host where
//! a node cannot run on loopback, so nothing here is skipped.

use std::collections::VecDeque;
use std::net::UdpSocket;
use std::time::{Duration, Instant};

use rota_core::contract::{Burst, Class, NodeId, Target};
use rota_net::socket::Progress;
use rota_net::sockets::{Arrival, Wait};

use rota_net::{Network, SocketError, Sockets, Transport, probe_multicast};

const PATIENCE: Duration = Duration::from_secs(5);

fn id(number: u16) -> NodeId {
    NodeId::new(number).unwrap()
}

fn open(network: &Network, node: u16) -> Sockets {
    Sockets::open(network, id(node)).unwrap()
}

/// A burst of `count` datagrams of `segment` bytes and a last one of `last` bytes.
fn burst(count: usize, segment: usize, last: usize) -> Burst {
    let bytes = (0..count * segment + last)
        .map(|at| (at * 31 + at / 251) as u8)
        .collect();
    Burst { bytes, segment }
}

/// The datagrams without their checksums, which sealing fills in.
fn plain(bytes: &[u8], segment: usize) -> Vec<Vec<u8>> {
    let without = |datagram: &[u8]| datagram[..datagram.len() - 4].to_vec();
    bytes.chunks(segment).map(without).collect()
}

fn send(sockets: &mut Sockets, class: Class, to: Target, burst: Burst) {
    let mut out = sockets.seal(class, to, burst);
    let deadline = Instant::now() + PATIENCE;
    while sockets.send(&mut out).unwrap() != Progress::Done {
        assert!(Instant::now() < deadline, "the burst does not leave");
    }
}

fn datagrams(arrivals: &VecDeque<Arrival>) -> Vec<Vec<u8>> {
    arrivals
        .iter()
        .flat_map(|arrival| plain(&arrival.bytes, arrival.segment))
        .collect()
}

/// Reads until `count` datagrams have come.
fn receive(sockets: &mut Sockets, class: Class, count: usize) -> VecDeque<Arrival> {
    let mut arrivals = VecDeque::new();
    let deadline = Instant::now() + PATIENCE;
    while datagrams(&arrivals).len() < count {
        assert!(
            Instant::now() < deadline,
            "{} of {count} came",
            datagrams(&arrivals).len()
        );
        sockets
            .wait(Wait {
                nanos: Some(10_000_000),
                ..Wait::default()
            })
            .unwrap();
        while sockets.receive(class, &mut arrivals).unwrap() {}
    }
    arrivals
}

fn round_trip(network: &Network) -> (Sockets, Sockets, VecDeque<Arrival>) {
    let (mut one, mut two) = (open(network, 1), open(network, 2));
    let sent = burst(20, 1400, 77);
    let expected = plain(&sent.bytes, sent.segment);
    send(&mut one, Class::Data, Target::Others, sent);
    let arrivals = receive(&mut two, Class::Data, 21);
    assert_eq!(datagrams(&arrivals), expected);
    (one, two, arrivals)
}

#[test]
fn multicast_works_on_loopback() {
    probe_multicast("127.0.0.1".parse().unwrap()).unwrap();
}

#[test]
fn an_offloaded_burst_arrives_whole_with_its_short_last_datagram() {
    let (one, two, arrivals) = round_trip(&Network::loopback(2, 21_000));
    assert_eq!(arrivals.len(), 1, "one burst, one read");
    assert_eq!(arrivals[0].segment, 1400);
    assert_eq!(one.stats().datagrams_out, 21);
    assert_eq!((two.stats().datagrams_in, two.stats().bursts_in), (21, 1));
    assert_eq!(one.stats().gso_fallback, 0);
}

#[test]
fn without_offload_the_same_bytes_arrive_one_by_one() {
    let mut network = Network::loopback(2, 21_010);
    network.tuning.offload = false;
    let (_, two, arrivals) = round_trip(&network);
    assert_eq!(arrivals.len(), 21);
    assert_eq!(two.stats().bursts_in, 21);
}

#[test]
fn without_multicast_every_peer_gets_a_copy() {
    let network = Network {
        transport: Transport::Unicast,
        ..Network::loopback(3, 21_020)
    };
    let (mut one, mut two, mut three) = (open(&network, 1), open(&network, 2), open(&network, 3));
    let sent = burst(3, 500, 40);
    let expected = plain(&sent.bytes, sent.segment);
    send(&mut one, Class::Data, Target::Others, sent);
    assert_eq!(datagrams(&receive(&mut two, Class::Data, 4)), expected);
    assert_eq!(datagrams(&receive(&mut three, Class::Data, 4)), expected);
    assert_eq!(one.stats().bursts_out, 2);
}

#[test]
fn a_burst_that_the_kernel_will_not_segment_goes_one_by_one_from_then_on() {
    // No kernel takes so many segments at once; engines never ask for it.
    let network = Network::loopback(2, 21_030);
    let (mut one, mut two) = (open(&network, 1), open(&network, 2));
    let sent = burst(700, 64, 0);
    let expected = plain(&sent.bytes, sent.segment);
    send(&mut one, Class::Data, Target::Others, sent);
    assert_eq!(datagrams(&receive(&mut two, Class::Data, 700)), expected);
    assert_eq!(one.stats().gso_fallback, 1);
    send(&mut one, Class::Data, Target::Others, burst(700, 64, 0));
    receive(&mut two, Class::Data, 700);
    assert_eq!(one.stats().gso_fallback, 1);
}

#[test]
fn a_datagram_that_is_too_large_is_counted_and_the_next_one_leaves() {
    // More than UDP can say; engines never ask for it.
    for offload in [true, false] {
        let mut network = Network::loopback(2, 21_110);
        network.tuning.offload = offload;
        let (mut one, mut two) = (open(&network, 1), open(&network, 2));
        send(&mut one, Class::Data, Target::Others, burst(1, 65_508, 64));
        assert_eq!(receive(&mut two, Class::Data, 1)[0].segment, 64);
        let stats = one.stats();
        let counted = (stats.too_large, stats.send_errors, stats.datagrams_out);
        assert_eq!(counted, (1, 0, 1));
    }
}

#[test]
fn own_multicasts_do_not_come_back() {
    let network = Network::loopback(2, 21_040);
    let (mut one, mut two) = (open(&network, 1), open(&network, 2));
    send(&mut one, Class::Data, Target::Others, burst(2, 100, 50));
    receive(&mut two, Class::Data, 3);
    // The burst that node 2 sends later comes first at node 1, though its own was earlier.
    let sent = burst(1, 90, 0);
    let expected = plain(&sent.bytes, sent.segment);
    send(&mut two, Class::Data, Target::Others, sent);
    assert_eq!(datagrams(&receive(&mut one, Class::Data, 1)), expected);
    assert_eq!(
        (one.stats().bursts_in, one.stats().own),
        (1, 0),
        "the filter dropped it"
    );
}

#[test]
fn nothing_queues_at_the_socket_that_only_sends_to_the_group() {
    let network = Network::loopback(2, 21_120);
    let _one = open(&network, 1);
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    for _ in 0..100 {
        stranger
            .send_to(&[7; 1000], network.nodes[0].data())
            .unwrap();
    }
    // Of each socket: number, own address, the other's, state, sizes of its queues.
    let sockets = std::fs::read_to_string("/proc/thread-self/net/udp").unwrap();
    let own = format!(" 0100007F:{:04X} ", network.nodes[0].data_port);
    let line = sockets.lines().find(|line| line.contains(&own)).unwrap();
    let (_, received) = line
        .split_whitespace()
        .nth(4)
        .unwrap()
        .split_once(':')
        .unwrap();
    assert_eq!(u64::from_str_radix(received, 16), Ok(0), "{line}");
}

#[test]
fn a_token_goes_to_one_node_only() {
    let network = Network::loopback(3, 21_050);
    let (mut one, mut two, mut three) = (open(&network, 1), open(&network, 2), open(&network, 3));
    send(&mut one, Class::Token, Target::Node(id(3)), burst(1, 64, 0));
    assert_eq!(receive(&mut three, Class::Token, 1).len(), 1);
    let mut arrivals = VecDeque::new();
    assert!(!two.receive(Class::Token, &mut arrivals).unwrap());
}

#[test]
fn damaged_short_and_empty_datagrams_are_counted_and_dropped() {
    let network = Network::loopback(2, 21_060);
    let (mut one, mut two) = (open(&network, 1), open(&network, 2));
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    let token = network.nodes[1].token();
    for datagram in [&[7_u8; 64][..], &[1; 39], &[]] {
        stranger.send_to(datagram, token).unwrap();
    }
    send(&mut one, Class::Token, Target::Node(id(2)), burst(1, 40, 0));
    assert_eq!(receive(&mut two, Class::Token, 1).len(), 1);
    let stats = two.stats();
    assert_eq!(
        (stats.checksum_errors, stats.short, stats.datagrams_in),
        (1, 2, 1)
    );
}

#[test]
fn a_host_that_is_not_in_the_cluster_is_not_heard() {
    let network = Network::loopback(2, 21_070);
    let (mut one, mut two) = (open(&network, 1), open(&network, 2));
    let stranger = UdpSocket::bind("127.0.0.9:0").unwrap();
    stranger
        .send_to(&[7; 64], network.nodes[1].token())
        .unwrap();
    send(&mut one, Class::Token, Target::Node(id(2)), burst(1, 40, 0));
    receive(&mut two, Class::Token, 1);
    assert_eq!(two.stats().foreign_source, 1);
}

#[test]
fn a_peer_that_is_down_is_noticed_and_stops_nothing() {
    let network = Network::loopback(3, 21_080);
    let (mut one, mut two) = (open(&network, 1), open(&network, 2));
    let deadline = Instant::now() + PATIENCE;
    let refused = loop {
        send(&mut one, Class::Token, Target::Node(id(3)), burst(1, 64, 0));
        one.wait(Wait {
            nanos: Some(10_000_000),
            ..Wait::default()
        })
        .unwrap();
        if let Some(peer) = one.next_refused() {
            break peer;
        }
        assert!(Instant::now() < deadline, "nobody said that node 3 is down");
    };
    assert_eq!(refused, id(3));
    send(&mut one, Class::Token, Target::Node(id(3)), burst(1, 64, 0));
    send(&mut one, Class::Token, Target::Node(id(2)), burst(1, 64, 0));
    assert_eq!(receive(&mut two, Class::Token, 1).len(), 1);
    send(&mut two, Class::Token, Target::Node(id(1)), burst(1, 64, 0));
    assert_eq!(receive(&mut one, Class::Token, 1).len(), 1);
}

#[test]
fn a_port_in_use_and_an_unknown_node_are_said_clearly() {
    let network = Network::loopback(2, 21_090);
    let _one = open(&network, 1);
    let error = Sockets::open(&network, id(1)).unwrap_err();
    assert!(matches!(error, SocketError::Bind { .. }), "{error:?}");
    assert!(error.to_string().contains("in use"), "{error}");
    let error = Sockets::open(&network, id(7)).unwrap_err();
    assert!(matches!(error, SocketError::UnknownNode(_)), "{error:?}");
}

#[test]
fn ipv6_works_the_same() {
    // Without multicast: a loopback interface has no IPv6 route for it.
    let mut network = Network::loopback(2, 21_100);
    for node in &mut network.nodes {
        node.address = "::1".parse().unwrap();
    }
    network.transport = Transport::Unicast;
    let (mut one, _two, arrivals) = round_trip(&network);
    assert_eq!(arrivals.len(), 1);
    assert_eq!(one.stats().gso_fallback, 0);
    send(&mut one, Class::Token, Target::Node(id(2)), burst(1, 64, 0));
}
