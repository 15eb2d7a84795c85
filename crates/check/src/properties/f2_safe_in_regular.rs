//! F2, safe, installed: when a process delivers a safe message in a regular configuration, every
//! member of that configuration has delivered it, whatever happens to it later.
//!
//! A member that failed before its application had got there is excused. In a transitional configuration only F1 holds.

use rota_core::contract::Service;

use crate::report::Findings;
use crate::view::{End, View};

pub(super) fn check(view: &View<'_>, findings: &mut Findings) {
    for ring in 0..view.rings.len() {
        let mut seen: Vec<u32> = Vec::new();
        for tenure in view.tenures_of(ring) {
            let Some(span) = &tenure.regular else {
                continue;
            };
            let mut ordered = view.ordered(tenure, span);
            let safe = ordered.find(|delivered| delivered.service == Service::Safe);
            let Some(safe) = safe.filter(|_| !seen.contains(&span.members)) else {
                continue;
            };
            seen.push(span.members);
            for member in &view.members[span.members as usize] {
                let there = view.tenure(ring as u32, *member);
                let installed = there.is_some_and(|there| there.regular.is_some());
                let excused =
                    view.end(*member) == End::Untraced || view.may_lag(ring as u32, *member);
                findings.check(installed || excused, || {
                    format!(
                        "{} delivered {} in {}, which {} never delivered",
                        view.who(tenure.process),
                        view.what(safe.message),
                        view.span(span),
                        view.who(*member)
                    )
                });
            }
        }
    }
}
