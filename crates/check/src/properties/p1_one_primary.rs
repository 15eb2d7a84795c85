//! P1, one primary: a process reports only its current regular configuration as primary, and once; and all primaries
//! are in one order, the one in which processes that were in several saw them.
//!
//! In other words, no two have the same number, and each has a member in common with the one that follows it by number.
//! Numbers grow at every node (C7), so that member was in the first one first. Two primaries of parts that could not
//! hear each other have numbers without such a chain between them. Links of the chain that no process reported are
//! allowed for: configurations that all of their members delivered.
//!
//! Primaries may overlap in time: a process that was cut off does not know it until its token is lost, and an
//! application may be behind its process.

use crate::report::Findings;
use crate::trace::Step;
use crate::view::View;

use super::primaries::{leads, primaries};

pub(super) fn check(view: &View<'_>, findings: &mut Findings) {
    for process in view.trace.began() {
        let mut current = None;
        let mut reported = None;
        for (at, step) in view.steps(*process).iter().enumerate() {
            match *step {
                Step::Conf { conf, .. } => current = Some(conf),
                Step::Primary { conf } => {
                    let right = current == Some(conf) && reported != Some(conf);
                    findings.check(right, || {
                        let (who, at) = (view.who(*process), view.at(*process, at));
                        let how = if current == Some(conf) {
                            "again"
                        } else {
                            "which was not current"
                        };
                        format!("{who} reported {} as primary{at}, {how}", view.conf(conf))
                    });
                    reported = Some(conf);
                }
                _ => {}
            }
        }
    }
    let all = primaries(view);
    for pair in all.windows(2) {
        let [before, after] = pair else { continue };
        let apart = !leads(view, before, after, |after, before| {
            before.count(&after.nodes) > 0
        });
        let same = before.id.ring_seq == after.id.ring_seq;
        findings.check(!apart && !same, || {
            let what = if apart { "no member" } else { "the number" };
            let (before, after) = (before.show(view), after.show(view));
            format!("two primaries with {what} in common: {before}, and {after}")
        });
    }
}
