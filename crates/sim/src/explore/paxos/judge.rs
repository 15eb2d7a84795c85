//! The conditions that have to hold in each state.

use rota_core::contract::NodeId;
use rota_paxos::{Acceptor, AcceptorId, Instance, Learner, Promise, Round, Vote};

use super::ledger::{Decided, Ledger, same, show};
use super::node::{Disk, Node};

impl Ledger {
    /// A vote of an acceptor is durable.
    pub fn on_cast(&mut self, who: &AcceptorId, vote: &Vote) {
        if vote.round > self.newest() {
            return self.found("round", format!("{vote:?} is of no round"));
        }
        let log = self.log(vote.round);
        for instance in vote.first..vote.end() {
            let proposed = log.at(instance);
            if !proposed.is_some_and(|proposed| same(&proposed.value, &vote.value)) {
                let detail = format!("{vote:?} was not proposed in its round");
                return self.found("round", detail);
            }
        }
        let round = vote.round;
        for instance in vote.first..vote.end() {
            if self.note_cast(who, round, instance) {
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
        let known = Decided {
            value: vote.value.clone(),
            since: vote.round,
        };
        self.note_decided(instance, known);
        for round in vote.round + 1..=self.newest() {
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

    /// The learner of a node has taken this.
    pub fn on_taken(&mut self, who: NodeId, vote: &Vote) {
        for instance in vote.first..vote.end() {
            let new = show(&vote.value);
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

    /// A promise leaves: all instances that it says to be held are on the disk.
    pub fn check_held(&mut self, disk: &Disk, promise: &Promise) {
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

    /// A coordinator says that its configuration is complete. An acceptor that has lost its disk since has done its
    /// part, as its set is asked further on: `disk` knows lost ones, too.
    pub fn check_complete<'d>(
        &mut self,
        round: Round,
        disk: impl Fn(&AcceptorId) -> Option<&'d Disk>,
    ) {
        let config = self.log(round).config.clone();
        for instance in 1..self.end() {
            let Some(known) = self.decided(instance).filter(|known| known.since < round) else {
                continue;
            };
            let has = |disk: &Disk| {
                let vote = disk.votes.at(instance);
                instance < disk.floor || vote.is_some_and(|vote| same(&vote.value, &known.value))
            };
            let there = config.acceptors.iter().filter_map(&disk);
            let there = there.filter(|disk| has(disk));
            let there = there.count();
            if there < config.majority() {
                let detail = format!("{round} is said to be, and {there} have {instance}");
                return self.found("complete", detail);
            }
        }
    }

    /// Checks a node between steps.
    pub fn check_node(&mut self, node: &Node) {
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rota_core::contract::{Incarnation, Process};
    use rota_paxos::{Config, Value, ValueId};

    use super::super::Checks;
    use super::super::node::acceptor_id;
    use super::*;

    /// Three acceptors in the configuration with a number.
    fn config(number: Round) -> Arc<Config> {
        Arc::new(Config {
            founded: 1,
            number,
            coordinator: process(),
            ring: Vec::new(),
            acceptors: (0..3).map(|at| acceptor_id(at, at)).collect(),
            prior: Vec::new(),
        })
    }

    fn process() -> Process {
        Process {
            node: acceptor_id(0, 0).node,
            incarnation: Incarnation(1),
        }
    }

    /// A vote for a packet, at instance 1.
    fn vote(round: Round, counter: u64) -> Vote {
        let id = ValueId {
            process: process(),
            counter,
        };
        let frame = bytes::Bytes::new();
        Vote {
            first: 1,
            round,
            value: Value::Packet { id, frame },
        }
    }

    /// Two of three acceptors have voted for a packet in round 1.
    fn decided() -> Ledger {
        let mut ledger = Ledger::new(Checks::ALL, config(1));
        ledger.begin(1, 1, 1);
        ledger.propose(vote(1, 7));
        ledger.on_cast(&acceptor_id(0, 0), &vote(1, 7));
        assert_eq!(ledger.decided(1), None);
        ledger.on_cast(&acceptor_id(2, 2), &vote(1, 7));
        ledger
    }

    fn property(mut ledger: Ledger) -> Option<String> {
        ledger.finding().take().map(|finding| finding.property)
    }

    #[test]
    fn durable_votes_of_a_majority_decide() {
        let ledger = decided();
        let known = ledger.decided(1).map(|known| known.since);
        assert_eq!((known, ledger.end()), (Some(1), 2));
        assert_eq!(property(ledger), None);
    }

    #[test]
    fn a_later_round_proposes_what_is_decided_and_nothing_else() {
        for (counter, wrong) in [(7, None), (8, Some("proposal".to_owned()))] {
            let mut ledger = decided();
            ledger.open(config(2));
            ledger.begin(2, 1, 1);
            ledger.propose(vote(2, counter));
            assert_eq!(property(ledger), wrong);
        }
    }

    #[test]
    fn a_vote_for_what_was_not_proposed_is_wrong() {
        let mut ledger = decided();
        ledger.on_cast(&acceptor_id(1, 1), &vote(1, 8));
        assert_eq!(property(ledger), Some("round".to_owned()));
        let mut ledger = decided();
        ledger.on_cast(&acceptor_id(1, 1), &vote(2, 7));
        assert_eq!(property(ledger), Some("round".to_owned()));
    }

    #[test]
    fn a_learner_takes_only_what_is_decided() {
        let who = acceptor_id(1, 1).node;
        let mut ledger = decided();
        ledger.on_taken(who, &vote(1, 7));
        assert!(!ledger.is_violated());
        ledger.on_taken(who, &vote(1, 8));
        assert_eq!(property(ledger), Some("learnt".to_owned()));
    }
}
