//! Nodes whose disks hang, fail, are slow, are lost or are put back, with real processes; and a campaign of it, drawn
//! from a seed. `ROTA_SEED` and `ROTA_SECONDS` are those of `seeded`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rota_net::FaultConfig;
use rota_node::{EngineName, PaxosConfig, TimingName, VoteStorage};
use rota_sim::rng::Rng;

use crate::cluster::Cluster;
use crate::recover::{kill_all, log_of, put_away};
use crate::setting;
use crate::votes::{self, check, loaded, restart, set_load};

/// Bytes of the messages of a node, and microseconds from one to the next.
const LOADS: [(usize, u64); 3] = [(200, 8000), (3000, 16_000), (60_000, 80_000)];

/// So much of all of three nodes fills what may wait for a disk before that is given up; for each more as much less.
const HEAVY: (usize, u64) = (60_000, 7000);

/// What a crowded host may add to a time that is promised.
const SLACK: Duration = Duration::from_secs(2);

/// How long a disk that hangs may keep the others from going on: it is given up, and the ring may form anew.
fn patience(cluster: &Cluster) -> Duration {
    let loss = cluster.token_loss();
    (10 * loss).max(Duration::from_secs(3)) + 3 * loss
}

fn trouble_of(cluster: &Cluster, node: u16) -> PathBuf {
    cluster.state_dir().join(format!("trouble-{node}"))
}

/// Nodes whose disks can be troubled.
fn troubled(engine: EngineName, nodes: u16, storage: VoteStorage) -> Cluster {
    let mut cluster = Cluster::new(nodes, TimingName::Default);
    cluster.config.engine = engine;
    cluster.config.paxos = Some(PaxosConfig {
        storage,
        ..PaxosConfig::default()
    });
    cluster.config.faults = Some(FaultConfig {
        disk_trouble: Some(cluster.state_dir().join("trouble-{node}")),
        ..FaultConfig::default()
    });
    cluster
}

/// The others go on within the time that is promised, and when the disk is well its node votes again, without a restart.
#[test]
#[ignore = "needs root, for network namespaces"]
fn a_disk_that_hangs_or_fails_does_not_stop_the_others() {
    for storage in [VoteStorage::Sync, VoteStorage::Async] {
        for trouble in ["hang", "fail"] {
            let mut cluster = troubled(EngineName::URingPaxos, 3, storage);
            cluster.start_all();
            cluster.expect_rings(&[&[1, 2, 3]]);
            cluster.load(HEAVY.0, 3 * HEAVY.1);
            fs::write(trouble_of(&cluster, 2), trouble).expect("room");
            let began = Instant::now();
            let until = began + patience(&cluster) + SLACK;
            let mut worst = Duration::ZERO;
            while Instant::now() < until {
                let longest = patience(&cluster) + SLACK;
                let took = cluster.prove_within(&[1, 3], longest);
                let took = took
                    .unwrap_or_else(|| panic!("{storage:?} {trouble}: nothing for {longest:?}"));
                worst = worst.max(took);
            }
            println!("{storage:?} {trouble}: longest {worst:?}");
            assert_eq!(cluster.status(2)["counters"]["votes_failed"], 1);
            fs::remove_file(trouble_of(&cluster, 2)).expect("it is there");
            // Also while its log gets what it lacks.
            let longest = patience(&cluster) + SLACK;
            while cluster.status(2)["counters"]["votes_failed"] != 0 {
                let took = cluster.prove_within(&[1, 3], longest);
                assert!(
                    took.is_some(),
                    "{storage:?} {trouble}: nothing for {longest:?}"
                );
            }
            set_load(&mut cluster);
            votes_again(&mut cluster, 2);
            // Now it is needed.
            cluster.kill(3);
            cluster.expect_rings(&[&[1, 2]]);
            restart(&mut cluster, &[3]);
            let seen = check(&mut cluster);
            assert_eq!(seen.lives, 4, "{seen:?}");
        }
    }
}

/// Of a log without room for another segment the node does without its vote, until there is some.
#[test]
#[ignore = "needs root, for network namespaces"]
fn a_disk_that_is_full_does_not_stop_the_others() {
    let mut cluster = troubled(EngineName::URingPaxos, 3, VoteStorage::Sync);
    cluster.start_all();
    cluster.expect_rings(&[&[1, 2, 3]]);
    cluster.kill(2);
    for entry in fs::read_dir(log_of(&cluster, 2)).expect("a log") {
        let path = entry.expect("a file").path();
        if path.to_string_lossy().contains("spare-") {
            fs::remove_file(path).expect("it is there");
        }
    }
    fs::write(trouble_of(&cluster, 2), "full").expect("room");
    cluster.start(2);
    cluster.expect_rings(&[&[1, 2, 3]]);
    cluster.load(HEAVY.0, HEAVY.1);
    let until = Instant::now() + 2 * crate::cluster::PATIENCE;
    while cluster.status(2)["counters"]["votes_failed"] == 0 {
        assert!(Instant::now() < until, "there is room");
        cluster.sleep(Duration::from_millis(50));
    }
    let longest = patience(&cluster) + SLACK;
    let took = cluster.prove_within(&[1, 3], longest);
    println!("the others go on after {took:?}");
    assert!(took.is_some(), "nothing for {longest:?}");
    fs::remove_file(trouble_of(&cluster, 2)).expect("it is there");
    set_load(&mut cluster);
    votes_again(&mut cluster, 2);
    cluster.kill(3);
    cluster.expect_rings(&[&[1, 2]]);
    restart(&mut cluster, &[3]);
    let seen = check(&mut cluster);
    assert_eq!(seen.lives, 5, "{seen:?}");
}

