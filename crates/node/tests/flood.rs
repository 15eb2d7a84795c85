//! A ring while a host floods one of its nodes with garbage: it orders on, says what it dropped, and keeps nothing of
//! it.
//!
//! The garbage comes from a seed, which the test prints; `ROTA_FLOOD_SEED=N` sets it. The kernel decides which of it
//! arrives when.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use rota_core::contract::{Delivery, Incarnation, MessageId, NodeId, Process, RingId, Service};
use rota_core::wire::{Frame, push_whole, start_frame};
use rota_net::Transport;
use rota_net::seal::checksum;
use rota_node::{Node, NodeConfig, Publisher};
use rota_ring::wire::{Commit, Data, Join, MergeDetect, OldRing, Packet, Token};
use socket2::SockRef;

/// Datagrams of a flood.
const FLOOD: usize = 200_000;
/// Different ones among them.
const VARIETY: usize = 1 << 12;
/// Messages that each node submits meanwhile.
const EACH: usize = 400;
/// By how much the memory of the process may grow: room for receive buffers and for messages that wait
/// for lost ones. The flood itself has about 80 MB.
const GROWTH_BYTES: usize = 16 << 20;
const PATIENCE: Duration = Duration::from_secs(60);
/// Memory is the process's, so the floods of this file take turns.
static TURN: Mutex<()> = Mutex::new(());

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
    }
}

/// Makes garbage of one kind, for nodes of this cluster.
type Make = fn(&mut Random, u32) -> Vec<u8>;

/// Kinds of garbage, with the counter that each must move; they are sent in turns. The first is what a
/// stranger sends.
const KINDS: [(&str, Make); 9] = [
    ("net_foreign_source", |random, _| noise(random)),
    ("net_checksum_errors", |random, _| noise(random)),
    ("net_short", |random, _| {
        let length = random.below(40);
        random.bytes(length)
    }),
    ("net_checksum_errors", damaged),
    ("datagrams_foreign_cluster", |random, cluster| {
        let kind = random.below(5);
        sealed(packet(random, cluster + 1, kind).encode())
    }),
    // Joins and presences of the own cluster are not garbage: whoever can send them can have rings
    // re-formed, until datagrams are sealed with a key.
    ("datagrams_foreign_ring", |random, cluster| {
        let kind = random.below(2);
        sealed(packet(random, cluster, kind).encode())
    }),
    ("commits_ignored", |random, cluster| {
        sealed(packet(random, cluster, 2).encode())
    }),
    ("datagrams_malformed", |random, _| {
        // The checksum is right, and the first byte is of no version of the format.
        let mut bytes = random.bytes(40);
        bytes[0] |= 0xC0;
        bytes.extend(noise(random));
        sealed(bytes)
    }),
    ("datagrams_other_version", |random, cluster| {
        // All else may have changed with the version.
        let kind = random.below(5);
        let mut bytes = packet(random, cluster, kind).encode();
        bytes[0] = (bytes[0] & 0xF0) | ((bytes[0] + 1 + random.below(15) as u8) & 0x0F);
        sealed(bytes)
    }),
];

fn sealed(mut datagram: Vec<u8>) -> Vec<u8> {
    checksum::seal(&mut datagram);
    datagram
}

fn noise(random: &mut Random) -> Vec<u8> {
    let length = 40 + random.below(1400);
    random.bytes(length)
}

/// A sound datagram that has lost its end, or one bit.
fn damaged(random: &mut Random, cluster: u32) -> Vec<u8> {
    let mut datagram = sealed({
        let kind = random.below(5);
        packet(random, cluster, kind).encode()
    });
    if random.below(2) == 0 {
        let length = 40 + random.below(datagram.len() - 40);
        datagram.truncate(length);
    } else {
        let at = random.below(datagram.len());
        datagram[at] ^= 1 << random.below(8);
    }
    datagram
}

