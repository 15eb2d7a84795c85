//! Kills processes (`kill -9`), and starts them again.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use rota_core::random::Random;

use super::processes::Processes;
use crate::say::tell;

/// The plan of kills.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Plan {
    /// Nothing.
    Peace,
    /// The last process of the first partition is killed after this time, and started again after twice as long.
    Once(Duration),
    /// Each time that this has passed, once all are there: one process, a majority of a partition, or all. Each second
    /// time that it is one, its states are lost, too.
    Every(Duration),
}

/// See the module's page.
#[derive(Debug)]
pub struct Trouble {
    plan: Plan,
    random: Random,
    began: Instant,
    next: Instant,
    /// The processes that are away, each with the time until then.
    away: Vec<(usize, Instant)>,
    turns: u64,
    /// Processes that were killed.
    pub kills: u64,
    /// The number of those that have lost their states.
    pub lost: u64,
}

impl Trouble {
    pub fn new(plan: Plan, seed: u64) -> Self {
        let now = Instant::now();
        let first = match plan {
            Plan::Peace => Duration::MAX,
            Plan::Once(first) | Plan::Every(first) => first,
        };
        Self {
            plan,
            random: Random::new(seed),
            began: now,
            next: now + first.min(Duration::from_secs(1 << 30)),
            away: Vec::new(),
            turns: 0,
            kills: 0,
            lost: 0,
        }
    }

    /// Does what is due.
    pub fn look(&mut self, processes: &mut Processes) -> Result<(), String> {
        let now = Instant::now();
        let due: Vec<usize> = self.due(now);
        for at in due {
            processes.begin(at)?;
            if matches!(self.plan, Plan::Once(_)) {
                tell(&format!("process {} is started again", at + 1));
            }
        }
        if now < self.next || !self.away.is_empty() {
            return Ok(());
        }
        match self.plan {
            Plan::Peace => {}
            Plan::Once(first) => {
                let victim = processes.replicas() - 1;
                self.kill(processes, &[victim], first);
                self.next = now + Duration::from_secs(1 << 30);
                tell(&format!("process {} is killed", victim + 1));
            }
            Plan::Every(every) => {
                self.strike(processes);
                self.next = now + every;
            }
        }
        Ok(())
    }

    /// Everybody is started again.
    pub fn end(&mut self, processes: &mut Processes) -> Result<(), String> {
        let away = std::mem::take(&mut self.away);
        away.into_iter().try_for_each(|(at, _)| processes.begin(at))
    }

    fn due(&mut self, now: Instant) -> Vec<usize> {
        let due = self.away.iter().filter(|(_, until)| *until <= now);
        let due = due.map(|(at, _)| *at).collect();
        self.away.retain(|(_, until)| *until > now);
        due
    }

    fn draw(&mut self, below: usize) -> usize {
        self.random.below(below as u64) as usize
    }

    fn strike(&mut self, processes: &mut Processes) {
        let (count, replicas) = (processes.count(), processes.replicas());
        self.turns += 1;
        let victims: Vec<usize> = match self.turns % 3 {
            1 => vec![self.draw(count)],
            2 => {
                let first = self.draw(count / replicas) * replicas;
                (first..first + replicas / 2 + 1).collect()
            }
            _ => (0..count).collect(),
        };
        let pause = Duration::from_millis(200 + self.draw(1_800) as u64);
        self.kill(processes, &victims, pause);
        if let [victim] = victims[..]
            && self.turns % 6 == 1
        {
            self.lose(processes, victim);
        }
        let seconds = self.began.elapsed().as_secs();
        tell(&format!("after {seconds} s: {} killed", victims.len()));
    }

    fn kill(&mut self, processes: &mut Processes, victims: &[usize], pause: Duration) {
        for victim in victims {
            processes.kill(*victim);
            self.kills += 1;
            self.away.push((*victim, Instant::now() + pause));
        }
    }

    /// Its states are gone, if the others of its partition have some.
    fn lose(&mut self, processes: &Processes, victim: usize) {
        let replicas = processes.replicas();
        let first = victim / replicas * replicas;
        let mut others = (first..first + replicas).filter(|at| *at != victim);
        if others.all(|at| has_state(processes.states(at)))
            && fs::remove_dir_all(processes.states(victim)).is_ok()
        {
            self.lost += 1;
        }
    }
}

/// There, or in a directory there.
fn has_state(directory: &Path) -> bool {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut paths = entries.map(|entry| entry.path());
    paths.any(|path| {
        let is_state = path.extension().is_some_and(|of| of == "manifest");
        is_state || path.is_dir() && has_state(&path)
    })
}