fn votes_again(cluster: &mut Cluster, node: u16) {
    let until = Instant::now() + 2 * crate::cluster::PATIENCE;
    loop {
        let status = cluster.status(node);
        if status["counters"]["votes_failed"] == 0 {
            return;
        }
        assert!(Instant::now() < until, "{status}");
        cluster.sleep(Duration::from_millis(100));
    }
}

/// It comes back as another acceptor, and gets from the others what it lacks; then the next may be lost.
#[test]
#[ignore = "needs root, for network namespaces"]
fn one_disk_is_lost_and_then_another() {
    for storage in [VoteStorage::Sync, VoteStorage::Async] {
        let mut cluster = loaded(EngineName::URingPaxos, 3, storage);
        for victim in [2, 1] {
            cluster.kill(victim);
            fs::remove_dir_all(log_of(&cluster, victim)).expect("a log");
            restart(&mut cluster, &[victim]);
        }
        let seen = check(&mut cluster);
        assert!(seen.lives == 5 && seen.messages > 100, "{seen:?}");
    }
}

/// The others go on; put away, it is a lost disk.
#[test]
#[ignore = "needs root, for network namespaces"]
fn an_older_copy_and_a_damaged_log_are_refused() {
    let mut cluster = loaded(EngineName::URingPaxos, 3, VoteStorage::Sync);
    cluster.kill(2);
    let copy = cluster.state_dir().join("copy");
    copy_all(&log_of(&cluster, 2), &copy);
    restart(&mut cluster, &[2]);
    cluster.kill(2);
    put_away(&cluster, 2);
    fs::rename(&copy, log_of(&cluster, 2)).expect("a copy");
    cluster.expect_refused(2, "older");
    cluster.expect_rings(&[&[1, 3]]);
    fs::remove_dir_all(log_of(&cluster, 2)).expect("a log");
    restart(&mut cluster, &[2]);
    cluster.kill(3);
    damage(&log_of(&cluster, 3));
    cluster.expect_refused(3, "damaged");
    cluster.expect_rings(&[&[1, 2]]);
    put_away(&cluster, 3);
    restart(&mut cluster, &[3]);
    let seen = check(&mut cluster);
    println!("{seen:?}");
    assert!(seen.messages > 100, "{seen:?}");
}

fn copy_all(from: &Path, to: &Path) {
    fs::create_dir(to).expect("room");
    for entry in fs::read_dir(from).expect("a log") {
        let entry = entry.expect("a file");
        fs::copy(entry.path(), to.join(entry.file_name())).expect("room");
    }
}

/// A byte of a record that is durable.
fn damage(log: &Path) {
    let files = fs::read_dir(log).expect("a log");
    let mut segments: Vec<PathBuf> = files.map(|file| file.expect("a file").path()).collect();
    segments.retain(|path| path.to_string_lossy().contains("segment-"));
    segments.sort();
    let mut bytes = fs::read(&segments[0]).expect("a segment");
    bytes[9000] ^= 4;
    fs::write(&segments[0], bytes).expect("room");
}

/// Nothing is left of an order in memory when all have ended: a new one begins.
#[test]
#[ignore = "needs root, for network namespaces"]
fn in_memory_a_new_order_begins_when_all_have_ended() {
    let mut cluster = loaded(EngineName::URingPaxos, 3, VoteStorage::Memory);
    kill_all(&mut cluster);
    restart(&mut cluster, &[1, 2, 3]);
    let files = cluster.end(&[&[1, 2, 3]]);
    let lives: Vec<Vec<votes::Life>> = files.iter().map(votes::lives).collect();
    let order = &lives[0][1].delivered;
    assert!(lives.iter().all(|lives| &lives[1].delivered == order));
    let before: BTreeSet<&String> = lives[0][0].delivered.iter().map(|(_, m)| m).collect();
    assert!(before.len() > 50 && order.iter().all(|(_, message)| !before.contains(message)));
}

/// A cluster with a slow disk, and whatever else comes.
struct Campaign {
    what: String,
    rng: Rng,
    cluster: Cluster,
    slow: u16,
    delay_us: u64,
    /// The longest that the others stood still.
    longest: Duration,
}

