//! The losses of voters, when their time has come.

use rota_core::contract::PersistError;

use super::super::disk::Crash;
use super::super::host::Life;
use super::super::queue::What;
use super::super::tally::lost;
use super::super::trouble::Death;
use super::super::{System, World};
use super::LIVES;
use crate::plan::{DiskLoss, DiskMode, Fault, FaultKind, Loss, MILLIS};

impl<S: System> World<'_, S> {
    /// A fault that waits for its moment: perhaps it is now.
    pub(in crate::world) fn wait_to_lose(&mut self, index: u32) {
        let plan = self.plan;
        let fault = &plan.faults[index as usize];
        let token = plan.ring.timers.token_loss;
        if self.healed() || self.lose_now(fault) || self.now >= fault.at.saturating_add(fault.lasts)
        {
            return;
        }
        let often = match fault.kind {
            FaultKind::Churn { .. } => 32,
            _ => 8,
        };
        self.queue.push(self.now + token / often, What::Beat(index));
    }

    /// Whether the fault has happened.
    pub(super) fn lose_now(&mut self, fault: &Fault) -> bool {
        match fault.kind {
            FaultKind::Loses { host, what } => self.lose_one(host, what),
            FaultKind::LoseAll => self.lose_all(),
            FaultKind::RestartAll { dead, power, disk } => self.restart_all(dead, power, disk),
            FaultKind::Churn { host } => self.churn(host),
            _ => true,
        }
    }

    pub(super) fn death(&mut self, what: Crash, disk: DiskLoss) -> Death {
        let longest = 3 * self.plan.ring.timers.token_loss;
        Death {
            host_too: what == Crash::Power,
            what,
            disk,
            for_good: false,
            lasts: self.votes.rng.spread(MILLIS, longest),
        }
    }

    pub(super) fn lose_one(&mut self, at: usize, what: Loss) -> bool {
        if self.hosts[at].life.is_none() || self.is_gone(at) {
            return false;
        }
        let (crash, disk) = match what {
            Loss::Disk => (Crash::Process, DiskLoss::Everything),
            Loss::Newest => (Crash::Process, DiskLoss::Backup),
            Loss::Power => (Crash::Power, DiskLoss::Torn),
            Loss::Node => (Crash::Process, DiskLoss::Nothing),
            Loss::Device { hangs } => return self.lose_device(at, hangs, what),
        };
        let is_node = what == Loss::Node;
        let may = if is_node {
            self.may_go(at)
        } else {
            self.may_lose(at)
        };
        if !may {
            return false;
        }
        self.tally.cover(lost(what));
        let mut death = self.death(crash, disk);
        if is_node {
            (death.for_good, death.lasts) = (true, u64::MAX);
        }
        self.die(at, death);
        true
    }

    pub(super) fn lose_device(&mut self, at: usize, hangs: bool, what: Loss) -> bool {
        if !self.has_disk(at) {
            return true;
        }
        if !self.may_go(at) {
            return false;
        }
        self.tally.cover(lost(what));
        let disk = &mut self.hosts[at].disk;
        disk.is_dead = true;
        if hangs {
            disk.hangs = true;
        } else {
            disk.fails = Some(PersistError::Io("it is worn out".to_owned()));
        }
        true
    }

    /// All voters lose everything, and some process lives on that knew of a configuration.
    pub(super) fn lose_all(&mut self) -> bool {
        let voters = self.voters();
        let Some(uring) = &self.plan.uring else {
            return true;
        };
        let is_possible = uring.service.is_none() && voters < self.hosts.len();
        if !is_possible || self.votes.losses.is_founded_anew() || !self.is_bounded() {
            return true;
        }
        let knows = |at| self.engine(at).is_some_and(|engine| engine.number() > 0);
        let lives_on = (voters..self.hosts.len()).any(knows);
        if !lives_on
            || (0..voters).any(|at| self.is_gone(at))
            || !self.votes.knowledge.has_configs()
        {
            return false;
        }
        self.tally.cover("foundations");
        self.votes.losses.end_foundation();
        for at in 0..voters {
            // No copy of the older state is left either.
            self.hosts[at].disk.lose_backup();
            let death = self.death(Crash::Process, DiskLoss::Everything);
            if self.hosts[at].life.is_some() {
                self.die(at, death);
            } else {
                let disk = &mut self.hosts[at].disk;
                disk.crash(
                    self.now,
                    Crash::Process,
                    DiskLoss::Everything,
                    &mut self.rng,
                );
                disk.lost_some = false;
            }
        }
        self.votes.losses.found_anew();
        self.votes.knowledge.found_anew();
        let mut former = Vec::new();
        for at in voters..self.hosts.len() {
            let Some(life) = &mut self.hosts[at].life else {
                continue;
            };
            let engine = self.system.voting(life.engine.get());
            if engine.is_some_and(|engine| engine.number() > 0) {
                life.former = true;
                former.push(life.process);
            } else {
                // The process may yet hear of the older configuration.
                let death = self.death(Crash::Process, DiskLoss::Everything);
                self.die(at, death);
            }
        }
        self.watch.on_founded_anew(&former);
        true
    }

    pub(super) fn restart_all(&mut self, dead: Option<usize>, power: bool, disk: DiskLoss) -> bool {
        let modes: Vec<_> = (0..self.voters()).map(|at| self.mode(at)).collect();
        if modes.contains(&Some(DiskMode::Memory)) {
            return true;
        }
        let power = power && !modes.contains(&Some(DiskMode::Async));
        if dead.is_some_and(|dead| !self.may_go(dead)) {
            return false;
        }
        self.tally.cover(match dead {
            Some(_) => "restarts_without_one",
            None => "restarts_of_all",
        });
        let what = if power { Crash::Power } else { Crash::Process };
        for at in 0..self.hosts.len() {
            let mut death = self.death(what, disk);
            if dead == Some(at) {
                (death.for_good, death.lasts) = (true, u64::MAX);
            }
            if self.hosts[at].life.is_some() {
                self.die(at, death);
            }
        }
        true
    }

    /// Kills a process that has become a member.
    pub(super) fn churn(&mut self, at: usize) -> bool {
        let host = &self.hosts[at];
        if host.lives >= LIVES {
            self.tally.cover("many_lives");
            return true;
        }
        if self.is_gone(at) {
            return true;
        }
        let is_member = |life: &Life<S::Engine>| life.app.members.contains(&life.process);
        if host.life.as_ref().is_some_and(is_member) {
            let mut death = self.death(Crash::Process, DiskLoss::Unsynced);
            death.lasts = MILLIS;
            self.die(at, death);
        }
        false
    }
}
