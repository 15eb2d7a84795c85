//! A coordinator's steps: it is chosen, promises come, it proposes.

use std::sync::Arc;

use bytes::Bytes;
use rota_paxos::{AcceptorId, Coordinator, Progress, Promise, Round, Value, ValueId, Vote};

use super::moves::Voters;
use super::state::State;

impl State {
    /// The arbiter has chosen what this node wants.
    pub fn stand(&mut self, who: usize, voters: Voters) {
        self.left.stands -= 1;
        let old = self.ledger.config().clone();
        let mut acceptors = old.acceptors.clone();
        match voters {
            Voters::Same => {}
            Voters::Mended => {
                for voter in &mut acceptors {
                    let at = usize::from(voter.node.get()) - 1;
                    *voter = self.nodes[at].id;
                }
            }
            Voters::Without(at) => {
                self.left.changes -= 1;
                let gone: AcceptorId = self.nodes[usize::from(at)].id;
                acceptors.retain(|voter| *voter != gone);
                self.node(at.into());
            }
            Voters::With(at) => {
                self.left.changes -= 1;
                acceptors.push(self.nodes[usize::from(at)].id);
                self.node(at.into());
            }
        }
        let node = self.node(who);
        let config = old.next(node.complete, node.process(), Vec::new(), acceptors);
        let config = Arc::new(config);
        let mut coordinator = Coordinator::new(config.clone(), node.learner.next());
        coordinator.on_complete(node.complete);
        node.coordinator = Some(coordinator);
        node.know(config.number);
        self.ledger.open(config);
        self.settle(who);
        self.ask_itself(who);
    }

    /// A coordinator's own acceptor hears at once what it asks and proposes.
    pub fn ask_itself(&mut self, at: usize) {
        let node = &self.nodes[at];
        let machine = node.coordinator.as_ref();
        if machine.is_some_and(|machine| machine.lacks(node.id)) && !self.rules.apart {
            self.ask(at, at, false);
        }
    }

    pub fn on_promise(&mut self, promise: Promise) {
        let leads = |coordinator: &Coordinator| coordinator.round() == promise.round;
        let by = self
            .nodes
            .iter()
            .position(|node| node.coordinator.as_ref().is_some_and(leads));
        let Some(by) = by else {
            return;
        };
        let had_begun = self.has_begun(by);
        let Some(coordinator) = &mut self.node(by).coordinator else {
            return;
        };
        let progress = coordinator.on_promise(promise);
        self.begin_round(by, had_begun, progress);
    }

    pub fn on_complete(&mut self, at: usize, number: Round) {
        let had_begun = self.has_begun(at);
        let node = self.node(at);
        node.complete = node.complete.max(number);
        let progress = node
            .coordinator
            .as_mut()
            .map(|machine| machine.on_complete(number));
        self.begin_round(at, had_begun, progress.unwrap_or(Progress::Waiting));
    }

    fn has_begun(&self, at: usize) -> bool {
        let coordinator = self.nodes[at].coordinator.as_ref();
        coordinator.is_some_and(|coordinator| coordinator.start().is_some())
    }

    /// Phase 1 has ended, perhaps: what may have been decided is proposed again, and who is a member from here on.
    fn begin_round(&mut self, by: usize, had_begun: bool, progress: Progress) {
        let begins = progress == Progress::Begun && !had_begun;
        let node = self.node(by);
        if let Some(coordinator) = node.coordinator.as_ref().filter(|_| begins) {
            let round = coordinator.round();
            let (start, kept) = (coordinator.start().unwrap_or(0), coordinator.kept());
            let open: Vec<Vote> = coordinator.open().iter().cloned().collect();
            let config = self.ledger.log(round).config.clone();
            self.node(by).learner.begin(&config, start);
            self.ledger.begin(round, start, kept);
            for vote in open {
                self.note_proposal(by, vote);
            }
            if self.rules.members {
                self.propose(by, Value::Members(round, Arc::from([])));
            }
        }
        self.settle(by);
    }

    pub fn propose_value(&mut self, by: usize) {
        let process = self.nodes[by].process();
        let coordinator = self.nodes[by].coordinator.as_ref();
        let counter = coordinator.map_or(0, |machine| 100 * machine.round() + machine.next());
        let id = ValueId { process, counter };
        let frame = Bytes::new();
        self.propose(by, Value::Packet { id, frame });
    }

    pub fn propose(&mut self, by: usize, value: Value) {
        let coordinator = self.node(by).coordinator.as_mut();
        let vote = coordinator.and_then(|machine| machine.propose(value).cloned());
        if let Some(vote) = vote {
            self.note_proposal(by, vote);
        }
        self.settle(by);
    }

    /// A proposal is on its way, from now on.
    fn note_proposal(&mut self, by: usize, vote: Vote) {
        let round = vote.round;
        let place = self.ledger.propose(vote);
        if !self.rules.apart {
            self.on_proposal(by, round, place);
        }
    }
}
