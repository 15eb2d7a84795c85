//! P2, continuous primaries: each primary has a quorum of the one before it by number. Otherwise there could be another
//! one that follows as well.
//!
//! Between two that were reported there may have been some that ended before anybody could: a chain of
//! configurations that all of their members delivered, each a quorum of the one before, is enough.
//!
//! A quorum is more than half of its nodes, or half of them with the smallest (dynamic linear voting). If primaries are
//! configurations with a majority of configured nodes, a quorum is that majority instead. A trace does not say by which
//! rule it was made: unless the options do, either is enough, and the nodes that the trace names stand for the
//! configured ones.

//!
//! If the list of nodes that count changes from node to node, each primary has a node of the one before: both lists
//! have to agree until one of them is over.
//!
//! A trace of an engine with views ([`check_views`]) has the views alone. If members vote, there may have been primary
//! configurations between two of them in which no view began, each a quorum of the one before. Then P2 requires only
//! that one process at least goes from view to view; VS1 to VS5 and UTO check that all views are one order.

use rota_core::contract::NodeId;

use crate::report::{Findings, PrimaryRule};
use crate::view::View;

use super::primaries::{Primary, leads, primaries};

pub(super) fn check(view: &View<'_>, findings: &mut Findings) {
    let rule = view.options.primary.as_ref();
    let mut named: Vec<NodeId> = Vec::new();
    if rule.is_none() {
        let processes = view.trace.processes().iter();
        named.extend(processes.map(|process| process.node));
        named.sort_unstable();
        named.dedup();
    }
    if rule == Some(&PrimaryRule::Overlapping) {
        return check_overlap(view, findings);
    }
    let all = primaries(view);
    if let Some(PrimaryRule::Majority(configured)) = rule {
        for primary in &all {
            findings.check(is_majority(primary, configured), || {
                format!("no majority of all nodes: {}", primary.show(view))
            });
        }
        return;
    }
    for pair in all.windows(2) {
        let [before, after] = pair else { continue };
        let both = is_majority(before, &named) && is_majority(after, &named);
        let either = rule.is_none() && both;
        findings.check(either || leads(view, before, after, has_quorum), || {
            let (before, after) = (before.show(view), after.show(view));
            format!("no quorum of {before}, and primary after it: {after}")
        });
    }
}

/// The same check for views. See the module page.
pub(super) fn check_views(view: &View<'_>, findings: &mut Findings) {
    if matches!(view.options.primary, Some(PrimaryRule::Majority(_))) {
        check(view, findings);
        return;
    }
    check_overlap(view, findings);
}

fn check_overlap(view: &View<'_>, findings: &mut Findings) {
    for pair in primaries(view).windows(2) {
        let [before, after] = pair else { continue };
        findings.check(after.count(&before.nodes) > 0, || {
            let (before, after) = (before.show(view), after.show(view));
            format!("nobody of {before}, and primary after it: {after}")
        });
    }
}

fn is_majority(primary: &Primary, nodes: &[NodeId]) -> bool {
    2 * primary.count(nodes) > nodes.len()
}

fn has_quorum(after: &Primary, before: &Primary) -> bool {
    let (twice, all) = (2 * after.count(&before.nodes), before.nodes.len());
    twice > all || twice == all && after.has(before.nodes[0])
}
