//! Instances that rings keep for a partition whose replicas are all away.

#[allow(dead_code, reason = "not each test needs all of it")]
mod common;

use std::io;
use std::num::NonZeroU64;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rota_core::contract::SubmitError;
use rota_multiring::Rank;
use rota_multiring::accounts::Command as Account;
use rota_node::rings::RingsNode;
use rota_node::{PaxosConfig, RingsConfig, VoteStorage};
use rota_replica::{Command, Machine, Replica, ReplicaConfig};

use common::{PATIENCE, node, until};

const RING: Rank = Rank(1);

/// Counts what is ordered.
#[derive(Default, Clone)]
struct Count(u64);

impl Machine for Count {
    type Frozen = Vec<u8>;

    fn apply(&mut self, _: Command<'_>) -> Vec<u8> {
        self.0 += 1;
        self.freeze()
    }

    fn freeze(&mut self) -> Vec<u8> {
        self.0.to_le_bytes().to_vec()
    }

    fn install(&mut self, state: &mut dyn io::Read) -> io::Result<()> {
        let mut bytes = [0; 8];
        state.read_exact(&mut bytes)?;
        self.0 = u64::from_le_bytes(bytes);
        Ok(())
    }
}

/// The same with a state of some chunks.
#[derive(Default)]
struct Large(Count);

const LARGE: usize = 6 << 20;

impl Machine for Large {
    type Frozen = Vec<u8>;

    fn apply(&mut self, command: Command<'_>) -> Vec<u8> {
        self.0.apply(command)
    }

    fn freeze(&mut self) -> Vec<u8> {
        let mut state = self.0.freeze();
        state.resize(LARGE, 7);
        state
    }

    fn install(&mut self, state: &mut dyn io::Read) -> io::Result<()> {
        self.0.install(state)?;
        io::copy(state, &mut io::sink()).map(drop)
    }
}

/// Five nodes of one ring, of which the first three vote, and keep little.
fn rings(port: u16, votes: &Path, hold_bytes: u64) -> RingsConfig {
    let mut config = RingsConfig::loopback(5, 1, port);
    config.common.state_dir = Some(votes.to_owned());
    config.common.paxos = Some(PaxosConfig {
        acceptors: Some(vec![1, 2, 3]),
        storage: VoteStorage::Async,
        kept_instances: NonZeroU64::new(100),
        hold_bytes: NonZeroU64::new(hold_bytes),
        instance_per_message: true,
        ..PaxosConfig::default()
    });
    config
}

/// The fourth and the fifth are the replicas; they keep states when there is much, or never.
fn replica(rings: &RingsConfig, of: u16, every: Duration, dir: &Path) -> ReplicaConfig {
    let directory = dir.join(format!("replica-{of}"));
    std::fs::create_dir_all(&directory).expect("a directory");
    let mut config = ReplicaConfig::new(rings.clone(), node(of), (7, &[1]), directory);
    let port = rings.common.cluster as u16 + 100;
    let peer = |of: u16| (node(of), ([127, 0, 0, 1], port + of).into());
    config.peers = [4, 5].map(peer).into();
    config.every = every;
    config
}

fn acceptors(rings: &RingsConfig) -> Vec<RingsNode> {
    let start = |of| RingsNode::start_with(rings, node(of), Some(&[])).expect("it starts");
    [1, 2, 3].map(start).into()
}

fn count(replica: &Replica<Count>) -> u64 {
    replica.read(|count| count.0).expect("a whole state")
}

fn give<M: Machine>(replica: &Replica<M>, calls: u64) {
    let mut client = replica.client(PATIENCE).expect("a session");
    for _ in 0..calls {
        client.call(RING, b"one", PATIENCE).expect("an answer");
    }
}

/// What is before this the first acceptor may forget.
fn bound(acceptor: &RingsNode) -> Option<u64> {
    let status = acceptor.status().expect("it runs");
    status.accounts[0].1.bound()
}

/// How far an acceptor has learnt, and what it has forgotten, in instances.
fn learnt_and_forgotten(acceptor: &RingsNode) -> (u64, u64) {
    let status = acceptor.status().expect("it runs");
    let of = |name: &str| status.rings[0].1.counters[name];
    (
        of("uring_instances_learnt"),
        of("uring_instances_forgotten"),
    )
}

/// The replicas have answered something, and have ended.
fn answers_and_ends(rings: &RingsConfig, dir: &Path) {
    let never = Duration::from_secs(10_000);
    let configs = [4, 5].map(|of| replica(rings, of, never, dir));
    let replicas = configs.each_ref().map(start);
    give(&replicas[0], 50);
    until("the same", || count(&replicas[1]) == 50);
    replicas.into_iter().for_each(Replica::stop);
}

