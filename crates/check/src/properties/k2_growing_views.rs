//! K2, growing views: a client is a member of every view that it is given, and the ids of a group's
//! views grow strictly at a client.
//!
//! As Spread gives them. Not flagged: gaps, as a client is not given the views in which it is no
//! member. Clients that follow one another under one name are different ones.

use rustc_hash::FxHashMap;

use crate::report::Findings;
use crate::trace::clients::Saw;
use crate::view::View;

pub(super) fn check(view: &View<'_>, findings: &mut Findings) {
    let groups = &view.groups;
    for (number, connection) in groups.connections() {
        let mut last = FxHashMap::default();
        for (at, saw) in connection.saw.iter().enumerate() {
            let Saw::View(given) = *saw else { continue };
            let listed = groups.view_of(given);
            let place = |what: String| {
                let (who, at) = (groups.who(number), groups.at(number, at));
                format!("{who} was given {}{at}, {what}", groups.shown(given))
            };
            findings.check(listed.members.contains(&connection.name), || {
                place("without itself".into())
            });
            let before = last.insert(listed.group, listed.gid);
            if let Some(before) = before.filter(|before| *before >= listed.gid) {
                findings.violated(|| {
                    let before = groups.named(listed.group, before);
                    place(format!("after {before}"))
                });
            }
        }
    }
}
