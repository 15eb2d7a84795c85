//! The steps that may happen next.

use rota_paxos::{AcceptorId, Instance, Progress};

use super::state::State;

/// Something that may happen next. Nodes are counted from 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Move {
    /// A proposal of a round arrives, by its place among them.
    Proposal { to: u8, round: u8, place: u8 },
    /// A node hears how far all have voted in the round that it follows, up to `upto`.
    Hear { to: u8, upto: u8 },
    /// A coordinator's question for a promise arrives, and so does the promise unless it is late.
    Ask { by: u8, to: u8, late: bool },
    /// A coordinator asks all once more, for more.
    AskAgain { by: u8 },
    /// A node asks for missing instances, and gets them up to `upto`, unless the answer is late.
    Fetch {
        to: u8,
        of: u8,
        from: u8,
        upto: u8,
        late: bool,
    },
    /// Something late arrives.
    Arrive(u8),
    /// A node is to coordinate the next configuration.
    Stand { who: u8, voters: Voters },
    /// A coordinator proposes a value.
    Value(u8),
    /// A coordinator proposes a number of instances of nothing.
    Skip(u8, u8),
    /// A node hears of the newest complete configuration.
    Complete(u8),
    /// A node hears of another cluster's, which has a high number.
    Foreign(u8),
    /// The application has a checkpoint, and all before it is forgotten.
    Trim { who: u8, below: u8 },
    /// The effects that wait for the disk take place.
    Sync(u8),
    /// The process dies when `written` of these effects have taken place, and starts again.
    Restart { who: u8, written: u8 },
    /// The disk is lost, and the process starts again.
    Lose(u8),
}

/// The voters of the next configuration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Voters {
    Same,
    /// New disks in place of those that are lost.
    Mended,
    /// One less.
    Without(u8),
    /// One more.
    With(u8),
}

/// The list of steps, as it is made from a state.
pub(super) struct Choices<'s> {
    state: &'s State,
    moves: Vec<Move>,
}

impl<'s> Choices<'s> {
    /// All that may happen next.
    pub fn of(state: &'s State) -> Vec<Move> {
        let moves = Vec::new();
        let mut all = Self { state, moves };
        for at in 0..state.nodes.len() {
            all.arrivals(at);
            all.fetches(at);
            all.of_coordinator(at);
            all.stands(at);
            all.faults(at);
        }
        let late = (0..state.flights.len()).map(|at| Move::Arrive(at as u8));
        all.moves.extend(late);
        all.moves
    }

    fn arrivals(&mut self, to: usize) {
        let state = self.state;
        let node = &state.nodes[to];
        if !is_first_of_its_kind(state, to) {
            return;
        }
        for (log, round) in state.ledger.logs().zip(1_u8..) {
            if u64::from(round) < node.known && !state.rules.loose {
                continue;
            }
            let got = node.got.1 * u8::from(node.got.0 == u64::from(round));
            for place in 0..log.proposals.len() as u8 {
                let to = to as u8;
                if place == got || state.rules.reorder {
                    self.moves.push(Move::Proposal { to, round, place });
                }
            }
        }
        let round = node.learner.round();
        if round > 0 {
            let mut ends: Vec<Instance> = state.ledger.log(round).told.clone();
            ends.extend(
                state
                    .ledger
                    .log(round)
                    .proposals
                    .iter()
                    .map(|vote| vote.end()),
            );
            ends.sort_unstable();
            ends.dedup();
            ends.retain(|end| *end > node.learner.reached());
            let hear = |upto: &Instance| Move::Hear {
                to: to as u8,
                upto: *upto as u8,
            };
            self.moves.extend(ends.iter().map(hear));
        }
        let matters = state.ledger.logs().any(|log| !log.config.prior.is_empty())
            || state.stores > state.nodes.len();
        if state.claimed > node.complete && matters {
            self.moves.push(Move::Complete(to as u8));
        }
    }

