//! A process: all the machines together, and the code that makes them talk to each other. It is as simple as can be;
//! the real ways of messages are the engines' business.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use rota_core::contract::{NodeId, Process};
use rota_paxos::{
    Acceptor, Candidate, Config, Coordinator, Instance, Learner, Progress, Promise, Proposer,
    Proposers, Register, Round, Slot, Value, Vote, Word,
};

use super::judge::{Judge, payload};
use super::site::{Effect, Snapshot, Store, Write};

/// What processes say.
#[derive(Clone, Debug)]
pub enum Say {
    ToRegister(Round, Word<Arc<Config>>),
    ToCandidate(Round, rota_paxos::AcceptorId, Word<Arc<Config>>),
    Known(Arc<Config>),
    Prepare(Round, Instance),
    Promise(Promise),
    Value(Value),
    Accept(Instance, Instance, Vote),
    Voted(Round, rota_paxos::AcceptorId, Instance),
    Ask(Instance),
    Chosen(Vec<Vote>),
    /// What was asked for is forgotten: it goes on here.
    Forgotten(Snapshot),
    Complete(Round),
}

pub struct Life {
    pub me: Process,
    pub acceptor: Acceptor,
    pub register: Register<Arc<Config>>,
    pub candidate: Option<Candidate<Arc<Config>>>,
    pub coordinator: Option<Coordinator>,
    pub learner: Learner,
    pub table: Proposers,
    /// Where its votes begin.
    pub base: Snapshot,
    pub proposer: Proposer,
    pub config: Arc<Config>,
    /// All that it has heard of.
    configs: BTreeMap<Round, Arc<Config>>,
    pub complete: Round,
    /// Promises that are not durable yet.
    promises: Vec<(NodeId, Promise)>,
    pub out: Vec<(NodeId, Say)>,
    pub effects: Vec<Effect>,
    pub counted: usize,
    pub submitted: u64,
    pub ballots: u64,
    /// As a coordinator it does not look whether a value was proposed before.
    pub sloppy: bool,
    /// Proposals of rounds that were over.
    pub refused: u64,
}

impl Life {
    pub fn new(
        me: Process,
        store: &Store,
        base: &Snapshot,
        first: &Arc<Config>,
        sloppy: bool,
    ) -> Self {
        let base = if store.base.next < base.next {
            base
        } else {
            &store.base
        };
        let config = store.configs.values().next_back().unwrap_or(first).clone();
        let mut register = Register::default();
        for (number, slot) in &store.slots {
            register.restore(*number, slot.clone());
        }
        register.forget(config.number);
        let mut life = Self {
            me,
            acceptor: Acceptor::restore(store.id, store.records.iter().cloned()),
            register,
            candidate: None,
            coordinator: None,
            learner: Learner::new(base.next),
            table: base.table.clone(),
            base: store.base.clone(),
            proposer: Proposer::new(me),
            configs: store
                .configs
                .clone()
                .into_iter()
                .chain([(1, first.clone())])
                .collect(),
            config,
            complete: 0,
            promises: Vec::new(),
            out: Vec::new(),
            effects: Vec::new(),
            counted: base.counted,
            submitted: 0,
            ballots: 0,
            sloppy,
            refused: 0,
        };
        // What its votes say of instances before that, nobody has compared with what was decided.
        if life.base.next < base.next {
            life.rest_on(base.clone());
        }
        life
    }

    pub fn submit(&mut self) {
        let id = rota_paxos::ValueId {
            process: self.me,
            counter: self.submitted + 1,
        };
        self.submitted = self.proposer.submit(Bytes::from(payload(id)));
        assert_eq!(self.submitted, id.counter);
    }

    /// Wants to be the coordinator.
    pub fn stand(&mut self, wanted: Config) {
        self.ballots += 1;
        let voters = self.config.acceptors.clone();
        let number = wanted.number;
        let wanted = Arc::new(wanted);
        self.candidate = Some(Candidate::new(
            number,
            voters,
            self.me,
            self.ballots,
            wanted,
        ));
    }

