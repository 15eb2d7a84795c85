//! C2, no repeated configuration: a process delivers each configuration at most once.

use crate::report::Findings;
use crate::trace::Step;
use crate::view::View;

pub(super) fn check(view: &View<'_>, findings: &mut Findings) {
    let mut delivered_by = vec![u32::MAX; view.trace.configurations().len()];
    for (process, at, step) in view.all_steps() {
        let Step::Conf { conf, .. } = *step else {
            continue;
        };
        let before = std::mem::replace(&mut delivered_by[conf as usize], process);
        findings.check(before != process, || {
            let (who, at) = (view.who(process), view.at(process, at));
            format!("{who} delivered {} again{at}", view.conf(conf))
        });
    }
}
