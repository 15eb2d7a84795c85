//! The foundation of a cluster: which one a process belongs to, and the first configuration of a new one.

use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::super::config::Arbiter;
use super::super::context::Context;
use super::super::peers::Peer;
use super::{Around, sort};
use crate::{AcceptorId, Config};
use rota_core::contract::{NodeId, Process};
use rota_core::mutants::{self, Mutant};
use rota_core::random::Random;

/// The step by which the first of the acceptors founds the cluster.
#[derive(Debug)]
pub enum Founding {
    /// This configuration is the first, as soon as it is durable.
    Durably(Arc<Config>),
    /// The service is asked.
    Asks,
}

/// See the module's page. `config` is the newest configuration; `None` before the first.
#[derive(Debug, Default)]
pub struct Foundation {
    /// The first configuration is being written.
    founding: bool,
    /// Processes that have turned out to belong to another foundation.
    foreign: BTreeSet<Process>,
    /// The application has a state of this foundation; 0 if it has none.
    resumed: u64,
}

impl Foundation {
    /// The application has a state of this foundation.
    pub const fn resume(&mut self, founded: u64) {
        self.resumed = founded;
    }

    /// The foundation of the application's state; 0 if it began without one.
    pub fn resumed(&self) -> u64 {
        match mutants::on(Mutant::U97) {
            true => 0,
            false => self.resumed,
        }
    }

    /// The foundation of this process; 0 if it has none yet.
    pub fn founded(&self, config: Option<&Config>) -> u64 {
        config.map_or(self.resumed(), |config| config.founded)
    }

    /// Whether a foundation is another one than that of this process: its numbers say nothing here.
    pub fn is_foreign(&self, config: Option<&Config>, founded: u64) -> bool {
        let own = self.founded(config);
        founded > 0 && own > 0 && founded != own && !mutants::on(Mutant::U42)
    }

    /// A process has turned out to belong to another foundation. Returns whether that is news.
    pub fn on_foreign(&mut self, process: Process) -> bool {
        self.foreign.insert(process)
    }

    /// The link to a process is gone.
    pub fn on_down(&mut self, process: Process) {
        self.foreign.remove(&process);
    }

    /// Whether any process has turned out to belong to another foundation.
    pub fn has_foreign(&self) -> bool {
        !self.foreign.is_empty()
    }

    /// Whether the ring was founded anew after the application's state, which then says nothing about this ring.
    pub fn is_refounded(&self, cx: &Context, config: Option<&Config>) -> bool {
        let is_other = match config {
            Some(config) => config.founded != self.resumed(),
            // A single acceptor that is left from before says nothing.
            None => 2 * self.foreign_acceptors(cx) > cx.settings.acceptors.len(),
        };
        self.resumed() > 0 && is_other
    }

    fn foreign_acceptors(&self, cx: &Context) -> usize {
        let acceptors = cx.settings.acceptors.iter();
        let is_foreign = |node: &&NodeId| self.foreign.iter().any(|who| who.node == **node);
        acceptors.filter(is_foreign).count()
    }

    /// Whether `next` is of the foundation to which this process belongs. If it is not, all acceptors have lost their
    /// stores and others have begun anew: this process belongs to the cluster before.
    pub fn belongs(&self, config: Option<&Config>, next: &Config) -> bool {
        let founded = self.founded(config);
        founded == 0 || founded == next.founded || mutants::on(Mutant::U43)
    }

    /// The first configuration, if this process is to found the cluster: it is the first of the acceptors, all of them
    /// are there, and none has ever been in a configuration. An application with a state goes on with the cluster of
    /// that state.
    pub fn first(&self, around: &Around<'_>, random: &mut Random) -> Option<Arc<Config>> {
        let (cx, settings) = (around.cx, &around.cx.settings);
        let is_founder = settings.acceptors.first() == Some(&cx.me.node);
        if !is_founder || !around.voter.votes() || self.resumed() > 0 {
            return None;
        }
        let acceptors = founders(around);
        let all = settings.acceptors.len();
        let enough = if mutants::on(Mutant::U13) {
            all / 2 + 1
        } else {
            all
        };
        if acceptors.len() < enough {
            return None;
        }
        let is_new = |peer: &&Peer| {
            let is_new = peer.here.is_some_and(|here| here.number == 0);
            is_new && !cx.is_observer(peer.process.node)
        };
        let others = around.links.iter().filter(is_new);
        let others = others.map(|peer| peer.process);
        let ring = sort(cx, others.chain([cx.me]));
        Some(Arc::new(Config {
            founded: 1 + random.below(u64::MAX - 1),
            number: 1,
            coordinator: cx.me,
            ring,
            acceptors,
            prior: Vec::new(),
        }))
    }

    /// The first configuration is to be written. Returns whether it is not being written already.
    pub const fn write(&mut self) -> bool {
        !core::mem::replace(&mut self.founding, true)
    }

    /// The log failed while the first configuration was being written.
    pub const fn stop(&mut self) {
        self.founding = false;
    }

    /// Its invariants.
    pub fn check(&self, cx: &Context) {
        assert!(
            !self.foreign.contains(&cx.me),
            "no process is foreign to itself"
        );
    }
}

/// Whether a process without a configuration believes another one that this is the newest.
pub fn is_believed(around: &Around<'_>, config: &Config) -> bool {
    // The service alone says which foundation goes on, if there is a service.
    let is_arbitrated = around.cx.settings.arbiter == Arbiter::Service;
    is_arbitrated || is_vouched_for(around, config) || mutants::on(Mutant::U71)
}

/// The acceptors of the settings that are there and have never been in a configuration.
fn founders(around: &Around<'_>) -> Vec<AcceptorId> {
    let acceptor = |node: &NodeId| {
        if *node == around.cx.me.node {
            return Some(around.voter.id());
        }
        let here = around.links.at(*node)?.here?;
        let acceptor = here.acceptor.filter(|_| here.number == 0);
        acceptor.filter(|who| who.node == *node)
    };
    let acceptors = around.cx.settings.acceptors.iter();
    acceptors.filter_map(acceptor).collect()
}

/// Whether a process without a foundation may take this configuration for one of the cluster that goes on: a majority
/// of its acceptors belongs to its foundation, or it names this process. A single acceptor may have a log of a cluster
/// that has been founded anew since.
fn is_vouched_for(around: &Around<'_>, config: &Config) -> bool {
    let names =
        config.ring.contains(&around.cx.me) || config.acceptors.contains(&around.voter.id());
    let belongs = |who: &&AcceptorId| {
        let peer = around.links.at(who.node);
        peer.is_some_and(|peer| peer.theirs == config.founded)
    };
    names || config.acceptors.iter().filter(belongs).count() >= config.majority()
}
