//! The cells of the table of events and states (membership A6) that a run has been in.

use std::collections::BTreeMap;

use bytes::Bytes;
use rota_core::contract::{Engine, Input, RingId, TimerReason};
use rota_ring::wire::{self, Packet};

use super::System;

/// Counts of events by the state of the process that each came to: by the state's name and the event's.
pub type Cells = BTreeMap<(&'static str, &'static str), u64>;

/// The states of a process in which events count.
const STATES: [&str; 4] = ["operational", "gathering", "committing", "recovering"];

/// The rows of A6, and other events.
const EVENTS: [&str; 20] = [
    "data",
    "foreign data",
    "wrapped data",
    "token",
    "foreign token",
    "hurry",
    "join",
    "commit, first visit",
    "commit, second visit",
    "presence",
    "join timer",
    "consensus timer",
    "commit timer",
    "merge timer",
    "retransmit timer",
    "token loss",
    "hold timer",
    "hurry timer",
    "unreachable",
    "stored",
];

/// Cells that cannot be: a timer that does not run in that state.
const NEVER: [(&str, &[&str]); STATES.len()] = [
    (
        "operational",
        &["join timer", "consensus timer", "commit timer"],
    ),
    (
        "gathering",
        &[
            "commit timer",
            "merge timer",
            "retransmit timer",
            "token loss",
            "hold timer",
            "hurry timer",
        ],
    ),
    (
        "committing",
        &[
            "join timer",
            "consensus timer",
            "merge timer",
            "retransmit timer",
            "token loss",
            "hold timer",
            "hurry timer",
        ],
    ),
    (
        "recovering",
        &[
            "join timer",
            "consensus timer",
            "merge timer",
            "hold timer",
            "hurry timer",
        ],
    ),
];

/// All other cells, by the names of the state and the event: every long campaign has to come to each of
/// them often.
pub fn reached() -> impl Iterator<Item = (&'static str, &'static str)> {
    NEVER.into_iter().flat_map(|(state, never)| {
        let events = EVENTS.into_iter().filter(|event| !never.contains(event));
        events.map(move |event| (state, event))
    })
}

/// Counts while a run goes on.
#[derive(Clone, Default, Debug)]
pub(super) struct CellCounts([[u64; EVENTS.len()]; STATES.len()]);

impl CellCounts {
    /// This input is about to be handed in.
    pub fn count<S: System>(&mut self, system: &S, engine: &S::Engine, input: &Input) {
        let state = system.state(engine);
        let Some(state) = STATES.iter().position(|name| Some(*name) == state) else {
            return;
        };
        let row = &mut self.0[state];
        match input {
            Input::Datagrams { bytes, segment, .. } => {
                let rings = [system.ring(engine), system.forming(engine)];
                for start in (0..bytes.len()).step_by((*segment).max(1)) {
                    let end = bytes.len().min(start + segment);
                    if let Some(event) = of_packet(bytes.slice(start..end), rings) {
                        row[event] += 1;
                    }
                }
            }
            Input::Timer => {
                if let Some(event) = engine.next_timer().and_then(|(_, why)| of_timer(why)) {
                    row[event] += 1;
                }
            }
            Input::Unreachable { .. } => row[18] += 1,
            Input::Persisted { .. } | Input::PersistFailed { .. } => row[19] += 1,
            _ => {}
        }
    }

    /// The counts that are not 0.
    pub fn named(&self) -> Cells {
        let rows = STATES.into_iter().zip(&self.0);
        rows.flat_map(|(state, row)| {
            let counted = EVENTS.into_iter().zip(row).filter(|(_, count)| **count > 0);
            counted.map(move |(event, count)| ((state, event), *count))
        })
        .collect()
    }
}

fn of_packet(bytes: Bytes, rings: [Option<RingId>; 2]) -> Option<usize> {
    let mine = |ring: RingId| rings.contains(&Some(ring));
    Some(match wire::decode(bytes).ok()? {
        Packet::Data(data) if data.encapsulated => 2,
        Packet::Data(data) => usize::from(!mine(data.ring)),
        Packet::Token(token) => 3 + usize::from(!mine(token.ring)),
        Packet::Hurry(_) => 5,
        Packet::Join(_) => 6,
        Packet::Commit(commit) => 7 + usize::from(commit.told.len() == commit.members.len()),
        Packet::MergeDetect(_) => 9,
    })
}

fn of_timer(reason: TimerReason) -> Option<usize> {
    Some(match reason {
        TimerReason::Join => 10,
        TimerReason::Consensus => 11,
        TimerReason::Commit => 12,
        TimerReason::Merge => 13,
        TimerReason::TokenRetransmit => 14,
        TimerReason::TokenLoss => 15,
        TimerReason::TokenHold => 16,
        TimerReason::Hurry => 17,
        _ => return None,
    })
}