    fn fetches(&mut self, to: usize) {
        let state = self.state;
        let learner = &state.nodes[to].learner;
        let mut range = learner.missing();
        if state.rules.ahead {
            range = Some(learner.next()..Instance::MAX);
        }
        while let Some(missing) = range {
            for of in (0..state.nodes.len()).filter(|of| *of != to) {
                let other = &state.nodes[of];
                let end = missing.end.min(other.learner.next());
                let places = missing.start..end;
                let places = places.filter(|at| state.rules.gaps || *at == missing.start);
                for from in places {
                    let forgotten = from < other.acceptor.kept();
                    let first = if forgotten { end } else { from + 1 };
                    for upto in first..=end {
                        for late in [false, true] {
                            if late && (state.left.late == 0 || forgotten) {
                                continue;
                            }
                            self.moves.push(Move::Fetch {
                                to: to as u8,
                                of: of as u8,
                                from: from as u8,
                                upto: upto as u8,
                                late,
                            });
                        }
                    }
                }
            }
            let more = state.rules.gaps && !state.rules.ahead;
            range = learner.missing_from(missing.end).filter(|_| more);
        }
    }

    fn of_coordinator(&mut self, by: usize) {
        let state = self.state;
        let Some(coordinator) = &state.nodes[by].coordinator else {
            return;
        };
        if coordinator.from().is_none() {
            if state.left.values > 0 {
                self.moves.push(Move::Value(by as u8));
            }
            if state.left.skips > 0 {
                let spans = 1..=state.rules.span;
                self.moves
                    .extend(spans.map(|span| Move::Skip(by as u8, span)));
            }
            return;
        }
        let who = |to: &usize| coordinator.lacks(state.nodes[*to].id);
        let first = |to: &usize| is_first_of_its_kind(state, *to);
        for to in (0..state.nodes.len()).filter(who).filter(first) {
            for late in [false, true] {
                if !late || state.left.late > 0 {
                    self.moves.push(Move::Ask {
                        by: by as u8,
                        to: to as u8,
                        late,
                    });
                }
            }
        }
        if state.rules.ask_again && coordinator.clone().on_complete(0) == Progress::Behind {
            self.moves.push(Move::AskAgain { by: by as u8 });
        }
    }

    fn stands(&mut self, who: usize) {
        let state = self.state;
        if who >= state.rules.coordinators || state.left.stands == 0 {
            return;
        }
        let who = who as u8;
        let voters = &state.ledger.config().acceptors;
        let is_lost = |who: &AcceptorId| state.place(*who).is_none();
        let mut add = |voters| self.moves.push(Move::Stand { who, voters });
        add(Voters::Same);
        if voters.iter().any(is_lost) {
            add(Voters::Mended);
        }
        if state.left.changes > 0 {
            for at in 0..state.nodes.len() {
                let id = state.nodes[at].id;
                let first = is_first_of_its_kind(state, at);
                if voters.contains(&id) && voters.len() > 1 && first {
                    add(Voters::Without(at as u8));
                }
                if voters.iter().all(|voter| voter.node != id.node) && first {
                    add(Voters::With(at as u8));
                }
            }
        }
    }

    fn faults(&mut self, at: usize) {
        let state = self.state;
        let node = &state.nodes[at];
        let who = at as u8;
        if !node.queue.is_empty() {
            self.moves.push(Move::Sync(who));
        }
        if !is_first_of_its_kind(state, at) {
            return;
        }
        if state.left.trims > 0 {
            let below = node.acceptor.kept() + 1..=node.learner.next();
            self.moves.extend(below.map(|below| Move::Trim {
                who,
                below: below as u8,
            }));
        }
        if state.left.foreign > 0 {
            self.moves.push(Move::Foreign(who));
        }
        if state.left.crashes > 0 && node.touched {
            let written = 0..=node.queue.len() as u8;
            self.moves
                .extend(written.map(|written| Move::Restart { who, written }));
        }
        if state.left.disks > 0 && may_lose(state, at) {
            self.moves.push(Move::Lose(who));
        }
    }
}

/// Nodes to which nothing has happened, and which do not coordinate, are as good as each other: the first of them is
/// always the next.
fn is_first_of_its_kind(state: &State, at: usize) -> bool {
    let (node, rules) = (&state.nodes[at], &state.rules);
    let kind = |at: usize| (at < rules.coordinators, at < rules.acceptors);
    let first = |other: &usize| kind(*other) == kind(at) && !state.nodes[*other].touched;
    kind(at).0 || node.touched || (0..at).rfind(first).is_none()
}

/// Of each set of acceptors that counts a majority keeps its disks: that of the newest configuration, and earlier ones as
/// long as none that came later is said to be complete.
fn may_lose(state: &State, at: usize) -> bool {
    let lost = state.nodes[at].id;
    let keeps = |who: &AcceptorId| *who != lost && state.place(*who).is_some();
    state.ledger.config().may_begin(state.claimed, keeps)
}
