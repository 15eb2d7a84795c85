//! Worlds of engines that vote: the losses that may be (`may`), their moments (`lose`) and those that have been
//! (`losses`), the `logs` that are opened again, the coordination `service`, the `knowledge` of processes and their
//! `last_words`, and the conditions beside the order.
//!
//! A voter may lose what it knows while fewer than half of all voters, itself included, have lost theirs since all were
//! well the last time, or are gone for good. All are well when everybody lives in the newest configuration, which has
//! begun and is known to be complete: then all decisions are with a majority of those that vote now.

mod knowledge;
mod last_words;
mod logs;
mod lose;
mod losses;
mod may;
mod service;

use rota_core::contract::{Engine, Seq};
use rota_paxos::uring::URing;

use super::{System, World};
use crate::plan::{DiskMode, MILLIS, SECONDS};
use crate::rng::Rng;
use knowledge::Knowledge;
use last_words::LastWords;
use losses::Losses;
use service::Service;

/// While something submitted after the faults is delivered nowhere, some process learns something within this time.
const SILENT: u64 = 20 * SECONDS;
/// The most losses of a token, by a slow clock, before a process that was left out again and again asks to be taken in.
const STAYS_OUT: u64 = 36;
/// The number of lives of a node at which its churn ends.
const LIVES: u32 = 72;
/// A log that cannot be opened yet is tried again after this.
const REOPENS: u64 = 100 * MILLIS;

/// The world's knowledge of votes, and its draws for them.
#[derive(Debug)]
pub struct Votes {
    rng: Rng,
    losses: Losses,
    pub knowledge: Knowledge,
    pub service: Service,
    pub last_words: LastWords,
}

impl Votes {
    pub fn new(seed: u64) -> Self {
        Self {
            rng: Rng::split(seed, 18),
            losses: Losses::default(),
            knowledge: Knowledge::default(),
            service: Service::default(),
            last_words: LastWords::default(),
        }
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
        let taken = life.engine.submit_skips_to(now, next).is_ok();
        (life.undrained, life.app.more) = (true, true);
        if taken {
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
                self.votes.knowledge.look_at(self.now, engine, who);
            }
        }
        let former = self.hosts[at].life.as_ref().is_none_or(|life| life.former);
        let behind = self.votes.knowledge.behind(from);
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
        let uring = self.plan.uring.as_ref();
        let may_drown = uring.is_some_and(|uring| uring.dissemination.is_unpaced());
        let is_pending = self.hosts.iter().any(|host| {
            let life = host.life.as_ref();
            let pending = life.map(|life| {
                life.app.pending > 0 && self.votes.last_words.is_due(life.process, self.now)
            });
            pending.unwrap_or(!host.retired)
        });
        let lacks = is_pending || self.votes.last_words.are_missing(self.now);
        let waits = self.last_words() > 0 && lacks && !may_drown;
        waits && self.is_still() && self.now > since + SILENT
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
                self.votes.last_words.stays_out(process, until.min(most));
            }
        }
    }

    /// Whether nobody has learnt anything for long.
    pub(super) fn is_still(&self) -> bool {
        self.now > self.votes.knowledge.learnt_at() + SILENT
    }

    /// Reports two configurations with one number, if they were seen.
    pub(super) fn judge_configs(&mut self) {
        if let Some(what) = self.votes.knowledge.take_wrong() {
            self.found("configuration", what);
        }
    }
}
