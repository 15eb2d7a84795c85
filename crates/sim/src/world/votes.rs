//! Where engines vote: what may be lost, the logs that are opened again, the coordination service, and what must be so
//! beside the order.
//!
//! A voter may lose what it knows while fewer than half of all have, since all were well the last time, or are gone for
//! good. All are well when everybody lives in the newest configuration, which has begun and is known to be complete: then what
//! was decided is with a majority of those that vote now.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use rota_core::contract::{Engine, Input, MessageId, PersistError, Process, Seq};
use rota_core::paxos::{AcceptorId, Config};
use rota_core::uring::URing;

use super::disk::Crash;
use super::queue::What;
use super::tally::lost;
use super::trouble::Death;
use super::{System, World};
use crate::plan::{DiskLoss, DiskMode, Fault, FaultKind, Loss, MILLIS, SECONDS, URingPlan};
use crate::rng::Rng;

/// Something is ordered within this time after the faults, and after what was ordered last.
const SILENT: u64 = 20 * SECONDS;
/// So many lives of a node are begun.
const LIVES: u32 = 72;
/// A log that cannot be opened yet is tried again after this.
const REOPENS: u64 = 100 * MILLIS;

/// What a process asked the service.
#[derive(Debug)]
struct Question {
    at: usize,
    process: Process,
    number: u64,
    wanted: Bytes,
}

/// What is known of the votes of a world.
#[derive(Debug)]
pub struct Votes {
    rng: Rng,
    /// Who has lost what it knew, with the name that it had then.
    lost: BTreeMap<usize, Option<AcceptorId>>,
    /// Since when all were well, as far as anybody has looked.
    well_since: Option<u64>,
    /// All lose what they knew, whatever a majority has to keep.
    all_lose: bool,
    /// All have.
    is_founded_anew: bool,
    /// The first instance that nobody has learnt.
    learnt: u64,
    /// Since when that is so.
    learnt_at: u64,
    /// By foundation and number.
    configs: BTreeMap<(u64, u64), Arc<Config>>,
    wrong: Option<String>,
    stored: BTreeMap<u64, Bytes>,
    questions: Vec<Question>,
    /// The service neither hears nor answers until then.
    pub service_stops: u64,
    /// What was submitted after the faults.
    pub last_words: BTreeSet<MessageId>,
    /// Some of that was delivered.
    is_ordered: bool,
}

impl Votes {
    pub fn new(seed: u64) -> Self {
        Self {
            rng: Rng::split(seed, 18),
            lost: BTreeMap::new(),
            well_since: None,
            all_lose: false,
            is_founded_anew: false,
            learnt: 0,
            learnt_at: 0,
            configs: BTreeMap::new(),
            wrong: None,
            stored: BTreeMap::new(),
            questions: Vec::new(),
            service_stops: 0,
            last_words: BTreeSet::new(),
            is_ordered: false,
        }
    }

    /// There is one configuration with each number.
    pub fn look_at(&mut self, now: u64, engine: Option<&URing>, former: bool) {
        let Some(engine) = engine else { return };
        if !former && engine.learnt() > self.learnt {
            (self.learnt, self.learnt_at) = (engine.learnt(), now);
        }
        let Some(config) = engine.config() else {
            return;
        };
        let known = self.configs.entry((config.founded, config.number));
        let known = known.or_insert_with(|| config.clone());
        if !Arc::ptr_eq(known, config) && known != config {
            self.wrong
                .get_or_insert_with(|| format!("{known:?} and {config:?}"));
        }
    }

    pub fn ordered(&mut self, message: MessageId) {
        self.is_ordered |= self.last_words.contains(&message);
    }
}

