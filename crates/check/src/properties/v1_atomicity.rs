//! V1, failure atomicity: processes that go together from one ring through a transitional configuration to the next
//! deliver the same sequence in the ring, and the same sequence in the transitional configuration. It follows that they
//! deliver the same of the old ring, as classical virtual synchrony asks.
//!
//! Of reliable and fifo messages the sets have to be equal, over both configurations together: they
//! are delivered on receipt, which may come before the change at one process and after it at another.

use crate::report::Findings;
use crate::view::{Span, Tenure, View};

pub(super) fn check(view: &View<'_>, findings: &mut Findings) {
    for ring in 0..view.rings.len() {
        // By the way taken: the first process to compare others with.
        let mut first: Vec<(u32, u32, &Tenure)> = Vec::new();
        for tenure in view.tenures_of(ring) {
            let (Some(next), Some(span)) = (tenure.next, &tenure.transitional) else {
                continue;
            };
            let same = first
                .iter()
                .find(|(conf, ring, _)| (*conf, *ring) == (span.conf, next));
            match same {
                None => first.push((span.conf, next, tenure)),
                Some((.., other)) => {
                    let wrong = wrong(view, other, tenure);
                    findings.check(wrong.is_none(), || {
                        let (who, other) = (view.who(tenure.process), view.who(other.process));
                        let wrong = wrong.unwrap_or_default();
                        format!("{who} and {other} went together through {wrong}")
                    });
                }
            }
        }
    }
}

fn wrong(view: &View<'_>, one: &Tenure, other: &Tenure) -> Option<String> {
    wrong_sequence(view, [one, other], &one.regular, &other.regular)
        .or_else(|| wrong_sequence(view, [one, other], &one.transitional, &other.transitional))
        .or_else(|| wrong_set(view, one, other))
        .or_else(|| wrong_set(view, other, one))
}

fn wrong_sequence(
    view: &View<'_>,
    [one, other]: [&Tenure; 2],
    its_span: &Option<Span>,
    other_span: &Option<Span>,
) -> Option<String> {
    let (its_span, other_span) = (its_span.as_ref()?, other_span.as_ref()?);
    let mut its = view.ordered(one, its_span);
    let mut others = view.ordered(other, other_span);
    loop {
        let (mine, theirs) = (its.next(), others.next());
        if mine.is_none() && theirs.is_none() {
            return None;
        }
        let name = |message: Option<crate::view::Delivered>| {
            message.map_or_else(|| "nothing".into(), |message| view.what(message.message))
        };
        if mine.map(|message| message.message) != theirs.map(|message| message.message) {
            return Some(format!(
                "{}, where {} delivered {} and {} {}",
                view.span(its_span),
                view.who(one.process),
                name(mine),
                view.who(other.process),
                name(theirs)
            ));
        }
    }
}

/// A message that only one of them delivered; those in the total order were compared before.
fn wrong_set(view: &View<'_>, one: &Tenure, other: &Tenure) -> Option<String> {
    let rank = one.delivered.first_not_in(&other.delivered)?;
    let message = view.rings[one.ring as usize].order[rank as usize];
    Some(format!(
        "the end of {}, but only {} delivered {}",
        view.ring(one.ring),
        view.who(one.process),
        view.what(message)
    ))
}
