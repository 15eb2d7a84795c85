//! P3, kept by primaries: when a process delivers a safe message in a primary configuration that it has
//! reported, every process that was a member of that configuration and reports a later primary has
//! delivered the message before that report.
//!
//! A node that was not there, or has lived another life since, learns of those messages by its application, which has a
//! process of this rule to ask. If no process lived through from one primary to the next, the property says nothing: a
//! trace does not show what an application keeps over a crash. Messages delivered in a transitional configuration, or
//! before the report, are no part of the promise.

use std::collections::BTreeMap;

use rota_core::contract::Service;

use crate::bits::Bits;
use crate::report::Findings;
use crate::trace::Step;
use crate::view::View;

use super::primaries::{Primary, primaries};

pub(super) fn check(view: &View<'_>, findings: &mut Findings) {
    let all = primaries(view);
    // By process: its reports, in their order.
    let mut reports: BTreeMap<u32, Vec<(usize, u32)>> = BTreeMap::default();
    for primary in &all {
        for (process, at) in &primary.reports {
            let list = reports.entry(*process).or_default();
            list.push((*at, primary.ring));
        }
    }
    for primary in &all {
        let promised = promised(view, primary);
        if promised.is_empty() {
            continue;
        }
        let number = view.rings[primary.ring as usize].id.ring_seq;
        for (process, list) in &reports {
            let member = primary.nodes.binary_search(&view.process(*process).node);
            let in_it = member.is_ok() && is_member(view, primary, *process);
            let later = list
                .iter()
                .filter(|(_, ring)| view.rings[*ring as usize].id.ring_seq > number);
            let Some((at, _)) = later.min().filter(|_| in_it) else {
                continue;
            };
            // Its deliveries of that ring all come before that report: another ring has begun.
            let tenure = view.tenure(primary.ring, *process);
            let missing = tenure.map_or_else(
                || promised.first_not_in(&Bits::default()),
                |tenure| promised.first_not_in(&tenure.delivered),
            );
            findings.check(missing.is_none(), || {
                let rank = missing.unwrap_or(0);
                let message = view.rings[primary.ring as usize].order[rank as usize];
                let (who, at) = (view.who(*process), view.at(*process, *at));
                format!(
                    "{who} reported a later primary{at} without {}, delivered in {}",
                    view.what(message),
                    primary.show(view)
                )
            });
        }
    }
}

/// Whether this very process, not another life of its node, is a member.
fn is_member(view: &View<'_>, primary: &Primary, process: u32) -> bool {
    let first = view.tenure(primary.ring, primary.by);
    let span = first.and_then(|tenure| tenure.regular.as_ref());
    span.is_some_and(|span| view.is_member(span.members, process))
}

/// The messages delivered as safe after a report, and before the transitional configuration.
fn promised(view: &View<'_>, primary: &Primary) -> Bits {
    let mut promised = Bits::new(view.rings[primary.ring as usize].order.len());
    for (process, at) in &primary.reports {
        let tenure = view.tenure(primary.ring, *process);
        let Some(span) = tenure.and_then(|tenure| tenure.regular.as_ref()) else {
            continue;
        };
        for step in &view.steps(*process)[*at..span.end] {
            if let Step::Deliver(place) = step
                && place.service == Service::Safe
                && let Some(delivered) = view.delivered(primary.ring, place)
            {
                promised.insert(delivered.rank);
            }
        }
    }
    promised
}
