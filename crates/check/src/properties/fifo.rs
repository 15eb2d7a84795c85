//! Fifo: a process that delivers a fifo message has delivered before it every earlier fifo message
//! that its sender originated in the ring, and delivers none of that sender's earlier messages after
//! it.
//!
//! Not flagged: an earlier message of another service that is not delivered at all, as it may be lost
//! behind a hole; and a reliable one that comes late, which has no order to keep.

use rota_core::contract::Service;
use rustc_hash::FxHashMap;

use crate::report::Findings;
use crate::trace::Step;
use crate::view::{Tenure, View};

/// A message's place among those that its sender originated in a ring.
#[derive(Clone, Copy)]
struct Turn {
    /// Its number among all messages.
    turn: u32,
    /// The number of fifo messages before it.
    fifos: u32,
}

/// The progress in one sender's messages.
#[derive(Clone, Copy, Default)]
struct Heard {
    fifos: u32,
    /// The last fifo message: its turn and name.
    last: Option<(u32, u32)>,
}

pub(super) fn check(view: &View<'_>, findings: &mut Findings) {
    let turns = turns(view);
    if turns.is_empty() {
        return;
    }
    for tenure in &view.tenures {
        check_tenure(view, tenure, &turns, findings);
    }
}

/// The turns by message; empty if there is no fifo message at all.
fn turns(view: &View<'_>) -> Vec<Option<Turn>> {
    let fifo = |home: &crate::view::Home| home.service == Service::Fifo;
    if !view.homes.iter().flatten().any(fifo) {
        return Vec::new();
    }
    let mut turns = vec![None; view.homes.len()];
    for tenure in &view.tenures {
        let (mut turn, mut fifos) = (0, 0);
        for step in tenure
            .spans()
            .flat_map(|span| &view.steps(tenure.process)[span.steps()])
        {
            let Step::Orig(place) = step else {
                continue;
            };
            turns[place.message as usize] = Some(Turn { turn, fifos });
            turn += 1;
            fifos += u32::from(place.service == Service::Fifo);
        }
    }
    turns
}

fn check_tenure(view: &View<'_>, tenure: &Tenure, turns: &[Option<Turn>], findings: &mut Findings) {
    let mut heard: FxHashMap<u32, Heard> = FxHashMap::default();
    let deliveries = tenure
        .spans()
        .flat_map(|span| view.deliveries(tenure, span));
    for delivered in deliveries {
        let Some(Turn { turn, fifos }) = turns[delivered.message as usize] else {
            continue;
        };
        let heard = heard.entry(delivered.sender).or_default();
        let name = || {
            let who = view.who(tenure.process);
            format!("{who} delivered {}", view.what(delivered.message))
        };
        let overtaken = heard.last.filter(|(last, _)| *last > turn);
        if let Some((_, last)) = overtaken.filter(|_| delivered.service != Service::Reliable) {
            findings.violated(|| format!("{} after the later {}", name(), view.what(last)));
        }
        if delivered.service == Service::Fifo {
            findings.check(heard.fifos >= fifos, || {
                let missing = fifos - heard.fifos;
                format!(
                    "{} before {missing} earlier fifo messages of its sender",
                    name()
                )
            });
            heard.fifos += 1;
            heard.last = Some((turn, delivered.message));
        }
    }
}