    pub fn hear(&mut self, from: NodeId, say: Say, judge: &mut Judge) {
        match say {
            Say::ToRegister(number, word) => self.on_register(from, number, word),
            Say::ToCandidate(number, who, word) => {
                let candidate = self.candidate.as_mut();
                let candidate = candidate.filter(|candidate| candidate.number() == number);
                let chosen = candidate.and_then(|candidate| candidate.on_word(who, word));
                if let Some(config) = chosen {
                    judge.on_config(&config);
                    self.know(&config);
                }
            }
            Say::Known(config) => self.know(&config),
            Say::Prepare(round, start) => {
                let config = self.configs.get(&round);
                if config.is_some_and(|config| config.asks(self.acceptor.id()))
                    && let Ok(promise) = self.acceptor.prepare(round, start, self.learner.next())
                {
                    self.promises.push((from, promise));
                }
            }
            Say::Promise(promise) => {
                if let Some(coordinator) = &mut self.coordinator
                    && coordinator.start().is_none()
                {
                    let members = self.config.ring.clone().into();
                    match coordinator.on_promise(promise) {
                        Progress::Waiting => {}
                        // Who lacks something may learn it, or all tell everything.
                        Progress::Behind if self.submitted.is_multiple_of(2) => {}
                        Progress::Behind => coordinator.ask_again(),
                        Progress::Begun => {
                            coordinator.propose(Value::Members(self.config.number, members));
                        }
                    }
                }
            }
            Say::Value(value) => self.on_value(value),
            Say::Accept(start, kept, vote) => {
                let Some(config) = self.configs.get(&vote.round) else {
                    return;
                };
                if config.acceptors.contains(&self.acceptor.id()) {
                    let verdict = self.acceptor.accept(start, kept, &vote);
                    self.refused += u64::from(verdict.is_err());
                }
                self.learner.begin(config, start);
                self.learner.on_proposal(vote);
            }
            Say::Voted(round, who, next) => self.learner.on_voted(round, who, next),
            Say::Ask(start) if start < self.acceptor.kept() => {
                self.out.push((from, Say::Forgotten(self.base.clone())));
            }
            Say::Ask(start) => {
                let upto = self.learner.next();
                let votes = self.acceptor.votes().from(start);
                let votes = votes.filter_map(|vote| vote.part(start, upto)).take(6);
                let votes: Vec<Vote> = votes.collect();
                if !votes.is_empty() {
                    self.out.push((from, Say::Chosen(votes)));
                }
            }
            Say::Forgotten(base) => self.begin_at(base),
            Say::Chosen(votes) => votes.iter().for_each(|vote| self.learner.on_chosen(vote)),
            Say::Complete(round) => self.complete = self.complete.max(round),
        }
        self.settle(judge);
    }

    /// Everything before is forgotten elsewhere.
    pub fn begin_at(&mut self, base: Snapshot) {
        if base.next <= self.learner.next() {
            return;
        }
        self.learner.skip_to(base.next);
        self.table = base.table.clone();
        self.counted = base.counted;
        let own = self.table.last(self.me);
        self.proposer.on_delivered(own.unwrap_or(0));
        self.rest_on(base);
    }

    /// The application has a checkpoint: what it has learnt is forgotten.
    pub fn trim(&mut self) -> Snapshot {
        let base = Snapshot {
            next: self.learner.next(),
            table: self.table.clone(),
            counted: self.counted,
        };
        self.rest_on(base.clone());
        base
    }

    fn rest_on(&mut self, base: Snapshot) {
        self.acceptor.trim(base.next);
        self.effects
            .push(Effect::Write(Write::Snapshot(base.clone())));
        self.base = base;
    }

    fn on_register(&mut self, from: NodeId, number: Round, word: Word<Arc<Config>>) {
        if number <= self.config.number {
            return self.out.push((from, Say::Known(self.config.clone())));
        }
        let is_asked = number == self.config.number + 1;
        if !is_asked || !self.config.acceptors.contains(&self.acceptor.id()) {
            return;
        }
        let Some(answer) = self.register.on_word(number, word) else {
            return;
        };
        let slot: Option<Slot<_>> = self.register.slot(number).cloned();
        let write = slot.map(|slot| Effect::Write(Write::Slot(number, slot)));
        self.effects.extend(write);
        let say = Say::ToCandidate(number, self.acceptor.id(), answer);
        self.effects.push(Effect::Send((self.me.node, from, say)));
    }

    fn know(&mut self, config: &Arc<Config>) {
        self.configs.insert(config.number, config.clone());
        if config.number <= self.config.number {
            return;
        }
        self.config = config.clone();
        self.register.forget(config.number);
        self.effects
            .push(Effect::Write(Write::Config(config.clone())));
        self.candidate = None;
        let next = self.learner.next();
        let leads = config.coordinator == self.me;
        self.coordinator = leads.then(|| Coordinator::new(config.clone(), next));
        self.proposer.propose_again();
    }

