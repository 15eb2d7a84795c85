//! The losses that may be, and their extent.

use rota_paxos::{AcceptorId, Config, Round};

use super::super::disk::Crash;
use super::super::{System, World};
use super::REOPENS;
use crate::plan::{DiskLoss, DiskMode};

impl<S: System> World<'_, S> {
    /// Whether a host does not come back, or its disk does not.
    pub(super) fn is_gone(&self, at: usize) -> bool {
        self.hosts[at].retired || self.hosts[at].disk.is_dead
    }

    /// The number of the configuration in which all are well, but for those that are gone.
    pub(super) fn well_in(&self) -> Option<Round> {
        let newest = (0..self.hosts.len()).filter_map(|at| self.engine(at)?.config());
        let newest = newest.max_by_key(|config| config.number)?;
        let renamed = |at: usize, old: Option<AcceptorId>| {
            let node = self.hosts[at].node;
            let mut acceptors = newest.acceptors.iter();
            acceptors.any(|who| who.node == node && Some(*who) != old)
        };
        let all_in = (0..self.hosts.len()).all(|at| self.is_in(at, newest));
        (all_in && self.votes.losses.are_all(renamed)).then_some(newest.number)
    }

    /// Whether all have been well in one configuration for as long as it takes to write that down: it has to outlive a restart of
    /// all. Nobody looks all the time, and so another configuration may have come meanwhile.
    pub(super) fn is_well_on_disk(&mut self) -> bool {
        let Some(number) = self.well_in() else {
            self.votes.losses.on_unwell();
            return false;
        };
        let writes = self.plan.disks.map_or(0, |disks| {
            disks.slow_for + 4 * disks.latency.1 + self.plan.writes_full(disks)
        });
        let since = self.votes.losses.on_well(number, self.now);
        self.now > since + writes + 2 * REOPENS
    }

    /// Whether a host is gone, or its process is in a configuration and has all that it should have.
    pub(super) fn is_in(&self, at: usize, newest: &Config) -> bool {
        let host = &self.hosts[at];
        if host.retired {
            return true;
        }
        let disk = &host.disk;
        let is_bad = !disk.is_well() || host.reopens || disk.is_broken() || disk.lost_some;
        if is_bad && !disk.is_dead {
            return false;
        }
        let former = host.life.as_ref().is_some_and(|life| life.former);
        self.engine(at).is_some_and(|engine| {
            let is_newest = engine.number() == newest.number && !former;
            is_newest && engine.is_operational() && engine.is_complete()
        })
    }

    /// Whether a host may lose what it knows.
    pub(super) fn may_lose(&mut self, at: usize) -> bool {
        let voters = self.voters();
        if !self.is_bounded() || at >= voters || self.votes.losses.all_lose() {
            return true;
        }
        if self.votes.losses.has_any() && self.is_well_on_disk() {
            self.votes.losses.forget();
        }
        let is_out =
            |other: &usize| *other == at || self.votes.losses.has(*other) || self.is_gone(*other);
        2 * (0..voters).filter(is_out).count() < voters
    }

    /// A host is about to lose what it knows.
    pub(super) fn note_lost(&mut self, at: usize) {
        let node = self.hosts[at].node;
        let configs = (0..self.hosts.len()).filter_map(|at| self.engine(at)?.config());
        let newest = configs.max_by_key(|config| config.number);
        let name = newest.and_then(|config| config.acceptors.iter().find(|who| who.node == node));
        let name = name.copied();
        self.votes.losses.note(at, name);
    }

    /// Whether a host may be gone for good.
    pub(super) fn may_go(&mut self, at: usize) -> bool {
        at >= self.voters() || self.is_well_on_disk() && self.may_lose(at)
    }

    /// Whether a process or a machine may end with this loss on its disk. The loss is remembered then.
    pub(in crate::world) fn loses(&mut self, at: usize, what: Crash, disk: DiskLoss) -> bool {
        if !self.is_bounded() {
            return true;
        }
        let is_lost = match self.mode(at) {
            None => false,
            Some(DiskMode::Memory) => true,
            Some(mode) => {
                let power = what == Crash::Power && mode == DiskMode::Async;
                power || disk.is_of_durable()
            }
        };
        if !is_lost {
            return true;
        }
        let may = self.may_lose(at);
        if may && at < self.voters() {
            self.note_lost(at);
        }
        may
    }

    /// The loss that a disk has where this loss is asked for: memory loses everything.
    pub(in crate::world) fn left_on(&self, at: usize, disk: DiskLoss) -> DiskLoss {
        match self.mode(at) {
            Some(DiskMode::Memory) => DiskLoss::Everything,
            _ => disk,
        }
    }

    /// Whether the process that opens the log is told that something may be missing. Of an empty log nobody is.
    pub(in crate::world) fn says_lost(&self, at: usize, what: Crash, disk: DiskLoss) -> bool {
        let disk_now = &self.hosts[at].disk;
        let power = (what == Crash::Power || disk_now.is_broken())
            && self.mode(at) == Some(DiskMode::Async);
        let told = disk == DiskLoss::Backup || power || disk_now.lost_some;
        self.is_bounded() && told && disk != DiskLoss::Everything
    }

    pub(in crate::world) fn has_disk(&self, at: usize) -> bool {
        self.mode(at).is_some_and(|mode| mode != DiskMode::Memory)
    }

    /// Whether a disk may fail. Answered records that are not on the disk are lost then, too.
    pub(in crate::world) fn may_fail(&mut self, at: usize) -> bool {
        match self.mode(at) {
            Some(DiskMode::Memory) => false,
            Some(DiskMode::Async) if self.is_bounded() && at < self.voters() => {
                let may = self.may_lose(at);
                if may {
                    self.note_lost(at);
                }
                may
            }
            _ => true,
        }
    }
}
