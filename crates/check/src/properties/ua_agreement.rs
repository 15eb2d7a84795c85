//! UA, uniform agreement: what anybody has delivered in a view, also somebody who crashed then, everybody
//! delivers there who goes on to the view that follows it, and everybody who rests in it; and nobody rests
//! in any view but the newest.
//!
//! A process is excused exactly of what was delivered in views that it was not in, and in views that it did
//! not see the end of: it was excluded, or failed, or was told at the end that it is excluded. Not judged are
//! changes to views that are not certain.

use crate::report::Findings;
use crate::trace::Step;
use crate::uniform::{Stay, Uniform};

pub(super) fn check(uniform: &Uniform<'_>, findings: &mut Findings) {
    for stay in &uniform.stays {
        if uniform.rests(stay) {
            let newest = stay.view as usize + 1 == uniform.views.len();
            findings.check(newest, || {
                let last = uniform.views.len() as u32 - 1;
                let (who, view) = (uniform.base.who(stay.process), uniform.shown(stay.view));
                format!(
                    "{who} rests in {view}, and there is {}",
                    uniform.shown(last)
                )
            });
        }
        if uniform.owes_all(stay) {
            check_stay(uniform, stay, findings);
        }
    }
}

fn check_stay(uniform: &Uniform<'_>, stay: &Stay, findings: &mut Findings) {
    let mine = uniform.deliveries(stay).map(|(_, place)| place.message);
    let mut mine: Vec<u32> = mine.collect();
    mine.sort_unstable();
    for (_, message) in &uniform.views[stay.view as usize].sequence {
        findings.check(mine.binary_search(message).is_ok(), || {
            format!(
                "{} did not deliver {} in {}, as {} did",
                uniform.base.who(stay.process),
                uniform.base.what(*message),
                uniform.shown(stay.view),
                deliverer(uniform, stay.view, *message)
            )
        });
    }
}

/// Who delivered a message in a view.
fn deliverer(uniform: &Uniform<'_>, view: u32, message: u32) -> String {
    let stays = uniform.views[view as usize].stays.iter();
    let mut stays = stays.map(|stay| &uniform.stays[*stay as usize]);
    let found = stays.find(|stay| {
        let steps = &uniform.base.steps(stay.process)[stay.steps.clone()];
        let mut steps = steps.iter();
        steps.any(|step| matches!(step, Step::Deliver(place) if place.message == message))
    });
    found.map_or_else(String::new, |stay| uniform.base.who(stay.process))
}

/// By message: the first view in which anybody delivered it.
pub(super) fn homes(uniform: &Uniform<'_>) -> Vec<Option<u32>> {
    let mut homes = vec![None; uniform.broadcasts.len()];
    for (number, view) in (0..).zip(&uniform.views) {
        for (_, message) in &view.sequence {
            homes[*message as usize].get_or_insert(number);
        }
    }
    homes
}
