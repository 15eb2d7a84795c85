//! The conditions that have to hold in each state.

use std::rc::Rc;

use rota_paxos::{Acceptor, AcceptorId, Instance, Learner, Promise, Round, Vote};

use super::node::Disk;
use super::state::{Decided, State, bit, same, show};

impl State {
    /// A vote is durable.
    pub fn on_cast(&mut self, at: usize, vote: &Vote) {
        let mine = bit(&self.nodes[at].id);
        let Some(log) = self.logs.get(vote.round as usize - 1) else {
            return self.found("round", format!("{vote:?} is of no round"));
        };
        for instance in vote.first..vote.end() {
            let proposed = log.at(instance);
            if !proposed.is_some_and(|proposed| same(&proposed.value, &vote.value)) {
                let detail = format!("{vote:?} was not proposed in its round");
                return self.found("round", detail);
            }
        }
        let round = vote.round;
        for instance in vote.first..vote.end() {
            let cast = &mut self.log_mut(round).cast;
            if cast.len() <= instance as usize {
                cast.resize(instance as usize + 1, 0);
            }
            cast[instance as usize] |= mine;
            if self.log(round).is_decided(instance) {
                self.on_decided(instance, vote);
            }
        }
    }

    fn on_decided(&mut self, instance: Instance, vote: &Vote) {
        if let Some(known) = self.decided(instance) {
            if !same(&known.value, &vote.value) {
                let (one, other) = (show(&known.value), show(&vote.value));
                let since = known.since;
                let detail = format!(
                    "{instance} is decided as {one} in round {since}, and as {other} in round {}",
                    vote.round
                );
                return self.found("agreement", detail);
            }
            if known.since <= vote.round {
                return;
            }
        }
        let decided = Rc::make_mut(&mut self.decided);
        if decided.len() <= instance as usize {
            decided.resize(instance as usize + 1, None);
        }
        decided[instance as usize] = Some(Decided {
            value: vote.value.clone(),
            since: vote.round,
        });
        for round in vote.round + 1..=self.logs.len() as Round {
            self.check_proposal(round, instance);
        }
    }

    /// A decided value is proposed in all later rounds, if anything is.
    pub fn check_proposal(&mut self, round: Round, instance: Instance) {
        let Some(known) = self.decided(instance) else {
            return;
        };
        let proposed = self.log(round).at(instance);
        let wrong = proposed.filter(|vote| !same(&vote.value, &known.value));
        if let Some(wrong) = wrong
            && known.since < round
        {
            let (is, since, new) = (show(&known.value), known.since, show(&wrong.value));
            let detail = format!(
                "{instance} is decided as {is} in round {since}, and proposed as {new} in {round}"
            );
            self.found("proposal", detail);
        }
    }

    /// A learner has taken this.
    pub fn on_taken(&mut self, at: usize, vote: &Vote) {
        for instance in vote.first..vote.end() {
            let new = show(&vote.value);
            let who = self.nodes[at].id.node;
            match self.decided(instance) {
                Some(known) if same(&known.value, &vote.value) => {}
                Some(known) => {
                    let is = show(&known.value);
                    let detail =
                        format!("node {who} learns {new} at {instance}, which is decided as {is}");
                    return self.found("learnt", detail);
                }
                None => {
                    let detail =
                        format!("node {who} learns {new} at {instance}, which is not decided");
                    return self.found("learnt", detail);
                }
            }
        }
    }

    /// A promise leaves: all instances that it says to be held are durable.
    pub fn check_held(&mut self, at: usize, promise: &Promise) {
        let disk = &self.nodes[at].disk;
        for instance in disk.floor..promise.held {
            let has = disk.votes.at(instance);
            let said = format!(
                "node {} says in round {} that it holds all before {}",
                promise.acceptor.node, promise.round, promise.held
            );
            let Some(known) = self.decided(instance) else {
                return self.found("held", format!("{said}; {instance} is not decided"));
            };
            let Some(has) = has.filter(|has| same(&has.value, &known.value)) else {
                let detail = format!("{said}; what was decided at {instance} is not on its disk");
                return self.found("held", detail);
            };
            if has.round < known.since {
                let (is, since) = (has.round, known.since);
                let detail = format!(
                    "{said}; it has {instance} with round {is}, which was decided in {since}"
                );
                return self.found("held-round", detail);
            }
        }
    }

    /// A coordinator says that its configuration is complete.
    pub fn check_complete(&mut self, round: Round) {
        let config = self.log(round).config.clone();
        for instance in 1..self.decided.len() as Instance {
            let Some(known) = self.decided(instance).filter(|known| known.since < round) else {
                continue;
            };
            let has = |disk: &Disk| {
                let vote = disk.votes.at(instance);
                instance < disk.floor || vote.is_some_and(|vote| same(&vote.value, &known.value))
            };
            // An acceptor that has lost its disk since has done its part: its set is asked further on.
            let disk = |who: &AcceptorId| {
                let lost = self.lost.iter().find(|(lost, _)| lost == who);
                let place = self.place(*who);
                let there = place.map(|at| &self.nodes[at].disk);
                there.or_else(|| lost.map(|(_, disk)| disk))
            };
            let there = config.acceptors.iter().filter_map(disk);
            let there = there.filter(|disk| has(disk));
            let there = there.count();
            if there < config.majority() {
                let detail = format!("{round} is said to be, and {there} have {instance}");
                return self.found("complete", detail);
            }
        }
    }

    /// Checks a node between steps.
    pub fn check_node(&mut self, at: usize) {
        let node = &self.nodes[at];
        let (learner, acceptor) = (&node.learner, &node.acceptor);
        let next = learner.next();
        if next < learner.decided() {
            let missing = learner.missing();
            if missing.as_ref().is_none_or(|missing| missing.start != next) && waits(learner) {
                let detail = format!(
                    "node {} stands at {next}, knows that all before {} is decided, and asks for {missing:?}",
                    node.id.node,
                    learner.decided()
                );
                return self.found("wait", detail);
            }
        }
        if let Some(instance) = self.wrong_in_log(acceptor, next) {
            let has = acceptor.votes().at(instance);
            let has = has.map_or("nothing at all".to_owned(), |vote| show(&vote.value));
            let detail = format!(
                "node {} has learnt all before {next}, and hands out {has} at {instance}",
                node.id.node
            );
            self.found("log", detail);
        }
    }

    /// The first instance that an acceptor has learnt and cannot hand out, if there is one.
    fn wrong_in_log(&self, acceptor: &Acceptor, next: Instance) -> Option<Instance> {
        let is_right = |instance: &Instance| {
            let (has, is) = (acceptor.votes().at(*instance), self.decided(*instance));
            has.zip(is)
                .is_some_and(|(has, is)| same(&has.value, &is.value))
        };
        (acceptor.kept()..next).find(|instance| !is_right(instance))
    }
}

/// Whether a learner goes on waiting when the round that it follows is over. While that goes on it may wait for votes.
fn waits(learner: &Learner) -> bool {
    let mut learner = learner.clone();
    learner.end_round(learner.decided());
    let next = learner.next();
    let asks = learner
        .missing()
        .is_some_and(|missing| missing.start == next);
    !asks && learner.take().is_none()
}
