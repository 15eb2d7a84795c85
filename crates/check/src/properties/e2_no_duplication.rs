//! E2, no duplication: a process delivers a message at most once, over all its configurations.

use crate::report::Findings;
use crate::trace::Step;
use crate::view::View;

pub(super) fn check(view: &View<'_>, findings: &mut Findings) {
    // By message: the last process that was seen to deliver it. Processes come one after the other.
    let mut delivered_by = vec![u32::MAX; view.homes.len()];
    for (process, at, step) in view.all_steps() {
        let Step::Deliver(place) = step else {
            continue;
        };
        let before = std::mem::replace(&mut delivered_by[place.message as usize], process);
        findings.check(before != process, || {
            format!(
                "{} delivered {} again in {}{}",
                view.who(process),
                view.what(place.message),
                view.conf(place.conf),
                view.at(process, at)
            )
        });
    }
}
