//! After the faults: the world heals, and has to come to rest (C8).

use rota_check::event::regular_of;
use rota_core::contract::{ConfigurationKind, Engine, Process, Time};

use super::host::App;
use super::queue::What;
use super::{System, World};
use crate::plan::{MILLIS, SECONDS};

/// How often it is looked whether the world rests.
const LOOKS: u64 = 10 * MILLIS;
/// How long draining everything may take, beyond agreeing on a configuration.
const DRAINS_WITHIN: u64 = 300 * SECONDS;

/// The longest time that a process is left alone, in token-loss times.
const LONGEST_BACK_OFF: u64 = 64;

/// How far a run is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// Anything may fail.
    Faulty,
    /// Nothing fails any more, since a time.
    Healing(u64),
    /// Everybody agrees and has everything; nothing may change until a time.
    Quiet {
        /// When the faults ended.
        since: u64,
        until: u64,
        /// Configurations that the processes had had when it began.
        confs: u64,
    },
    /// The run has ended well.
    Over,
}

impl<S: System> World<'_, S> {
    pub(super) fn healed(&self) -> bool {
        self.phase != Phase::Faulty
    }

    /// All faults end, nobody submits any more, and all hosts that are to come back do.
    pub(super) fn heal(&mut self) {
        self.phase = Phase::Healing(self.now);
        self.network.heal();
        self.armed.clear();
        self.sniped.clear();
        for at in 0..self.hosts.len() {
            let host = &mut self.hosts[at];
            host.disk.fails = None;
            (host.paused_until, host.stalled_until) = (0, 0);
            if let Some(life) = &mut host.life {
                life.app.pending = 0;
                life.app.hungry_at = 0;
                // Without the faults it is not killed any more either.
                life.doom = None;
            } else {
                let soon = self.now + host.rng.below(LOOKS);
                self.queue.push(soon, What::Start(at as u16));
            }
            self.wake_now(at);
        }
        self.queue.push(self.now + LOOKS, What::Look);
    }

    /// Looks whether the world has come to rest, and whether it is still at rest.
    pub(super) fn look(&mut self) {
        let confs = self.apps().map(|(_, app)| app.confs).sum();
        match self.phase {
            Phase::Healing(since) => {
                let agreed = self.agreed();
                let drained = agreed.and_then(|()| self.drained());
                if drained.is_ok() {
                    let until = self.now + self.plan.quiet_for();
                    self.phase = Phase::Quiet {
                        since,
                        until,
                        confs,
                    };
                } else if self.now > since + self.converges_within()
                    && let Err(what) = self.agreed()
                {
                    self.found("C8", format!("no agreement since the faults ended: {what}"));
                } else if self.now > since + DRAINS_WITHIN
                    && let Err(what) = drained
                {
                    self.found("S1", format!("not delivered long after the faults: {what}"));
                }
            }
            Phase::Quiet {
                since,
                until,
                confs: before,
            } => {
                if confs != before && self.now <= since + self.converges_within() {
                    // Something from before was still on its way.
                    self.phase = Phase::Healing(since);
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

    /// Time from healing to agreement, at most. Where processes have left each other alone for a while,
    /// which links that stay cut can make them do, the longest such pause comes on top.
    fn converges_within(&self) -> u64 {
        let backed_off = self
            .hosts
            .iter()
            .filter_map(|host| host.life.as_ref())
            .any(|life| {
                let counters = life.engine.status().counters;
                counters.get("back_offs").is_some_and(|&count| count > 0)
            });
        let pause = if backed_off {
            LONGEST_BACK_OFF * self.plan.ring.timers.token_loss
        } else {
            0
        };
        self.plan.converges_within() + pause
    }

    fn quiesce(&mut self) {
        self.phase = Phase::Over;
        for observer in &mut self.observers {
            if let Err(finding) = observer.quiesce(Time(self.now)) {
                self.finding.get_or_insert(finding);
            }
        }
    }

    fn apps(&self) -> impl Iterator<Item = (Process, &App)> {
        let lives = self.hosts.iter().filter_map(|host| host.life.as_ref());
        lives.map(|life| (life.process, &life.app))
    }

    /// Whether all live processes share one regular configuration of just them.
    fn agreed(&self) -> Result<(), String> {
        let live: Vec<Process> = self.apps().map(|(process, _)| process).collect();
        let expected = self.hosts.iter().filter(|host| !host.retired).count();
        if live.len() < expected {
            return Err("not everybody is back".to_owned());
        }
        let mut rings = self.apps().map(|(_, app)| app.conf.map(regular_of));
        let first = rings.next().flatten();
        let same = first.is_some() && rings.all(|ring| ring == first);
        let right = self.apps().all(|(_, app)| {
            matches!(app.conf, Some(ConfigurationKind::Regular(_))) && app.members == live
        });
        if same && right {
            Ok(())
        } else {
            Err(self.states())
        }
    }

    /// Whether everybody has got back all of its own, and all have got the same.
    fn drained(&self) -> Result<(), String> {
        for (process, app) in self.apps() {
            if app.returned != app.sent {
                let Process { node, incarnation } = process;
                let (returned, sent) = (app.returned, app.sent);
                return Err(format!(
                    "node {node}.{} has got back {returned} of its {sent} messages",
                    incarnation.0
                ));
            }
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

    fn states(&self) -> String {
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
