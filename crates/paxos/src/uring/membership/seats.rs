//! Seats: the acceptors of the configurations come nearer to their list, one at a time.
//!
//! A step takes one acceptor in, leaves one out, or puts one in the place of another. The coordinator takes it, from a
//! configuration that is complete, so that no more than two sets are ever asked for it: the new one, and the one before
//! ([`Config::prior`]). Whoever is to come in says that it has caught up; until then nothing is changed for it.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::super::acceptor_list::AcceptorList;
use super::super::context::Context;
use super::{Around, votes_as};
use crate::{AcceptorId, Config, Instance, Round, has_acceptor_of};
use rota_core::contract::{NodeId, Process, Time};
use rota_core::mutants::{self, Mutant};

/// Whoever lacks no more decided instances than these has caught up.
pub const NEAR: u64 = 1024;
/// An offer counts for this many times the time after which it is repeated.
const LASTS: u64 = 4;

/// See the module's page.
#[derive(Debug, Default)]
pub struct Seats {
    /// By process: the acceptor as which it would vote, and the time at which it has last said that it has caught up.
    offers: BTreeMap<Process, (AcceptorId, Time)>,
    /// The time at which this process offers to vote again.
    again: Time,
}

impl Seats {
    /// A process offers to vote, having learnt everything before `theirs`. `next`: all before is learnt here.
    pub fn on_offer(
        &mut self,
        now: Time,
        (process, who): (Process, AcceptorId),
        (theirs, next): (Instance, Instance),
    ) {
        let is_near = theirs.saturating_add(NEAR) >= next || mutants::on(Mutant::U152);
        match is_near && who.node == process.node {
            true => self.offers.insert(process, (who, now)),
            false => self.offers.remove(&process),
        };
    }

    /// The link to a process is gone.
    pub fn on_down(&mut self, process: Process) {
        self.offers.remove(&process);
    }

    /// Whether this process is to offer to vote now. If so, it does that again later.
    pub fn offers(&mut self, cx: &Context) -> bool {
        let is_due = cx.now >= self.again;
        if is_due {
            self.again = cx.now.after(cx.settings.patience.retry);
        }
        is_due
    }

    /// The acceptor as which a node offers to vote, whose process is in the ring.
    fn offered(&self, cx: &Context, config: &Config, node: NodeId) -> Option<AcceptorId> {
        let process = config.ring.iter().find(|process| process.node == node)?;
        let (who, at) = self.offers.get(process)?;
        let lasts = LASTS * cx.settings.patience.retry;
        (cx.now.since(*at) <= lasts).then_some(*who)
    }
}

/// Whether a node is one of those that vote, keep what they learn, and promise: an acceptor of the configuration, one
/// that is to be, or one of an earlier configuration that may have to be asked. `complete`: the newest configuration
/// known to be complete.
pub fn has_seat(config: &Config, complete: Round, list: &AcceptorList, node: NodeId) -> bool {
    let goes_on = mutants::on(Mutant::U156) && complete > 0;
    let is_to = || list.has(node) || is_asked(config, complete, node) || goes_on;
    config.has_acceptor_of(node) || !list.is_none() && is_to()
}

/// Whether a node is an acceptor of the configuration, or of an earlier one that may have to be asked.
pub fn is_asked(config: &Config, complete: Round, node: NodeId) -> bool {
    let mut prior = config.prior.iter().filter(|set| set.number >= complete);
    config.has_acceptor_of(node) || prior.any(|set| has_acceptor_of(&set.acceptors, node))
}

/// Whether the acceptors of a configuration are those of the list.
fn is_reached(config: &Config, list: &AcceptorList) -> bool {
    let mut nodes = config.acceptors.iter().map(|who| who.node);
    config.acceptors.len() == list.nodes().len() && nodes.all(|node| list.has(node))
}

impl Seats {
    /// The acceptors one step nearer to their list, if this process coordinates and the step may be taken now.
    pub fn nearer(
        &self,
        around: &Around<'_>,
        (config, complete): (&Config, Round),
    ) -> Option<Vec<AcceptorId>> {
        let list = around.learning.learnt().accounts.acceptor_list();
        let is_begun = around
            .leading
            .is_some_and(super::RoundCoordinator::has_begun);
        let is_complete = complete == config.number || mutants::on(Mutant::U151);
        // This is asked in each turn, and the list is reached in nearly all of them.
        if list.is_none() || !is_begun || !is_complete || is_reached(config, list) {
            return None;
        }
        let mut next = self.step(around, config, (list, config.acceptors.clone()))?;
        if mutants::on(Mutant::U150) {
            while let Some(further) = self.step(around, config, (list, next.clone())) {
                next = further;
            }
        }
        let well = |set: &[AcceptorId]| {
            let votes = |who: &&AcceptorId| is_well(around, config, **who);
            2 * set.iter().filter(votes).count() > set.len()
        };
        (well(&next) && well(&config.acceptors)).then_some(next)
    }

    fn step(
        &self,
        around: &Around<'_>,
        config: &Config,
        (list, mut set): (&AcceptorList, Vec<AcceptorId>),
    ) -> Option<Vec<AcceptorId>> {
        let is_in = |node: &NodeId| has_acceptor_of(&set, *node);
        let mut comes = list.nodes().iter().filter(|node| !is_in(node));
        let comes = comes.find_map(|node| self.offered(around.cx, config, *node));
        let goes = |at: &usize| !list.has(set[*at].node);
        // Who does not vote goes first.
        let ill = |at: &usize| goes(at) && !is_well(around, config, set[*at]);
        let all = 0..set.len();
        let goes = all.clone().find(ill).or_else(|| all.clone().find(goes));
        match (goes, comes) {
            (Some(at), Some(who)) => set[at] = who,
            (None, Some(who)) => set.push(who),
            // One that has not caught up takes its place later.
            (Some(at), None) if set.len() > list.nodes().len() => drop(set.remove(at)),
            _ => return None,
        }
        Some(set)
    }
}

/// Whether an acceptor votes, and its process is in the ring and there.
fn is_well(around: &Around<'_>, config: &Config, who: AcceptorId) -> bool {
    let mut ring = config.ring.iter();
    let process = ring.find(|process| process.node == who.node);
    process.is_some_and(|process| {
        let is_there = *process == around.cx.me || around.links.has(*process);
        is_there && votes_as(around, *process) == Some(who)
    })
}
