//! Worlds of engines that vote: the losses that may be (`may`) and their moments (`lose`), the `logs` that are opened
//! again, the coordination `service`, and the conditions beside the order.
//!
//! A voter may lose what it knows while fewer than half of all voters, itself included, have lost theirs since all were
//! well the last time, or are gone for good. All are well when everybody lives in the newest configuration, which has
//! begun and is known to be complete: then all decisions are with a majority of those that vote now.

mod logs;
mod lose;
mod may;
mod service;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use rota_core::contract::{Engine, MessageId, Process, Seq};
use rota_paxos::uring::URing;
use rota_paxos::{AcceptorId, Config, Round};

use super::{System, World};
use crate::plan::{DiskMode, MILLIS, SECONDS, URingPlan};
use crate::rng::Rng;

/// While something submitted after the faults is delivered nowhere, some process learns something within this time.
const SILENT: u64 = 20 * SECONDS;
/// The most losses of a token, by a slow clock, before a process that was left out again and again asks to be taken in.
const STAYS_OUT: u64 = 36;
/// The number of lives of a node at which its churn ends.
const LIVES: u32 = 72;
/// A log that cannot be opened yet is tried again after this.
const REOPENS: u64 = 100 * MILLIS;

/// A question of a process to the service.
#[derive(Debug)]
struct Question {
    at: usize,
    process: Process,
    number: u64,
    wanted: Bytes,
}

/// The world's knowledge of votes.
#[derive(Debug)]
pub struct Votes {
    rng: Rng,
    /// Hosts that have lost what they knew since all were well, each with the acceptor name that it had then.
    lost: BTreeMap<usize, Option<AcceptorId>>,
    /// The configuration in which all are well, and the time since when, as far as anybody has looked.
    well_since: Option<(Round, u64)>,
    /// All lose what they knew, whatever a majority has to keep.
    all_lose: bool,
    /// All voters have lost what they knew, once.
    is_founded_anew: bool,
    /// The first instance that nobody has learnt.
    learnt: u64,
    /// By process: the first instance that it has not learnt.
    each: BTreeMap<Process, u64>,
    /// The time at which a process learnt something last, or was seen first.
    learnt_at: u64,
    /// By foundation and number.
    configs: BTreeMap<(u64, u64), Arc<Config>>,
    wrong: Option<String>,
    stored: BTreeMap<u64, Bytes>,
    questions: Vec<Question>,
    /// The service neither hears nor answers until then.
    pub service_stops: u64,
    /// Messages that were submitted after the faults and are delivered nowhere yet.
    pub last_words: BTreeSet<MessageId>,
    /// One of those messages was delivered.
    is_ordered: bool,
    /// Processes that were left out again and again, each with the time until which it does not ask to be taken in.
    out_until: BTreeMap<Process, u64>,
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
            each: BTreeMap::new(),
            learnt_at: 0,
            configs: BTreeMap::new(),
            wrong: None,
            stored: BTreeMap::new(),
            questions: Vec::new(),
            service_stops: 0,
            last_words: BTreeSet::new(),
            is_ordered: false,
            out_until: BTreeMap::new(),
        }
    }

    /// There is one configuration with each number.
    pub fn look_at(&mut self, now: u64, engine: Option<&URing>, (who, former): (Process, bool)) {
        let Some(engine) = engine else { return };
        if !former {
            let learnt = engine.learnt();
            let before = self.each.insert(who, learnt);
            if before.is_none_or(|before| learnt > before) {
                self.learnt_at = now;
            }
            self.learnt = self.learnt.max(learnt);
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
        self.is_ordered |= self.last_words.remove(&message);
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

    /// A coordinator orders that some instances carry nothing; others cannot.
    pub(super) fn order_skips(&mut self, at: usize) {
        let skips = self.plan.uring.as_ref().map_or(0, |uring| uring.skips);
        if !self.votes.rng.ppm(skips) {
            return;
        }
        let count = self.votes.rng.spread(1, 500);
        let now = self.local(at);
        let paused = self.hosts[at].paused_until > self.now;
        let proposed = self.engine(at).and_then(URing::proposed);
        let Some(life) = self.hosts[at].life.as_mut().filter(|_| !paused) else {
            return;
        };
        let next = proposed.unwrap_or(1) + count;
        if life.engine.submit_skips_to(now, next).is_ok() {
            (life.undrained, life.app.more) = (true, true);
            self.tally.cover("skips");
        }
    }

    /// A process must not miss instances that every acceptor keeps. One instance alone may be missed later: its message
    /// began long before.
    pub(super) fn judge_missed(&mut self, at: usize, (from, count): (Seq, u64)) {
        let Some(uring) = &self.plan.uring else {
            return;
        };
        // A process may have learnt more since anything was told to it last.
        for host in &self.hosts {
            if let Some(life) = &host.life {
                let engine = self.system.voting(life.engine.get());
                let who = (life.process, life.former);
                self.votes.look_at(self.now, engine, who);
            }
        }
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

    /// The number of messages that every process submits when the faults are over.
    pub(super) fn last_words(&self) -> u32 {
        u32::from(self.plan.uring.as_ref().is_some_and(|uring| uring.is_wide))
    }

    /// Whether nobody learns anything for too long after the faults, though there is something to be ordered.
    pub(super) fn is_silent(&self, since: u64) -> bool {
        // A sender that knows no capacity may drown the others in datagrams for longer: agreement has its own limit.
        let may_drown = |uring: &URingPlan| uring.multicast && uring.capacity.is_none();
        let may_drown = self.plan.uring.as_ref().is_some_and(may_drown);
        let is_pending = self.hosts.iter().any(|host| {
            let life = host.life.as_ref();
            let pending = life.map(|life| life.app.pending > 0 && self.is_due(life.process));
            pending.unwrap_or(!host.retired)
        });
        let mut words = self.votes.last_words.iter();
        let lacks =
            is_pending || words.any(|word| self.is_due(word.process)) || !self.votes.is_ordered;
        let waits = self.last_words() > 0 && lacks && !may_drown;
        waits && self.is_still() && self.now > since + SILENT
    }

    /// Whether the messages of a process have to be ordered by now: a process that was left out again and again may
    /// stay out for some time, as it says, and has as long from then on.
    fn is_due(&self, process: Process) -> bool {
        let out_until = self.votes.out_until.get(&process);
        out_until.is_none_or(|until| self.now > until + SILENT)
    }

    /// Notes the processes that stay out, each with its time: not longer than for one that is left out no more.
    pub(super) fn look_who_stays_out(&mut self, since: u64) {
        if self.plan.uring.is_none() {
            return;
        }
        let most = since + STAYS_OUT * self.plan.ring.timers.token_loss;
        for at in 0..self.hosts.len() {
            let Some(life) = &self.hosts[at].life else {
                continue;
            };
            let process = life.process;
            let until = self.system.leaves_alone_until(life.engine.get());
            if let Some(until) = until {
                // A clock may run a tenth slower.
                let until = self.now + until.since(self.local(at)) / 10 * 11;
                self.votes.out_until.insert(process, until.min(most));
            }
        }
    }

    /// Whether nobody has learnt anything for long.
    pub(super) fn is_still(&self) -> bool {
        self.now > self.votes.learnt_at + SILENT
    }

    /// Reports two configurations with one number, if they were seen.
    pub(super) fn judge_configs(&mut self) {
        if let Some(what) = self.votes.wrong.take() {
            self.found("configuration", what);
        }
    }
}