    /// As a coordinator: proposes it, if it is the next of its proposer.
    fn on_value(&mut self, value: Value) {
        let Some(coordinator) = &mut self.coordinator else {
            return;
        };
        let Value::Packet { id, .. } = &value else {
            return;
        };
        let Some(start) = coordinator.start() else {
            return;
        };
        if !self.sloppy {
            if self.learner.next() < start {
                return;
            }
            let mut table = self.table.clone();
            for vote in coordinator.open() {
                match &vote.value {
                    _ if vote.first < self.learner.next() => {}
                    Value::Packet { id, .. } => {
                        table.take(*id);
                    }
                    Value::Members(number, members) => {
                        table.install(*number, members);
                    }
                    Value::Skip(_) => {}
                }
            }
            if !table.admits(*id) {
                return;
            }
        }
        coordinator.propose(value);
    }

    /// What follows from what is known.
    pub fn settle(&mut self, judge: &mut Judge) {
        while let Some(vote) = self.learner.take() {
            judge.on_taken(self.me, &vote);
            self.count(&vote.value, judge);
            self.acceptor.learn(vote);
        }
        let reached = self.learner.reached();
        if let Some(coordinator) = &mut self.coordinator
            && self.learner.round() == coordinator.round()
        {
            coordinator.on_reached(reached);
            if coordinator.is_complete(reached) {
                judge.on_complete(coordinator.round());
                self.complete = self.complete.max(coordinator.round());
            }
        }
        let (records, mark) = self.acceptor.records();
        self.effects
            .push(Effect::Write(Write::Records(records, mark)));
        let ready =
            |(_, promise): &mut (NodeId, Promise)| self.acceptor.has_promised(promise.round);
        for (to, promise) in self.promises.extract_if(.., ready) {
            self.out.push((to, Say::Promise(promise)));
        }
    }

    fn count(&mut self, value: &Value, judge: &mut Judge) {
        match value {
            Value::Packet { id, .. } => {
                if self.table.take(*id) {
                    judge.on_counted(self.me, self.counted, *id);
                    self.counted += 1;
                    if id.process == self.me {
                        self.proposer.on_delivered(id.counter);
                    }
                }
            }
            Value::Members(number, members) => {
                self.table.install(*number, members);
            }
            Value::Skip(_) => {}
        }
    }

    /// Says what there is to say, what may be lost once more if `again`; asks one of the others for what is decided.
    pub fn tick(&mut self, nodes: &BTreeMap<NodeId, Process>, again: bool, asked: usize) {
        let others: Vec<NodeId> = nodes.keys().copied().collect();
        let node = self.me.node;
        if let Some(candidate) = &mut self.candidate {
            if again {
                candidate.again(None, None);
                self.ballots = self.ballots.max(1) + 1;
            }
            for voter in candidate.voters() {
                let say = Say::ToRegister(candidate.number(), candidate.word());
                self.out.push((voter.node, say));
            }
        }
        if let Some(coordinator) = &self.coordinator {
            for to in &others {
                self.out.push((*to, Say::Known(self.config.clone())));
                match (coordinator.from(), coordinator.start()) {
                    (Some(from), _) => {
                        self.out
                            .push((*to, Say::Prepare(coordinator.round(), from)));
                    }
                    (None, Some(start)) => {
                        let kept = coordinator.kept();
                        let open = coordinator.open().iter().take(5);
                        let accepts =
                            open.map(|vote| (*to, Say::Accept(start, kept, vote.clone())));
                        self.out.extend(accepts);
                    }
                    _ => {}
                }
                if self.complete == self.config.number {
                    self.out.push((*to, Say::Complete(self.complete)));
                }
            }
        }
        let (round, next) = self.acceptor.voted();
        for to in &others {
            if round > 0 {
                self.out
                    .push((*to, Say::Voted(round, self.acceptor.id(), next)));
            }
        }
        let asked = others.get(asked % others.len()).filter(|to| **to != node);
        self.out
            .extend(asked.map(|to| (*to, Say::Ask(self.learner.next()))));
        if again {
            self.proposer.propose_again();
        }
        while let Some((id, frame)) = self.proposer.propose() {
            let value = Value::Packet { id, frame };
            self.out
                .push((self.config.coordinator.node, Say::Value(value)));
        }
    }
}
