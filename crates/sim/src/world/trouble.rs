//! Faults begin and end; processes start and are killed.

use rota_check::event::EventKind;
use rota_core::contract::{
    Checked, Engine, Incarnation, Input, NodeId, PersistError, Process, StartState,
};

use super::Host;
use super::disk::Crash;
use super::host::Life;
use super::queue::What;
use super::{System, World};
use crate::groups::SimulatedClients;
use crate::plan::{DiskLoss, Fault, FaultKind, MILLIS};

/// A process that has no outputs to be killed between is killed after this long.
const DOOMED_FOR: u64 = 100 * MILLIS;

/// The end of a process.
#[derive(Clone, Copy, Debug)]
pub struct Death {
    /// The host is gone as well: nobody says that nobody listens.
    pub host_too: bool,
    /// The process or the machine ends.
    pub what: Crash,
    /// The loss on the disk.
    pub disk: DiskLoss,
    /// It does not come back.
    pub for_good: bool,
    /// The time after which it does, in nanoseconds.
    pub lasts: u64,
}

impl<S: System> World<'_, S> {
    /// A host starts a process, unless it has one.
    pub(super) fn start(&mut self, at: usize) {
        let host = &self.hosts[at];
        if host.life.is_some() || host.retired {
            return;
        }
        let process = Process {
            node: host.node,
            incarnation: Incarnation(self.rng.range(1, Incarnation::MAX)),
        };
        let engine = Checked::new(self.system.engine(self.plan, process, host.lives));
        if engine.wants_links() != self.links.is_some() {
            self.found(
                "links",
                "the plan has none for an engine that wants them, or the other way round",
            );
        }
        let now = self.local(at);
        let start = StartState {
            me: process,
            seed: self.rng.next(),
            records: self.hosts[at].disk.records(),
            lost_some: self.hosts[at].disk.lost_some,
        };
        self.emit(process, EventKind::Start);
        self.payloads.start(process);
        self.posts.start(process);
        let mut life = Life::new(process, engine);
        let groups = self.plan.groups;
        life.desk =
            groups.map(|groups| SimulatedClients::new(groups, process, &self.plan.ring.members));
        if self.healed() {
            life.app.pending = life
                .desk
                .as_mut()
                .map_or(self.last_words(), SimulatedClients::heal);
        }
        life.engine.handle(now, Input::Start(start));
        life.app.more = true;
        let host = &mut self.hosts[at];
        if host.lives > 0 {
            self.tally.cover("restarts");
        }
        host.life = Some(life);
        host.lives += 1;
        (host.gone, host.reopens) = (false, false);
        (host.paused_until, host.stalled_until) = (0, 0);
        self.wake(at, self.now);
    }

    /// A process dies of a fault.
    pub(super) fn kill(&mut self, at: usize, fault: u32) {
        let plan = self.plan;
        let Fault { lasts, kind, .. } = &plan.faults[fault as usize];
        let FaultKind::Kill {
            host_too,
            disk,
            for_good,
            ..
        } = *kind
        else {
            return;
        };
        // Records that the machine had not written end with it, where engines keep logs.
        let what = if host_too && plan.disks.is_some() {
            Crash::Power
        } else {
            Crash::Process
        };
        self.die(
            at,
            Death {
                host_too,
                what,
                disk,
                for_good,
                lasts: *lasts,
            },
        );
    }

    pub(super) fn die(&mut self, at: usize, death: Death) {
        let Death {
            host_too,
            what,
            disk,
            for_good,
            lasts,
        } = death;
        let disk = self.left_on(at, disk);
        let emptied = disk.is_of_durable();
        if !self.may_forget(at, emptied) || !self.loses(at, what, disk) {
            if let Some(life) = &mut self.hosts[at].life {
                life.doom = None;
            }
            return;
        }
        let lost_some = self.says_lost(at, what, disk);
        self.count_life(at);
        let host = &mut self.hosts[at];
        let Some(life) = host.life.take() else { return };
        (host.gone, host.retired) = (host_too, for_good);
        host.emptied |= emptied;
        host.disk.crash(self.now, what, disk, &mut self.rng);
        (host.disk.lost_some, host.reopens) = (lost_some, false);
        let node = host.node;
        if let Some(links) = &mut self.links {
            links.lost(&mut self.queue, self.now, at, host_too);
        }
        self.tally.cover("crashes");
        self.cover_death(&life);
        self.emit(life.process, EventKind::Crash);
        self.watch.on_disk_lost(node, disk);
        if lasts != u64::MAX {
            self.queue.push(self.now + lasts, What::Start(at as u16));
        }
    }

    /// Machines lose their power at once, and come back one after the other.
    pub(super) fn lose_power(&mut self, hosts: &[usize], disk: DiskLoss, lasts: u64) {
        self.tally.cover("losses_of_power");
        for at in hosts {
            let lasts = lasts.saturating_add(self.rng.below(10 * MILLIS));
            let death = Death {
                host_too: true,
                what: Crash::Power,
                disk,
                for_good: false,
                lasts,
            };
            if self.hosts[*at].life.is_some() {
                self.die(*at, death);
            } else if self.loses(*at, Crash::Power, death.disk) {
                let lost_some = self.says_lost(*at, Crash::Power, death.disk);
                self.hosts[*at].emptied |= death.disk.is_of_durable();
                let disk = &mut self.hosts[*at].disk;
                disk.crash(self.now, Crash::Power, death.disk, &mut self.rng);
                disk.lost_some = lost_some;
            }
        }
    }

    /// With views, counts the roles that the killed process had.
    fn cover_death(&mut self, life: &Life<S::Engine>) {
        if self.plan.views.is_none() {
            return;
        }
        let engine = life.engine.get();
        // Perhaps nobody ever delivers the messages that only this process would have.
        for (process, counters) in self.system.undelivered(engine) {
            self.payloads.settle(process, counters);
        }
        if life.app.members.first() == Some(&life.process) && life.app.members.len() > 1 {
            self.tally.cover("leaders_killed");
        }
        if self.system.is_settled(engine) == Some(false) {
            self.tally.cover("senders_killed");
        }
        if self.system.forming(engine).is_some() {
            self.tally.cover("killed_in_a_change");
        }
    }

    /// Whether fewer than a majority of the nodes that count have forgotten their views if this one dies as well: data
    /// paths ask for that. Others may be killed at any time. Where a disk was `emptied`, nodes that were in no view yet
    /// are as good as those that have forgotten: nobody can tell them apart.
    fn may_forget(&self, at: usize, emptied: bool) -> bool {
        if self.plan.views.is_none_or(|views| views.amnesia) {
            return true;
        }
        let remembers = |host: &Host<S::Engine>| {
            let life = host.life.as_ref();
            life.is_some_and(|life| self.system.remembers(life.engine.get()))
        };
        let others = (0..).zip(&self.hosts).filter(|(other, _)| *other != at);
        let blank: Vec<&Host<S::Engine>> = others
            .map(|(_, host)| host)
            .filter(|host| !remembers(host))
            .collect();
        let emptied = emptied || blank.iter().any(|host| host.emptied);
        let lived = |host: &&Host<S::Engine>| match host.life {
            Some(_) => host.lives > 1,
            None => host.lives > 0,
        };
        let forgot = blank.into_iter().filter(|host| emptied || lived(host));
        let forgot: Vec<NodeId> = forgot.map(|host| host.node).collect();
        let all = &self.plan.ring.members;
        let lists = &self.plan.apart.electorates;
        let lists = if lists.is_empty() {
            std::slice::from_ref(all)
        } else {
            lists
        };
        let me = self.hosts[at].node;
        lists.iter().all(|nodes| {
            let forgot = nodes.iter().filter(|node| forgot.contains(node)).count();
            !nodes.contains(&me) || forgot < nodes.len() / 2
        })
    }

    /// A fault begins.
    pub(super) fn begin(&mut self, index: u32) {
        let plan = self.plan;
        let fault = &plan.faults[index as usize];
        if self.healed() {
            return;
        }
        let until = self.now.saturating_add(fault.lasts);
        match &fault.kind {
            FaultKind::Cut { links, .. } => self.network.cut(links, true),
            FaultKind::Flap { links, period } => {
                self.network.cut(links, true);
                self.queue.push(self.now + period, What::Beat(index));
            }
            FaultKind::Pause { host } => {
                self.tally.cover("pauses");
                let paused = &mut self.hosts[*host].paused_until;
                *paused = until.max(*paused);
            }
            FaultKind::Stall { host } => {
                self.tally.cover("stalls");
                let stalled = &mut self.hosts[*host].stalled_until;
                *stalled = until.max(*stalled);
            }
            FaultKind::Kill { host, outputs, .. } => return self.doom(*host, *outputs, index),
            FaultKind::PowerLoss { hosts, disk } => {
                return self.lose_power(hosts, *disk, fault.lasts);
            }
            FaultKind::DiskFails { host, .. } if !self.may_fail(*host) => return,
            FaultKind::DiskFails { host, full } => self.break_disk(*host, *full),
            FaultKind::DiskHangs { host } => self.hang_disk(*host),
            FaultKind::ServiceStops => {
                self.tally.cover("service_stops");
                self.votes.service.stop(until);
            }
            FaultKind::Loses { .. }
            | FaultKind::LoseAll
            | FaultKind::RestartAll { .. }
            | FaultKind::Churn { .. } => return self.wait_to_lose(index),
            FaultKind::Storm {
                links,
                percent,
                data_only,
            } => {
                self.tally.cover("storms");
                let loss = u32::from(*percent) * 10_000;
                let others = if *data_only { 0 } else { loss };
                self.network.storm(links, [loss, others, others]);
            }
            FaultKind::Rush { messages } => self.rush(*messages),
            // A snipe begins when some process installs a ring, and a mute when all others have ended an exchange.
            FaultKind::Snipe | FaultKind::Mute => return self.ambush.arm(index),
            FaultKind::Replay { host, count } => {
                self.network
                    .replay(&mut self.queue, self.now, *host, *count);
            }
        }
        if fault.lasts > 0 && fault.lasts != u64::MAX {
            self.queue.push(until, What::End(index));
        }
    }

    fn break_disk(&mut self, host: usize, full: bool) {
        self.hosts[host].disk.fails = Some(if full {
            PersistError::NoSpace
        } else {
            PersistError::Io("the device does not answer".to_owned())
        });
    }

    fn hang_disk(&mut self, host: usize) {
        if self.has_disk(host) {
            self.tally.cover("disk_hangs");
            self.hosts[host].disk.hangs = true;
        }
    }

    /// A process is going to die, at the latest when it has had no outputs for a while.
    fn doom(&mut self, host: usize, outputs: u32, fault: u32) {
        if let Some(life) = &mut self.hosts[host].life {
            life.doom.get_or_insert((outputs, fault));
            self.queue.push(self.now + DOOMED_FOR, What::Beat(fault));
        }
    }

    /// All applications want to submit this number of messages.
    fn rush(&mut self, messages: u32) {
        self.tally.cover("rushes");
        for at in 0..self.hosts.len() {
            if let Some(life) = &mut self.hosts[at].life {
                life.app.pending = life.app.pending.max(messages);
            }
            self.wake_now(at);
        }
    }

    /// A fault goes on.
    pub(super) fn beat(&mut self, index: u32) {
        let plan = self.plan;
        let fault = &plan.faults[index as usize];
        match &fault.kind {
            FaultKind::Kill { host, .. } => {
                let doomed = self.hosts[*host].life.as_ref().and_then(|life| life.doom);
                if doomed.is_some_and(|(_, by)| by == index) {
                    self.kill(*host, index);
                }
            }
            FaultKind::Flap { links, period } if !self.healed() => {
                let next = self.now + period;
                let turns = (self.now - fault.at) / period;
                if next <= fault.at.saturating_add(fault.lasts) {
                    self.network.cut(links, turns.is_multiple_of(2));
                    self.queue.push(next, What::Beat(index));
                } else if !turns.is_multiple_of(2) {
                    self.network.cut(links, false);
                }
            }
            FaultKind::Loses { .. }
            | FaultKind::LoseAll
            | FaultKind::RestartAll { .. }
            | FaultKind::Churn { .. } => self.wait_to_lose(index),
            _ => {}
        }
    }

    /// A fault ends.
    pub(super) fn end(&mut self, index: u32) {
        let plan = self.plan;
        if self.healed() {
            return;
        }
        match &plan.faults[index as usize].kind {
            FaultKind::Cut { links, .. } => self.network.cut(links, false),
            FaultKind::Storm { links, .. } => self.network.storm(links, [0; 3]),
            FaultKind::DiskFails { host, .. } | FaultKind::DiskHangs { host } => {
                self.mend_disk(*host)
            }
            FaultKind::Pause { host } | FaultKind::Stall { host } => self.wake_now(*host),
            FaultKind::Snipe | FaultKind::Mute => self.end_snipe(index),
            FaultKind::Flap { .. }
            | FaultKind::Kill { .. }
            | FaultKind::PowerLoss { .. }
            | FaultKind::Replay { .. }
            | FaultKind::Rush { .. }
            | FaultKind::ServiceStops
            | FaultKind::Loses { .. }
            | FaultKind::LoseAll
            | FaultKind::RestartAll { .. }
            | FaultKind::Churn { .. } => {}
        }
    }
}
