//! K3, sets: the sets of a view are disjoint. If the network is its cause they are all members
//! together; otherwise there is one set of one client, which is a member if it joined and none if it has
//! gone. A client that comes to a group is alone in its set in the first view it is given.
//!
//! As Spread gives them: a client that joins while processes come and go is in a set of its own in a view whose cause
//! is the network. K4 checks that the sets are the right ones.

use rustc_hash::FxHashSet;

use crate::event::Cause;
use crate::groups::sets::wrong_sets;
use crate::report::Findings;
use crate::trace::clients::Saw;
use crate::view::View;

pub(super) fn check(view: &View<'_>, findings: &mut Findings) {
    let groups = &view.groups;
    for (number, listed) in (0..).zip(groups.clients.views()) {
        let wrong = wrong_sets(listed.cause, &listed.members, &listed.sets);
        findings.check(wrong.is_none(), || {
            let wrong = wrong.unwrap_or_default();
            format!("{}, {wrong}", groups.shown(number))
        });
    }
    for (number, connection) in groups.connections() {
        let mut member_of = FxHashSet::default();
        for (at, saw) in connection.saw.iter().enumerate() {
            match *saw {
                Saw::View(given) => {
                    let listed = groups.view_of(given);
                    if !member_of.insert(listed.group) {
                        continue;
                    }
                    let entering = matches!(listed.cause, Cause::Join | Cause::Network);
                    let alone = entering && listed.sets.contains(&vec![connection.name]);
                    findings.check(alone, || {
                        let (who, at) = (groups.who(number), groups.at(number, at));
                        format!("{who} came to {}{at}, not alone", groups.shown(given))
                    });
                }
                Saw::SelfLeave { group } => {
                    member_of.remove(&group);
                }
                _ => {}
            }
        }
    }
}
