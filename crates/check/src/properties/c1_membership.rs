//! C1, agreed membership: a process is a member of every configuration it delivers, and one
//! configuration has one list of members, wherever it is delivered.

use crate::report::Findings;
use crate::trace::Step;
use crate::view::View;

pub(super) fn check(view: &View<'_>, findings: &mut Findings) {
    // By configuration: its members as they were first listed, and the process that listed them.
    let mut first: Vec<Option<(u32, u32)>> = vec![None; view.trace.configurations().len()];
    for (process, at, step) in view.all_steps() {
        let Step::Conf { conf, members } = *step else {
            continue;
        };
        let (listed, by) = *first[conf as usize].get_or_insert((members, process));
        let place = || format!("{} as {}", view.conf(conf), view.listed(members));
        findings.check(view.is_member(members, process), || {
            let (who, at) = (view.who(process), view.at(process, at));
            format!("{who} delivered {}{at}, without itself", place())
        });
        if listed != members {
            findings.violated(|| {
                let (who, at) = (view.who(process), view.at(process, at));
                let other = format!("{} as {}", view.who(by), view.listed(listed));
                format!("{who} delivered {}{at}, {other}", place())
            });
        }
    }
}
