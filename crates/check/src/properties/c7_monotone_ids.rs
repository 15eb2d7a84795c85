//! C7, growing ring ids: the numbers of a node's regular configurations grow strictly, also from one
//! of its lives to the next.

use rota_core::contract::ConfigurationKind;
use rustc_hash::FxHashMap;

use crate::report::Findings;
use crate::trace::Step;
use crate::view::View;

pub(super) fn check(view: &View<'_>, findings: &mut Findings) {
    let mut last = FxHashMap::default();
    for (process, at, step) in view.all_steps() {
        let Step::Conf { conf, .. } = *step else {
            continue;
        };
        let ConfigurationKind::Regular(ring) = view.id(conf) else {
            continue;
        };
        let before = last.insert(view.process(process).node, ring);
        let Some(before) = before else {
            continue;
        };
        findings.check(ring.ring_seq > before.ring_seq, || {
            let (who, at) = (view.who(process), view.at(process, at));
            format!("{who} delivered {}{at} after {before}", view.conf(conf))
        });
    }
}
