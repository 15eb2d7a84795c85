//! C5, consistent sets: processes that go from one ring to the same next one do so through the same
//! transitional configuration, which lists them all.

use crate::report::Findings;
use crate::view::{Span, Tenure, View};

/// A process's time in a ring, and the transitional configuration that ended it.
type Way<'a> = (&'a Tenure, &'a Span);

pub(super) fn check(view: &View<'_>, findings: &mut Findings) {
    for ring in 0..view.rings.len() {
        let mut groups: Vec<(u32, Vec<Way<'_>>)> = Vec::new();
        for tenure in view.tenures_of(ring) {
            let (Some(next), Some(span)) = (tenure.next, &tenure.transitional) else {
                continue;
            };
            match groups.iter_mut().find(|(ring, _)| *ring == next) {
                Some((_, group)) => group.push((tenure, span)),
                None => groups.push((next, vec![(tenure, span)])),
            }
        }
        for (_, group) in &groups {
            check_group(view, group, findings);
        }
    }
}

fn check_group(view: &View<'_>, group: &[Way<'_>], findings: &mut Findings) {
    let mut seen: Vec<(u32, u32)> = Vec::new();
    for (tenure, span) in group {
        if seen.contains(&(span.conf, span.members)) {
            continue;
        }
        seen.push((span.conf, span.members));
        for (other, through) in group {
            let listed = view.is_member(span.members, other.process);
            findings.check(through.conf == span.conf && listed, || {
                format!(
                    "{} went to the same ring through {}, {} through {}",
                    view.who(tenure.process),
                    view.span(span),
                    view.who(other.process),
                    view.span(through)
                )
            });
        }
    }
}
