//! The effects of steps. Nodes are wired together as the engines do it.

use std::rc::Rc;

use rota_paxos::{Instance, Record, Round, Value, Vote};

use super::describe::describe;
use super::moves::Move;
use super::node::Effect;
use super::state::{Flight, State};

/// The number of a configuration of another cluster.
const FOREIGN: Round = 50;

impl State {
    /// Makes a step.
    pub fn step(&mut self, step: Move) {
        if let Some(mut trail) = self.trail.take() {
            let (before, said) = (self.hash(), describe(self, step));
            self.make(step);
            self.share();
            let matters = self.ledger.is_violated() || self.hash() != before;
            trail.extend(matters.then_some(said));
            self.trail = Some(trail);
            return;
        }
        self.make(step);
        self.share();
    }

    fn make(&mut self, step: Move) {
        match step {
            Move::Proposal { to, round, place } => {
                self.on_proposal(to.into(), round.into(), place.into());
            }
            Move::Hear { to, upto } => self.hear(to.into(), upto.into()),
            Move::Ask { by, to, late } => self.ask(by.into(), to.into(), late),
            Move::AskAgain { by } => {
                if let Some(coordinator) = &mut self.node(by.into()).coordinator {
                    coordinator.ask_again();
                }
                self.settle(by.into());
                self.ask_itself(by.into());
            }
            Move::Fetch {
                to,
                of,
                from,
                upto,
                late,
            } => {
                let asked = Instance::from(from)..Instance::from(upto);
                self.fetch(to.into(), of.into(), asked, late);
            }
            Move::Arrive(at) => self.arrive(at.into()),
            Move::Stand { who, voters } => self.stand(who.into(), voters),
            Move::Value(by) => {
                self.left.values -= 1;
                self.propose_value(by.into());
            }
            Move::Skip(by, span) => {
                self.left.skips -= 1;
                self.propose(by.into(), Value::Skip(span.into()));
            }
            Move::Complete(at) => self.on_complete(at.into(), self.claimed),
            other => self.fault(other),
        }
    }

    /// Makes the steps that go wrong, or take their time.
    fn fault(&mut self, step: Move) {
        match step {
            Move::Foreign(at) => {
                self.left.foreign -= 1;
                self.on_complete(at.into(), FOREIGN);
            }
            Move::Trim { who, below } => {
                self.left.trims -= 1;
                self.rest_on(who.into(), below.into());
                self.settle(who.into());
            }
            Move::Sync(at) => {
                self.flush(at.into(), usize::MAX, true);
                self.seal(at.into());
            }
            Move::Restart { who, written } => {
                self.left.crashes -= 1;
                self.flush(who.into(), written.into(), false);
                self.node(who.into()).restart();
                self.settle(who.into());
            }
            Move::Lose(at) => {
                self.left.disks -= 1;
                let store = self.stores;
                self.stores += 1;
                let node = &self.nodes[usize::from(at)];
                let lost = (node.id, node.disk.clone());
                Rc::make_mut(&mut self.lost).push(lost);
                self.node(at.into()).replace(store);
                self.settle(at.into());
            }
            _ => {}
        }
    }

    pub fn on_proposal(&mut self, to: usize, round: Round, place: usize) {
        let log = self.ledger.copy(round);
        let vote = &log.proposals[place];
        if round < self.nodes[to].known && !self.rules.loose {
            return;
        }
        let in_order = !self.rules.reorder;
        let node = self.node(to);
        node.know(round);
        if in_order {
            node.got = (round, place as u8 + 1);
        }
        if log.config.acceptors.contains(&node.id) {
            // An earlier round is refused.
            let _ = node.acceptor.accept(log.start, log.kept, vote);
        }
        node.learner.begin(&log.config, log.start);
        node.learner.on_proposal(vote.clone());
        self.settle(to);
    }

    /// A learner takes from votes only how far a majority is; so it hears of all acceptors at once, up to `upto`.
    /// Nothing has happened if it knows no more then.
    fn hear(&mut self, to: usize, upto: Instance) {
        let round = self.nodes[to].learner.round();
        let log = self.ledger.copy(round);
        let mut learner = self.nodes[to].learner.clone();
        let before = learner.reached();
        for (who, told) in log.config.acceptors.iter().zip(&log.told) {
            learner.on_voted(round, *who, upto.min(*told));
        }
        if learner.reached() > before {
            self.node(to).learner = learner;
            self.settle(to);
        }
    }

    pub fn ask(&mut self, by: usize, to: usize, late: bool) {
        let coordinator = self.nodes[by].coordinator.as_ref();
        let asked = coordinator.and_then(|machine| Some((machine.round(), machine.from()?)));
        let Some((round, from)) = asked else {
            return;
        };
        if round < self.nodes[to].known && !self.rules.loose {
            return;
        }
        self.left.late -= u8::from(late);
        let node = self.node(to);
        node.know(round);
        let held = node.learner.next();
        if let Ok(promise) = node.acceptor.prepare(round, from, held) {
            node.write();
            node.queue.push(Effect::Promise(promise, late));
        }
        // All instances before that one are decided, and the coordinator knows their values.
        if from > held && node.learner.round() < round {
            node.learner.end_round(from);
        }
        self.settle(to);
    }

