//! What is said of a checkpoint is true: it is durable, and sessions are in it.

#[allow(dead_code, reason = "not each test needs all of it")]
mod common;

use std::io;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use rota_multiring::Rank;
use rota_node::{PaxosConfig, RingsConfig, VoteStorage};
use rota_replica::{Command, Frozen, Machine, Replica, ReplicaConfig};

use common::{PATIENCE, node, until};

/// A door that is shut until somebody opens it, and how many wait there.
#[derive(Default)]
struct Door {
    is_open: bool,
    wait: u64,
}

type Gate = Arc<(Mutex<Door>, Condvar)>;

/// Counts commands; its state is not written before the gate is open.
#[derive(Clone, Default)]
struct Slow {
    count: u64,
    gate: Gate,
}

impl Frozen for Slow {
    fn write(self, out: &mut dyn io::Write) -> io::Result<()> {
        let (door, opened) = &*self.gate;
        let mut door = door.lock().expect("nobody panics");
        door.wait += 1;
        while !door.is_open {
            door = opened.wait(door).expect("nobody panics");
        }
        out.write_all(&self.count.to_le_bytes())
    }
}

impl Machine for Slow {
    type Frozen = Self;

    fn apply(&mut self, _: Command<'_>) -> Vec<u8> {
        self.count += 1;
        self.count.to_le_bytes().to_vec()
    }

    fn freeze(&mut self) -> Self {
        self.clone()
    }

    fn install(&mut self, state: &mut dyn io::Read) -> io::Result<()> {
        let mut count = [0; 8];
        state.read_exact(&mut count)?;
        self.count = u64::from_le_bytes(count);
        Ok(())
    }
}

fn config(port: u16, dir: &Path) -> ReplicaConfig {
    let mut rings = RingsConfig::loopback(1, 2, port);
    rings.common.state_dir = Some(dir.join("votes"));
    rings.common.paxos = Some(PaxosConfig {
        storage: VoteStorage::Async,
        ..PaxosConfig::default()
    });
    ReplicaConfig {
        every: Duration::from_millis(50),
        ..ReplicaConfig::new(rings, node(1), (1, &[1, 2]), dir.join("states"))
    }
}

/// The first instance that the partition needs of each ring.
fn needed(replica: &Replica<Slow>) -> Vec<u64> {
    let rings = replica.status().rings.expect("they say how they are");
    let tables = rings.accounts.iter();
    tables
        .filter_map(|(_, table)| Some(table.account(1)?.0))
        .collect()
}

/// The rings keep what a checkpoint covers until it is on the disk, however long that takes. With it come the sessions:
/// a command from before counts once.
#[test]
fn a_mark_waits_until_its_checkpoint_is_durable_and_sessions_are_in_it() {
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::create_dir_all(dir.path().join("states")).expect("a directory");
    let config = config(26_980, dir.path());
    let machine = Slow::default();
    let gate = Arc::clone(&machine.gate);
    let replica = Replica::start(&config, machine).expect("it starts");
    let mut client = replica.client(PATIENCE).expect("a session");
    let mut call = |ring| {
        client
            .call(Rank(ring), b"more", PATIENCE)
            .expect("an answer")
    };
    assert_eq!(call(1), 1_u64.to_le_bytes());
    until("a checkpoint that is being written", || {
        gate.0.lock().expect("nobody panics").wait > 0
    });
    // Whatever was to be ordered about the checkpoint is ordered before these.
    (0..20).for_each(|number| drop(call(1 + number % 2)));
    until("two accounts", || needed(&replica).len() == 2);
    assert_eq!(needed(&replica), [1, 1]);
    assert_eq!(replica.status().counts.checkpoints, 0);
    gate.0.lock().expect("nobody panics").is_open = true;
    gate.1.notify_all();
    until("marks", || needed(&replica).iter().all(|next| *next > 1));
    let before = replica.status().counts.checkpoints;
    assert!(before > 0);
    (0..2).for_each(|_| drop(call(1)));
    until("a checkpoint of all of it", || {
        replica.status().counts.checkpoints > before + 1 || {
            call(1);
            false
        }
    });
    let (id, last) = (client.id(), client.last());
    let count = replica.read(|slow| slow.count).expect("a whole state");
    replica.stop();

    let opened = Arc::new((
        Mutex::new(Door {
            is_open: true,
            wait: 0,
        }),
        Condvar::new(),
    ));
    let machine = Slow {
        count: 0,
        gate: opened,
    };
    let replica = Replica::start(&config, machine).expect("it starts");
    assert!(replica.status().began.is_some(), "behind a checkpoint");
    let mut client = replica.go_on(id, last);
    let again = client.again(Rank(1), last, b"more", PATIENCE);
    assert_eq!(again, Ok(count.to_le_bytes().to_vec()), "it counts once");
    let more = client.call(Rank(1), b"more", PATIENCE);
    assert_eq!(more, Ok((count + 1).to_le_bytes().to_vec()));
}
