//! The faults of nodes with one order over primary views, or with one that acceptors vote for, drawn from a seed.
//! `ROTA_SEED` and `ROTA_SECONDS` make a campaign of it: a round for each seed from there on, for so long;
//! `ROTA_FAULTS` says how many faults each has. Processes that are restarted deliver everything again: with hundreds of
//! faults, `ROTA_SPARSE` times as long between messages and `ROTA_KEPT` instances make that possible.
//!
//! Fewer than half of the nodes are ever without memory of a view, or of votes: with more, messages that some have
//! delivered may be lost. All may be killed at once if votes are on disk.

use std::time::{Duration, Instant};

use rota_node::{EngineName, TimingName, VoteStorage};
use rota_sim::rng::Rng;

use crate::cluster::{Cluster, between};
use crate::{setting, votes};

/// Bytes of the messages of a node, and microseconds from one to the next.
const LOADS: [(usize, u64); 3] = [(200, 2000), (3000, 4000), (60_000, 40_000)];

/// Likewise where acceptors keep so many instances that all that a round orders is there at its end.
const VOTED_LOADS: [(usize, u64); 3] = [(200, 8000), (3000, 16_000), (60_000, 80_000)];

/// What orders messages.
#[derive(Clone, Copy)]
enum Order {
    Views(EngineName),
    Votes(EngineName, VoteStorage),
}

impl Order {
    fn name(self) -> String {
        match self {
            Self::Views(engine) => engine.name().to_owned(),
            Self::Votes(engine, storage) => format!("{} {}", engine.name(), storage.name()),
        }
    }

    fn cluster(self, nodes: u16) -> Cluster {
        match self {
            Self::Views(engine) => Cluster::formed_with(nodes, TimingName::Default, engine),
            Self::Votes(engine, storage) => votes::formed(engine, nodes, storage),
        }
    }

    /// Whether nodes know what they have ordered when they come back.
    fn is_on_disk(self) -> bool {
        matches!(self, Self::Votes(_, VoteStorage::Async | VoteStorage::Sync))
    }
}

/// See the module.
struct Schedule {
    order: Order,
    what: String,
    rng: Rng,
    cluster: Cluster,
    /// Links that are cut, ...
    cut: Vec<(u16, u16)>,
    /// ... and those of which only the connections are.
    cut_streams: Vec<(u16, u16)>,
    /// Killed since all were there.
    killed: Vec<u16>,
}

impl Schedule {
    fn new(order: Order, seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let nodes = rng.range(3, 6) as u16;
        let what = format!("{} seed {seed}", order.name());
        println!("{what}: {nodes} nodes");
        let mut schedule = Self {
            order,
            what,
            rng,
            cluster: order.cluster(nodes),
            cut: Vec::new(),
            cut_streams: Vec::new(),
            killed: Vec::new(),
        };
        schedule.set_loads();
        schedule
    }

    /// The cluster after all of it, with all nodes.
    fn run(mut self) -> Cluster {
        for _ in 0..setting("ROTA_FAULTS", 6) {
            self.fault();
            if self.rng.percent(30) {
                self.heal();
            }
        }
        self.heal();
        self.cluster
    }

    fn say(&self, what: &str) {
        println!("{}: {what}", self.what);
    }

    fn set_loads(&mut self) {
        for node in self.cluster.running() {
            self.set_load(node);
        }
    }

    fn set_load(&mut self, node: u16) {
        let loads = match self.order {
            Order::Views(_) => LOADS,
            Order::Votes(..) => VOTED_LOADS,
        };
        let (size, micros) = self.rng.pick(&loads);
        let micros = micros * setting("ROTA_SPARSE", 1);
        self.cluster.tell(node, &format!("load {size} {micros}"));
    }

    fn wait(&mut self, longest: u64) {
        let time = Duration::from_millis(self.rng.below(longest));
        self.cluster.sleep(time);
    }

    /// Whether those who remember are more than half without one more of them.
    fn may_forget(&self, node: u16) -> bool {
        let nodes = self.cluster.all();
        if let Order::Votes(..) = self.order {
            let others = self.killed.iter().filter(|other| **other != node).count();
            return self.order.is_on_disk() || 2 * (others + 1) < nodes.len();
        }
        let remembers = |other: &&u16| **other != node && !self.cluster.confs(**other).is_empty();
        2 * nodes.iter().filter(remembers).count() > nodes.len()
    }

    fn start(&mut self, node: u16) {
        self.say(&format!("start {node}"));
        self.cluster.start(node);
        self.set_load(node);
    }

