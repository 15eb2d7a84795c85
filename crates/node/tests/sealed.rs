//! Sealed datagrams over real sockets, with a host in between that has no key, and whole nodes with and without the
//! right one.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use rota_core::contract::{Burst, Class, ConfigurationKind, Delivery, NodeId, Service, Target};
use rota_net::seal::SEALED_BYTES;
use rota_net::socket::Progress;
use rota_net::sockets::{Arrival, Wait};
use rota_net::{KeyRing, NetStats, SocketError, Sockets, Transport};
use rota_node::{Node, NodeConfig, StartError};
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(20);

fn id(node: u16) -> NodeId {
    NodeId::new(node).unwrap()
}

/// A configuration with a key of its own, and the directory that has the key.
fn sealed(nodes: u16, base_port: u16) -> (NodeConfig, TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("cluster.key");
    KeyRing::generate().unwrap().create(&path).unwrap();
    let mut config = NodeConfig::loopback(nodes, base_port);
    config.transport = Transport::Unicast;
    config.insecure = false;
    config.key_file = Some(path);
    (config, dir)
}

/// Node 1 sends to node 2, and what it sends comes to somebody else, who passes it on as he likes.
struct Between {
    one: Sockets,
    two: Sockets,
    taken: UdpSocket,
    to_two: SocketAddr,
    arrivals: VecDeque<Arrival>,
    key: TempDir,
}

const DATAGRAM: usize = 200;

impl Between {
    fn new(base_port: u16) -> Self {
        let (config, key) = sealed(2, base_port);
        let taken = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        taken.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut misled = config.clone();
        misled.nodes[1].data_port = taken.local_addr().unwrap().port();
        Self {
            one: Sockets::open(&misled.network(), id(1)).unwrap(),
            two: Sockets::open(&config.network(), id(2)).unwrap(),
            to_two: config.nodes[1].data(),
            taken,
            arrivals: VecDeque::new(),
            key,
        }
    }

    /// The bytes that node 1 puts on the wire for `count` datagrams, each filled with its number.
    fn take(&mut self, count: usize) -> Vec<Vec<u8>> {
        let mut bytes = vec![0; count * DATAGRAM];
        for (number, datagram) in bytes.chunks_mut(DATAGRAM).enumerate() {
            datagram[..DATAGRAM - SEALED_BYTES].fill(number as u8);
        }
        let burst = Burst {
            bytes,
            segment: DATAGRAM,
        };
        let mut out = self.one.seal(Class::Data, Target::Others, burst);
        assert_eq!(self.one.send(&mut out).unwrap(), Progress::Done);
        let mut buffer = [0; 2048];
        let mut next = || {
            let len = self.taken.recv(&mut buffer).unwrap();
            buffer[..len].to_vec()
        };
        (0..count).map(|_| next()).collect()
    }

    /// Passes datagrams on, and waits until so many reads' worth of bytes have come to node 2.
    fn pass(&mut self, datagrams: &[Vec<u8>]) {
        for datagram in datagrams {
            let before = self.two.stats().bytes_in;
            self.taken.send_to(datagram, self.to_two).unwrap();
            let until = Instant::now() + PATIENCE;
            while self.two.stats().bytes_in == before {
                assert!(Instant::now() < until, "it does not come");
                let nanos = Some(10_000_000);
                let wait = Wait {
                    nanos,
                    ..Wait::default()
                };
                self.two.wait(wait).unwrap();
                self.two
                    .receive(Class::Data, &mut self.arrivals)
                    .expect("it can be read");
            }
        }
    }

    /// The numbers of what has come through, in order.
    fn come(&mut self) -> Vec<u8> {
        let arrivals = std::mem::take(&mut self.arrivals);
        let datagrams = arrivals.iter().flat_map(|arrival| {
            let chunks = arrival.bytes.chunks(arrival.segment);
            chunks.map(<[u8]>::to_vec).collect::<Vec<_>>()
        });
        let number = |datagram: Vec<u8>| {
            let body = &datagram[..DATAGRAM - SEALED_BYTES];
            assert!(body.iter().all(|byte| *byte == body[0]), "{body:?}");
            body[0]
        };
        datagrams.map(number).collect()
    }

