//! Machines that fail, and peers that say nothing.

#[allow(dead_code, reason = "not each test needs all of it")]
mod common;

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::num::NonZeroU64;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use rota_core::contract::{NodeId, Status};
use rota_multiring::Rank;
use rota_node::{PaxosConfig, RingsConfig, VoteStorage};
use rota_replica::{CallError, Command, Frozen, Machine, Replica, ReplicaConfig};

use common::{PATIENCE, node, until};

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

/// A machine that counts, and takes no state, or not all of it, for so many times.
#[derive(Clone, Default)]
struct Reluctant {
    count: u64,
    lacks: bool,
    refusals: Arc<AtomicU32>,
    failures: Arc<AtomicU32>,
}

/// The bytes of its state.
const STATE: usize = 100_000;

fn is_left(of: &AtomicU32) -> bool {
    let less = |left: u32| left.checked_sub(1);
    of.fetch_update(SeqCst, SeqCst, less).is_ok()
}

impl Machine for Reluctant {
    type Frozen = Vec<u8>;

    fn apply(&mut self, _: Command<'_>) -> Vec<u8> {
        self.count += 1;
        self.count.to_le_bytes().into()
    }

    fn freeze(&mut self) -> Vec<u8> {
        let mut state = self.count.to_le_bytes().to_vec();
        state.resize(STATE, 0);
        state
    }

    fn install(&mut self, state: &mut dyn io::Read) -> io::Result<()> {
        if is_left(&self.refusals) {
            return Err(io::Error::other("a disk that fails for a moment"));
        }
        let mut bytes = Vec::new();
        state.read_to_end(&mut bytes)?;
        self.count = u64::from_le_bytes(bytes[..8].try_into().expect("8"));
        self.lacks = self.failures.load(SeqCst) > 0;
        Ok(())
    }

    fn is_complete(&self) -> bool {
        !self.lacks
    }

    fn complete(&mut self, still: &dyn Fn() -> bool) -> io::Result<()> {
        assert!(still(), "it is needed");
        self.lacks = is_left(&self.failures);
        match self.lacks {
            true => Err(io::Error::other("nobody gives it")),
            false => Ok(()),
        }
    }
}

/// Three replicas over one ring that remembers little.
fn forgetful(port: u16, dir: &Path) -> [ReplicaConfig; 3] {
    let mut rings = RingsConfig::loopback(3, 1, port);
    rings.common.state_dir = Some(dir.to_owned());
    rings.common.paxos = Some(PaxosConfig {
        storage: VoteStorage::Async,
        kept_instances: NonZeroU64::new(200),
        ..PaxosConfig::default()
    });
    let peer = |of: u16| (node(of), ([127, 0, 0, 1], port + 50 + of).into());
    [1, 2, 3].map(|of| {
        let directory = dir.join(format!("replica-{of}"));
        std::fs::create_dir_all(&directory).expect("a directory");
        ReplicaConfig {
            every: Duration::from_millis(200),
            peers: [1, 2, 3].map(peer).into(),
            ..ReplicaConfig::new(rings.clone(), node(of), (1, &[1]), directory)
        }
    })
}

/// A checkpoint that was not taken for a passing reason was thrown away, and got from the others again and again.
#[test]
fn a_state_that_is_not_taken_at_first_is_tried_again_and_not_fetched_again() {
    let dir = tempfile::tempdir().expect("a directory");
    let configs = forgetful(29_200, dir.path());
    let start = |of: usize, machine: &Reluctant| {
        Replica::start(&configs[of], machine.clone()).expect("it starts")
    };
    let plain = Reluctant::default();
    let (first, _second, third) = (start(0, &plain), start(1, &plain), start(2, &plain));
    let mut client = first.client(PATIENCE).expect("a session");
    let mut give = |count: u32| {
        for _ in 0..count {
            client.call(Rank(1), b"one", PATIENCE).expect("an answer");
        }
    };
    give(10);
    drop(third);
    std::fs::remove_dir_all(&configs[2].checkpoints).expect("it is ours");
    std::fs::create_dir(&configs[2].checkpoints).expect("it is ours");
    give(1_000);
    until("a checkpoint of all", || {
        let before = first.status().counts.checkpoints;
        thread::sleep(2 * configs[0].every);
        first.status().counts.checkpoints == before
    });
    let reluctant = Reluctant {
        refusals: Arc::new(AtomicU32::new(3)),
        failures: Arc::new(AtomicU32::new(2)),
        ..Reluctant::default()
    };
    let third = start(2, &reluctant);
    until("a checkpoint of another", || {
        third.status().counts.recoveries > 0
    });
    until("all of it", || {
        third.read(|machine| machine.count) == Some(1_010)
    });
    let left = [&reluctant.refusals, &reluctant.failures].map(|left| left.load(SeqCst));
    assert_eq!(left, [0, 0]);
    let bytes = third.status().counts.recovered_bytes as usize;
    assert!((STATE..2 * STATE).contains(&bytes), "once: {bytes}");
    // It begins again with a state of which it lacks something, as if it had been killed in the middle. It starts all
    // the same, and goes on when it has all.
    drop(third);
    reluctant.failures.store(3, SeqCst);
    let third = start(2, &reluctant);
    give(5);
    until("all of it", || {
        third.read(|machine| machine.count) == Some(1_015)
    });
    assert_eq!(reluctant.failures.load(SeqCst), 0);
}
