//! AM-I and AM-P: messages and their places.

use std::collections::{BTreeMap, BTreeSet};

use super::life::Lives;
use crate::report::Findings;

/// AM-I: a message is sent once, and delivered at most once in a life, as it was sent.
pub fn once(all: &Lives) -> Findings {
    let mut findings = Findings::new("AM-I", "delivered at most once, as it was sent");
    for message in &all.sent_twice {
        findings.violated(|| format!("{message} was sent twice"));
    }
    for life in &all.lives {
        let mut seen = BTreeSet::new();
        for delivered in &life.delivered {
            let message = &delivered.msg;
            findings.check(seen.insert(message), || {
                format!("{}: {message} is delivered twice", life.name())
            });
            if let Some(sent) = all.messages.get(message) {
                findings.check(sent.hash == delivered.hash, || {
                    let hash = &delivered.hash;
                    format!(
                        "{}: {message} has {hash}, and was sent with {}",
                        life.name(),
                        sent.hash
                    )
                });
            }
        }
    }
    findings
}

/// AM-P: of one foundation, place and message are one to one; instances that were passed as empty have no message
/// anywhere, and each ring is founded in one way.
pub fn one_to_one(all: &Lives) -> Findings {
    let mut findings = Findings::new("AM-P", "a place has one message, and a message one place");
    for (ring, one, other) in &all.twice {
        findings.violated(|| format!("ring {ring} is founded as {one:?} and as {other:?}"));
    }
    let (mut at, mut of) = (BTreeMap::new(), BTreeMap::new());
    for life in &all.lives {
        for delivered in &life.delivered {
            let place = (
                delivered.ring,
                delivered.founded,
                delivered.inst,
                delivered.idx,
            );
            let before = at.entry(place).or_insert(&delivered.msg);
            findings.check(*before == &delivered.msg, || {
                format!(
                    "{}: at {place:?} {} and {before}",
                    life.name(),
                    delivered.msg
                )
            });
            let before = of.entry(&delivered.msg).or_insert(place);
            findings.check(*before == place, || {
                format!(
                    "{}: {} at {place:?} and {before:?}",
                    life.name(),
                    delivered.msg
                )
            });
            let known = all.founded.get(&delivered.ring);
            findings.check(
                known.is_none_or(|known| known.founded == delivered.founded),
                || {
                    format!(
                        "{}: {} of another foundation of ring {}",
                        life.name(),
                        delivered.msg,
                        delivered.ring
                    )
                },
            );
        }
    }
    let rings: BTreeSet<u32> = at.keys().map(|(ring, ..)| *ring).collect();
    for (ring, from, next) in all.skips.iter().filter(|(ring, ..)| rings.contains(ring)) {
        let founded = all.founded.get(ring).map_or(0, |known| known.founded);
        let skipped = (*ring, founded, *from, 0)..(*ring, founded, *next, 0);
        let carried = at.range(skipped).next();
        findings.check(carried.is_none(), || {
            format!("ring {ring} has skipped {from} to {next}, and somebody delivered {carried:?}")
        });
    }
    findings
}