/// A packet that nothing is wrong with, of a ring that is not there.
fn packet(random: &mut Random, cluster: u32, kind: usize) -> Packet {
    let node = NodeId::new(1 + random.below(3) as u16).unwrap();
    let incarnation = Incarnation(random.next() & Incarnation::MAX);
    let process = Process { node, incarnation };
    let ring = RingId {
        ring_seq: 1 + random.next() % 4,
        rep: node,
        incarnation,
    };
    let seq = 1 + random.next() % 5000;
    match kind {
        0 => {
            let mut frame = Vec::new();
            start_frame(&mut frame, seq);
            let length = random.below(1000);
            push_whole(&mut frame, &random.bytes(length));
            Packet::Data(Data {
                cluster,
                ring,
                seq,
                sender: node,
                round: random.next() as u16,
                service: Service::Agreed,
                encapsulated: random.below(4) == 0,
                frame: Frame::parse(Bytes::from(frame)).unwrap(),
            })
        }
        1 => Packet::Token(Token {
            cluster,
            ring,
            sender: node,
            token_seq: random.next() >> 1,
            seq,
            aru: seq,
            aru_id: None,
            fcc: 0,
            backlog: 0,
            idle: false,
            recovering: false,
            rtr: Vec::new(),
        }),
        4 => Packet::MergeDetect(MergeDetect {
            cluster,
            sender: process,
            ring,
        }),
        3 => Packet::Join(Join {
            cluster,
            sender: process,
            ring_seq: ring.ring_seq,
            leaving: false,
            procs: [process].into(),
            fails: [].into(),
        }),
        _ => Packet::Commit(Commit {
            cluster,
            ring,
            sender: node,
            token_seq: 1,
            members: vec![process],
            electorates: vec![],
            told: vec![old_ring(ring, seq)],
        }),
    }
}

fn old_ring(ring: RingId, high: u64) -> OldRing {
    OldRing {
        ring,
        aru: 0,
        high,
        safe_line: 0,
        obligations: u128::MAX,
        next_message: 1,
        settings: rota_ring::RingConfig::new(1, Vec::new()).settings(),
        counts: Default::default(),
        have: Vec::new(),
        more: true,
    }
}

/// A host that sends garbage to one node.
struct Flooder {
    /// On a host of the cluster.
    insider: UdpSocket,
    stranger: UdpSocket,
    /// Addresses, and how many nodes each reaches.
    targets: Vec<(SocketAddr, usize)>,
    /// Kind and contents.
    garbage: Vec<(usize, Vec<u8>)>,
}

impl Flooder {
    fn new(config: &NodeConfig, seed: u64) -> Self {
        let open = |address: &str| {
            let socket = UdpSocket::bind((address, 0)).unwrap();
            let interface = SockRef::from(&socket);
            interface.set_multicast_if_v4(&Ipv4Addr::LOCALHOST).unwrap();
            socket
        };
        let victim = &config.nodes[0];
        let data = match config.transport {
            Transport::Unicast => vec![(victim.data(), 1)],
            // Nobody reads the data socket then: see that it does no harm.
            Transport::Multicast(group) => vec![(group, config.nodes.len()), (victim.data(), 0)],
        };
        let mut random = Random(seed);
        let datagram = |at: usize| {
            let kind = at % KINDS.len();
            (kind, KINDS[kind].1(&mut random, config.wire_cluster()))
        };
        Self {
            insider: open("127.0.0.1"),
            stranger: open("127.0.0.9"),
            targets: [vec![(victim.token(), 1)], data].concat(),
            garbage: (0..VARIETY).map(datagram).collect(),
        }
    }

    /// Sends datagram `number` of the flood; says how many nodes it is on its way to.
    fn send(&self, number: usize) -> usize {
        let (kind, bytes) = &self.garbage[number % self.garbage.len()];
        let (target, reaches) = self.targets[number / self.garbage.len() % self.targets.len()];
        let socket = if *kind == 0 {
            &self.stranger
        } else {
            &self.insider
        };
        socket.send_to(bytes, target).unwrap();
        reaches
    }

