//! The conditions that hold in each state, and the words for a state and a step.

use std::fmt;

use rota_core::contract::{Engine, Process, RingId};
use rota_ring::wire;

use super::state::{Flight, Move, State};

impl State {
    /// Processes on one installed ring agree on its members, also before their applications know.
    pub fn check_rings(&mut self) {
        let mut seen: Vec<(RingId, &[Process])> = Vec::new();
        let mut wrong = None;
        for engine in self.nodes.iter().filter_map(|node| node.engine.as_ref()) {
            let Some(ordering) = engine.ordering() else {
                continue;
            };
            let (ring, members) = (ordering.ring(), ordering.members());
            let other = seen.iter().find(|(other, _)| *other == ring);
            if other.is_some_and(|(_, other)| *other != members) {
                wrong = Some(ring);
            }
            seen.push((ring, members));
        }
        if let Some(ring) = wrong {
            self.found("C1", format!("two installed rings are both {ring}"));
        }
    }

    /// Of all tokens of a ring only one can still be taken, and whoever keeps one is its last holder.
    pub fn check_tokens(&mut self) {
        let mut live: Vec<(RingId, u64)> = Vec::new();
        let engine = |at: usize| self.nodes[at].engine.as_ref();
        for flight in &self.flights {
            if let Some(token) = &flight.token
                && engine(flight.to).is_some_and(|engine| engine.takes_token(token))
            {
                live.push((token.ring, token.token_seq));
            }
        }
        live.extend((0..self.nodes.len()).filter_map(|at| engine(at)?.holds_token()));
        live.sort_unstable();
        live.dedup();
        let two = live.windows(2).find(|pair| pair[0].0 == pair[1].0);
        if let Some(&[(ring, one), (_, other)]) = two {
            self.found(
                "token",
                format!("tokens {one} and {other} of {ring} would both be taken"),
            );
        }
    }

    /// The words for a step.
    pub fn describe(&self, step: Move) -> String {
        let flight = |at: usize| {
            let Flight {
                from, to, bytes, ..
            } = &self.flights[at];
            let what = wire::decode(bytes.clone());
            let what = what.map_or_else(|_| "?".to_owned(), |packet| format!("{packet:?}"));
            format!("{} > {}: {what}", from + 1, to + 1)
        };
        match step {
            Move::Deliver(at) => format!("arrives {}", flight(at)),
            Move::Lose(at) => format!("is lost {}", flight(at)),
            Move::Written(at) => format!("node {} has written", at + 1),
            Move::Timer(at) => format!("node {}: timer ({})", at + 1, self.phase(at)),
            Move::Crash(at) => format!("node {} dies", at + 1),
            Move::Restart(at) => format!("node {} starts again", at + 1),
        }
    }

    pub fn phase(&self, at: usize) -> &'static str {
        let engine = self.nodes[at].engine.as_ref();
        engine.map_or("down", |engine| engine.phase_name())
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for node in &self.nodes {
            let engine = node.engine.as_ref();
            let state = engine.map_or_else(|| "down".to_owned(), |engine| engine.status().state);
            let (returned, sent) = (node.returned, node.sent.len());
            write!(
                f,
                "node {}: {state}, {returned} of {sent} back; ",
                node.node
            )?;
        }
        write!(f, "{} on their way", self.flights.len())
    }
}
