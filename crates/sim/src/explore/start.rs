//! The start of a search.

use std::fmt;
use std::rc::Rc;
use std::str::FromStr;

use rota_core::contract::{Class, NodeId, Service};
use rota_core::timing::Timers;
use rota_ring::{Protocol, RingConfig};

use super::settle;
use super::state::{Left, Rules, State};

/// The start of a search.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Start {
    /// Rings of one, each with a message of its own, that are about to hear of each other.
    #[default]
    Heard,
    /// One ring with messages on their way, whose token is gone; one of its members has noticed.
    Lost,
}

impl Start {
    /// All of them.
    pub const EACH: [Self; 2] = [Self::Heard, Self::Lost];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Heard => "heard",
            Self::Lost => "lost",
        }
    }
}

impl fmt::Display for Start {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Start {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut each = Self::EACH.into_iter();
        each.find(|start| start.name() == text)
            .ok_or_else(|| format!("there is no start '{text}'"))
    }
}

/// A ring as small as it gets: few slots, and time-outs of a few nanoseconds, so that time runs in few
/// steps and a join is never put off by chance.
pub(super) fn config(nodes: usize, protocol: Protocol) -> RingConfig {
    let members = (1..=nodes as u16).filter_map(NodeId::new).collect();
    let mut config = RingConfig::new(1, members);
    if protocol == Protocol::Original {
        config = config.original();
    }
    config.windows.personal = 2;
    config.windows.accelerated = config.windows.accelerated.min(1);
    config.windows.global = 8;
    config.windows.outstanding = 6;
    config.datagram_bytes = RingConfig::MIN_DATAGRAM_BYTES;
    (config.message_bytes, config.backlog_bytes) = (1000, 10_000);
    config.trace = true;
    config.timers = Timers {
        token_loss: 5,
        token_retransmit: 1,
        token_hold: 1,
        join: 1,
        consensus: 2,
        merge: 3,
    };
    config
}

/// The state that a search starts from.
pub(super) fn state(start: Start, nodes: usize, rules: &Rules, left: Left) -> State {
    let mut state = State::new(nodes, left);
    for at in 0..nodes {
        state.start(rules, at);
        while !state.nodes[at].pending.is_empty() {
            state.step(rules, super::state::Move::Written(at));
        }
    }
    match start {
        Start::Heard => {
            for at in 0..nodes {
                state.submit(at, Service::Agreed);
            }
            state.submits = true;
        }
        Start::Lost => lose_token(&mut state, rules),
    }
    state
}

fn lose_token(state: &mut State, rules: &Rules) {
    settle::settle(state, rules);
    for at in 0..state.nodes.len() {
        state.submit(at, Service::Agreed);
        state.submit(at, Service::Safe);
    }
    state.submits = true;
    // Let the token go until all have sent something, and keep the data from arriving.
    let sent = |state: &State, at: usize| {
        let mut flights = state.flights.iter();
        flights.any(|flight| flight.from == at && flight.data)
    };
    for _ in 0..1000 {
        if (0..state.nodes.len()).all(|at| sent(state, at)) {
            break;
        }
        let token = |flight: &super::state::Flight| flight.class == Class::Token;
        match state.flights.iter().position(token) {
            Some(at) => state.step(rules, super::state::Move::Deliver(at)),
            None => settle::pass_time(state),
        }
    }
    while !(0..state.nodes.len()).any(|at| state.phase(at) == "gathering") {
        state.flights.retain(|flight| flight.data);
        let first =
            (0..state.nodes.len()).filter_map(|at| Some((state.nodes[at].next_timer()?, at)));
        let Some((wait, at)) = first.min() else {
            return;
        };
        for node in &mut state.nodes {
            Rc::make_mut(node).clock += wait;
        }
        state.fire(at);
    }
}
