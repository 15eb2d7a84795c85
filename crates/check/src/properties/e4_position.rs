//! E4, within a life: a process starts once, first of all; delivers and originates nothing before
//! its first configuration; names as a delivery's configuration the one that is current; and sees
//! nothing after it crashed or left.
//!
//! Not flagged: a crash after that, as a process that has left may be killed. E3 checks that an origination names the
//! current configuration.

use crate::report::Findings;
use crate::trace::Step;
use crate::view::View;

pub(super) fn check(view: &View<'_>, findings: &mut Findings) {
    for process in view.trace.began() {
        let mut current = None;
        let mut ended = None;
        for (at, step) in view.steps(*process).iter().enumerate() {
            let wrong = wrong(view, step, at, current, ended);
            match step {
                Step::Conf { conf, .. } => current = Some(*conf),
                Step::Crash => ended = Some("crashed"),
                Step::Leave => ended = Some("left"),
                _ => {}
            }
            findings.check(wrong.is_none(), || {
                let (who, at) = (view.who(*process), view.at(*process, at));
                format!("{who} {}{at}", wrong.unwrap_or_default())
            });
        }
    }
}

fn wrong(
    view: &View<'_>,
    step: &Step,
    at: usize,
    current: Option<u32>,
    ended: Option<&str>,
) -> Option<String> {
    if let Some(ended) = ended {
        if matches!(step, Step::Crash) {
            return None;
        }
        return Some(format!("{ended} and saw something after that"));
    }
    match step {
        Step::Start if at > 0 => Some("started again in the same incarnation".into()),
        Step::Orig(place) | Step::Deliver(place) if current.is_none() => Some(format!(
            "handled {} before its first configuration",
            view.what(place.message)
        )),
        Step::Deliver(place) if current != Some(place.conf) => {
            let current = current.map(|conf| view.conf(conf)).unwrap_or_default();
            Some(format!(
                "delivered {} as in {}, but in {current}",
                view.what(place.message),
                view.conf(place.conf)
            ))
        }
        _ => None,
    }
}