    /// One datagram to each target: it brings the kernel's count of what it dropped before.
    fn send_to_all(&self) -> usize {
        let (_, bytes) = &self.garbage[1];
        let send = |(target, reaches): &(SocketAddr, usize)| {
            self.insider.send_to(bytes, target).unwrap();
            *reaches
        };
        self.targets.iter().map(send).sum()
    }
}

type Order = Vec<(MessageId, Bytes)>;

/// The next `count` messages that a node delivers.
fn order(node: &Node, count: usize) -> Order {
    let deadline = Instant::now() + PATIENCE;
    let mut found = Vec::new();
    while found.len() < count {
        let left = deadline.saturating_duration_since(Instant::now());
        match node.recv_timeout(left) {
            Ok(Delivery::Message(message)) => found.push((message.id, message.payload)),
            Ok(_) => {}
            Err(error) => panic!("{} of {count}: {error}, {:?}", found.len(), node.status()),
        }
    }
    found
}

/// Submits `count` messages, each when as large a part of the flood has been sent.
fn publish(publisher: &Publisher, count: usize, flooded: &AtomicUsize) {
    for number in 0..count {
        while flooded.load(SeqCst) < FLOOD / count * number {
            thread::sleep(Duration::from_micros(200));
        }
        let payload = number.to_le_bytes().repeat(1 + number % 100);
        publisher
            .submit_blocking(Service::Agreed, &payload)
            .unwrap();
    }
}

/// The bytes that the process has in memory.
fn resident_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = resident.and_then(|text| text.trim().strip_suffix(" kB"));
    1024 * kilobytes.unwrap().parse::<usize>().unwrap()
}

/// Packets that this host dropped before they came to any socket.
fn dropped_by_host() -> usize {
    let table = std::fs::read_to_string("/proc/net/softnet_stat").unwrap();
    let column = table.lines().filter_map(|line| line.split(' ').nth(1));
    column
        .map(|count| usize::from_str_radix(count, 16).unwrap())
        .sum()
}

/// The drops of all nodes, by counter.
fn drops(nodes: &[Node]) -> BTreeMap<&'static str, u64> {
    let mut sums = BTreeMap::new();
    for node in nodes {
        let counters = node.status().unwrap().engine.counters;
        let names = KINDS.iter().map(|(name, _)| *name);
        for name in names.chain(["net_kernel_drops", "net_truncated"]) {
            sums.entry(name).or_insert(0);
        }
        for (name, sum) in &mut sums {
            *sum += counters[name];
        }
    }
    sums
}

fn wait_for_members(node: &Node, count: usize) {
    loop {
        let next = node.recv_timeout(PATIENCE).unwrap();
        if let Delivery::Configuration(configuration) = next
            && configuration.members.len() == count
        {
            return;
        }
    }
}

/// Starts the nodes, and lets them order a little: what they need in memory is there then.
fn start(config: &NodeConfig) -> Vec<Node> {
    const EACH: usize = 100;
    let members = config.members();
    let start = |id: &NodeId| Node::start(config.clone(), *id).unwrap();
    let nodes: Vec<Node> = members.iter().map(start).collect();
    for node in &nodes {
        wait_for_members(node, members.len());
    }
    let at_once = AtomicUsize::new(FLOOD);
    for node in &nodes {
        publish(&node.publisher(), EACH, &at_once);
    }
    for node in &nodes {
        order(node, EACH * nodes.len());
    }
    nodes
}

/// The outcome of a flood.
struct Outcome {
    nodes: Vec<Node>,
    orders: Vec<Order>,
    /// Datagrams times the nodes that they were on their way to.
    sent: usize,
    /// By how much the memory grew at most.
    growth: usize,
}

