//! A host in the same network that has no key: everything that can be sent without one, at a high rate, and all of it
//! together. Nobody leaves the ring, deliveries do not wait, and nothing is left behind.
//!
//! The duration and the rate are set by hand (`ROTA_OUTSIDER_SECONDS=600 ROTA_OUTSIDER_RATE=50000`); then the times of
//! deliveries are judged, too (one kind of packets by itself: `ROTA_OUTSIDER_TRICK=again`): they are compared with
//! those under the same number of packets to a port of which nobody takes care.

#[cfg(debug_assertions)]
mod broken;
#[path = "../namespace/mod.rs"]
mod namespace;
mod tricks;

use std::net::{TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use namespace::in_namespace;
use rota_core::contract::{Delivery, NodeId, Service};
use rota_net::{KeyRing, Transport};
use rota_node::{EngineName, Node, NodeConfig};
use tempfile::TempDir;
use tricks::{Outsider, Trick};

const PATIENCE: Duration = Duration::from_secs(20);
/// The number of times as long that deliveries may take under attack.
const TIMES: u32 = 3;
/// The time that this machine's scheduler may add to any of them.
const NOISE: Duration = Duration::from_millis(2);
/// Messages of each node, one in each so long.
const EVERY: Duration = Duration::from_millis(5);
/// Their bytes.
const SIZES: [usize; 8] = [8, 8, 8, 8, 8, 8, 700, 4000];
/// By how much the memory may grow.
const GROWTH_BYTES: usize = 24 << 20;

fn set(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().expect("a number"))
}

