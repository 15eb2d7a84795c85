//! O4, one place each: in a ring a message has one position and a position has one message, for all
//! processes; and each process delivers the messages of the total order by ascending positions.
//!
//! Reliable and fifo messages have positions too, and may be delivered ahead of them. Unused positions are not looked
//! for: a message in several packets has that of its last.

use crate::report::Findings;
use crate::trace::Step;
use crate::view::View;

pub(super) fn check(view: &View<'_>, findings: &mut Findings) {
    for (process, at, step) in view.all_steps() {
        let (Step::Orig(place) | Step::Deliver(place)) = step else {
            continue;
        };
        let home = view.homes[place.message as usize];
        let home = home.filter(|home| home.ring == view.ring_of[place.conf as usize]);
        findings.check(
            home.is_none_or(|home| home.position == place.position),
            || {
                let (who, at) = (view.who(process), view.at(process, at));
                let what = view.what(place.message);
                format!("{who} has {what} at seq {}{at}", place.position)
            },
        );
    }
    for ring in &view.rings {
        let position =
            |message: u32| view.homes[message as usize].map_or(u64::MAX, |home| home.position);
        for pair in ring.order.windows(2) {
            if position(pair[0]) == position(pair[1]) {
                findings.violated(|| {
                    let (one, other) = (view.what(pair[0]), view.what(pair[1]));
                    format!("{one} and {other} have one position")
                });
            }
        }
    }
    check_ascent(view, findings);
}

fn check_ascent(view: &View<'_>, findings: &mut Findings) {
    for tenure in &view.tenures {
        let mut last: Option<crate::view::Delivered> = None;
        for delivered in tenure.spans().flat_map(|span| view.ordered(tenure, span)) {
            if let Some(before) = last.filter(|last| last.rank > delivered.rank) {
                findings.violated(|| {
                    let who = view.who(tenure.process);
                    let (what, before) = (view.what(delivered.message), view.what(before.message));
                    format!("{who} delivered {what} after {before}")
                });
            }
            last = Some(delivered);
        }
    }
}
