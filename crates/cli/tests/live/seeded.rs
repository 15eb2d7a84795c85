//! What is done to nodes with one order over primary views, drawn from a seed. `ROTA_SEED` and `ROTA_SECONDS` make a
//! campaign of it: a round for each seed from there on, for so long; `ROTA_FAULTS` says how many faults each has.
//!
//! Fewer than half of the nodes are ever without memory of a view: of more, what some have delivered may be lost.

use std::time::{Duration, Instant};

use rota_check::UniformCounters;
use rota_net::{EngineName, TimingName};
use rota_sim::rng::Rng;

use crate::cluster::{Cluster, between};
use crate::setting;

/// Bytes of the messages of a node, and microseconds from one to the next.
const LOADS: [(usize, u64); 3] = [(200, 2000), (3000, 4000), (60_000, 40_000)];

/// See the module.
struct Schedule {
    what: String,
    rng: Rng,
    cluster: Cluster,
    /// Links that are cut, ...
    cut: Vec<(u16, u16)>,
    /// ... and those of which only the connections are.
    cut_streams: Vec<(u16, u16)>,
}

impl Schedule {
    fn new(engine: EngineName, seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let nodes = rng.range(3, 6) as u16;
        let what = format!("{} seed {seed}", engine.name());
        println!("{what}: {nodes} nodes");
        let mut schedule = Self {
            what,
            rng,
            cluster: Cluster::formed_with(nodes, TimingName::Default, engine),
            cut: Vec::new(),
            cut_streams: Vec::new(),
        };
        schedule.set_loads();
        schedule
    }

    fn run(mut self) -> UniformCounters {
        for _ in 0..setting("ROTA_FAULTS", 6) {
            self.fault();
            if self.rng.percent(30) {
                self.heal();
            }
        }
        self.heal();
        let all = self.cluster.all();
        let report = self.cluster.check(&[&all]);
        report.uniform.expect("counters of views")
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
        let (size, micros) = self.rng.pick(&LOADS);
        self.cluster.tell(node, &format!("load {size} {micros}"));
    }

    fn wait(&mut self, longest: u64) {
        let time = Duration::from_millis(self.rng.below(longest));
        self.cluster.sleep(time);
    }

    /// Whether those who remember are more than half without one more of them.
    fn may_forget(&self, node: u16) -> bool {
        let nodes = self.cluster.all();
        let remembers = |other: &&u16| **other != node && !self.cluster.confs(**other).is_empty();
        2 * nodes.iter().filter(remembers).count() > nodes.len()
    }

    fn start(&mut self, node: u16) {
        self.say(&format!("start {node}"));
        self.cluster.start(node);
        self.set_load(node);
    }

    fn fault(&mut self) {
        let running = self.cluster.running();
        let node = self.rng.pick(&running);
        match self.rng.below(12) {
            0..4 if self.may_forget(node) => {
                self.say(&format!("kill {node}"));
                self.cluster.kill(node);
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
        self.set_loads();
        self.wait(500);
    }
}

fn campaign(engine: EngineName) {
    let first = setting("ROTA_SEED", 1);
    let until = Instant::now() + Duration::from_secs(setting("ROTA_SECONDS", 0));
    for seed in first.. {
        let command =
            "cargo test --release -p rota --test live -- --include-ignored --nocapture seeded";
        let name = engine.name();
        println!("{name} seed {seed}: ROTA_SEED={seed} {command}::{name}");
        let seen = Schedule::new(engine, seed).run();
        println!("{name} seed {seed}: {seen:?}");
        assert_eq!((seen.orders, seen.excluded_at_the_end), (1, 0));
        assert!(seen.view_changes > 0 && seen.survivors > 0);
        if Instant::now() >= until {
            return;
        }
    }
}

#[test]
#[ignore = "needs root, for network namespaces"]
fn fastcast() {
    campaign(EngineName::FastCast);
}

#[test]
#[ignore = "needs root, for network namespaces"]
fn lcr() {
    campaign(EngineName::Lcr);
}
