//! Nodes that live through many changes of members need no more memory, files or threads than after a few.
//! `ROTA_ROUNDS` says how many rounds of changes, each with two reconfigurations or more.

use std::fs;
use std::path::Path;
use std::time::Duration;

use rota_node::TimingName;

use crate::cluster::{Cluster, between};
use crate::setting;

/// Those that are never killed: the lowest and the highest node are.
const SURVIVORS: [u16; 3] = [2, 3, 4];
/// Rounds until everything has been needed once.
const WARM_UP: u64 = 8;
/// Bytes of a message of the load, and microseconds from one to the next: of each node.
const LOAD: (usize, u64) = (200, 10_000);
/// Growth that is allowed, in kB: pages that are touched late (a member remembers the last 256 lives of
/// others that ended, some kB in all), ...
const NOISE: u64 = 128;
/// ... and for each round after the warm-up: 200 may cost less than 1 kB for each reconfiguration in all.
const NOISE_A_ROUND: u64 = 1;
/// How often it is said how things stand: a leak goes on growing, late pages do not.
const ROUNDS_A_LINE: u64 = 16;

/// What a process holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Footprint {
    /// Memory of its own, in kB. The pages of the program's file, which come and go, are not in it.
    memory: u64,
    files: usize,
    threads: usize,
}

impl Footprint {
    fn of(pid: u32) -> Self {
        let process = Path::new("/proc").join(pid.to_string());
        let rollup = fs::read_to_string(process.join("smaps_rollup")).expect("a process");
        let entries = |name: &str| {
            let dir = fs::read_dir(process.join(name));
            dir.expect("a process").count()
        };
        Self {
            memory: anonymous(&rollup).expect("a number"),
            files: entries("fd"),
            threads: entries("task"),
        }
    }
}

fn anonymous(rollup: &str) -> Option<u64> {
    let line = rollup
        .lines()
        .find_map(|line| line.strip_prefix("Anonymous:"));
    line?.split_whitespace().next()?.parse().ok()
}

fn footprints(cluster: &mut Cluster) -> Vec<Footprint> {
    // What came last is delivered, and files that were opened for a moment are closed.
    cluster.sleep(Duration::from_millis(300));
    let pids = SURVIVORS.map(|node| cluster.pid(node));
    pids.into_iter().map(Footprint::of).collect()
}

/// Parts a cluster that is one, and lets it come together.
fn part(cluster: &mut Cluster, some: &[u16], others: &[u16]) {
    let wall = between(some, others);
    cluster.cut(&wall);
    cluster.wait_rings(&[some, others]);
    cluster.mend(&wall);
}

/// Kills a node, and starts it with the state it had: at once, or when the others have noticed.
fn kill(cluster: &mut Cluster, node: u16, at_once: bool) {
    cluster.kill(node);
    if !at_once {
        let others = cluster.running();
        cluster.wait_rings(&[&others]);
    }
    cluster.start(node);
    cluster.tell(node, &format!("load {} {}", LOAD.0, LOAD.1));
}

fn round(cluster: &mut Cluster, number: u64) {
    match number % 4 {
        0 => kill(cluster, 1, false),
        1 => part(cluster, &[1, 3], &[2, 4, 5]),
        2 => kill(cluster, 5, number % 8 == 2),
        _ => {
            let alone = SURVIVORS[number as usize / 4 % SURVIVORS.len()];
            let others: Vec<u16> = cluster.all().into_iter().filter(|n| *n != alone).collect();
            part(cluster, &[alone], &others);
        }
    }
    let all = cluster.all();
    cluster.wait_rings(&[&all]);
}

fn expect_flat(before: &[Footprint], after: &[Footprint], rounds: u64) {
    let allowed = NOISE + NOISE_A_ROUND * rounds;
    for (before, after) in before.iter().zip(after) {
        let grown = after.memory.saturating_sub(before.memory);
        assert!(grown <= allowed, "{grown} kB more in {rounds} rounds");
        let counts = |footprint: &Footprint| (footprint.files, footprint.threads);
        assert_eq!(counts(before), counts(after), "files and threads");
    }
}

#[test]
#[ignore = "needs root, for network namespaces"]
fn memory_stays_flat_over_many_reconfigurations() {
    let mut cluster = Cluster::formed(5, TimingName::Default);
    cluster.load(LOAD.0, LOAD.1);
    let rounds = setting("ROTA_ROUNDS", 20).max(2 * WARM_UP);
    (0..WARM_UP).for_each(|number| round(&mut cluster, number));
    let before = footprints(&mut cluster);
    let configurations = cluster.confs(SURVIVORS[0]).len();
    for number in WARM_UP..rounds {
        round(&mut cluster, number);
        if number % ROUNDS_A_LINE == 0 {
            let memory = footprints(&mut cluster).into_iter().map(|one| one.memory);
            println!("round {number}: {:?} kB", memory.collect::<Vec<_>>());
        }
    }
    let after = footprints(&mut cluster);
    let seen = cluster.confs(SURVIVORS[0])[configurations..].iter();
    println!(
        "{} rounds, {} regular configurations: {before:?} became {after:?}",
        rounds - WARM_UP,
        seen.filter(|conf| conf.regular).count(),
    );
    let all = cluster.all();
    cluster.check(&[&all]);
    expect_flat(&before, &after, rounds - WARM_UP);
}
