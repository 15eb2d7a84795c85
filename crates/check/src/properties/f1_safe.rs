//! F1, safe: when a process delivers a safe message, every member of the configuration in which it does delivers the
//! message too, in the ring or in the transitional configuration that ends it, unless the member fails there.
//!
//! A process that failed before its application had got to that ring is excused, too: an application may be behind what
//! its process has agreed to. A process outside a transitional configuration owes nothing to those that deliver in it.

use rota_core::contract::Service;

use crate::bits::Bits;
use crate::report::Findings;
use crate::view::{End, Span, Tenure, View};

pub(super) fn check(view: &View<'_>, findings: &mut Findings) {
    for ring in 0..view.rings.len() {
        // By configuration as listed: the safe messages that any process delivered in it.
        let mut groups: Vec<(&Span, Bits)> = Vec::new();
        for tenure in view.tenures_of(ring) {
            for span in tenure.spans() {
                collect(view, tenure, span, &mut groups, findings);
            }
        }
        for (span, safe) in &groups {
            if !safe.is_empty() {
                check_members(view, ring as u32, span, safe, findings);
            }
        }
    }
}

fn collect<'a>(
    view: &View<'_>,
    tenure: &'a Tenure,
    span: &'a Span,
    groups: &mut Vec<(&'a Span, Bits)>,
    findings: &mut Findings,
) {
    let same = |(other, _): &(&Span, _)| (other.conf, other.members) == (span.conf, span.members);
    let place = groups.iter().position(same).unwrap_or_else(|| {
        let size = view.rings[tenure.ring as usize].order.len();
        groups.push((span, Bits::new(size)));
        groups.len() - 1
    });
    for delivered in view.ordered(tenure, span) {
        if delivered.service == Service::Safe {
            findings.verdict.checked += 1;
            groups[place].1.insert(delivered.rank);
        }
    }
}

fn check_members(view: &View<'_>, ring: u32, span: &Span, safe: &Bits, findings: &mut Findings) {
    for member in &view.members[span.members as usize] {
        if view.end(*member) == End::Untraced {
            continue;
        }
        let tenure = view.tenure(ring, *member);
        let missing = match tenure {
            Some(tenure) if tenure.failed => None,
            Some(tenure) => safe.first_not_in(&tenure.delivered),
            None if view.may_lag(ring, *member) => None,
            None => safe.first_not_in(&Bits::default()),
        };
        if let Some(rank) = missing {
            findings.violated(|| {
                let message = view.rings[ring as usize].order[rank as usize];
                let who = who_delivered(view, ring, span, message);
                format!(
                    "{who} delivered {} in {}, and {} did not deliver it",
                    view.what(message),
                    view.span(span),
                    view.who(*member)
                )
            });
        }
    }
}

fn who_delivered(view: &View<'_>, ring: u32, span: &Span, message: u32) -> String {
    let mut tenures = view.tenures_of(ring as usize);
    let did = tenures.find(|tenure| {
        let mut spans = tenure.spans().filter(|other| other.conf == span.conf);
        spans.any(|span| view.ordered(tenure, span).any(|m| m.message == message))
    });
    did.map_or_else(|| "somebody".into(), |tenure| view.who(tenure.process))
}
