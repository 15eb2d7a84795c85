//! E3, unique origination: a message is originated once, by its sender, in a regular configuration
//! of which the sender is a member and which is current there; with the payload that was accepted.
//!
//! Not flagged: a message of which no acceptance was written down.

use rota_core::contract::ConfigurationKind;

use crate::report::Findings;
use crate::trace::{Place, Step};
use crate::view::View;

pub(super) fn check(view: &View<'_>, findings: &mut Findings) {
    let mut seen = vec![false; view.homes.len()];
    let mut accepted = vec![None; view.homes.len()];
    for process in view.trace.began() {
        let mut current = None;
        for (at, step) in view.steps(*process).iter().enumerate() {
            match step {
                Step::Conf { conf, members } => current = Some((*conf, *members)),
                Step::Send { message, hash } => accepted[*message as usize] = Some(*hash),
                Step::Broadcast { message, .. } => findings.check(false, || {
                    let (who, at) = (view.who(*process), view.at(*process, at));
                    let what = view.message(*message);
                    format!("{who} originated message {what}{at}, without a place")
                }),
                Step::Orig(place) => {
                    let again = std::mem::replace(&mut seen[place.message as usize], true);
                    let accepted = accepted[place.message as usize];
                    let wrong = if again {
                        Some("which had been originated before".into())
                    } else if accepted.is_some_and(|hash| hash != place.hash) {
                        Some("with another payload than was accepted".into())
                    } else {
                        wrong_place(view, *process, current, place)
                    };
                    findings.check(wrong.is_none(), || {
                        format!(
                            "{} originated {}{}, {}",
                            view.who(*process),
                            view.what(place.message),
                            view.at(*process, at),
                            wrong.unwrap_or_default()
                        )
                    });
                }
                _ => {}
            }
        }
    }
}

fn wrong_place(
    view: &View<'_>,
    process: u32,
    current: Option<(u32, u32)>,
    place: &Place,
) -> Option<String> {
    if view.message(place.message).process != view.process(process) {
        return Some("which is another's".into());
    }
    let Some((conf, members)) = current else {
        return Some("before its first configuration".into());
    };
    if conf != place.conf {
        let (named, current) = (view.conf(place.conf), view.conf(conf));
        return Some(format!("in {named} while {current} was current"));
    }
    if !matches!(view.id(conf), ConfigurationKind::Regular(_)) {
        return Some("in a transitional configuration".into());
    }
    (!view.is_member(members, process)).then(|| format!("in {}, without it", view.listed(members)))
}
