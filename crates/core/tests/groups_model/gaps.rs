//! K10: clients of a daemon that is in no view are told so, and are told whether they missed messages.

use std::collections::{BTreeMap, BTreeSet};

use rota_core::contract::RingId;
use rota_core::groups::{Cause, Destination, Event, GroupName, Member, Received};

use super::checks::fail;
use super::world::{Step, Trace};

/// Between the two signals there is nothing else. If something was missed, a view by network comes first in each group
/// that the client is in.
pub fn told(member: &Member, trace: &Trace, views: bool) -> Result<(), String> {
    let mut excluded = false;
    // Of each group that the client is in, whether it has still to be told who is there.
    let mut owed: BTreeMap<GroupName, bool> = BTreeMap::new();
    for step in &trace.steps {
        let Step::Got(event) = step else { continue };
        let fine = match event {
            Event::Excluded => views && !std::mem::replace(&mut excluded, true),
            Event::Included { missed } => {
                owed.values_mut().for_each(|owed| *owed |= *missed);
                std::mem::take(&mut excluded)
            }
            _ if excluded => false,
            Event::View(view) => {
                let was = owed.insert(view.group, false);
                was != Some(true) || view.cause == Cause::Network
            }
            Event::Transitional { .. } => true,
            Event::SelfLeave { group } => owed.remove(group) != Some(true),
            Event::Message(message) => !goes_to(message, &owed),
        };
        if !fine {
            return fail("K10", (member, event));
        }
    }
    let settled = trace.cut || !excluded && owed.values().all(|owed| !owed);
    settled
        .then_some(())
        .map_or_else(|| fail("K10", ("rests", member)), Ok)
}

fn goes_to(message: &Received, owed: &BTreeMap<GroupName, bool>) -> bool {
    message.to.iter().any(|to| match to {
        Destination::Group(name) => owed.get(name) == Some(&true),
        Destination::Client(..) => false,
    })
}

/// What the client had sent before it was excluded, and may have missed.
pub fn sent_before(trace: &Trace) -> BTreeSet<u64> {
    let (mut sent, mut doubtful, mut missed) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for step in &trace.steps {
        match step {
            Step::Sent(id) => {
                sent.insert(*id);
            }
            Step::Got(Event::Excluded) => doubtful.clone_from(&sent),
            Step::Got(Event::Included { missed: true }) => missed.append(&mut doubtful),
            Step::Got(_) => {}
        }
    }
    missed
}

/// Of each client that has missed something, between which configurations.
pub struct Gaps(BTreeMap<Member, Vec<Gap>>);

/// From the last view before it to the first behind it.
type Gap = (Option<RingId>, Option<RingId>);

impl Gaps {
    pub fn of(traces: &BTreeMap<Member, Trace>) -> Self {
        let gaps = traces.iter().map(|(member, trace)| {
            let (mut gaps, mut last, mut open) = (Vec::new(), None, None);
            for step in &trace.steps {
                match step {
                    Step::Got(Event::Included { missed: true }) => open = Some(last),
                    Step::Got(Event::View(view)) => {
                        last = Some(view.id.ring);
                        gaps.extend(open.take().map(|from| (from, last)));
                    }
                    _ => {}
                }
            }
            gaps.extend(open.map(|from| (from, None)));
            (*member, gaps)
        });
        Self(gaps.collect())
    }

    /// Whether the client may have missed its views there.
    pub fn hold(&self, member: &Member, ring: RingId) -> bool {
        let mut gaps = self.0.get(member).into_iter().flatten();
        gaps.any(|(from, to)| *from <= Some(ring) && to.is_none_or(|to| ring < to))
    }
}
