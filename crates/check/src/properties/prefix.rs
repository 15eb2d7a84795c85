//! Prefixes: of two sequences that processes deliver in one regular configuration, in the total order, the shorter
//! begins the longer. It is O3 in a regular configuration, where no member is left out.

use crate::report::Findings;
use crate::view::View;

pub(super) fn check(view: &View<'_>, findings: &mut Findings) {
    for ring in 0..view.rings.len() {
        let sequences = || {
            let tenures = view.tenures_of(ring);
            tenures.filter_map(|tenure| Some((tenure, tenure.regular.as_ref()?)))
        };
        let length = |tenure, span| view.ordered(tenure, span).count();
        let Some((longest, span)) = sequences().max_by_key(|(tenure, span)| length(tenure, span))
        else {
            continue;
        };
        let sequence: Vec<u32> = view.ordered(longest, span).map(|m| m.message).collect();
        for (tenure, span) in sequences() {
            let mut both = view.ordered(tenure, span).zip(&sequence);
            let differ = both.find(|(mine, theirs)| mine.message != **theirs);
            findings.check(differ.is_none(), || {
                let Some((mine, theirs)) = differ else {
                    return String::new();
                };
                format!(
                    "in {} {} delivered {} where {} delivered {}",
                    view.span(span),
                    view.who(tenure.process),
                    view.what(mine.message),
                    view.who(longest.process),
                    view.what(*theirs)
                )
            });
        }
    }
}
