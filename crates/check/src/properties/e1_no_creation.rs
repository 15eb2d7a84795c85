//! E1, no creation: a message that is delivered was originated, in the ring that is current at the
//! delivery or that the current transitional configuration ends, with the same payload and service.
//!
//! O1 implies that the origination comes first. Not flagged: messages of a process whose trace was not given, as long
//! as it is a member of the ring.

use crate::report::Findings;
use crate::trace::{Place, Step};
use crate::view::{End, Home, View};

pub(super) fn check(view: &View<'_>, findings: &mut Findings) {
    for (process, at, step) in view.all_steps() {
        let Step::Deliver(place) = step else {
            continue;
        };
        let wrong = wrong(view, place);
        findings.check(wrong.is_none(), || {
            format!(
                "{} delivered {} in {}{}, {}",
                view.who(process),
                view.what(place.message),
                view.conf(place.conf),
                view.at(process, at),
                wrong.unwrap_or_default()
            )
        });
    }
}

fn wrong(view: &View<'_>, place: &Place) -> Option<String> {
    // Every delivered message has a home.
    let home = view.homes[place.message as usize]?;
    let ring = view.ring_of[place.conf as usize];
    if !home.originated && !may_have_originated(view, &home) {
        return Some("which nobody originated".into());
    }
    if home.ring != ring {
        return Some("which is not of that ring".into());
    }
    if home.hash != place.hash {
        return Some(format!(
            "with payload {:016x} instead of {:016x}",
            place.hash, home.hash
        ));
    }
    (home.service != place.service).then(|| format!("as {}", place.service.name()))
}

fn may_have_originated(view: &View<'_>, home: &Home) -> bool {
    let regular = |tenure: &crate::view::Tenure| tenure.regular.as_ref().map(|span| span.members);
    let members = view.tenures_of(home.ring as usize).find_map(regular);
    view.ends.get(home.sender as usize) == Some(&End::Untraced)
        && members.is_some_and(|members| view.is_member(members, home.sender))
}
