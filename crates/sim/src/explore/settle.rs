//! The end of a schedule without further faults: everybody comes together, and has everything.

use std::rc::Rc;

use super::state::{Move, Rules, State};

/// Steps until then, at most.
const STEPS: u32 = 20_000;

/// Arrivals after which time goes on, whatever is still on its way.
const ARRIVALS: u32 = 100;

/// Lets things take their course: what was sent arrives in order, all clocks go on together, and who is
/// down starts again. Finds out if they do not come to rest on one ring, with all messages delivered.
pub(super) fn settle(state: &mut State, rules: &Rules) {
    let mut arrived = 0;
    for _ in 0..STEPS {
        if state.finding.is_some() {
            return;
        }
        if let Some(at) = (0..state.nodes.len()).find(|&at| state.nodes[at].engine.is_none()) {
            state.step(rules, Move::Restart(at));
        } else if let Some(at) = (0..state.nodes.len()).find(|&at| state.is_writing(at)) {
            state.step(rules, Move::Written(at));
        } else if rests(state) {
            return;
        } else if state.flights.is_empty() || arrived == ARRIVALS {
            pass_time(state);
            arrived = 0;
        } else {
            state.step(rules, Move::Deliver(0));
            arrived += 1;
        }
    }
    state.found("C8", format!("no end without faults: {state}"));
}

/// The clocks go on until the first timer is due.
pub(super) fn pass_time(state: &mut State) {
    let wait = |at: usize| state.nodes[at].next_timer();
    let Some(wait) = (0..state.nodes.len()).filter_map(wait).min() else {
        return;
    };
    for node in &mut state.nodes {
        Rc::make_mut(node).clock += wait;
    }
    for at in 0..state.nodes.len() {
        if state.nodes[at].next_timer() == Some(0) {
            state.fire(at);
        }
    }
}

/// All are on one ring, and have got back all of their own.
fn rests(state: &State) -> bool {
    let drained = |at: &usize| state.nodes[*at].returned >= state.nodes[*at].sent.len();
    is_together(state) && (0..state.nodes.len()).all(|at| drained(&at))
}

/// All are operational on one ring of just them.
pub(super) fn is_together(state: &State) -> bool {
    let mut rings = Vec::new();
    for node in &state.nodes {
        let Some(engine) = &node.engine else {
            return false;
        };
        let Some(ordering) = engine.ordering() else {
            return false;
        };
        let whole = ordering.members().len() == state.nodes.len();
        if engine.phase_name() != "operational" || !whole {
            return false;
        }
        rings.push(ordering.ring());
    }
    rings.windows(2).all(|pair| pair[0] == pair[1])
}