    /// Counters of what was refused: forged, seen, old, unknown key, earlier life.
    fn refused(&self) -> [u64; 5] {
        let NetStats {
            seal_forged,
            seal_seen,
            seal_old,
            seal_unknown_key,
            seal_old_life,
            ..
        } = *self.two.stats();
        [
            seal_forged,
            seal_seen,
            seal_old,
            seal_unknown_key,
            seal_old_life,
        ]
    }
}

#[test]
fn what_is_passed_on_comes_once_in_any_order_and_what_is_changed_never() {
    let mut between = Between::new(28_100);
    let taken = between.take(20);
    for (number, datagram) in taken.iter().enumerate() {
        let hidden = &datagram[36..DATAGRAM - SEALED_BYTES];
        assert!(hidden.iter().any(|byte| *byte != number as u8), "in clear");
    }
    let mut reordered = taken.clone();
    reordered.reverse();
    between.pass(&reordered);
    assert_eq!(between.come(), (0..20).rev().collect::<Vec<u8>>());
    between.pass(&taken);
    assert_eq!(between.come(), [0_u8; 0]);
    assert_eq!(between.refused(), [0, 20, 0, 0, 0]);

    let fresh = between.take(3);
    for datagram in &fresh {
        for at in [0, 5, 36, 100, DATAGRAM - 46, DATAGRAM - 31] {
            let mut changed = datagram.clone();
            changed[at] ^= 4;
            between.pass(&[changed]);
        }
    }
    assert_eq!(between.come(), [0_u8; 0]);
    assert_eq!(between.refused(), [18, 20, 0, 0, 0]);
    between.pass(&fresh);
    assert_eq!(between.come(), [0, 1, 2]);
    let garbage = [vec![7; 300], vec![0; 100], vec![9; 20]];
    between.pass(&garbage);
    assert_eq!(between.come(), [0_u8; 0]);
    assert_eq!(between.refused(), [18, 20, 0, 2, 0]);
    assert_eq!(between.two.stats().short, 1);
    assert_eq!(between.two.stats().datagrams_in, 23);
}

#[test]
fn what_was_held_back_for_long_or_is_of_an_earlier_life_is_refused() {
    let mut between = Between::new(28_120);
    let held_back = between.take(1);
    for _ in 0..42 {
        let burst = between.take(50);
        between.pass(&burst[49..]);
    }
    between.pass(&held_back);
    assert_eq!(between.come(), [49; 42]);
    assert_eq!(between.refused(), [0, 0, 1, 0, 0]);

    let of_first_life = between.take(1);
    let (mut config, _other) = sealed(2, 28_120);
    config.key_file = Some(between.key.path().join("cluster.key"));
    config.nodes[1].data_port = between.taken.local_addr().unwrap().port();
    // The first life's ports have to be free.
    config.nodes[0].data_port = 28_130;
    config.nodes[0].token_port = 28_131;
    between.one = Sockets::open(&config.network(), id(1)).unwrap();
    let of_second_life = between.take(2);
    between.pass(&of_second_life);
    between.pass(&of_first_life);
    assert_eq!(between.come(), [0, 1]);
    assert_eq!(between.refused(), [0, 0, 1, 0, 1]);
}

fn regular(node: &Node, members: usize) {
    let until = Instant::now() + PATIENCE;
    loop {
        match node.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(Delivery::Configuration(now))
                if matches!(now.kind, ConfigurationKind::Regular(_))
                    && now.members.len() == members =>
            {
                return;
            }
            Ok(_) => {}
            Err(error) => panic!("not {members} members: {error}, {:?}", node.status()),
        }
    }
}

