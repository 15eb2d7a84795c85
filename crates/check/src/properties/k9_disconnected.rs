//! K9, disconnected: no client skips anything in secret. When all is quiet, live clients whose current view is the same
//! have been given the same since; that view lists no client that is gone; and a client that a view calls disconnected
//! did disconnect. At any time, a client that joins was no member of the view before.
//!
//! Spread cuts off a client for which too much is waiting. A client that is made to skip a message counts as
//! disconnected, and comes back by joining, like any other. K3 and K5 require of all clients that it comes back as a
//! new one; and K4 that the clients that stay were given everything until then.
//!
//! A trace does not show, and so nothing checks, when a client counts as slow, and that the ring does not wait for it.
//! Not flagged: clients of which nothing was recorded, or whose processes are not known to be alive.

use rustc_hash::{FxHashMap, FxHashSet};

use super::k4_together::compare;
use crate::event::Cause;
use crate::groups::{Ends, Groups};
use crate::report::Findings;
use crate::trace::clients::GroupView;
use crate::view::{End, View};

pub(super) fn check(view: &View<'_>, findings: &mut Findings) {
    let groups = &view.groups;
    let known = Known::of(view);
    for (given, listed) in (0..).zip(groups.clients.views()) {
        let resting: Vec<_> = groups.resting_in(given).collect();
        compare(groups, &resting, findings, || {
            format!("rest in {}", groups.shown(given))
        });
        if let Some(stay) = resting.first() {
            check_gone(groups, &known, (stay.connection, given), findings);
        }
        if listed.cause == Cause::Disconnect {
            check_blamed(groups, &known, given, listed, findings);
        }
    }
    check_joins(groups, findings);
}

/// The state of clients, by name.
#[derive(Default)]
struct Known {
    /// The names of which all connections are over.
    gone: FxHashSet<u32>,
    /// The names with one connection only, which is live.
    constant: FxHashSet<u32>,
}

impl Known {
    fn of(view: &View<'_>) -> Self {
        let groups = &view.groups;
        // By name: the number of connections, of those that are over, and of those that are live.
        let mut counts: FxHashMap<u32, [u32; 3]> = FxHashMap::default();
        for (number, one) in groups.connections() {
            let ended = matches!(view.end(one.process), End::Crashed | End::Left);
            let counts = counts.entry(one.name).or_default();
            counts[0] += 1;
            counts[1] += u32::from(one.disconnected || ended);
            counts[2] += u32::from(groups.live[number as usize]);
        }
        let mut known = Self::default();
        for (name, [all, over, live]) in counts {
            if all == over {
                known.gone.insert(name);
            }
            if all == live {
                known.constant.insert(name);
            }
        }
        known
    }
}

fn check_gone(
    groups: &Groups<'_>,
    known: &Known,
    (connection, given): (u32, u32),
    findings: &mut Findings,
) {
    for member in &groups.view_of(given).members {
        findings.check(!known.gone.contains(member), || {
            let (who, gone) = (groups.who(connection), groups.name(*member));
            format!("{who} rests in {}, and {gone} is gone", groups.shown(given))
        });
    }
}

fn check_blamed(
    groups: &Groups<'_>,
    known: &Known,
    given: u32,
    listed: &GroupView,
    findings: &mut Findings,
) {
    for blamed in listed.sets.iter().flatten() {
        findings.check(!known.constant.contains(blamed), || {
            let blamed = groups.name(*blamed);
            format!(
                "{} came, and {blamed} never disconnected",
                groups.shown(given)
            )
        });
    }
}

fn check_joins(groups: &Groups<'_>, findings: &mut Findings) {
    for stay in &groups.stays {
        let Ends::Next(next) = stay.ends else {
            continue;
        };
        let (before, after) = (groups.view_of(stay.view), groups.view_of(next));
        if after.cause == Cause::Join {
            let both = after.sets.iter().flatten();
            let both = both.filter(|one| before.members.contains(one)).count();
            findings.check(both == 0, || {
                let (who, after) = (groups.who(stay.connection), groups.shown(next));
                format!("{who} was given {after} after {}", groups.shown(stay.view))
            });
        }
    }
}
