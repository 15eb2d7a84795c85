//! A replica that has lost a large state gets another one's, while clients go on. `ROTA_LARGE_MB=1000 cargo test --profile campaign -p rota-replica
//! --test large -- --nocapture` has a state of so many MiB, and says how long clients waited, and how much less was done.

#[allow(dead_code, reason = "not each test needs all of it")]
mod common;

use std::io::{self, Read as _};
use std::num::NonZeroU64;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rota_multiring::Rank;
use rota_node::{PaxosConfig, RingsConfig, VoteStorage};
use rota_replica::{Command, Frozen, Machine, Replica, ReplicaConfig};

use common::{Ends, PATIENCE, node, until_within};

const RING: Rank = Rank(1);
const BLOCK: usize = 1 << 20;
const VALUE: usize = 1024;
const CLIENTS: usize = 8;

/// Blocks, which are copied when they are changed and a frozen state has them, too.
#[derive(Default)]
struct Blocks(Vec<Arc<Vec<u8>>>);

struct FrozenBlocks(Vec<Arc<Vec<u8>>>);

impl Frozen for FrozenBlocks {
    fn write(self, out: &mut dyn io::Write) -> io::Result<()> {
        self.0.iter().try_for_each(|block| out.write_all(block))
    }
}

impl Machine for Blocks {
    type Frozen = FrozenBlocks;

    /// So many blocks are there, or a value is put somewhere.
    fn apply(&mut self, command: Command<'_>) -> Vec<u8> {
        let (head, value) = command.bytes.split_at(8);
        let number = u64::from_le_bytes(head.try_into().expect("8")) as usize;
        if value.is_empty() {
            let block = |at: usize| Arc::new(vec![at as u8; BLOCK]);
            self.0 = (0..number).map(block).collect();
            return Vec::new();
        }
        let at = number % (self.0.len() * BLOCK / VALUE) * VALUE;
        let block = Arc::make_mut(&mut self.0[at / BLOCK]);
        block[at % BLOCK..][..value.len()].copy_from_slice(value);
        Vec::new()
    }

    fn freeze(&mut self) -> FrozenBlocks {
        FrozenBlocks(self.0.clone())
    }

    fn install(&mut self, state: &mut dyn io::Read) -> io::Result<()> {
        self.0.clear();
        loop {
            let mut block = Vec::with_capacity(BLOCK);
            if io::Read::take(&mut *state, BLOCK as u64).read_to_end(&mut block)? == 0 {
                return Ok(());
            }
            self.0.push(Arc::new(block));
        }
    }
}

fn configs(dir: &Path, port: u16) -> [ReplicaConfig; 3] {
    let mut rings = RingsConfig::loopback(3, 1, port);
    rings.common.state_dir = Some(dir.to_owned());
    rings.common.paxos = Some(PaxosConfig {
        storage: VoteStorage::Async,
        kept_instances: NonZeroU64::new(100),
        ..PaxosConfig::default()
    });
    let peer = |of: u16| (node(of), ([127, 0, 0, 1], port + 100 + of).into());
    [1, 2, 3].map(|of| {
        let directory = dir.join(format!("replica-{of}"));
        std::fs::create_dir_all(&directory).expect("it is ours");
        let mut config = ReplicaConfig::new(rings.clone(), node(of), (1, &[1]), directory);
        config.peers = [1, 2, 3].map(peer).into();
        config
    })
}

fn start(config: &ReplicaConfig) -> Replica<Blocks> {
    Replica::start(config, Blocks::default()).expect("it starts")
}

/// How many instances a replica's acceptor has forgotten.
fn forgotten(replica: &Replica<Blocks>) -> u64 {
    let rings = replica.status().rings;
    rings.map_or(
        0,
        |rings| rings.rings[0].1.counters["uring_instances_forgotten"],
    )
}

/// When each call was answered, and how long it took.
type Calls = Mutex<Vec<(Instant, Duration)>>;

