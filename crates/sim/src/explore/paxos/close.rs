//! The end of a schedule when nothing more goes wrong: all decisions become known to all, and something new is decided.

use std::rc::Rc;

use rota_paxos::{Instance, Progress};

use super::describe::describe;
use super::moves::{Choices, Move, Voters};
use super::search::World;
use super::state::State;
use crate::observe::Finding;

/// Configurations until then, at most: as many as there are nodes, and one more of the first.
const TURNS: usize = 7;

impl World for State {
    type Move = Move;

    fn moves(&self) -> Vec<Move> {
        Choices::of(self)
    }

    fn step(&mut self, step: Move) {
        Self::step(self, step);
    }

    fn hash(&self) -> u64 {
        Self::hash(self)
    }

    fn finding(&mut self) -> &mut Option<Finding> {
        self.ledger.finding()
    }

    fn describe(&self, step: Move) -> String {
        describe(self, step)
    }

    fn close(&mut self) {
        self.shared = Rc::default();
        close(self);
    }

    fn trail(&mut self) -> Vec<String> {
        self.trail = Some(Vec::new());
        self.close();
        self.trail.take().unwrap_or_default()
    }

    fn is_far(&self) -> bool {
        self.ledger.is_of_several_rounds()
    }
}

/// Late messages arrive; one node after the other coordinates, until all is well.
fn close(state: &mut State) {
    while !state.flights.is_empty() {
        state.step(Move::Arrive(0));
    }
    state.rules = Rc::new(super::Rules {
        lazy: false,
        ..*state.rules
    });
    for at in 0..state.nodes.len() {
        state.step(Move::Sync(at as u8));
    }
    for turn in 0..TURNS {
        run(state);
        if state.ledger.is_violated() || turn > 0 && is_well(state) {
            return;
        }
        let who = (turn % state.nodes.len()) as u8;
        state.left.stands = 1;
        let voters = Voters::Mended;
        state.step(Move::Stand { who, voters });
    }
    let next: Vec<Instance> = state.nodes.iter().map(|node| node.learner.next()).collect();
    let decided = state.ledger.end();
    state.ledger.found(
        "silence",
        format!("all before {decided} is decided; learners stand at {next:?}"),
    );
}

/// All have learnt all that is decided, and that has something of the newest round.
fn is_well(state: &State) -> bool {
    let end = state.ledger.end();
    let newest = state.ledger.newest();
    let has_begun = state.nodes.iter().any(|node| {
        let machine = node.coordinator.as_ref().filter(|it| it.round() == newest);
        machine.is_some_and(|machine| machine.start().is_some())
    });
    has_begun && state.nodes.iter().all(|node| node.learner.next() >= end)
}

/// All that can be said in the newest configuration arrives; its coordinator asks for more when nothing else helps.
fn run(state: &mut State) {
    loop {
        let before = state.hash();
        for to in 0..state.nodes.len() {
            tell(state, to);
            answer(state, to);
        }
        let rests = state.hash() == before;
        if state.ledger.is_violated() || rests && !ask_again(state) {
            return;
        }
    }
}

fn ask_again(state: &mut State) -> bool {
    let round = state.ledger.newest();
    let is_behind = |at: &usize| {
        let machine = state.nodes[*at].coordinator.as_ref();
        let machine = machine.filter(|it| it.round() == round && it.from().is_some());
        machine.is_some_and(|it| it.clone().on_complete(0) == Progress::Behind)
    };
    let by = (0..state.nodes.len()).find(is_behind);
    let by = by.filter(|_| state.rules.ask_again);
    if let Some(by) = by {
        state.step(Move::AskAgain { by: by as u8 });
    }
    by.is_some()
}

/// Delivers the proposals and votes of the newest round, and the questions of its coordinator.
fn tell(state: &mut State, to: usize) {
    let number = state.ledger.newest();
    let (at, round) = (to as u8, number as u8);
    for place in 0..state.ledger.log(number).proposals.len() as u8 {
        let to = at;
        state.step(Move::Proposal { to, round, place });
    }
    if state.nodes[to].learner.round() == number {
        let upto = u8::MAX;
        state.step(Move::Hear { to: at, upto });
    }
    if state.claimed > state.nodes[to].complete {
        state.step(Move::Complete(at));
    }
    let id = state.nodes[to].id;
    for by in 0..state.nodes.len() {
        let machine = state.nodes[by].coordinator.as_ref();
        let asks = machine.is_some_and(|machine| machine.round() == number && machine.lacks(id));
        if asks {
            let (by, to, late) = (by as u8, at, false);
            state.step(Move::Ask { by, to, late });
        }
    }
}

/// A learner asks all for the instances that it lacks; those that nobody has are before the newest checkpoint.
fn answer(state: &mut State, to: usize) {
    for of in (0..state.nodes.len()).filter(|of| *of != to) {
        let Some(missing) = state.nodes[to].learner.missing() else {
            return;
        };
        let upto = missing.end.min(state.nodes[of].learner.next());
        let is_forgotten = missing.start < state.nodes[of].acceptor.kept();
        if missing.start < upto || is_forgotten {
            state.step(Move::Fetch {
                to: to as u8,
                of: of as u8,
                from: missing.start as u8,
                upto: upto as u8,
                late: false,
            });
        }
    }
    let missing = state.nodes[to].learner.missing();
    if missing.is_some_and(|missing| missing.start < state.checkpoint) {
        state.begin_at(to, state.checkpoint);
    }
}
