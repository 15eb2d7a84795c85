//! The foundation of a cluster, and the choice between two that were founded.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::super::config::Arbiter;
use super::super::peers::Peer;
use super::{Around, Campaign, Membership, sort};
use crate::{AcceptorId, Config};
use rota_core::contract::NodeId;
use rota_core::mutants::{self, Mutant};

/// The step by which the first of the acceptors founds the cluster.
#[derive(Debug)]
pub enum Founding {
    /// This configuration is the first, as soon as it is durable.
    Durably(Arc<Config>),
    /// The service is asked.
    Asks,
}

impl Membership {
    /// The first of the acceptors founds the cluster when all of them are there, and none has ever been in one.
    pub fn try_to_found(&mut self, around: &Around<'_>) -> Option<Founding> {
        let (cx, settings) = (around.cx, &around.cx.settings);
        let is_founder = settings.acceptors.first() == Some(&cx.me.node);
        // An application with a state goes on with the cluster of that state.
        if !is_founder || self.config.is_some() || !around.voter.votes() || self.resumed() > 0 {
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
        let is_new = |peer: &&Peer| peer.here.is_some_and(|here| here.number == 0);
        let others = around.links.iter().filter(is_new);
        let others = others.map(|peer| peer.process);
        let ring = sort(cx, others.chain([cx.me]));
        let founded = 1 + self.random.below(u64::MAX - 1);
        let first = Arc::new(Config {
            founded,
            number: 1,
            coordinator: cx.me,
            ring,
            acceptors,
            prior: Vec::new(),
        });
        match settings.arbiter {
            Arbiter::Embedded => {
                let is_founding = core::mem::replace(&mut self.founding, true);
                (!is_founding).then_some(Founding::Durably(first))
            }
            Arbiter::Service if self.election.candidate.is_none() => {
                self.election.again = cx.now.after(settings.patience.retry);
                self.election.candidate = Some(Campaign::Service(first));
                Some(Founding::Asks)
            }
            Arbiter::Service => None,
        }
    }

    /// Whether this process believes another one that this is the newest configuration.
    pub fn believes(&self, around: &Around<'_>, config: &Config) -> bool {
        // The service alone says which foundation goes on, if there is a service.
        let is_arbitrated = around.cx.settings.arbiter == Arbiter::Service;
        let is_believed =
            is_arbitrated || is_vouched_for(around, config) || mutants::on(Mutant::U71);
        self.config.is_some() || is_believed
    }
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