#[test]
fn sealed_nodes_order_messages_of_all_sizes() {
    for (transport, port) in [(false, 28_140), (true, 28_150)] {
        let (mut config, _key) = sealed(3, port);
        if transport {
            config.transport = NodeConfig::loopback(3, port).transport;
        }
        let nodes = [1, 2, 3].map(|node| Node::start(config.clone(), id(node)).unwrap());
        nodes.iter().for_each(|node| regular(node, 3));
        let sizes: Vec<usize> = (0..200).map(|at| at * at).collect();
        for (at, size) in sizes.iter().enumerate() {
            let payload = vec![at as u8; *size];
            nodes[at % 3].submit(Service::Safe, &payload).unwrap();
        }
        let orders = nodes.each_ref().map(|node| {
            let mut order = Vec::new();
            while order.len() < sizes.len() {
                match node.recv_timeout(PATIENCE).expect("in time") {
                    Delivery::Message(message) => order.push((message.id, message.payload)),
                    other => panic!("{other:?}"),
                }
            }
            order
        });
        assert!(orders[0] == orders[1] && orders[0] == orders[2]);
        let mut lens: Vec<usize> = orders[0].iter().map(|(_, payload)| payload.len()).collect();
        lens.sort_unstable();
        assert_eq!(lens, sizes);
        for node in nodes {
            let counters = node.status().expect("it runs").engine.counters;
            let refused = |(name, count): (&&str, &u64)| name.starts_with("net_seal") && *count > 0;
            let refused = counters.iter().find(|each| refused(*each));
            assert_eq!(refused, None);
        }
    }
}

/// Two nodes that do not hear each other: each says so in the counter with this name.
fn strangers(configs: [NodeConfig; 2], counters: [&str; 2]) {
    let [one, two] = configs;
    let nodes = [
        Node::start(one, id(1)).unwrap(),
        Node::start(two, id(2)).unwrap(),
    ];
    for (node, counter) in nodes.iter().zip(counters) {
        regular(node, 1);
        let until = Instant::now() + PATIENCE;
        loop {
            let status = node.status().expect("it runs");
            if status.engine.counters[counter] >= 3 {
                break;
            }
            assert!(Instant::now() < until, "{counter}: {status:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    for node in &nodes {
        let met = node.try_recv();
        assert!(met.is_none(), "they have met: {met:?}");
    }
}

#[test]
fn nodes_with_different_keys_do_not_meet_and_say_so() {
    let ((one, _a), (mut two, _b)) = (sealed(2, 28_160), sealed(2, 28_160));
    strangers([one.clone(), two.clone()], ["net_seal_forged"; 2]);
    // The same, where the ids of the keys differ.
    let path = two.key_file.clone().unwrap();
    let mut keys = KeyRing::load(&path).unwrap();
    keys.add().unwrap();
    keys.send_with(2).unwrap();
    keys.remove(1).unwrap();
    keys.replace(&path).unwrap();
    strangers([one.clone(), two.clone()], ["net_seal_unknown_key"; 2]);
    // And one without any key.
    two.key_file = None;
    two.insecure = true;
    strangers([one, two], ["net_seal_unknown_key", "net_checksum_errors"]);
}

#[test]
fn a_node_does_not_start_with_a_key_file_that_is_wrong() {
    use std::os::unix::fs::PermissionsExt;
    let (mut config, _key) = sealed(1, 28_170);
    let path = config.key_file.clone().unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
    let refused = |config: &NodeConfig| match Node::start(config.clone(), id(1)) {
        Err(StartError::Socket(error @ SocketError::Key(..))) => error.to_string(),
        other => panic!("{other:?}"),
    };
    let said = refused(&config);
    assert!(
        said.contains("0644") && said.contains("cluster.key"),
        "{said}"
    );
    config.key_file = Some(path.with_extension("missing"));
    let said = refused(&config);
    assert!(said.contains("cluster.missing"), "{said}");
}