/// Calls until it is over, so often if that is said.
fn load(
    replica: &Replica<Blocks>,
    seed: u64,
    (pause, is_over): (&Mutex<Duration>, &AtomicBool),
    calls: &Calls,
) {
    let mut client = replica.client(PATIENCE).expect("a session");
    let mut next = Instant::now();
    for number in 0_u64.. {
        if is_over.load(SeqCst) {
            return;
        }
        let pause = *pause.lock().expect("nobody panics");
        next = if pause.is_zero() {
            Instant::now()
        } else {
            next + pause
        };
        thread::sleep(next.saturating_duration_since(Instant::now()));
        let mut command = vec![seed as u8; 8 + VALUE];
        let slot = (seed + number * CLIENTS as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
        command[..8].copy_from_slice(&slot.to_le_bytes());
        let asked = Instant::now();
        client.call(RING, &command, PATIENCE).expect("an answer");
        let now = Instant::now();
        let mut calls = calls.lock().expect("nobody panics");
        calls.push((now, now - asked));
    }
}

/// Calls that were answered in a second, from one moment to another; the longest of them; and the least in any two seconds.
fn figures(calls: &Calls, from: Instant, to: Instant) -> (f64, Duration, f64) {
    let calls = calls.lock().expect("nobody panics");
    let inside: Vec<_> = calls
        .iter()
        .filter(|(at, _)| (from..to).contains(at))
        .collect();
    let rate = inside.len() as f64 / (to - from).as_secs_f64();
    let longest = inside.iter().map(|(_, took)| *took).max();
    let two = Duration::from_secs(2);
    let mut least = f64::MAX;
    let mut begin = from;
    while begin + two <= to {
        let count = inside
            .iter()
            .filter(|(at, _)| (begin..begin + two).contains(at));
        least = least.min(count.count() as f64 / 2.0);
        begin += Duration::from_millis(250);
    }
    (rate, longest.unwrap_or_default(), least.min(rate))
}

#[test]
fn a_replica_that_has_lost_a_large_state_comes_back() {
    let blocks = std::env::var("ROTA_LARGE_MB").map_or(24, |text| text.parse().expect("a number"));
    let phase = Duration::from_secs(if blocks > 100 { 10 } else { 1 });
    // To write, to send and to verify it.
    let patience = PATIENCE + Duration::from_millis(200 * blocks);
    let dir = tempfile::tempdir().expect("a directory");
    let configs = configs(dir.path(), 26_540);
    let [first, second, third] = configs.each_ref().map(start);
    let mut client = first.client(PATIENCE).expect("a session");
    let filled = client.call(RING, &blocks.to_le_bytes(), PATIENCE);
    filled.expect("an answer");
    let (calls, pause, is_over) = (
        Calls::default(),
        Mutex::new(Duration::ZERO),
        AtomicBool::new(false),
    );
    thread::scope(|scope| {
        let ends = Ends(&is_over);
        for seed in 0..CLIENTS {
            let replica = [&first, &second][seed % 2];
            let (calls, pace) = (&calls, (&pause, &is_over));
            scope.spawn(move || load(replica, seed as u64, pace, calls));
        }
        thread::sleep(phase);
        let now = Instant::now();
        let (most, ..) = figures(&calls, now - phase, now);
        *pause.lock().expect("nobody panics") =
            Duration::from_secs_f64(CLIENTS as f64 / (0.75 * most));
        third.stop();
        let states = &configs[2].checkpoints;
        std::fs::remove_dir_all(states).expect("it is ours");
        std::fs::create_dir(states).expect("it is ours");
        let written = || [&first, &second].map(|of| of.status().counts.checkpoints);
        let before = written();
        thread::sleep(phase);
        let now = Instant::now();
        let (usual, stall, least) = figures(&calls, now - phase, now);
        until_within(patience, "they have states behind it", || {
            let now = written();
            now[0] > before[0] + 1 && now[1] > before[1] + 1
        });
        until_within(patience, "it is forgotten", || forgotten(&first) > 200);
        let began = Instant::now();
        let third = start(&configs[2]);
        until_within(patience, "it has a state", || {
            third.status().counts.recoveries > 0
        });
        let transfer = began.elapsed();
        let applied = |of: &Replica<Blocks>| of.status().counts.place;
        until_within(patience, "it has caught up", || {
            let (far, own) = (applied(&first), applied(&third));
            let round = |place: Option<rota_multiring::Place>| place.map_or(0, |place| place.round);
            own.is_some() && round(own) + 50 > round(far)
        });
        let caught_up = began.elapsed();
        thread::sleep(phase / 4);
        let (rate, longest, lowest) = figures(&calls, began, Instant::now());
        drop(ends);
        let recoveries = third.status().counts.recoveries;
        println!(
            "{blocks} MiB: {most:.0} calls/s at most; before, at 75 %: {usual:.0}/s, longest {stall:.0?}, least in 2 s {least:.0}/s; while it came back: {rate:.0}/s, longest {longest:.0?}, least in 2 s {lowest:.0}/s; state after {transfer:.1?}, caught up after {caught_up:.1?}, {recoveries} transfers"
        );
        assert_eq!(recoveries, 1, "one transfer is enough");
        let bytes = third.status().counts.recovered_bytes;
        assert!(bytes >= blocks << 20, "{bytes}");
    });
    drop((first, second));
}
