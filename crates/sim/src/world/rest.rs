//! After the faults: the world heals, and has to come to rest (C8).

use rota_check::event::regular_of;
use rota_core::contract::{ConfigurationKind, Engine, MessageId, Process, Time};

use super::disk::Crash;
use super::host::App;
use super::queue::What;
use super::trouble::Death;
use super::{System, World};
use crate::groups::SimulatedClients;
use crate::plan::{DiskLoss, MILLIS, SECONDS};

/// The time between two looks whether the world rests.
const LOOKS: u64 = 10 * MILLIS;
/// The longest time for draining everything, beyond agreement on a configuration.
const DRAINS_WITHIN: u64 = 300 * SECONDS;

/// The phase of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// Anything may fail.
    Faulty,
    /// Nothing fails any more.
    Healing(Healed),
    /// Everybody agrees and has everything; nothing may change until a time.
    Quiet {
        healed: Healed,
        until: u64,
        /// Configurations that the processes had had when it began.
        confs: u64,
    },
    /// The run has ended well.
    Over,
}

/// The end of the faults.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Healed {
    /// Its time.
    since: u64,
    /// The time for which some process still left another alone then.
    left_alone: u64,
    /// The number of members that had been given up as deaf by then, or within a token-loss time: that verdict needs
    /// three of them, so most of what it rests on was lost before the end of the faults.
    deaf: u64,
}

