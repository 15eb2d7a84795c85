//! Processes of three partitions with a ring in common, as `examples/journal.rs` is one, that are killed all the time; now and then one loses its
//! checkpoints. Longer: `ROTA_SECONDS=1200 cargo test -p rota-replica --test kills -- --nocapture`.

#[allow(
    dead_code,
    unreachable_pub,
    reason = "the example has a `main` of its own"
)]
#[path = "../examples/journal.rs"]
mod journal;

mod kills {
    pub mod judge;
    pub mod process;
}

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rota_core::random::Random;

use kills::judge::{self, Journals};
use kills::process::{Cluster, Order, Process};

fn setting(name: &str, default: u64) -> u64 {
    let set = std::env::var(name).ok();
    set.map_or(default, |text| text.parse().expect("a number"))
}

/// Whoever is killed next.
fn victims(random: &mut Random) -> Vec<u16> {
    let one = 1 + random.below(9) as u16;
    match random.below(12) {
        0 => (1..=9).collect(),
        // A majority of a partition, or all of it.
        1..=3 => {
            let first = (one - 1) / 3 * 3 + 1;
            (first..first + 2 + random.below(2) as u16).collect()
        }
        _ => vec![one],
    }
}

/// Bytes below a directory, as they are on the disk.
fn bytes_of(path: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    let entries = std::fs::read_dir(path).expect("it is ours");
    let of = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.expect("it is ours").path();
        match std::fs::metadata(&path) {
            Ok(about) if about.is_dir() => bytes_of(&path),
            Ok(about) => about.blocks() * 512,
            // It was removed just now.
            Err(_) => 0,
        }
    };
    entries.map(of).sum()
}

/// A process of the other test; or what is said to whoever starts one with nothing.
#[test]
fn a_process() {
    let said = match std::env::var(kills::process::ARGUMENTS) {
        Ok(arguments) => {
            let arguments: Vec<String> = arguments.lines().map(str::to_owned).collect();
            return journal::run(&arguments).expect("it runs until its input ends");
        }
        Err(_) => journal::run(&[]).expect_err("it was told nothing"),
    };
    assert!(said.to_string().starts_with("usage:"), "{said}");
}

#[test]
fn what_was_answered_is_there_whoever_is_killed() {
    let lasts = Duration::from_secs(setting("ROTA_SECONDS", 30));
    let seed = setting("ROTA_SEED", 1);
    println!("seed {seed}");
    let mut random = Random::new(seed);
    let dir = tempfile::tempdir().expect("a directory");
    let cluster = Cluster::new(dir.path(), 27_000);
    let is_over = AtomicBool::new(false);
    let (orders, ends): (Vec<_>, Vec<_>) = (1..=9).map(|_| mpsc::channel()).unzip();
    let (counts, journals) = thread::scope(|scope| {
        let (cluster, is_over) = (&cluster, &is_over);
        let processes = (1..=9).zip(ends);
        let threads: Vec<_> = processes
            .map(|(node, orders)| {
                scope.spawn(move || Process::start(cluster, node).run(&orders, is_over))
            })
            .collect();
        let began = Instant::now();
        let (mut kills, mut emptied, mut last) = (0, 0, Instant::now());
        let each = Duration::from_millis((lasts.as_millis() as u64 / 10).clamp(2_000, 5_000));
        let empties = each * 3;
        while began.elapsed() < lasts {
            thread::sleep(each);
            let victims = victims(&mut random);
            kills += victims.len();
            let first = victims[0];
            let empty = last.elapsed() > empties && cluster.all_have_checkpoints(first);
            for node in victims {
                let order = Order::Kill {
                    empty: empty && node == first,
                    away: Duration::from_millis(random.below(1500)),
                };
                orders[usize::from(node) - 1].send(order).expect("it runs");
            }
            if empty {
                (last, emptied) = (Instant::now(), emptied + 1);
            }
        }
        is_over.store(true, SeqCst);
        let journals: Vec<Journals> = threads
            .into_iter()
            .map(|thread| thread.join().expect("it ends"))
            .collect();
        ((kills, emptied), journals)
    });
    let answers = judge::judge(&journals);
    let votes = bytes_of(&dir.path().join("votes")) >> 20;
    let states = bytes_of(&dir.path().join("states")) >> 20;
    let (kills, emptied) = counts;
    println!(
        "{kills} kills, {emptied} lost their checkpoints, {answers} answers; votes {votes} MiB, states {states} MiB"
    );
    assert!(kills > 5 && emptied > 0 && answers > 500);
}