/// Floods while all nodes submit and deliver.
fn run(nodes: Vec<Node>, flooder: &Flooder) -> Outcome {
    let count = EACH * nodes.len();
    let before = resident_bytes();
    let (flooded, over) = (&AtomicUsize::new(0), &AtomicBool::new(false));
    thread::scope(|scope| {
        for publisher in nodes.iter().map(Node::publisher) {
            scope.spawn(move || publish(&publisher, EACH, flooded));
        }
        let receive = |node: Node| {
            scope.spawn(move || {
                let order = order(&node, count);
                (node, order)
            })
        };
        let receivers: Vec<_> = nodes.into_iter().map(receive).collect();
        let memory = scope.spawn(|| {
            let mut most = 0;
            while !over.load(SeqCst) {
                most = most.max(resident_bytes());
                thread::sleep(Duration::from_millis(5));
            }
            most
        });
        let send = |number| {
            flooded.store(number, SeqCst);
            flooder.send(number)
        };
        let sent = (0..FLOOD).map(send).sum();
        let results = receivers.into_iter().map(|receiver| receiver.join());
        let results: Vec<_> = results.collect();
        over.store(true, SeqCst);
        let (nodes, orders) = results.into_iter().map(Result::unwrap).unzip();
        Outcome {
            nodes,
            orders,
            sent,
            growth: memory.join().unwrap().saturating_sub(before),
        }
    })
}

/// Waits until what was sent is accounted for: dropped by a node and counted, or by the kernel.
fn all_is_accounted_for(nodes: &[Node], flooder: &Flooder, mut sent: usize, lost_before: usize) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        sent += flooder.send_to_all();
        thread::sleep(Duration::from_millis(20));
        let lost = (dropped_by_host() - lost_before) * nodes.len();
        let drops = drops(nodes);
        let counted = drops.values().sum::<u64>() as usize;
        if counted + lost >= sent {
            println!("{sent} sent, {drops:?}, {lost} lost before they came to a socket");
            return;
        }
        assert!(
            Instant::now() < deadline,
            "{sent} sent, only {drops:?} and {lost} lost"
        );
    }
}

fn a_ring_orders_on_while_a_node_is_flooded(config: &NodeConfig) {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let seed = std::env::var("ROTA_FLOOD_SEED").map_or(1, |seed| seed.parse().unwrap());
    println!("the garbage of seed {seed}; ROTA_FLOOD_SEED={seed} repeats it");
    let flooder = Flooder::new(config, seed);
    let lost_before = dropped_by_host();
    let started = Instant::now();
    let outcome = run(start(config), &flooder);
    println!(
        "{:?}, memory grew by {} kB",
        started.elapsed(),
        outcome.growth / 1024
    );
    for order in &outcome.orders {
        assert_eq!(order.len(), EACH * outcome.nodes.len());
        assert!(*order == outcome.orders[0], "the orders differ");
    }
    assert!(outcome.growth <= GROWTH_BYTES, "{} bytes", outcome.growth);
    all_is_accounted_for(&outcome.nodes, &flooder, outcome.sent, lost_before);
    let at_the_victim = drops(&outcome.nodes[..1]);
    for (name, _) in KINDS {
        assert!(at_the_victim[name] > 0, "{name}: {at_the_victim:?}");
    }
    for node in outcome.nodes {
        // A thread that panicked does so again here.
        node.stop().unwrap();
    }
}

#[test]
fn a_ring_with_multicast_orders_on_while_a_node_and_the_group_are_flooded() {
    a_ring_orders_on_while_a_node_is_flooded(&NodeConfig::loopback(3, 29_000));
}

#[test]
fn a_ring_without_multicast_orders_on_though_the_flood_overruns_its_buffers() {
    let config = NodeConfig {
        transport: Transport::Unicast,
        receive_buffer_bytes: 50_000,
        ..NodeConfig::loopback(3, 29_010)
    };
    a_ring_orders_on_while_a_node_is_flooded(&config);
}
