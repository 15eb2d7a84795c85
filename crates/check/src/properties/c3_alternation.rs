//! C3, alternation: a process's first configuration is regular and holds that process alone; then transitional and
//! regular ones alternate, each transitional one between the regular ones it names, its members being members of both.
//!
//! The singleton at the beginning is a rule of this project, not of the definition. Not flagged: members that are not
//! of the new ring, when no process delivered its configuration.

use rota_core::contract::ConfigurationKind::{self, Regular, Transitional};

use crate::report::Findings;
use crate::trace::Step;
use crate::view::View;

pub(super) fn check(view: &View<'_>, findings: &mut Findings) {
    let lists = lists(view);
    for process in view.trace.began() {
        let mut last: Option<(u32, u32)> = None;
        for (at, step) in view.steps(*process).iter().enumerate() {
            let Step::Conf { conf, members } = *step else {
                continue;
            };
            let wrong = match last {
                None => wrong_start(view, conf, members),
                Some(last) => wrong_step(view, &lists, last, (conf, members)),
            };
            findings.check(wrong.is_none(), || {
                let (who, at) = (view.who(*process), view.at(*process, at));
                let (conf, members) = (view.conf(conf), view.listed(members));
                let wrong = wrong.unwrap_or_default();
                format!("{who} delivered {conf} of {members}{at}, {wrong}")
            });
            last = Some((conf, members));
        }
    }
}

/// By configuration: its members, as some process listed them.
fn lists(view: &View<'_>) -> Vec<Option<u32>> {
    let mut lists = vec![None; view.trace.configurations().len()];
    for (_, _, step) in view.all_steps() {
        if let Step::Conf { conf, members } = *step {
            lists[conf as usize].get_or_insert(members);
        }
    }
    lists
}

fn wrong_start(view: &View<'_>, conf: u32, members: u32) -> Option<String> {
    let alone = view.members[members as usize].len() == 1;
    let regular = matches!(view.id(conf), Regular(_));
    (!regular || !alone).then(|| "first of all, not a regular one of itself alone".into())
}

fn wrong_step(
    view: &View<'_>,
    lists: &[Option<u32>],
    (last, last_members): (u32, u32),
    (conf, members): (u32, u32),
) -> Option<String> {
    let follows = match (view.id(last), view.id(conf)) {
        (Regular(ring), Transitional { old, .. }) => ring == old,
        (Transitional { new, .. }, Regular(ring)) => ring == new,
        _ => false,
    };
    if !follows {
        return Some(format!("after {}", view.conf(last)));
    }
    let Transitional { new, .. } = view.id(conf) else {
        return None;
    };
    let new = view
        .trace
        .configuration_number(ConfigurationKind::Regular(new));
    let new_members = new.and_then(|new| lists[new as usize]);
    [Some(last_members), new_members]
        .into_iter()
        .flatten()
        .find_map(|both| {
            let stranger = view.members[members as usize]
                .iter()
                .find(|member| !view.is_member(both, **member))?;
            let (who, list) = (view.who(*stranger), view.listed(both));
            Some(format!("of which {who} is not in {list}"))
        })
}
