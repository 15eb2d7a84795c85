//! C4, same transition: each process that a delivered transitional configuration lists delivers it too, unless it
//! failed before, or went from the old ring to another new one. And when all is quiet, the current configuration of a
//! live process is regular, and that of all its live members.

use rota_core::contract::ConfigurationKind;

use crate::report::Findings;
use crate::view::{End, Span, Tenure, View};

pub(super) fn check(view: &View<'_>, findings: &mut Findings) {
    for ring in 0..view.rings.len() {
        let mut seen: Vec<(u32, u32)> = Vec::new();
        for tenure in view.tenures_of(ring) {
            let Some(span) = &tenure.transitional else {
                continue;
            };
            if seen.contains(&(span.conf, span.members)) {
                continue;
            }
            seen.push((span.conf, span.members));
            for member in &view.members[span.members as usize] {
                let wrong = wrong(view, tenure.ring, span, *member);
                findings.check(wrong.is_none(), || {
                    let (who, span) = (view.who(tenure.process), view.span(span));
                    format!("{who} delivered {span}, but {}", wrong.unwrap_or_default())
                });
            }
        }
    }
    check_rest(view, findings);
}

fn wrong(view: &View<'_>, ring: u32, span: &Span, member: u32) -> Option<String> {
    if view.end(member) == End::Untraced {
        return None;
    }
    let who = view.who(member);
    let Some(tenure) = view.tenure(ring, member) else {
        if view.may_lag(ring, member) {
            return None;
        }
        return Some(format!("{who} never was in {}", view.ring(ring)));
    };
    match (&tenure.transitional, tenure.next) {
        (Some(_), _) => None,
        (None, None) if tenure.failed => None,
        (None, None) => Some(format!("{who} stayed in {}", view.ring(ring))),
        (None, Some(next)) => {
            let next = view.ring(next);
            Some(format!("{who} went to {next} without any"))
        }
    }
    .map(|wrong| format!("{wrong}, instead of {}", view.conf(span.conf)))
}

fn check_rest(view: &View<'_>, findings: &mut Findings) {
    let mut seen: Vec<(u32, u32)> = Vec::new();
    for process in view.trace.began() {
        if view.end(*process) != End::Alive {
            continue;
        }
        let span = current(view, *process);
        let at_rest =
            span.filter(|span| matches!(view.id(span.conf), ConfigurationKind::Regular(_)));
        let Some(span) = at_rest else {
            let where_now = span.map_or_else(|| "no configuration".into(), |span| view.span(span));
            findings.violated(|| format!("{} rests in {where_now}", view.who(*process)));
            continue;
        };
        if seen.contains(&(span.conf, span.members)) {
            continue;
        }
        seen.push((span.conf, span.members));
        for member in &view.members[span.members as usize] {
            if view.end(*member) != End::Alive {
                continue;
            }
            let there = current(view, *member);
            findings.check(there.is_some_and(|there| there.conf == span.conf), || {
                let (who, other) = (view.who(*process), view.who(*member));
                let there = there.map_or_else(|| "none".into(), |there| view.span(there));
                format!("{who} rests in {}, {other} in {there}", view.span(span))
            });
        }
    }
}

/// The configuration in which a process's trace ends.
pub(super) fn current<'a>(view: &'a View<'_>, process: u32) -> Option<&'a Span> {
    let last = view.lives[process as usize].last()?;
    let tenure: &Tenure = &view.tenures[*last as usize];
    tenure.spans().last()
}
