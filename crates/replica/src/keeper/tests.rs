//! The thread that applies commands waits for nothing of a checkpoint but that the state is frozen.

use std::io;
use std::path::Path;
use std::sync::{Barrier, Mutex};

use rota_core::contract::NodeId;
use rota_multiring::Rank;
use rota_node::{PaxosConfig, RingsConfig, VoteStorage};
use rota_storage::checkpoint::Checkpoints;

use super::*;
use crate::client::Client;
use crate::machine::Command;

const RING: Rank = Rank(1);
/// Everything has happened by then.
const PATIENCE: Duration = Duration::from_secs(30);

/// The number of commands. The first state is written when the test lets it.
struct Count(u64, Option<Arc<Barrier>>);

impl Machine for Count {
    type Frozen = FrozenCount;

    fn apply(&mut self, _: Command<'_>) -> Vec<u8> {
        self.0 += 1;
        self.0.to_le_bytes().to_vec()
    }

    fn freeze(&mut self) -> FrozenCount {
        FrozenCount(self.0, self.1.take())
    }

    fn install(&mut self, _: &mut dyn io::Read) -> io::Result<()> {
        Ok(())
    }
}

struct FrozenCount(u64, Option<Arc<Barrier>>);

impl Frozen for FrozenCount {
    fn write(self, out: &mut dyn io::Write) -> io::Result<()> {
        if let Some(barrier) = self.1 {
            // Its file is there; it is written when the test comes again.
            barrier.wait();
            barrier.wait();
        }
        out.write_all(&self.0.to_le_bytes())
    }
}

/// The only replica of a partition, in which a state is due after each 10 bytes of commands.
fn config(dir: &Path) -> ReplicaConfig {
    let mut rings = RingsConfig::loopback(1, 1, 26_990);
    rings.common.state_dir = Some(dir.join("votes"));
    rings.common.paxos = Some(PaxosConfig {
        storage: VoteStorage::Async,
        ..PaxosConfig::default()
    });
    let node = NodeId::new(1).expect("not 0");
    ReplicaConfig {
        bytes: 10,
        every: Duration::from_secs(3600),
        ..ReplicaConfig::new(rings, node, (1, &[1]), dir.join("states"))
    }
}

/// A replica's thread, and a client.
struct Running {
    shared: Arc<Shared<Count>>,
    shelf: SharedCheckpoints,
    thread: std::thread::JoinHandle<()>,
    client: Client<Count>,
    calls: u64,
}

impl Running {
    fn start(config: &ReplicaConfig, barrier: &Arc<Barrier>) -> Self {
        let shelf = Checkpoints::open(config.checkpoints.clone(), config.subject(), 7);
        let shelf = Arc::new(Mutex::new(shelf.expect("an empty directory")));
        let machine = Count(0, Some(Arc::clone(barrier)));
        let shared = Shared::new(machine, Sessions::default(), Some(RING));
        let shared = Arc::new(shared);
        let node = RingsNode::start_with(&config.rings, config.node, Some(&[1]));
        let node = node.expect("it starts");
        shared.set_rings(Some(&node));
        let keeper = Keeper::new(config, (&shared, Arc::clone(&shelf)), None);
        let thread = std::thread::spawn(move || keeper.run_to_the_end(Begins::Fed(node)));
        let client = Client::open((1, RING), Arc::clone(&shared), PATIENCE);
        Self {
            client: client.expect("a session"),
            shared,
            shelf,
            thread,
            calls: 0,
        }
    }

    /// A command, and a moment for what the thread does besides.
    fn call(&mut self) {
        let answer = self.client.call(RING, b"12 bytes and", PATIENCE);
        let answer = answer.expect("it is applied");
        self.calls += 1;
        assert_eq!(answer, self.calls.to_le_bytes());
        std::thread::sleep(Duration::from_millis(5));
    }

    /// Commands until something is so.
    fn call_until(&mut self, what: &str, mut is_so: impl FnMut(&Self) -> bool) {
        let until = Instant::now() + PATIENCE;
        while !is_so(self) {
            assert!(Instant::now() < until, "not {what}");
            self.call();
        }
    }

    fn checkpoints(&self) -> u64 {
        self.shared.state().counts.checkpoints
    }
}

/// Whether there is a checkpoint that is durable.
fn is_durable(config: &ReplicaConfig) -> bool {
    let names = std::fs::read_dir(&config.checkpoints).expect("it is ours");
    let mut paths = names.map(|entry| entry.expect("it is ours").path());
    paths.any(|path| path.extension().is_some_and(|last| last == "manifest"))
}

/// The shelf is locked for as long as the file of an old state is removed, which takes half a second where it has 1 GB
/// and the disk has other things to do.
#[test]
fn commands_are_applied_while_the_shelf_is_busy() {
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::create_dir_all(dir.path().join("states")).expect("it is ours");
    let config = config(dir.path());
    let barrier = Arc::new(Barrier::new(2));
    let mut running = Running::start(&config, &barrier);
    let shelf = Arc::clone(&running.shelf);
    // Before the state's file is made.
    let busy = locked(&shelf);
    (0..20).for_each(|_| running.call());
    drop(busy);
    barrier.wait();
    // When it is written, and is to be put on the shelf.
    let busy = locked(&shelf);
    barrier.wait();
    running.call_until("a durable checkpoint", |_| is_durable(&config));
    (0..20).for_each(|_| running.call());
    assert_eq!(running.checkpoints(), 0, "the shelf is busy");
    drop(busy);
    running.call_until("a checkpoint", |running| running.checkpoints() > 0);
    drop(shelf);
    let Running {
        shared,
        thread,
        shelf,
        ..
    } = running;
    shared.stop.store(true, SeqCst);
    thread.join().expect("it ends");
    // Nobody has the directory any more.
    drop(shelf);
    let again = Checkpoints::open(config.checkpoints.clone(), config.subject(), 8);
    let newest = again.expect("nobody has it").newest_sound();
    assert!(newest.expect("the disk works").is_some());
}
