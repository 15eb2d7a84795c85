//! The faults of the daemons, drawn from a seed.

use rota_sim::rng::Rng;
use rustix::process::Signal;

use crate::daemons::{Daemons, between};
use crate::judge::Seen;
use crate::setting;

/// See the module.
pub struct Schedule {
    seed: u64,
    rng: Rng,
    daemons: Daemons,
    /// Links that are cut.
    cut: Vec<(u16, u16)>,
}

impl Schedule {
    pub fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let nodes = rng.range(3, 6) as u16;
        println!("seed {seed}: {nodes} daemons");
        Self {
            seed,
            rng,
            daemons: Daemons::start(nodes, seed),
            cut: Vec::new(),
        }
    }

    pub fn run(mut self) -> Seen {
        self.daemons.expect_whole();
        for _ in 0..setting("ROTA_FAULTS", 14) {
            self.fault();
            if self.rng.percent(30) {
                self.heal();
            }
        }
        self.heal();
        self.daemons.check()
    }

    fn say(&self, what: &str) {
        println!("seed {}: {what}", self.seed);
    }

    fn wait(&mut self, longest: u64) {
        let millis = self.rng.below(longest);
        self.daemons.sleep(millis);
    }

    fn fault(&mut self) {
        let running = self.daemons.running();
        let node = self.rng.pick(&running);
        match self.rng.below(10) {
            0..3 if running.len() > 2 => {
                self.say(&format!("kill {node}"));
                self.daemons.kill(node);
            }
            3 if running.len() > 2 => {
                self.say(&format!("stop {node}"));
                self.daemons.stop(node);
            }
            4..8 => self.split(),
            8 if running.len() > 1 => {
                self.mend();
                let others: Vec<u16> = running.into_iter().filter(|n| *n != node).collect();
                let other = self.rng.pick(&others);
                self.say(&format!("cut {node} to {other}"));
                self.cut = vec![(node, other)];
                self.daemons.cut(&self.cut);
            }
            _ => {
                self.say(&format!("pause {node}"));
                self.daemons.signal(node, Signal::STOP);
                self.wait(1500);
                self.daemons.signal(node, Signal::CONT);
            }
        }
        self.wait(1500);
        // Whoever is gone comes back, sometimes at once, and sometimes to one side only.
        for node in self.daemons.all() {
            if !self.daemons.running().contains(&node) && self.rng.percent(50) {
                self.say(&format!("start {node}"));
                self.daemons.run(node);
            }
        }
        self.wait(800);
    }

    fn split(&mut self) {
        self.mend();
        let (mut some, mut others) = (Vec::new(), Vec::new());
        for node in self.daemons.all() {
            let side = if self.rng.percent(50) {
                &mut some
            } else {
                &mut others
            };
            side.push(node);
        }
        self.say(&format!("part {some:?} from {others:?}"));
        self.cut = between(&some, &others);
        self.daemons.cut(&self.cut);
    }

    fn mend(&mut self) {
        self.daemons.mend(&std::mem::take(&mut self.cut));
    }

    fn heal(&mut self) {
        self.say("heal");
        self.mend();
        for node in self.daemons.all() {
            if !self.daemons.running().contains(&node) {
                self.daemons.run(node);
            }
        }
        self.daemons.expect_whole();
        self.wait(1000);
    }
}
