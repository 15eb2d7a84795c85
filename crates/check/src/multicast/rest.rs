//! AM-A and AM-V: the messages that have to be delivered when nothing more is to happen.

use std::collections::{BTreeMap, BTreeSet};

use super::life::{Life, Lives};
use crate::report::Findings;

/// AM-A: at rest, each living life has delivered what any life delivered, if it is for its partition, and the life had
/// the ring by then.
pub fn agreement(all: &Lives) -> Findings {
    let mut findings = Findings::new("AM-A", "at rest all have what anybody delivered");
    if !all.is_at_rest {
        return findings;
    }
    let mut places = BTreeMap::new();
    for delivered in all.lives.iter().flat_map(|life| &life.delivered) {
        if let Some(place) = all.place(delivered) {
            places.insert(place, (delivered.ring, &delivered.msg));
        }
    }
    for life in all.lives.iter().filter(|life| life.lives) {
        let own: BTreeSet<&String> = life.delivered.iter().map(|one| &one.msg).collect();
        for (place, (ring, message)) in &places {
            let is_own = life.has(*ring, place.0) && place.2 >= life.begins(*ring);
            if is_own && all.is_for(message, &life.part) {
                findings.check(own.contains(message), || {
                    format!("{}: {message} at {place:?} is not delivered", life.name())
                });
            }
        }
    }
    findings
}

/// AM-V: at rest, the messages of living processes are delivered somewhere, if a living learner is of a partition that
/// they are for.
pub fn validity(all: &Lives) -> Findings {
    let mut findings = Findings::new("AM-V", "at rest what was sent is delivered");
    if !all.is_at_rest {
        return findings;
    }
    let living: BTreeSet<_> = all
        .lives
        .iter()
        .filter(|life| life.lives)
        .map(|life| life.who)
        .collect();
    let anywhere: BTreeSet<&String> = all
        .lives
        .iter()
        .flat_map(|life| &life.delivered)
        .map(|one| &one.msg)
        .collect();
    for (message, sent) in &all.messages {
        let has_learner = |life: &&Life| life.lives && all.is_for(message, &life.part);
        if living.contains(&sent.by) && all.lives.iter().any(|life| has_learner(&life)) {
            findings.check(anywhere.contains(message), || {
                format!("{message} is delivered nowhere")
            });
        }
    }
    findings
}
