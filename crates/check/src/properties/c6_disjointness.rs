//! C6, disjoint sets: processes that go from one ring to different next ones do not go through the
//! same transitional configuration.
//!
//! Not flagged: a member listed in one process's transitional configuration that went elsewhere. It
//! has to be explained, which is C4's.

use crate::report::Findings;
use crate::view::View;

pub(super) fn check(view: &View<'_>, findings: &mut Findings) {
    for ring in 0..view.rings.len() {
        // By transitional configuration: the process that went through it first, and the ring that it went to.
        let mut first: Vec<(u32, u32, u32)> = Vec::new();
        for tenure in view.tenures_of(ring) {
            let (Some(next), Some(span)) = (tenure.next, &tenure.transitional) else {
                continue;
            };
            let Some((_, other, its_next)) = first.iter().find(|(conf, ..)| *conf == span.conf)
            else {
                first.push((span.conf, tenure.process, next));
                continue;
            };
            findings.check(*its_next == next, || {
                format!(
                    "through {} {} went to {}, {} to {}",
                    view.span(span),
                    view.who(*other),
                    view.ring(*its_next),
                    view.who(tenure.process),
                    view.ring(next)
                )
            });
        }
    }
}
