//! The primary configurations of a trace, for P1 to P3.

use rota_core::contract::{ConfigurationKind, NodeId, RingId};

use crate::trace::Step;
use crate::view::View;

/// A configuration that some process reported as primary.
#[derive(Debug)]
pub(super) struct Primary {
    pub id: RingId,
    /// The number of its ring in the view.
    pub ring: u32,
    /// The process that reported it first.
    pub by: u32,
    /// Its members' nodes, ascending; a node is one over all of its lives.
    pub nodes: Vec<NodeId>,
    /// The processes that reported it, each with the number of its event.
    pub reports: Vec<(u32, usize)>,
}

/// All primary configurations, by their numbers. A report of a configuration that was not current at the time is left
/// out: P1 flags it.
pub(super) fn primaries(view: &View<'_>) -> Vec<Primary> {
    let mut all: Vec<Primary> = Vec::new();
    for process in view.trace.began() {
        let mut current = None;
        for (at, step) in view.steps(*process).iter().enumerate() {
            match *step {
                Step::Conf { conf, members } => current = Some((conf, members)),
                Step::Primary { conf } => {
                    let members = current.filter(|(current, _)| *current == conf);
                    if let Some((conf, members)) = members
                        && let ConfigurationKind::Regular(id) = view.id(conf)
                    {
                        let known = all.iter().position(|primary| primary.id == id);
                        let place = known.unwrap_or_else(|| {
                            all.push(Primary {
                                id,
                                ring: view.ring_of[conf as usize],
                                by: *process,
                                nodes: nodes(view, &view.members[members as usize]),
                                reports: Vec::new(),
                            });
                            all.len() - 1
                        });
                        all[place].reports.push((*process, at));
                    }
                }
                _ => {}
            }
        }
    }
    all.sort_by_key(|primary| primary.id);
    all
}

/// Whether `after` follows `before`, perhaps by way of configurations between them, each of which `follows` the one
/// before. A configuration that became primary may have ended before any process got to report it; but all of its
/// members had delivered it.
pub(super) fn leads(
    view: &View<'_>,
    before: &Primary,
    after: &Primary,
    follows: fn(&Primary, &Primary) -> bool,
) -> bool {
    let mut reached: Vec<Primary> = Vec::new();
    if follows(after, before) {
        return true;
    }
    let between = (0..).zip(&view.rings);
    let mut between: Vec<Primary> = between
        .filter(|(_, ring)| before.id < ring.id && ring.id < after.id)
        .filter_map(|(number, _)| unreported(view, number))
        .collect();
    between.sort_by_key(|one| one.id);
    for one in between {
        let from = reached.iter().chain([before]);
        if from.into_iter().any(|from| follows(&one, from)) {
            if follows(after, &one) {
                return true;
            }
            reached.push(one);
        }
    }
    false
}

/// The configuration of a ring, if all of its members have delivered it.
fn unreported(view: &View<'_>, ring: u32) -> Option<Primary> {
    let first = view.tenures_of(ring as usize).next()?;
    let members = &view.members[first.regular.as_ref()?.members as usize];
    let there = |member: &u32| {
        let tenure = view.tenure(ring, *member);
        tenure.is_some_and(|tenure| tenure.regular.is_some())
    };
    members.iter().all(there).then(|| Primary {
        id: view.rings[ring as usize].id,
        ring,
        by: first.process,
        nodes: nodes(view, members),
        reports: Vec::new(),
    })
}

fn nodes(view: &View<'_>, members: &[u32]) -> Vec<NodeId> {
    let nodes = members.iter().map(|member| view.process(*member).node);
    let mut nodes: Vec<NodeId> = nodes.collect();
    nodes.sort_unstable();
    nodes.dedup();
    nodes
}

impl Primary {
    /// The number of these nodes that are members.
    pub fn count(&self, nodes: &[NodeId]) -> usize {
        nodes.iter().filter(|node| self.has(**node)).count()
    }

    pub fn has(&self, node: NodeId) -> bool {
        self.nodes.binary_search(&node).is_ok()
    }

    /// The text for people.
    pub fn show(&self, view: &View<'_>) -> String {
        let nodes: Vec<String> = self.nodes.iter().map(ToString::to_string).collect();
        let (id, nodes, by) = (self.id, nodes.join(", "), view.who(self.by));
        format!("{id} of nodes {{{nodes}}}, reported by {by}")
    }
}
