//! Machines that fail, and peers that say nothing.

#[allow(dead_code, reason = "not each test needs all of it")]
mod common;

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rota_core::contract::{NodeId, Status};
use rota_multiring::Rank;
use rota_node::{PaxosConfig, RingsConfig, VoteStorage};
use rota_replica::{CallError, Command, Frozen, Machine, Replica, ReplicaConfig};

use common::{PATIENCE, until};

/// A machine that does what it is told: it panics.
#[derive(Default)]
struct Frail {
    /// As it is written.
    later: bool,
}

struct State(bool);

impl Frozen for State {
    fn write(self, out: &mut dyn io::Write) -> io::Result<()> {
        assert!(!self.0, "it was told to");
        out.write_all(b"state")
    }
}

impl Machine for Frail {
    type Frozen = State;

    fn apply(&mut self, command: Command<'_>) -> Vec<u8> {
        match command.bytes {
            b"now" => panic!("it was told to"),
            b"later" => self.later = true,
            _ => self.later = false,
        }
        Vec::new()
    }

    fn freeze(&mut self) -> State {
        State(self.later)
    }

    fn install(&mut self, _: &mut dyn io::Read) -> io::Result<()> {
        Ok(())
    }
}

fn config(port: u16, dir: &Path) -> ReplicaConfig {
    let mut rings = RingsConfig::loopback(1, 2, port);
    rings.common.paxos = Some(PaxosConfig {
        storage: VoteStorage::Memory,
        ..PaxosConfig::default()
    });
    let node = NodeId::new(1).expect("not 0");
    ReplicaConfig {
        every: Duration::from_millis(50),
        ..ReplicaConfig::new(rings, node, (1, &[1, 2]), dir.to_owned())
    }
}

/// Clients are told at once, nobody sees half of a command, and the replica says why it has ended. A checkpoint that fails is counted, and the next
/// one is tried as usual.
#[test]
fn a_machine_that_panics_ends_its_replica() {
    let dir = tempfile::tempdir().expect("a directory");
    let replica = Replica::start(&config(26_200, dir.path()), Frail::default()).expect("it starts");
    let mut client = replica.client(PATIENCE).expect("a session");
    let mut call = |what: &[u8]| client.call(Rank(1), what, PATIENCE);
    call(b"later").expect("an answer");
    let rings = replica.status().rings.expect("they say how they are");
    let has_state = |status: &Status| status.state.starts_with("operational");
    assert!(rings.rings.len() == 2 && rings.rings.iter().all(|(_, ring)| has_state(ring)));
    until("a failure", || {
        replica.status().counts.checkpoints_failed > 0
    });
    call(b"sound").expect("an answer");
    until("a checkpoint", || replica.status().counts.checkpoints > 0);
    assert!(replica.read(|frail| !frail.later).expect("a whole state"));
    let began = Instant::now();
    assert_eq!(call(b"now"), Err(CallError::Stopped));
    assert!(began.elapsed() < PATIENCE / 2);
    assert_eq!(replica.read(|_| ()), None);
    assert!(replica.status().rings.is_none());
    let ended = replica.status().ended.expect("it has ended");
    assert!(ended.contains("panicked"), "{ended}");
    let stopped = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| replica.stop()));
    stopped.expect_err("its panic goes on");
}

/// Somebody has connected to get checkpoints, and says nothing.
#[test]
fn a_replica_that_stops_waits_for_nobody() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut config = config(26_220, dir.path());
    let address = SocketAddr::from(([127, 0, 0, 1], 26_230));
    config.peers = [(config.node, address)].into();
    for _ in 0..2 {
        let replica = Replica::start(&config, Frail::default()).expect("it starts");
        let silent = [(); 3].map(|()| TcpStream::connect(address).expect("it waits"));
        thread::sleep(Duration::from_millis(200));
        let began = Instant::now();
        replica.stop();
        assert!(
            began.elapsed() < Duration::from_secs(1),
            "{:?}",
            began.elapsed()
        );
        drop(silent);
    }
}
