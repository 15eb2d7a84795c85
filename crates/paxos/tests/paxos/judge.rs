//! The judge of a run: it sees everything durable, and checks properties that must hold.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rota_core::contract::Process;
use rota_paxos::{AcceptorId, Config, Instance, Round, Value, ValueId, Vote};

use super::site::Snapshot;

/// What an instance holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Cell {
    Packet(ValueId, Vec<u8>),
    Members(Vec<Process>),
    Nothing,
}

fn cell(value: &Value) -> Cell {
    match value {
        Value::Packet { id, frame } => Cell::Packet(*id, frame.to_vec()),
        Value::Members(_, members) => Cell::Members(members.to_vec()),
        Value::Skip(_) => Cell::Nothing,
    }
}

/// The payload of a value: nobody else's.
pub fn payload(id: ValueId) -> Vec<u8> {
    format!("{id:?}").into_bytes()
}

/// What is voted for, and by whom.
type Cast = (Cell, BTreeSet<AcceptorId>);

#[derive(Default)]
pub struct Judge {
    pub configs: BTreeMap<Round, Arc<Config>>,
    /// Durable votes.
    cast: BTreeMap<(Round, Instance), Cast>,
    pub decided: BTreeMap<Instance, Cell>,
    /// By instance: the first round in which it was decided.
    since: BTreeMap<Instance, Round>,
    /// What stores hold now.
    held: BTreeMap<(Instance, AcceptorId), Cell>,
    completed: Round,
    /// The newest checkpoint of the application: it is kept elsewhere, and whoever begins anew begins there.
    pub base: Snapshot,
    /// What counted, in order.
    pub order: Vec<ValueId>,
    last: BTreeMap<Process, u64>,
    pub wrong: Option<String>,
}

impl Judge {
    fn found(&mut self, what: String) {
        self.wrong.get_or_insert(what);
    }

    pub fn on_config(&mut self, config: &Arc<Config>) {
        let known = self
            .configs
            .entry(config.number)
            .or_insert_with(|| config.clone());
        if known != config {
            let what = format!(
                "configuration {} is two: {known:?}, {config:?}",
                config.number
            );
            self.found(what);
        }
    }

    /// A vote is durable.
    pub fn on_vote(&mut self, who: AcceptorId, vote: &Vote) {
        let Some(config) = self.configs.get(&vote.round).cloned() else {
            return self.found(format!("a vote in round {}, which is none", vote.round));
        };
        for instance in vote.first..vote.end() {
            let is = cell(&vote.value);
            let (cell, by) = self
                .cast
                .entry((vote.round, instance))
                .or_insert_with(|| (is.clone(), BTreeSet::new()));
            if *cell != is {
                let what = format!("round {} has {cell:?} and {is:?} at {instance}", vote.round);
                return self.found(what);
            }
            by.insert(who);
            self.held.insert((instance, who), is.clone());
            let voters = config.acceptors.iter().filter(|who| by.contains(who));
            if voters.count() < config.majority() {
                continue;
            }
            self.since.entry(instance).or_insert(vote.round);
            let known = self.decided.entry(instance).or_insert_with(|| is.clone());
            if *known != is {
                let what = format!(
                    "agreement: {instance} is {known:?}, and {is:?} in round {}",
                    vote.round
                );
                return self.found(what);
            }
        }
    }

    /// A coordinator says that a majority of its acceptors has all that was decided in earlier rounds.
    pub fn on_complete(&mut self, round: Round) {
        if std::mem::replace(&mut self.completed, round) == round {
            return;
        }
        let Some(config) = self.configs.get(&round) else {
            return;
        };
        for (instance, cell) in self.decided.range(self.base.next..) {
            let has = |who: &&AcceptorId| self.held.get(&(*instance, **who)) == Some(cell);
            let count = config.acceptors.iter().filter(has).count();
            if self.since[instance] < round && count < config.majority() {
                let what = format!("complete: {count} have {instance} when {round} says all do");
                return self.found(what);
            }
        }
    }

    /// A learner has taken a vote.
    pub fn on_taken(&mut self, who: Process, vote: &Vote) {
        for instance in vote.first..vote.end() {
            let is = cell(&vote.value);
            match self.decided.get(&instance) {
                Some(known) if *known == is => {}
                Some(known) => {
                    let what = format!("learner {who:?} has {is:?} at {instance}, not {known:?}");
                    self.found(what);
                }
                None => self.found(format!(
                    "quorum: {who:?} learns {is:?} at {instance}, undecided"
                )),
            }
        }
        if let Value::Packet { id, frame } = &vote.value
            && payload(*id) != frame.as_ref()
        {
            self.found(format!("content of {id:?}"));
        }
    }

    /// A value counted at a learner, as the one with this place.
    pub fn on_counted(&mut self, who: Process, place: usize, id: ValueId) {
        match self.order.get(place) {
            Some(known) if *known == id => {}
            Some(known) => {
                let what = format!("order: {who:?} has {id:?} at place {place}, others {known:?}");
                self.found(what);
            }
            None => {
                let last = self.last.entry(id.process).or_default();
                if *last + 1 != id.counter {
                    let what = format!("once: {id:?} after {last}");
                    return self.found(what);
                }
                *last = id.counter;
                self.order.push(id);
            }
        }
    }
}
