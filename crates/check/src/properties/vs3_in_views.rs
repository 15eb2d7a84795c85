//! VS3, within views: a process delivers nothing before its first view, and names as a delivery's view the
//! one that it installed last. Once it was told that it is excluded, it delivers nothing but the rest of its
//! view, right before it installs the view that follows it: if others have gone on to a view without it, there is no
//! rest, and between the rest and the view it is not told again. It starts once, and sees nothing after its end.
//!
//! The end of a view at a process shows only if the process is told that it is excluded; its deliveries before may have
//! waited for its application since the end of the view. Not flagged is a rest that no view follows, if the process is
//! not known to be alive at the end.

use crate::report::Findings;
use crate::trace::Step;
use crate::uniform::{Stay, Uniform};
use crate::view::End;

pub(super) fn check(uniform: &Uniform<'_>, findings: &mut Findings) {
    for process in uniform.base.trace.began() {
        let (mut current, mut ended) = (None, None);
        for (at, step) in uniform.base.steps(*process).iter().enumerate() {
            let wrong = wrong(uniform, step, at, current, ended);
            match step {
                Step::Conf { conf, .. } => current = Some(*conf),
                Step::Crash => ended = Some("crashed"),
                Step::Leave => ended = Some("left"),
                _ => {}
            }
            findings.check(wrong.is_none(), || {
                let (who, at) = (uniform.base.who(*process), uniform.base.at(*process, at));
                format!("{who} {}{at}", wrong.unwrap_or_default())
            });
        }
    }
    for stay in &uniform.stays {
        check_rest(uniform, stay, findings);
    }
}

fn wrong(
    uniform: &Uniform<'_>,
    step: &Step,
    at: usize,
    current: Option<u32>,
    ended: Option<&str>,
) -> Option<String> {
    if let Some(ended) = ended {
        let killed = matches!(step, Step::Crash);
        return (!killed).then(|| format!("{ended} and saw something after that"));
    }
    match step {
        Step::Start if at > 0 => Some("started again in the same incarnation".into()),
        Step::Deliver(place) if current != Some(place.conf) => {
            let what = uniform.base.what(place.message);
            let current = current.map(|conf| uniform.base.conf(conf));
            let current = current.map_or_else(
                || "before its first view".into(),
                |current| format!("as in {}, but in {current}", uniform.base.conf(place.conf)),
            );
            Some(format!("delivered {what} {current}"))
        }
        _ => None,
    }
}

/// Checks the deliveries of a view that a process makes after it was excluded.
fn check_rest(uniform: &Uniform<'_>, stay: &Stay, findings: &mut Findings) {
    let Some(excluded) = stay.excluded else {
        return;
    };
    let rest = uniform.deliveries(stay).find(|(at, _)| *at > excluded);
    let wrong = rest.and_then(|(first, _)| {
        let steps = uniform.base.steps(stay.process);
        let mut behind = steps[first..stay.steps.end].iter();
        if behind.any(|step| matches!(step, Step::Excluded { .. })) {
            return Some("and was told so again before its next view".into());
        }
        let Some(next) = stay.next else {
            let alive = uniform.base.end(stay.process) == End::Alive;
            return alive.then(|| "and came to no view".into());
        };
        let view = uniform.shown(next);
        (!uniform.survived(stay)).then(|| format!("and came to {view}, before which were others"))
    });
    findings.check(wrong.is_none(), || {
        let (at, what) = rest.map_or((0, String::new()), |(at, place)| {
            (at, uniform.base.what(place.message))
        });
        let (who, at) = (
            uniform.base.who(stay.process),
            uniform.base.at(stay.process, at),
        );
        let (view, wrong) = (uniform.shown(stay.view), wrong.unwrap_or_default());
        format!("{who}, excluded from {view}, delivered {what}{at}, {wrong}")
    });
}