impl Campaign {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let nodes = rng.pick(&[3, 3, 5]);
        let engine = rng.pick(&[EngineName::URingPaxos, EngineName::RingPaxos]);
        let storage = rng.pick(&[VoteStorage::Sync, VoteStorage::Sync, VoteStorage::Async]);
        let what = format!("{} {} seed {seed}", engine.name(), storage.name());
        let cluster = troubled(engine, nodes, storage);
        let mut this = Self {
            slow: rng.range(1, u64::from(nodes)) as u16,
            delay_us: rng.pick(&[2000, 10_000, 30_000]),
            what,
            rng,
            cluster,
            longest: Duration::ZERO,
        };
        this.say(&format!(
            "{nodes} nodes, {} slow by {} us",
            this.slow, this.delay_us
        ));
        this.heal();
        this
    }

    fn say(&self, what: &str) {
        println!("{}: {what}", self.what);
    }

    fn start(&mut self, node: u16) {
        let delay = if node == self.slow { self.delay_us } else { 0 };
        if let Some(faults) = &mut self.cluster.config.faults {
            faults.disk_delay_us = delay;
        }
        self.say(&format!("start {node}"));
        self.cluster.start(node);
        self.set_load(node);
    }

    fn set_load(&mut self, node: u16) {
        let (size, micros) = self.rng.pick(&LOADS);
        self.cluster.tell(node, &format!("load {size} {micros}"));
    }

    fn wait(&mut self, longest: u64) {
        let time = Duration::from_millis(self.rng.below(longest));
        self.cluster.sleep(time);
    }

    fn heal(&mut self) {
        for node in self.cluster.all() {
            if !self.cluster.running().contains(&node) {
                self.start(node);
            }
        }
        let all = self.cluster.all();
        self.cluster.expect_rings(&[&all]);
        self.say("all are in one ring");
    }

    fn others(&self, node: u16) -> Vec<u16> {
        let running = self.cluster.running().into_iter();
        running.filter(|other| *other != node).collect()
    }

    fn fault(&mut self) {
        let node = self.rng.range(1, self.cluster.all().len() as u64) as u16;
        match self.rng.below(9) {
            0..3 => self.trouble(node, "hang"),
            3 => self.trouble(node, "fail"),
            4 | 5 => {
                self.say(&format!("kill {node}"));
                self.cluster.kill(node);
                self.wait(1500);
            }
            6 => {
                self.say(&format!("stop {node}"));
                let time = Duration::from_millis(self.rng.below(1500));
                self.cluster.pause(node, time);
            }
            7 => {
                let others = self.others(node);
                let cut = [(node, self.rng.pick(&others))];
                self.say(&format!("cut {cut:?}"));
                self.cluster.cut(&cut);
                self.wait(3000);
                self.cluster.mend(&cut);
            }
            _ => {
                self.say("kill all");
                kill_all(&mut self.cluster);
            }
        }
        self.heal();
    }

    /// The others go on, whatever else befalls this node.
    fn trouble(&mut self, node: u16, trouble: &str) {
        self.say(&format!("{trouble} {node}"));
        if self.rng.percent(60) {
            let nodes = self.cluster.all().len() as u64;
            self.cluster.load(HEAVY.0, HEAVY.1 * nodes);
        }
        let path = trouble_of(&self.cluster, node);
        fs::write(&path, trouble).expect("room");
        let until = Instant::now() + Duration::from_millis(self.rng.below(7000));
        let others = self.others(node);
        self.goes_on(&others, until);
        match self.rng.below(4) {
            0 => {
                self.say(&format!("kill {node}, whose disk has not answered"));
                self.cluster.kill(node);
                self.cluster.expect_rings(&[&others]);
            }
            1 => {
                self.say(&format!("stop {node}, whose disk has not answered"));
                let time = Duration::from_millis(self.rng.below(1500));
                self.cluster.pause(node, time);
            }
            _ => {}
        }
        fs::remove_file(path).expect("it is there");
        if self.rng.percent(50) {
            // Its log gets what it lacks while there is as much to order as before.
            let until = Instant::now() + Duration::from_millis(self.rng.below(4000));
            self.goes_on(&others, until);
        }
        for node in self.cluster.running() {
            self.set_load(node);
        }
    }

    /// These go on all the time.
    fn goes_on(&mut self, nodes: &[u16], until: Instant) {
        let longest = patience(&self.cluster) + SLACK;
        loop {
            let took = self.cluster.prove_within(nodes, longest);
            let took = took.unwrap_or_else(|| panic!("{}: nothing for {longest:?}", self.what));
            self.longest = self.longest.max(took);
            if Instant::now() >= until {
                return;
            }
        }
    }

    fn run(mut self) {
        for _ in 0..setting("ROTA_FAULTS", 4) {
            self.fault();
        }
        let seen = check(&mut self.cluster);
        println!(
            "{}: {seen:?}, stood still for {:?} at most",
            self.what, self.longest
        );
        assert!(seen.messages > 200, "{seen:?}");
    }
}

#[test]
#[ignore = "needs root, for network namespaces"]
fn campaign() {
    let first = setting("ROTA_SEED", 1);
    let until = Instant::now() + Duration::from_secs(setting("ROTA_SECONDS", 0));
    for seed in first.. {
        let command = "cargo test --release -p rota --test live -- --include-ignored --nocapture";
        println!("disks seed {seed}: ROTA_SEED={seed} {command} disks::campaign");
        Campaign::new(seed).run();
        if Instant::now() >= until {
            return;
        }
    }
}