fn start(config: &ReplicaConfig) -> Replica<Count> {
    Replica::start(config, Count::default()).expect("it starts")
}

/// All replicas of a partition end. The ring goes on for much longer than it remembers otherwise; what was answered is there when they are back.
/// Once they have checkpoints behind it, it is forgotten.
#[test]
fn what_was_answered_stays_while_all_replicas_are_away() {
    let dir = tempfile::tempdir().expect("a directory");
    let rings = rings(26_700, dir.path(), 1 << 30);
    let acceptors = acceptors(&rings);
    answers_and_ends(&rings, dir.path());
    let needed = bound(&acceptors[0]).expect("an account");
    let publisher = acceptors[1].publisher();
    for number in 0..3000_u32 {
        let text = number.to_le_bytes();
        let taken = publisher.submit_blocking(RING, &text);
        taken.expect("it takes it");
    }
    until("all of it is ordered", || {
        learnt_and_forgotten(&acceptors[0]).0 > 3050
    });
    let (_, forgotten) = learnt_and_forgotten(&acceptors[0]);
    assert!(forgotten < needed, "{forgotten} of before {needed}");
    let soon = Duration::from_millis(300);
    let configs = [4, 5].map(|of| replica(&rings, of, soon, dir.path()));
    let replicas = configs.each_ref().map(start);
    for replica in &replicas {
        until("what was answered", || count(replica) == 50);
        assert_eq!(replica.status().counts.recoveries, 0);
    }
    give(&replicas[0], 300);
    until("less is needed", || bound(&acceptors[0]) > Some(3000));
    until("it is forgotten", || {
        learnt_and_forgotten(&acceptors[0]).1 > 2000
    });
}

/// While they are away for too long the ring takes nothing more, until they are back, or are given up.
#[test]
fn a_ring_does_not_keep_more_than_it_may() {
    let dir = tempfile::tempdir().expect("a directory");
    let rings = rings(26_720, dir.path(), 2 << 20);
    let acceptors = acceptors(&rings);
    answers_and_ends(&rings, dir.path());
    let message = vec![7; 10_000];
    let is_full = || {
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(2) {
            match acceptors[1].submit(RING, &message) {
                Err(SubmitError::Full) => thread::sleep(Duration::from_millis(1)),
                taken => return taken.is_err(),
            }
        }
        true
    };
    until("it is full", is_full);
    let (learnt, forgotten) = learnt_and_forgotten(&acceptors[0]);
    assert!(learnt > 250 && forgotten < 100, "{learnt}, {forgotten}");
    let given_up = acceptors[2].order(RING, Account::Abandon(7));
    given_up.expect("it takes it");
    until("it is given up", || bound(&acceptors[1]).is_none());
    until("it takes more", || !is_full());
    until("it is forgotten", || {
        let (learnt, forgotten) = learnt_and_forgotten(&acceptors[0]);
        forgotten + 200 > learnt
    });
}

/// A transfer that breaks off goes on with the state that was coming, though there is a newer one by then.
#[test]
fn what_has_come_of_a_state_stays() {
    let dir = tempfile::tempdir().expect("a directory");
    let rings = rings(26_740, dir.path(), 1 << 30);
    let acceptors = acceptors(&rings);
    // A state for each command, as long as one is written.
    let configs = [4, 5].map(|of| ReplicaConfig {
        bytes: 1,
        recovery_bytes: 2 << 20,
        ..replica(&rings, of, Duration::from_secs(10_000), dir.path())
    });
    let start = |config| Replica::start(config, Large::default()).expect("it starts");
    let [fourth, fifth] = configs.each_ref().map(start);
    until("it is forgotten", || {
        give(&fourth, 20);
        learnt_and_forgotten(&acceptors[0]).1 > 100
    });
    fifth.stop();
    let states = &configs[1].checkpoints;
    std::fs::remove_dir_all(states).expect("it is ours");
    std::fs::create_dir(states).expect("it is ours");
    let fifth = start(&configs[1]);
    let incoming = states.join("incoming.state");
    until("some of it is there", || {
        std::fs::metadata(&incoming).is_ok_and(|about| about.len() >= 2 << 20)
    });
    fifth.stop();
    let before = fourth.status().counts.checkpoints;
    give(&fourth, 1);
    until("there is another one", || {
        fourth.status().counts.checkpoints > before
    });
    let fifth = start(&configs[1]);
    until("it is whole", || fifth.status().counts.recoveries > 0);
    let came = fifth.status().counts.recovered_bytes as usize;
    assert!(came <= LARGE - (1 << 20), "{came} bytes came");
    let count = |replica: &Replica<Large>| replica.read(|large| large.0.0).expect("a whole state");
    until("the same", || count(&fifth) == count(&fourth));
}