    fn fault(&mut self) {
        if self.cluster.running().is_empty() {
            self.cluster
                .all()
                .into_iter()
                .for_each(|node| self.start(node));
        }
        let running = self.cluster.running();
        let node = self.rng.pick(&running);
        let kinds = if self.order.is_on_disk() { 14 } else { 12 };
        match self.rng.below(kinds) {
            0..4 if self.may_forget(node) => {
                self.kill(&[node]);
            }
            4..7 => self.part(),
            7 if running.len() > 1 => {
                self.mend();
                let others: Vec<u16> = running.into_iter().filter(|n| *n != node).collect();
                self.cut = vec![(node, self.rng.pick(&others))];
                self.say(&format!("cut {:?}", self.cut));
                self.cluster.cut(&self.cut);
            }
            8 => {
                self.mend();
                let others: Vec<u16> = self.cluster.all();
                let others: Vec<u16> = others.into_iter().filter(|n| *n != node).collect();
                self.cut_streams = between(&[node], &others);
                self.say(&format!("cut connections of {node}"));
                self.cluster.cut_streams(&self.cut_streams);
                self.wait(3000);
            }
            12.. => self.kill(&running),
            _ => {
                self.say(&format!("pause {node}"));
                let time = Duration::from_millis(self.rng.below(1500));
                self.cluster.pause(node, time);
            }
        }
        self.wait(1200);
        // Whoever is gone comes back, sometimes at once, and sometimes to one side only.
        for node in self.cluster.all() {
            if !self.cluster.running().contains(&node) && self.rng.percent(60) {
                self.start(node);
            }
        }
        self.wait(600);
    }

    fn kill(&mut self, nodes: &[u16]) {
        self.say(&format!("kill {nodes:?}"));
        for node in nodes {
            self.cluster.kill(*node);
            self.killed.push(*node);
        }
    }

    fn part(&mut self) {
        self.mend();
        let (mut some, mut others) = (Vec::new(), Vec::new());
        for node in self.cluster.all() {
            let side = if self.rng.percent(50) {
                &mut some
            } else {
                &mut others
            };
            side.push(node);
        }
        self.say(&format!("part {some:?} from {others:?}"));
        self.cut = between(&some, &others);
        self.cluster.cut(&self.cut);
    }

    fn mend(&mut self) {
        self.cluster.mend(&std::mem::take(&mut self.cut));
        let streams = std::mem::take(&mut self.cut_streams);
        self.cluster.mend_streams(&streams);
    }

    fn heal(&mut self) {
        self.say("heal");
        self.mend();
        for node in self.cluster.all() {
            if !self.cluster.running().contains(&node) {
                self.start(node);
            }
        }
        let all = self.cluster.all();
        self.cluster.expect_rings(&[&all]);
        self.killed.clear();
        self.set_loads();
        self.wait(500);
    }
}

/// A round for each seed: under this name, with what `order` says for a seed, judged by `check`.
fn campaign(name: &str, order: impl Fn(u64) -> Order, check: impl Fn(Cluster)) {
    let first = setting("ROTA_SEED", 1);
    let until = Instant::now() + Duration::from_secs(setting("ROTA_SECONDS", 0));
    for seed in first.. {
        let command =
            "cargo test --release -p rota --test live -- --include-ignored --nocapture seeded";
        println!("{name} seed {seed}: ROTA_SEED={seed} {command}::{name}");
        check(Schedule::new(order(seed), seed).run());
        if Instant::now() >= until {
            return;
        }
    }
}

fn of_views(engine: EngineName) {
    let order = |_| Order::Views(engine);
    campaign(engine.name(), order, |mut cluster| {
        let all = cluster.all();
        let report = cluster.check(&[&all]);
        let seen = report.uniform.expect("counters of views");
        println!("{}: {seen:?}", engine.name());
        assert_eq!((seen.orders, seen.excluded_at_the_end), (1, 0));
        assert!(seen.view_changes > 0 && seen.survivors > 0);
    });
}

#[test]
#[ignore = "needs root, for network namespaces"]
fn fastcast() {
    of_views(EngineName::FastCast);
}

#[test]
#[ignore = "needs root, for network namespaces"]
fn lcr() {
    of_views(EngineName::Lcr);
}

/// Both engines with each storage, one after the other, by seeds.
#[test]
#[ignore = "needs root, for network namespaces"]
fn votes() {
    let order = |seed: u64| {
        let engines = [EngineName::RingPaxos, EngineName::URingPaxos];
        let storage = VoteStorage::ALL[seed as usize % 3];
        Order::Votes(engines[seed as usize / 3 % 2], storage)
    };
    campaign("votes", order, |mut cluster| {
        let seen = votes::check(&mut cluster);
        println!("votes: {seen:?}");
        assert!(seen.messages > 500, "{seen:?}");
    });
}