/// Three nodes on one ring, sealed.
fn three(engine: EngineName, transport: Transport, port: u16) -> (TempDir, NodeConfig, Vec<Node>) {
    let dir = TempDir::new().expect("a directory");
    let path = dir.path().join("cluster.key");
    let key = KeyRing::generate().expect("a key");
    key.create(&path).expect("it is written");
    let mut config = NodeConfig::loopback(3, port);
    if transport == Transport::Unicast {
        config.transport = transport;
    }
    (config.engine, config.insecure, config.key_file) = (engine, false, Some(path));
    config.state_dir = Some(dir.path().to_owned());
    if engine.has_votes() {
        config.paxos = Some(rota_node::PaxosConfig {
            storage: rota_node::VoteStorage::Memory,
            // So that all votes are there that are kept, before anything is measured.
            kept_instances: std::num::NonZeroU64::new(1_000),
            ..rota_node::PaxosConfig::default()
        });
    } else if engine.has_views() {
        config.primary = rota_node::PrimaryName::Static;
    }
    let start = |node: NodeId| Node::start(config.clone(), node).expect("it starts");
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

/// The deliveries so far.
#[derive(Default)]
struct Seen {
    /// The time that each took, in nanoseconds.
    took: Vec<u64>,
    /// Anything but messages.
    other: Vec<String>,
}

impl Seen {
    fn p99(&mut self) -> Duration {
        self.took.sort_unstable();
        let at = self.took.len() * 99 / 100;
        Duration::from_nanos(self.took.get(at).copied().unwrap_or(0))
    }
}

/// All nodes send and deliver for some time, while `packets` go out.
fn watch(nodes: &mut [Node], lasts: Duration, packets: &mut dyn FnMut(u64), rate: u64) -> Seen {
    let (epoch, over) = (Instant::now(), AtomicBool::new(false));
    let sent = AtomicU64::new(0);
    let (over, sent) = (&over, &sent);
    thread::scope(|scope| {
        for publisher in nodes.iter().map(Node::publisher) {
            scope.spawn(move || {
                while !over.load(SeqCst) {
                    let now = epoch.elapsed().as_nanos() as u64;
                    // Some take several datagrams: nobody may make them smaller.
                    let mut payload = vec![0; SIZES[sent.load(SeqCst) as usize % SIZES.len()]];
                    payload[..8].copy_from_slice(&now.to_le_bytes());
                    let taken = publisher.submit_blocking(Service::Agreed, &payload);
                    taken.expect("it is taken");
                    sent.fetch_add(1, SeqCst);
                    thread::sleep(EVERY);
                }
            });
        }
        let receive = |node| scope.spawn(move || receive(node, epoch, (over, sent)));
        let receivers: Vec<_> = nodes.iter_mut().map(receive).collect();
        let mut count = 0;
        while epoch.elapsed() < lasts {
            let due = epoch.elapsed().as_micros() as u64 * rate / 1_000_000;
            while count < due {
                packets(count);
                count += 1;
            }
            thread::sleep(Duration::from_micros(500));
        }
        over.store(true, SeqCst);
        let mut all = Seen::default();
        for receiver in receivers {
            let seen = receiver.join().expect("it receives");
            all.took.extend(seen.took);
            all.other.extend(seen.other);
        }
        all
    })
}

/// Takes what a node delivers, until it has all that was sent.
fn receive(node: &mut Node, epoch: Instant, (over, sent): (&AtomicBool, &AtomicU64)) -> Seen {
    let mut seen = Seen::default();
    let mut last = Instant::now();
    loop {
        match node.recv_timeout(Duration::from_millis(100)) {
            Ok(Delivery::Message(message)) => {
                let bytes = message.payload[..8].try_into().expect("8 bytes");
                let now = epoch.elapsed().as_nanos() as u64;
                seen.took
                    .push(now.saturating_sub(u64::from_le_bytes(bytes)));
                last = Instant::now();
            }
            Ok(other) => seen.other.push(format!("{other:?}")),
            Err(_) => assert!(last.elapsed() < PATIENCE, "{:?}", node.status()),
        }
        if over.load(SeqCst) && seen.took.len() as u64 >= sent.load(SeqCst) {
            return seen;
        }
    }
}

/// Counters of all nodes, added up.
fn counted(nodes: &[Node], name: &str) -> u64 {
    let of = |node: &Node| {
        let status = node.status().expect("it runs");
        status.engine.counters.get(name).copied().unwrap_or(0)
    };
    nodes.iter().map(of).sum()
}

/// The bytes that the process has in memory, and the number of its descriptors.
fn held() -> (usize, usize) {
    let status = std::fs::read_to_string("/proc/self/status").expect("it is readable");
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = resident.and_then(|text| text.trim().strip_suffix(" kB"));
    let bytes = 1024
        * kilobytes
            .expect("it is there")
            .parse::<usize>()
            .expect("a number");
    let open = std::fs::read_dir("/proc/self/fd").expect("it is readable");
    (bytes, open.count())
}

/// Connects to where nodes wait for links, says something, and stays.
fn connects(config: &NodeConfig, open: &mut Vec<TcpStream>, number: u64) {
    use std::io::Write;
    let node = &config.nodes[number as usize % config.nodes.len()];
    let wait = Duration::from_millis(20);
    if let Ok(mut stream) = TcpStream::connect_timeout(&node.link(), wait) {
        let _ = stream.write_all(&vec![number as u8; number as usize % 300]);
        open.push(stream);
    }
    if open.len() > 200 {
        open.drain(..100);
    }
}

fn an_outsider_changes_nothing(engine: EngineName, transport: Transport, port: u16) {
    let by_hand = set("ROTA_OUTSIDER_SECONDS");
    let lasts = Duration::from_secs(by_hand.unwrap_or(3));
    let rate = set("ROTA_OUTSIDER_RATE").unwrap_or(5000);
    let seed = set("ROTA_OUTSIDER_SEED").unwrap_or(1);
    println!(
        "{engine:?}, {transport:?}: ROTA_OUTSIDER_SEED={seed}, {rate} packets a second for {lasts:?}"
    );
    let (_dir, config, mut nodes) = three(engine, transport, port);
    let mut outsider = Outsider::new(&config, seed);
    let aside = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let aside = aside.local_addr().expect("an address").port();
    let calm_for = (lasts / 6).min(Duration::from_secs(60));
    let mut calm = watch(
        &mut nodes,
        calm_for,
        &mut |_| outsider.send_aside(aside),
        rate,
    );
    let (calm_p99, (memory, descriptors)) = (calm.p99(), held());
    let before =
        ["configurations", "members_dead", "members_deaf"].map(|name| counted(&nodes, name));
    let only = std::env::var("ROTA_OUTSIDER_TRICK").ok();
    let only = only.map(|name| Trick::named(&name).expect("a trick"));
    let mut open = Vec::new();
    // Each trick by itself for half of the time, then all of them together.
    let each = rate * lasts.as_secs() / 2 / Trick::ALL.len() as u64;
    let mut random = tricks::Random(seed);
    let mut attacked = watch(
        &mut nodes,
        lasts,
        &mut |number| {
            if number.is_multiple_of(1000) {
                outsider.listen();
                connects(&config, &mut open, number / 1000);
            }
            let alone = Trick::ALL.get((number / each) as usize).copied();
            let at = random.below(Trick::ALL.len());
            outsider.send_one(only.or(alone).unwrap_or(Trick::ALL[at]));
        },
        rate,
    );
    drop(open);
    let after =
        ["configurations", "members_dead", "members_deaf"].map(|name| counted(&nodes, name));
    let p99 = attacked.p99();
    let mut later = watch(
        &mut nodes,
        calm_for,
        &mut |_| outsider.send_aside(aside),
        rate,
    );
    let (memory_after, descriptors_after) = held();
    println!(
        "{} and {} deliveries, p99 {calm_p99:?} before, {p99:?} under attack, {:?} after; memory {memory} to {memory_after}, descriptors {descriptors} to {descriptors_after}",
        calm.took.len(),
        attacked.took.len(),
        later.p99(),
    );
    assert_eq!(attacked.other, Vec::<String>::new());
    assert_eq!(before, after);
    assert!(
        memory_after < memory + GROWTH_BYTES,
        "{memory} to {memory_after}"
    );
    assert!(
        descriptors_after <= descriptors + 2,
        "{descriptors} to {descriptors_after}"
    );
    assert_eq!(counted(&nodes, "net_gso_fallback"), 0);
    if by_hand.is_some() {
        let most = TIMES * calm_p99.max(NOISE);
        assert!(
            p99 <= most && later.p99() <= most,
            "{calm_p99:?}, {p99:?}, {:?}",
            later.p99()
        );
    }
}

const LOOPBACK: [&str; 3] = [
    "link set lo up",
    "link set lo multicast on",
    "route add 239.0.0.0/8 dev lo",
];

fn attacked(engine: EngineName, transport: Transport, port: u16) {
    in_namespace(&LOOPBACK, || {
        an_outsider_changes_nothing(engine, transport, port)
    });
}

/// With a group, as engines that have none take one, too.
const GROUP: Transport = Transport::Multicast(std::net::SocketAddr::V4(
    std::net::SocketAddrV4::new(std::net::Ipv4Addr::UNSPECIFIED, 0),
));

#[test]
#[ignore = "needs root, for a network namespace and raw sockets"]
fn a_ring_with_multicast() {
    attacked(EngineName::AcceleratedRing, GROUP, 25_700);
}

#[test]
#[ignore = "needs root, for a network namespace and raw sockets"]
fn a_ring_without_multicast() {
    attacked(EngineName::AcceleratedRing, Transport::Unicast, 25_720);
}

#[test]
#[ignore = "needs root, for a network namespace and raw sockets"]
fn fastcast() {
    attacked(EngineName::FastCast, GROUP, 25_740);
}

#[test]
#[ignore = "needs root, for a network namespace and raw sockets"]
fn lcr() {
    attacked(EngineName::Lcr, Transport::Unicast, 25_760);
}

#[test]
#[ignore = "needs root, for a network namespace and raw sockets"]
fn ring_paxos() {
    attacked(EngineName::RingPaxos, GROUP, 25_780);
}

#[test]
#[ignore = "needs root, for a network namespace and raw sockets"]
fn u_ring_paxos() {
    attacked(EngineName::URingPaxos, Transport::Unicast, 25_790);
}
