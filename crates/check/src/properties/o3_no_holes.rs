//! O3, no holes: a process that delivers a message in a configuration has delivered every earlier message of the ring
//! whose sender is a member of that configuration, if any process delivered it. In a regular configuration all senders
//! are members; in a transitional one, only messages of members that were left behind may be missing.

use crate::bits::Bits;
use crate::report::Findings;
use crate::view::{Tenure, View, is_ordered};

pub(super) fn check(view: &View<'_>, findings: &mut Findings) {
    for ring in 0..view.rings.len() {
        let mut anybody = Bits::new(view.rings[ring].order.len());
        for tenure in view.tenures_of(ring) {
            anybody.union(&tenure.delivered);
        }
        for tenure in view.tenures_of(ring) {
            check_tenure(view, tenure, &anybody, findings);
        }
    }
}

/// Checks a tenure up to the first hole: later messages have the same one.
fn check_tenure(view: &View<'_>, tenure: &Tenure, anybody: &Bits, findings: &mut Findings) {
    let order = &view.rings[tenure.ring as usize].order;
    let mut mine = Bits::new(order.len());
    let mut next: u32 = 0;
    for span in tenure.spans() {
        for delivered in view.ordered(tenure, span) {
            let needed = |rank: &u32| {
                let home = view.homes[order[*rank as usize] as usize];
                anybody.contains(*rank)
                    && !mine.contains(*rank)
                    && home.is_some_and(|home| {
                        is_ordered(home.service) && view.is_member(span.members, home.sender)
                    })
            };
            let hole = (next..delivered.rank).find(needed);
            next = next.max(delivered.rank);
            mine.insert(delivered.rank);
            findings.check(hole.is_none(), || {
                let hole = order[hole.unwrap_or_default() as usize];
                format!(
                    "{} delivered {} in {} without {} before it",
                    view.who(tenure.process),
                    view.what(delivered.message),
                    view.span(span),
                    view.what(hole)
                )
            });
            if hole.is_some() {
                return;
            }
        }
    }
}
