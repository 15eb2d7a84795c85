//! K6, transitions: a transition comes once between two views of a group, names the one that ends, and
//! is followed by a view whose cause is the network; such a view does not come to a member without it.
//! And a safe message given to a client in a view before the transition is given in that view to every
//! client that was given the view, unless its stay in it fails.
//!
//! If processes go from one regular configuration to the next, which C3 allows to engines with primary views alone,
//! there are no transitions. The configurations of a process show these steps: if none were recorded, and over rings,
//! nothing is excused.
//!
//! As Spread gives them. Not flagged: a member that was never given the view, as it may have been gone before; a leave
//! between the transition and the next view; safe messages that a client missed while its process was in no view, which
//! it was told (K10); and safe messages behind the transition, which K4 judges for the clients that stay together.

use std::collections::BTreeMap;

use rota_core::contract::{ConfigurationKind, RingId, Service};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::event::Cause;
use crate::event::regular_of;
use crate::groups::{Groups, Stay};
use crate::report::Findings;
use crate::trace::Step;
use crate::trace::clients::{Connection, GroupView, Saw};
use crate::view::View;

pub(super) fn check(view: &View<'_>, findings: &mut Findings) {
    let groups = &view.groups;
    let direct = direct(view);
    for (number, connection) in groups.connections() {
        check_connection(groups, &direct, (number, connection), findings);
    }
    for given in 0..groups.clients.views().len() as u32 {
        check_safe(groups, given, findings);
    }
}

/// By process: the regular configurations to which it went from another one.
type Direct = FxHashMap<u32, FxHashSet<RingId>>;

fn direct(view: &View<'_>) -> Direct {
    let mut direct = Direct::default();
    for process in view.trace.began() {
        let mut before = None;
        for step in view.steps(*process) {
            let Step::Conf { conf, .. } = *step else {
                continue;
            };
            let now = view.id(conf);
            if let (Some(ConfigurationKind::Regular(_)), ConfigurationKind::Regular(ring)) =
                (before.replace(now), now)
            {
                direct.entry(*process).or_default().insert(ring);
            }
        }
    }
    direct
}

/// By group: the current view, and whether a transition has come.
type Current = FxHashMap<u32, (u32, bool)>;

fn check_connection(
    groups: &Groups<'_>,
    direct: &Direct,
    (number, connection): (u32, &Connection),
    findings: &mut Findings,
) {
    let direct = direct.get(&connection.process);
    let mut current: Current = FxHashMap::default();
    for (at, saw) in connection.saw.iter().enumerate() {
        let wrong = match *saw {
            Saw::Transition { group, gid } => {
                findings.verdict.checked += 1;
                let ends = groups.clients.gid(gid);
                let wrong = wrong_transition(groups, &mut current, (group, ends));
                let wrong = wrong.or(direct.map(|_| "over an engine that has none"));
                wrong.map(|wrong| format!("a transition of {}, {wrong}", groups.named(group, ends)))
            }
            Saw::View(given) => {
                let listed = groups.view_of(given);
                let before = current.insert(listed.group, (given, false));
                let ring = regular_of(listed.gid.conf);
                let silent = direct.is_some_and(|direct| direct.contains(&ring));
                let wrong = before.and_then(|(_, pending)| wrong_view(listed, pending, silent));
                wrong.map(|wrong| format!("{}, {wrong}", groups.shown(given)))
            }
            Saw::SelfLeave { group } => {
                current.remove(&group);
                None
            }
            _ => None,
        };
        if let Some(wrong) = wrong {
            findings.violated(|| {
                let (who, at) = (groups.who(number), groups.at(number, at));
                format!("{who} was given{at} {wrong}")
            });
        }
    }
    let pending = current.values().filter(|(_, pending)| *pending);
    let mut pending: Vec<u32> = pending.map(|(given, _)| *given).collect();
    pending.sort_unstable();
    for given in pending.iter().filter(|_| groups.live[number as usize]) {
        findings.violated(|| {
            let (who, given) = (groups.who(number), groups.shown(*given));
            format!("{who} rests behind a transition of {given}")
        });
    }
}

fn wrong_transition(
    groups: &Groups<'_>,
    current: &mut Current,
    (group, ends): (u32, crate::event::Gid),
) -> Option<&'static str> {
    let Some((given, pending)) = current.get_mut(&group) else {
        return Some("of which it is no member");
    };
    if std::mem::replace(pending, true) {
        return Some("after one before");
    }
    (groups.view_of(*given).gid != ends).then_some("which is not its view")
}

const fn wrong_view(listed: &GroupView, pending: bool, silent: bool) -> Option<&'static str> {
    match (listed.cause, pending) {
        (Cause::Network, false) if !silent => Some("without a transition before it"),
        (Cause::Network, _) | (_, false) => None,
        (_, true) => Some("after a transition"),
    }
}

fn check_safe(groups: &Groups<'_>, given: u32, findings: &mut Findings) {
    // By message: the client that was given it.
    let mut promised: BTreeMap<u32, u32> = BTreeMap::default();
    for stay in groups.stays_in(given) {
        for got in &stay.got {
            if got.service == Service::Safe && !got.reduced {
                promised.entry(got.message).or_insert(stay.connection);
            }
        }
    }
    if promised.is_empty() {
        return;
    }
    for stay in groups
        .stays_in(given)
        .filter(|stay| !stay.failed && !stay.missed)
    {
        check_kept(groups, stay, &promised, findings);
    }
}

fn check_kept(
    groups: &Groups<'_>,
    stay: &Stay,
    promised: &BTreeMap<u32, u32>,
    findings: &mut Findings,
) {
    let got: FxHashSet<u32> = stay.got.iter().map(|got| got.message).collect();
    for (message, by) in promised {
        let kept = got.contains(message) || groups.discards(stay.connection, *message);
        findings.check(kept, || {
            let (who, by) = (groups.who(stay.connection), groups.who(*by));
            let (what, view) = (groups.what(*message), groups.shown(stay.view));
            format!("{by} was given {what} in {view}, and {who} was not")
        });
    }
}
