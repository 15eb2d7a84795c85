//! VS5, positions over views: all positions of a view come behind all positions of the views before it in the order. So
//! each view has a member of the one before, which knows where that ended.
//!
//! An order begins anew only if no process remembers: no process that has been in a view is alive, or later lives of
//! more than half of the nodes are here (of the configured ones, if the options say which; else of all that the trace
//! names). If more than half have forgotten, and with them the newest views, while others remember an older one, the
//! order goes back to that: positions go on from where it ended for the processes that remember it. Flagged although it
//! is more than is promised: the same, if no trace shows the views that are forgotten.
//!
//! UTO checks that no position within is left out, as far as any trace shows, and that all members begin with the same
//! one.

use crate::report::Findings;
use crate::uniform::{Begins, Uniform};

pub(super) fn check(uniform: &Uniform<'_>, findings: &mut Findings) {
    let mut last: Option<(u64, u32)> = None;
    // By view: the position of the order when it began.
    let mut stood = Vec::new();
    for (number, view) in (0..).zip(&uniform.views) {
        let first = view.sequence.first();
        match view.begins {
            Begins::Anew => last = None,
            Begins::Again { first } => last = stood[first as usize],
            Begins::Unfounded => findings.check(false, || {
                let view = uniform.shown(number);
                format!("nobody in {view} was in an earlier one, and others remember")
            }),
            Begins::Behind => check_members(uniform, number, findings),
        }
        stood.push(last);
        if let (Some((position, message)), Some((end, before))) = (first, last) {
            findings.check(*position > end, || {
                let (what, other) = (uniform.base.what(*message), uniform.base.what(before));
                let view = uniform.shown(number);
                format!("{view} begins with {what} at {position}, and {other} was at {end} before")
            });
        }
        last = last.max(view.sequence.last().copied());
    }
}

fn check_members(uniform: &Uniform<'_>, number: u32, findings: &mut Findings) {
    let view = &uniform.views[number as usize];
    let Some(before) = uniform.before(number).filter(|_| view.certain) else {
        return;
    };
    let earlier = uniform.views[before as usize].members;
    let mut members = uniform.base.members[view.members as usize].iter();
    let known = members.any(|member| uniform.base.is_member(earlier, *member));
    findings.check(known, || {
        let (view, earlier) = (uniform.shown(number), uniform.shown(before));
        format!("nobody in {view} was in {earlier} before it")
    });
}