impl<S: System> World<'_, S> {
    pub(super) fn healed(&self) -> bool {
        self.phase != Phase::Faulty
    }

    /// All faults end, nobody submits any more, and all hosts that are to come back do.
    pub(super) fn heal(&mut self) {
        self.phase = Phase::Healing(Healed {
            since: self.now,
            left_alone: self.left_alone_for(),
            deaf: self.given_up_as_deaf(),
        });
        self.network.heal();
        self.ambush.clear();
        for at in 0..self.hosts.len() {
            self.end_former(at);
            self.mend_disk(at);
            let last_words = self.last_words();
            let host = &mut self.hosts[at];
            (host.paused_until, host.stalled_until) = (0, 0);
            if let Some(life) = &mut host.life {
                life.app.pending = life
                    .desk
                    .as_mut()
                    .map_or(last_words, SimulatedClients::heal);
                life.app.hungry_at = 0;
                // Without the faults it is not killed any more either.
                life.doom = None;
            } else {
                let soon = self.now + host.rng.below(LOOKS);
                self.queue.push(soon, What::Start(at as u16));
            }
            self.hear(at);
            self.wake_now(at);
        }
        self.queue.push(self.now + LOOKS, What::Look);
    }

    /// Kills a process from before all voters lost what they had, and one that never opens its failed log again.
    /// Healing starts both again.
    fn end_former(&mut self, at: usize) {
        let host = &self.hosts[at];
        let Some(life) = &host.life else { return };
        let opens = self.plan.uring.is_some() || self.plan.disks.is_none();
        if !life.former && (opens || !host.disk.is_broken()) {
            return;
        }
        let death = Death {
            host_too: false,
            what: Crash::Process,
            disk: DiskLoss::Unsynced,
            for_good: false,
            lasts: u64::MAX,
        };
        self.die(at, death);
    }

    /// Looks whether the world has come to rest, and whether it is still at rest.
    pub(super) fn look(&mut self) {
        let confs = self.apps().map(|(_, app)| app.confs).sum();
        match self.phase {
            Phase::Healing(healed) => self.look_while_healing(healed, confs),
            Phase::Quiet {
                healed,
                until,
                confs: before,
            } => {
                let in_time = self.now <= healed.since + self.converges_within(healed);
                if confs != before && (in_time || self.progresses(healed.since)) {
                    // Something from before was still on its way.
                    self.phase = Phase::Healing(healed);
                } else if confs != before {
                    self.found("C8", "a configuration changed though nothing had happened");
                } else if self.now >= until {
                    self.quiesce();
                }
            }
            Phase::Faulty | Phase::Over => {}
        }
        self.queue.push(self.now + LOOKS, What::Look);
    }

    /// All has to be agreed on, and handed out, within some time.
    fn look_while_healing(&mut self, mut healed: Healed, confs: u64) {
        let since = healed.since;
        if self.now <= since + self.plan.ring.timers.token_loss {
            healed.deaf = self.given_up_as_deaf();
            self.phase = Phase::Healing(healed);
        }
        self.look_who_stays_out(since);
        if self.is_silent(since) {
            let what = format!(
                "nothing is ordered since the faults ended: {}",
                self.states()
            );
            return self.found("liveness", what);
        }
        if self.given_up_as_deaf() > healed.deaf {
            self.found(
                "C8",
                "a member was given up as deaf where nothing is lost any more",
            );
        }
        let agreed = self.agreed();
        let drained = agreed.and_then(|()| self.drained());
        let settled = self.settled();
        if drained.is_ok() && settled.is_ok() {
            let until = self.now + self.plan.quiet_for();
            self.phase = Phase::Quiet {
                healed,
                until,
                confs,
            };
        } else if self.now > since + self.converges_within(healed)
            && !self.progresses(since)
            && let Err(what) = self.agreed()
        {
            self.found("C8", format!("no agreement since the faults ended: {what}"));
        } else if self.now > since + DRAINS_WITHIN
            && !self.progresses(since)
            && let Err(what) = drained
        {
            self.found("S1", format!("not delivered long after the faults: {what}"));
        } else if self.now > since + DRAINS_WITHIN
            && let Err(what) = settled
        {
            self.found(
                "groups",
                format!("not settled long after the faults: {what}"),
            );
        }
    }

    /// Whether a run of engines that vote may go on. It may take longer, as with windows of one packet and slow disks,
    /// as long as somebody gets further; and for as long as there is something to vote for, acceptors that were behind
    /// may want another round.
    fn progresses(&self, since: u64) -> bool {
        let votes = self.plan.uring.is_some() && !self.is_still();
        votes && self.now <= since + 6 * DRAINS_WITHIN
    }

    /// The time for which some process still leaves another alone, as links that stayed cut can make it do. Agreement
    /// takes as much longer; a process that begins to leave others alone in a healed world is wrong.
    fn left_alone_for(&self) -> u64 {
        let remaining = self.hosts.iter().enumerate().filter_map(|(at, host)| {
            let until = self
                .system
                .leaves_alone_until(host.life.as_ref()?.engine.get())?;
            Some(until.since(self.local(at)))
        });
        // A clock may run a tenth slower.
        remaining.max().unwrap_or(0) / 10 * 11
    }

    /// The number of times that processes have given up a member that got tokens and missed packets.
    fn given_up_as_deaf(&self) -> u64 {
        let lives = self.hosts.iter().filter_map(|host| host.life.as_ref());
        let counts = lives.map(|life| {
            let counters = life.engine.status().counters;
            counters.get("members_deaf").copied().unwrap_or(0)
        });
        counts.sum()
    }

    /// Time from healing to agreement, at most.
    fn converges_within(&self, healed: Healed) -> u64 {
        if self.plan.uring.is_some() {
            // Processes agree within the order, and one that was away hears of it when it has caught up.
            return DRAINS_WITHIN;
        }
        self.plan.converges_within() + healed.left_alone
    }

    fn quiesce(&mut self) {
        self.phase = Phase::Over;
        self.judge_lost();
        self.watch.on_quiet(Time(self.now));
    }

    /// With views, each message of a live process has come to some application, or is known to have been counted as
    /// delivered by a process that died or did not know.
    fn judge_lost(&mut self) {
        if self.plan.views.is_none() {
            return;
        }
        let live = self.hosts.iter().filter_map(|host| host.life.as_ref());
        let lost = live.map(|life| life.process).find_map(|process| {
            let counter = self.payloads.unsettled(process)?;
            Some(MessageId { process, counter })
        });
        if let Some(message) = lost {
            let what = format!("{message} is delivered nowhere, and its sender does not know");
            self.found("lost", what);
        }
    }

    fn apps(&self) -> impl Iterator<Item = (Process, &App)> {
        let lives = self.hosts.iter().filter_map(|host| host.life.as_ref());
        lives.map(|life| (life.process, &life.app))
    }

    /// Whether all live processes share one regular configuration of just them, but for those that observe.
    fn agreed(&self) -> Result<(), String> {
        let hosts = self.hosts.iter().enumerate();
        let members = hosts.filter(|(at, _)| !self.plan.observes(*at));
        let lives = members.filter_map(|(_, host)| host.life.as_ref());
        let members: Vec<Process> = lives.map(|life| life.process).collect();
        let expected = self.hosts.iter().filter(|host| !host.retired).count();
        if self.apps().count() < expected {
            return Err("not everybody is back".to_owned());
        }
        let mut rings = self.apps().map(|(_, app)| app.conf.map(regular_of));
        let first = rings.next().flatten();
        let same = first.is_some() && rings.all(|ring| ring == first);
        let right = self.apps().all(|(_, app)| {
            matches!(app.conf, Some(ConfigurationKind::Regular(_))) && app.members == members
        });
        if same && right {
            Ok(())
        } else {
            Err(self.states())
        }
    }

    /// Whether everybody has got back all of its own, and all have got the same.
    fn drained(&self) -> Result<(), String> {
        for life in self.hosts.iter().filter_map(|host| host.life.as_ref()) {
            let settled = self.system.is_settled(life.engine.get());
            let App { returned, sent, .. } = life.app;
            if settled == Some(false) || settled.is_none() && returned != sent {
                let Process { node, incarnation } = life.process;
                return Err(format!(
                    "node {node}.{} has got back {returned} of its {sent} messages",
                    incarnation.0
                ));
            }
        }
        if self.plan.uring.is_some() {
            return self.at_one_place();
        }
        let mut counts = self.apps().map(|(_, app)| app.delivered);
        let first = counts.next();
        if counts.all(|count| Some(count) == first) {
            Ok(())
        } else {
            Err(format!(
                "different deliveries in one configuration: {}",
                self.states()
            ))
        }
    }

    /// Whether all are at the end of the one order: a process that has missed something counts only from there on.
    fn at_one_place(&self) -> Result<(), String> {
        let last = self.apps().map(|(_, app)| app.last).max().unwrap_or(0);
        if self.apps().all(|(_, app)| app.upto >= last) {
            Ok(())
        } else {
            Err(format!("not all are at {last}: {}", self.states()))
        }
    }

    pub(super) fn states(&self) -> String {
        let mut text = String::new();
        for life in self.hosts.iter().filter_map(|host| host.life.as_ref()) {
            let ring = life.app.conf.map(regular_of);
            let ring = ring.map_or_else(|| "no configuration".to_owned(), |ring| ring.to_string());
            let kind = match life.app.conf {
                Some(ConfigurationKind::Transitional { .. }) => "leaving ",
                _ => "in ",
            };
            let members: Vec<u16> = life.app.members.iter().map(|m| m.node.get()).collect();
            let state = life.engine.status().state;
            let delivered = life.app.delivered.0;
            text += &format!(
                "node {}: {kind}{ring} of {members:?}, {delivered} delivered, {state}; ",
                life.process.node
            );
        }
        text
    }
}
