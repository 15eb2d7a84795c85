//! K1, agreed views: views of a group with the same id have the same members in the same order, the
//! same cause, and the same sets, wherever they are given to a client. And when all is quiet, the current
//! view of a live client is that of all its members that are live clients.
//!
//! As Spread gives them. Not flagged: the order of the sets and within a set, which nobody is promised;
//! and members of whom nothing was recorded. Members that are gone are K9's.

use rustc_hash::FxHashMap;

use crate::groups::{Ends, Groups};
use crate::report::Findings;
use crate::trace::clients::Saw;
use crate::view::View;

pub(super) fn check(view: &View<'_>, findings: &mut Findings) {
    let groups = &view.groups;
    // By group and id: the view as it was first given, and the client that was given it.
    let mut first = FxHashMap::default();
    for (number, connection) in groups.connections() {
        for (at, saw) in connection.saw.iter().enumerate() {
            let Saw::View(given) = *saw else { continue };
            let key = (groups.view_of(given).group, groups.view_of(given).gid);
            let (same, by) = *first.entry(key).or_insert((given, number));
            findings.check(same == given, || {
                let (who, at) = (groups.who(number), groups.at(number, at));
                let (mine, theirs) = (groups.shown(given), groups.shown(same));
                format!("{who} was given {mine}{at}, {} {theirs}", groups.who(by))
            });
        }
    }
    check_rest(groups, findings);
}

fn check_rest(groups: &Groups<'_>, findings: &mut Findings) {
    // By connection and group: the view at the end.
    let mut last = FxHashMap::default();
    for stay in groups.stays.iter().filter(|stay| stay.ends == Ends::Open) {
        last.insert(
            (stay.connection, groups.view_of(stay.view).group),
            stay.view,
        );
    }
    for given in 0..groups.clients.views().len() as u32 {
        let Some(stay) = groups.resting_in(given).next() else {
            continue;
        };
        let listed = groups.view_of(given);
        for member in &listed.members {
            let Some(other) = groups.live_of.get(member) else {
                continue;
            };
            let rests = last.get(&(*other, listed.group)).copied();
            findings.check(rests == Some(given), || {
                let (who, other) = (groups.who(stay.connection), groups.who(*other));
                let there = rests.map_or_else(|| "none".into(), |view| groups.shown(view));
                format!("{who} rests in {}, {other} in {there}", groups.shown(given))
            });
        }
    }
}
