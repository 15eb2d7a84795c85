//! UTO, strong total order: over all processes, crashed ones too, a message has one position, in one view, and a
//! position has one message; every process delivers by ascending positions; and in a view it delivers the first
//! messages of all that any process delivers there, without a gap.
//!
//! Positions count packets. Packets that carry only parts of messages, or messages that were delivered before, leave
//! positions without a message, which are not looked for: a gap is a message that another process delivered in between.
//! If an order begins anew, positions do too: a message that only processes had delivered that have forgotten may have
//! a position there as well. If the order goes back to a view, that view has two ends, each of which is one sequence.

use std::collections::BTreeMap;

use crate::report::Findings;
use crate::uniform::{Stay, Uniform};

pub(super) fn check(uniform: &Uniform<'_>, findings: &mut Findings) {
    check_places(uniform, findings);
    for stay in &uniform.stays {
        check_prefix(uniform, stay, findings);
    }
    for (process, stays) in (0..).zip(&uniform.lives) {
        let mut last = 0;
        let stays = stays.iter().map(|stay| &uniform.stays[*stay as usize]);
        for (at, place) in stays.flat_map(|stay| uniform.deliveries(stay)) {
            if place.position <= last {
                findings.violated(|| {
                    let (who, at) = (uniform.base.who(process), uniform.base.at(process, at));
                    let (what, position) = (uniform.base.what(place.message), place.position);
                    format!("{who} delivered {what} at {position}{at}, after {last}")
                });
            }
            last = place.position;
        }
    }
}

fn check_places(uniform: &Uniform<'_>, findings: &mut Findings) {
    let mut places: BTreeMap<(u32, u32), (u32, u64)> = BTreeMap::new();
    let mut taken: BTreeMap<(u32, u64), u32> = BTreeMap::new();
    for (number, view) in (0..).zip(&uniform.views) {
        for (position, message) in &view.sequence {
            let place = (number, *position);
            let known = *places.entry((view.order, *message)).or_insert(place);
            findings.check(known == place, || {
                let what = uniform.base.what(*message);
                let (view, other) = (uniform.shown(known.0), uniform.shown(number));
                let first = known.1;
                format!("{what} is at {first} in {view}, and at {position} in {other}")
            });
            let other = *taken.entry((view.order, *position)).or_insert(*message);
            findings.check(other == *message, || {
                let (what, other) = (uniform.base.what(*message), uniform.base.what(other));
                format!("{other} and {what} have one position, {position}")
            });
        }
    }
}

fn check_prefix(uniform: &Uniform<'_>, stay: &Stay, findings: &mut Findings) {
    let sequence = &uniform.views[stay.view as usize].sequence;
    let mut both = uniform.deliveries(stay).zip(sequence);
    let differs = both.find(|((_, place), (position, message))| {
        (place.position, place.message) != (*position, *message)
    });
    findings.check(differs.is_none(), || {
        let Some(((at, place), (position, message))) = differs else {
            return String::new();
        };
        let who = uniform.base.who(stay.process);
        let at = uniform.base.at(stay.process, at);
        let (what, other) = (
            uniform.base.what(place.message),
            uniform.base.what(*message),
        );
        let (mine, view) = (place.position, uniform.shown(stay.view));
        format!(
            "{who} delivered {what} at {mine}{at}, and in {view} {other} comes next, at {position}"
        )
    });
}