    fn fetch(&mut self, to: usize, of: usize, asked: std::ops::Range<Instance>, late: bool) {
        let other = &self.nodes[of];
        let (kept, base) = (other.acceptor.kept(), other.base);
        if asked.start < kept {
            if base > self.nodes[to].learner.next() {
                self.begin_at(to, base);
            }
            return;
        }
        let votes = other.acceptor.votes().from(asked.start);
        let votes = votes.map_while(|vote| vote.part(asked.start, asked.end));
        let votes: Vec<Vote> = votes.collect();
        if late {
            self.left.late -= 1;
            let flight = Flight::Answer(to, self.nodes[to].lives, votes);
            return self.delay(flight);
        }
        self.on_chosen(to, &votes);
    }

    /// A node goes on behind a checkpoint.
    pub fn begin_at(&mut self, to: usize, base: Instance) {
        self.node(to).learner.skip_to(base);
        self.rest_on(to, base);
        self.settle(to);
    }

    pub fn on_chosen(&mut self, to: usize, votes: &[Vote]) {
        let node = self.node(to);
        for vote in votes {
            node.learner.on_chosen(vote);
        }
        self.settle(to);
    }

    fn delay(&mut self, flight: Flight) {
        let flights = Rc::make_mut(&mut self.flights);
        if !flights.contains(&flight) {
            flights.push(flight);
            flights.sort_by_cached_key(|flight| format!("{flight:?}"));
        }
    }

    fn arrive(&mut self, at: usize) {
        match Rc::make_mut(&mut self.flights).remove(at) {
            Flight::Promise(promise) => self.on_promise(promise),
            Flight::Answer(to, life, votes) if self.nodes[to].lives == life => {
                self.on_chosen(to, &votes);
            }
            Flight::Answer(..) => {}
        }
    }

    /// Everything before `base` is in a checkpoint of the application, and forgotten.
    pub fn rest_on(&mut self, at: usize, base: Instance) {
        self.checkpoint = self.checkpoint.max(base);
        let node = self.node(at);
        node.base = base;
        node.queue.push(Effect::Snapshot(base));
        node.acceptor.trim(base);
    }

    /// Draws the consequences of all that a node knows.
    pub fn settle(&mut self, at: usize) {
        while let Some(vote) = self.node(at).learner.take() {
            let who = self.nodes[at].id.node;
            self.ledger.on_taken(who, &vote);
            self.node(at).acceptor.learn(vote);
        }
        self.on_reached(at);
        self.node(at).write();
        if !self.rules.lazy {
            self.flush(at, usize::MAX, true);
        }
        self.tell_votes(at);
        self.ledger.check_node(&self.nodes[at]);
        self.seal(at);
    }

    fn on_reached(&mut self, at: usize) {
        let node = self.node(at);
        let (round, reached) = (node.learner.round(), node.learner.reached());
        let Some(coordinator) = node.coordinator.as_mut().filter(|it| it.round() == round) else {
            return;
        };
        coordinator.on_reached(reached);
        if coordinator.is_complete(reached) && node.complete < round {
            node.complete = round;
            self.claimed = self.claimed.max(round);
            let (nodes, lost) = (&self.nodes, &self.lost);
            self.ledger.check_complete(round, |who| {
                let node = nodes.iter().find(|node| node.id == *who);
                let lost = lost.iter().find(|(lost, _)| lost == who);
                node.map(|node| &node.disk)
                    .or_else(|| lost.map(|(_, disk)| disk))
            });
        }
    }

    /// The first `count` of the effects that wait take place; a process that has died is told nothing.
    fn flush(&mut self, at: usize, count: usize, lives: bool) {
        let queue = std::mem::take(&mut self.node(at).queue);
        let mut promises = Vec::new();
        for effect in queue.into_iter().take(count) {
            match effect {
                Effect::Write(record) => {
                    self.node(at).disk.write(&record);
                    if let Record::Voted(vote) = record {
                        let who = self.nodes[at].id;
                        self.ledger.on_cast(&who, &vote);
                    }
                }
                Effect::Snapshot(base) => self.node(at).disk.base = base,
                Effect::Config(number) => self.node(at).disk.know(number),
                Effect::Told(mark) if lives => self.node(at).acceptor.on_durable(mark),
                Effect::Promise(promise, late) if lives => {
                    self.ledger.check_held(&self.nodes[at].disk, &promise);
                    promises.push((promise, late));
                }
                Effect::Told(_) | Effect::Promise(..) => {}
            }
        }
        if lives {
            self.tell_votes(at);
        }
        for (promise, late) in promises {
            if late {
                self.delay(Flight::Promise(promise));
            } else {
                self.on_promise(promise);
            }
        }
    }

    fn tell_votes(&mut self, at: usize) {
        let (round, next) = self.nodes[at].acceptor.voted();
        self.ledger.tell(self.nodes[at].id, round, next);
    }

    fn seal(&mut self, at: usize) {
        self.node(at).seal();
    }

    /// Nodes and logs that are the same in many states are kept once.
    fn share(&mut self) {
        let mut shared = self.shared.borrow_mut();
        // A node that is shared already has another owner as well.
        for node in self
            .nodes
            .iter_mut()
            .filter(|node| Rc::strong_count(node) == 1)
        {
            let known = shared.nodes.entry(node.hash);
            *node = known.or_insert_with(|| node.clone()).clone();
        }
        self.ledger.share(&mut shared.logs);
    }
}
