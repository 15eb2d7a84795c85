//! UA, uniform agreement: a message that any process has delivered in a view, even one that crashed then, is delivered
//! there by each process that goes on to the view that follows it, and by each process that rests in it; and no process
//! rests in any view but the newest.
//!
//! A process is excused exactly of messages that were delivered in views that it was not in, and in views that it did
//! not see the end of: it was excluded, or failed, or was told at the end that it is excluded. Not judged are changes
//! to views that are not certain.

use crate::report::Findings;
use crate::trace::Step;
use crate::uniform::{Begins, Installed, Stay, Uniform};

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

/// A process that delivered a message in a view, as text.
fn deliverer(uniform: &Uniform<'_>, view: u32, message: u32) -> String {
    let conf = uniform.views[view as usize].conf;
    let mut stays = uniform.stays.iter();
    let found = stays.find(|stay| {
        if uniform.views[stay.view as usize].conf != conf {
            return false;
        }
        let steps = &uniform.base.steps(stay.process)[stay.steps.clone()];
        let mut steps = steps.iter();
        steps.any(|step| matches!(step, Step::Deliver(place) if place.message == message))
    });
    found.map_or_else(String::new, |stay| uniform.base.who(stay.process))
}

/// By message: the first view in which any process delivered it, without those that its sender went back behind.
pub(super) fn homes(uniform: &Uniform<'_>) -> Vec<Option<u32>> {
    let mut homes = vec![None; uniform.broadcasts.len()];
    let again = |view: &Installed| matches!(view.begins, Begins::Again { .. });
    let goes_back = uniform.views.iter().any(again);
    for (number, view) in (0..).zip(&uniform.views) {
        for (_, message) in &view.sequence {
            let broadcast = uniform.broadcasts[*message as usize].filter(|_| goes_back);
            let lost = broadcast.is_some_and(|sent| uniform.is_lost_to(sent.process, number));
            if !lost {
                homes[*message as usize].get_or_insert(number);
            }
        }
    }
    homes
}