impl<S: System> World<'_, S> {
    fn voters(&self) -> usize {
        self.plan.uring.as_ref().map_or(0, |uring| uring.voters)
    }

    fn engine(&self, at: usize) -> Option<&URing> {
        self.system
            .voting(self.hosts[at].life.as_ref()?.engine.get())
    }

    fn mode(&self, at: usize) -> Option<DiskMode> {
        Some(self.plan.disk_of(at)?.mode)
    }

    /// Whether what is lost is bounded, and told of.
    fn is_bounded(&self) -> bool {
        self.plan.uring.is_some() && self.plan.disks.is_some_and(|disks| !disks.lies)
    }

    // What may be lost.

    /// It does not come back, or its disk does not.
    fn is_gone(&self, at: usize) -> bool {
        self.hosts[at].retired || self.hosts[at].disk.is_dead
    }

    /// Whether all are well, but for those that are gone.
    fn is_well(&self) -> bool {
        let newest = (0..self.hosts.len()).filter_map(|at| self.engine(at)?.config());
        let Some(newest) = newest.max_by_key(|config| config.number) else {
            return false;
        };
        let renamed = |(at, old): (&usize, &Option<AcceptorId>)| {
            let node = self.hosts[*at].node;
            let mut acceptors = newest.acceptors.iter();
            acceptors.any(|who| who.node == node && Some(*who) != *old)
        };
        (0..self.hosts.len()).all(|at| self.is_in(at, newest))
            && self.votes.lost.iter().all(renamed)
    }

    /// Whether all have been well for as long as it takes to write that down: it has to outlive a restart of all.
    fn is_well_on_disk(&mut self) -> bool {
        if !self.is_well() {
            self.votes.well_since = None;
            return false;
        }
        let writes = self
            .plan
            .disks
            .map_or(0, |disks| disks.slow_for + 4 * disks.latency.1);
        let since = *self.votes.well_since.get_or_insert(self.now);
        self.now > since + writes + 2 * REOPENS
    }

    /// Whether a host is gone, or its process is in a configuration and has all that it should have.
    fn is_in(&self, at: usize, newest: &Config) -> bool {
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
    fn may_lose(&mut self, at: usize) -> bool {
        let voters = self.voters();
        if !self.is_bounded() || at >= voters || self.votes.all_lose {
            return true;
        }
        if !self.votes.lost.is_empty() && self.is_well_on_disk() {
            self.votes.lost.clear();
        }
        let is_out = |other: &usize| {
            *other == at || self.votes.lost.contains_key(other) || self.is_gone(*other)
        };
        2 * (0..voters).filter(is_out).count() < voters
    }

    /// A host is about to lose what it knows.
    fn note_lost(&mut self, at: usize) {
        let node = self.hosts[at].node;
        let configs = (0..self.hosts.len()).filter_map(|at| self.engine(at)?.config());
        let newest = configs.max_by_key(|config| config.number);
        let name = newest.and_then(|config| config.acceptors.iter().find(|who| who.node == node));
        let name = name.copied();
        self.votes.lost.insert(at, name);
    }

    /// Whether a host may be gone for good.
    fn may_go(&mut self, at: usize) -> bool {
        at >= self.voters() || self.is_well_on_disk() && self.may_lose(at)
    }

    /// A process or a machine ends, and this is lost on its disk: whether that may be. Then it is remembered.
    pub(super) fn loses(&mut self, at: usize, what: Crash, disk: DiskLoss) -> bool {
        if !self.is_bounded() {
            return true;
        }
        let is_lost = match self.mode(at) {
            None => false,
            Some(DiskMode::Memory) => true,
            Some(mode) => {
                let power = what == Crash::Power && mode == DiskMode::Async;
                power || matches!(disk, DiskLoss::Everything | DiskLoss::Backup)
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

    /// What is left on a disk of which this should be lost.
    pub(super) fn left_on(&self, at: usize, disk: DiskLoss) -> DiskLoss {
        match self.mode(at) {
            Some(DiskMode::Memory) => DiskLoss::Everything,
            _ => disk,
        }
    }

    /// Whether who opens the log is told that something may be missing. Of an empty one nobody is.
    pub(super) fn says_lost(&self, at: usize, what: Crash, disk: DiskLoss) -> bool {
        let disk_now = &self.hosts[at].disk;
        let power = (what == Crash::Power || disk_now.is_broken())
            && self.mode(at) == Some(DiskMode::Async);
        let told = disk == DiskLoss::Backup || power || disk_now.lost_some;
        self.is_bounded() && told && disk != DiskLoss::Everything
    }

    pub(super) fn has_disk(&self, at: usize) -> bool {
        self.mode(at).is_some_and(|mode| mode != DiskMode::Memory)
    }

    /// Whether a disk may fail. Where what was answered is not on it that is lost, too.
    pub(super) fn may_fail(&mut self, at: usize) -> bool {
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

    // What is lost when its time has come.

    /// A fault that waits for its moment: perhaps it is now.
    pub(super) fn wait_to_lose(&mut self, index: u32) {
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
    fn lose_now(&mut self, fault: &Fault) -> bool {
        match fault.kind {
            FaultKind::Loses { host, what } => self.lose_one(host, what),
            FaultKind::LoseAll => self.lose_all(),
            FaultKind::RestartAll { dead, power, disk } => self.restart_all(dead, power, disk),
            FaultKind::Churn { host } => self.churn(host),
            _ => true,
        }
    }

    fn death(&mut self, what: Crash, disk: DiskLoss) -> Death {
        let longest = 3 * self.plan.ring.timers.token_loss;
        Death {
            host_too: what == Crash::Power,
            what,
            disk,
            for_good: false,
            lasts: self.votes.rng.spread(MILLIS, longest),
        }
    }

    fn lose_one(&mut self, at: usize, what: Loss) -> bool {
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

    fn lose_device(&mut self, at: usize, hangs: bool, what: Loss) -> bool {
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

    /// All who vote lose everything, and somebody lives on who knew of a configuration.
    fn lose_all(&mut self) -> bool {
        let voters = self.voters();
        let Some(uring) = &self.plan.uring else {
            return true;
        };
        let is_possible = uring.service.is_none() && voters < self.hosts.len();
        if !is_possible || self.votes.is_founded_anew || !self.is_bounded() {
            return true;
        }
        let knows = |at| self.engine(at).is_some_and(|engine| engine.number() > 0);
        let lives_on = (voters..self.hosts.len()).any(knows);
        if !lives_on || (0..voters).any(|at| self.is_gone(at)) || self.votes.configs.is_empty() {
            return false;
        }
        self.tally.cover("foundations");
        (self.votes.all_lose, self.votes.is_founded_anew) = (true, true);
        for at in 0..voters {
            // Nor is there a copy of what was before.
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
        self.votes.all_lose = false;
        self.votes.lost.clear();
        self.votes.learnt = 0;
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
                // It may hear of what was before yet.
                let death = self.death(Crash::Process, DiskLoss::Everything);
                self.die(at, death);
            }
        }
        for observer in &mut self.observers {
            observer.founded_anew(&former);
        }
        true
    }

    fn restart_all(&mut self, dead: Option<usize>, power: bool, disk: DiskLoss) -> bool {
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
    fn churn(&mut self, at: usize) -> bool {
        let host = &self.hosts[at];
        if host.lives >= LIVES {
            self.tally.cover("many_lives");
            return true;
        }
        if self.is_gone(at) {
            return true;
        }
        let is_member =
            |life: &super::host::Life<S::Engine>| life.app.members.contains(&life.process);
        if host.life.as_ref().is_some_and(is_member) {
            let mut death = self.death(Crash::Process, DiskLoss::Unsynced);
            death.lasts = MILLIS;
            self.die(at, death);
        }
        false
    }

    // Logs that are opened again.

    /// A process has given its log up.
    pub(super) fn reopen(&mut self, at: usize) {
        self.tally.cover("logs_given_up");
        let is_async = self.mode(at) == Some(DiskMode::Async);
        let loses = self.hosts[at].disk.is_broken() && is_async && self.is_bounded();
        let host = &mut self.hosts[at];
        host.disk.give_up(self.now, loses, &mut self.votes.rng);
        host.reopens = true;
        let (host, life) = (at as u16, host.lives);
        let later = self.now + self.votes.rng.spread(MILLIS, 2 * REOPENS);
        self.queue.push(later, What::Reopen { host, life });
    }

    /// A log is opened again, if its disk is well.
    pub(super) fn open_again(&mut self, at: usize, life: u32) {
        let host = &mut self.hosts[at];
        if host.lives != life || !host.reopens || host.life.is_none() {
            return;
        }
        if !host.disk.is_well() {
            if !host.disk.is_dead {
                let host = at as u16;
                let later = self.now + REOPENS;
                self.queue.push(later, What::Reopen { host, life });
            }
            return;
        }
        host.reopens = false;
        let (records, lost_some) = (host.disk.records(), host.disk.lost_some);
        if let Some(life) = &mut host.life {
            life.inputs
                .push_back(Input::Reopened { records, lost_some });
        }
        self.tally.cover("logs_opened_again");
        self.wake_now(at);
    }

    /// A disk is well again, unless it is bad for good: it answers what it was asked.
    pub(super) fn mend_disk(&mut self, at: usize) {
        let host = &mut self.hosts[at];
        host.disk.mend();
        let (host, life) = (at as u16, host.lives);
        self.queue.push(self.now, What::Written { host, life });
    }

    // The coordination service.

    /// A process asks it.
    pub(super) fn ask_service(&mut self, at: usize, number: u64, wanted: Bytes) {
        let Some(process) = self.hosts[at].life.as_ref().map(|life| life.process) else {
            return;
        };
        let service = self.plan.uring.as_ref().and_then(|uring| uring.service);
        let Some(service) = service else {
            return self.found("service", "asked where there is none");
        };
        let takes = self.votes.rng.spread(1, service.latency);
        let question = Question {
            at,
            process,
            number,
            wanted,
        };
        let place = self.votes.questions.len() as u32;
        self.votes.questions.push(question);
        self.queue.push(self.now + takes, What::Serve(place));
    }

    /// It gets to a question: what was first stored under a number stays.
    pub(super) fn serve(&mut self, question: u32) {
        let healed = self.healed();
        let lost = self.plan.uring.as_ref().and_then(|uring| uring.service);
        let lost = lost.map_or(0, |service| service.lost);
        if !healed && self.votes.service_stops > self.now {
            self.tally.cover("questions_lost");
            return;
        }
        let Question {
            at,
            process,
            number,
            ref wanted,
        } = self.votes.questions[question as usize];
        let chosen = self
            .votes
            .stored
            .entry(number)
            .or_insert_with(|| wanted.clone())
            .clone();
        if !healed && self.votes.rng.ppm(lost) {
            self.tally.cover("questions_lost");
            return;
        }
        let life = self.hosts[at].life.as_mut();
        if let Some(life) = life.filter(|life| life.process == process) {
            life.inputs.push_back(Input::Arbitrated { number, chosen });
            self.tally.cover("questions_answered");
            self.wake_now(at);
        }
    }

    // What is asked of engines, and what must be so.

    /// A coordinator orders that some instances carry nothing; others cannot.
    pub(super) fn order_skips(&mut self, at: usize) {
        let skips = self.plan.uring.as_ref().map_or(0, |uring| uring.skips);
        if !self.votes.rng.ppm(skips) {
            return;
        }
        let count = self.votes.rng.spread(1, 500);
        let now = self.local(at);
        let paused = self.hosts[at].paused_until > self.now;
        let Some(life) = self.hosts[at].life.as_mut().filter(|_| !paused) else {
            return;
        };
        if life.engine.submit_skips(now, count).is_ok() {
            (life.undrained, life.app.more) = (true, true);
            self.tally.cover("skips");
        }
    }

    /// Nobody has to miss what every acceptor keeps. One instance alone may be missed later: its message began long before.
    pub(super) fn judge_missed(&mut self, at: usize, (from, count): (Seq, u64)) {
        let Some(uring) = &self.plan.uring else {
            return;
        };
        let former = self.hosts[at].life.as_ref().is_none_or(|life| life.former);
        let behind = self.votes.learnt.saturating_sub(from);
        let keeps = uring.keeps();
        if !uring.only_as_member && !former && count > 1 && behind < keeps {
            let node = self.hosts[at].node;
            let what = format!(
                "node {node} misses {count} from {from}, {behind} behind, where {keeps} are kept"
            );
            self.found("missed", what);
        }
    }

    /// How many messages everybody submits when the faults are over.
    pub(super) fn last_words(&self) -> u32 {
        u32::from(self.plan.uring.as_ref().is_some_and(|uring| uring.is_wide))
    }

    /// Whether nothing is ordered for too long after the faults.
    pub(super) fn is_silent(&self, since: u64) -> bool {
        // Who knows no capacity may drown the others in datagrams for longer: agreement has its own limit.
        let may_drown = |uring: &URingPlan| uring.multicast && uring.capacity.is_none();
        let may_drown = self.plan.uring.as_ref().is_some_and(may_drown);
        let waits = self.last_words() > 0 && !self.votes.is_ordered && !may_drown;
        waits && self.now > since.max(self.votes.learnt_at) + SILENT
    }

    /// What was seen of configurations that must not be.
    pub(super) fn judge_configs(&mut self) {
        if let Some(what) = self.votes.wrong.take() {
            self.found("configuration", what);
        }
    }
}
