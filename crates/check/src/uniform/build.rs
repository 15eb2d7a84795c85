//! Builds a [`Uniform`], in a few passes over the events.

use std::collections::{BTreeMap, BTreeSet};

use rota_core::contract::{ConfigurationKind, NodeId, RingId};

use super::{Begins, Broadcast, Installed, Stay, Uniform, back, sequences};
use crate::report::{Options, PrimaryRule};
use crate::trace::{Step, Trace};
use crate::view::{End, View};

impl<'a> Uniform<'a> {
    pub fn new(trace: &'a Trace, options: &'a Options) -> Self {
        let base = View::new(trace, options);
        let views = back::insert(&base, views(&base));
        let mut uniform = Self {
            lives: vec![Vec::new(); trace.processes().len()],
            broadcasts: vec![None; trace.messages().len()],
            stays: Vec::new(),
            base,
            views,
        };
        let mut numbers: BTreeMap<u32, u32> = BTreeMap::new();
        for (number, view) in (0..).zip(&uniform.views) {
            numbers.entry(view.conf).or_insert(number);
        }
        for process in trace.began() {
            uniform.find_stays(*process, &numbers);
        }
        for view in &mut uniform.views {
            let stays = &uniform.stays;
            view.stays.sort_by_key(|stay| stays[*stay as usize].process);
        }
        uniform.find_orders();
        sequences::find(&mut uniform);
        uniform
    }

    fn find_stays(&mut self, process: u32, numbers: &BTreeMap<u32, u32>) {
        let mut current: Option<Stay> = None;
        let mut path = self.path(process, numbers).into_iter();
        for (at, step) in self.base.trace.story(process).steps.iter().enumerate() {
            match *step {
                Step::Conf { conf, .. } if numbers.contains_key(&conf) => {
                    let Some(view) = path.next() else { continue };
                    if let Some(mut ended) = current.take() {
                        ended.steps.end = at;
                        ended.next = Some(view);
                        self.add_stay(ended);
                    }
                    current = Some(Stay {
                        process,
                        view,
                        steps: at + 1..at + 1,
                        next: None,
                        excluded: None,
                    });
                }
                Step::Excluded { .. } => {
                    if let Some(stay) = &mut current {
                        stay.excluded.get_or_insert(at);
                    }
                }
                Step::Broadcast {
                    message,
                    service,
                    hash,
                } => {
                    self.broadcasts[message as usize].get_or_insert(Broadcast {
                        process,
                        at,
                        service,
                        hash,
                        view: current.as_ref().map(|stay| stay.view),
                    });
                }
                _ => {}
            }
        }
        if let Some(mut last) = current {
            last.steps.end = self.base.steps(process).len();
            self.add_stay(last);
        }
    }

    /// The views that a process installs: a view that its next one goes back to stands for that view as it ended then.
    fn path(&self, process: u32, numbers: &BTreeMap<u32, u32>) -> Vec<u32> {
        let confs = self
            .base
            .steps(process)
            .iter()
            .filter_map(|step| match step {
                Step::Conf { conf, .. } => numbers.get(conf).copied(),
                _ => None,
            });
        let mut path: Vec<u32> = confs.collect();
        for at in 1..path.len() {
            let before = path[at].saturating_sub(1);
            let begins = self.views[before as usize].begins;
            if matches!(begins, Begins::Again { first } if first == path[at - 1]) {
                path[at - 1] = before;
            }
        }
        path
    }

    fn add_stay(&mut self, stay: Stay) {
        let number = self.stays.len() as u32;
        self.lives[stay.process as usize].push(number);
        self.views[stay.view as usize].stays.push(number);
        self.stays.push(stay);
    }

    fn find_orders(&mut self) {
        let mut been: BTreeSet<u32> = BTreeSet::new();
        let mut order = 0;
        for number in 0..self.views.len() {
            let view = &self.views[number];
            let members = &self.base.members[view.members as usize];
            let stays = view.stays.iter();
            let here = stays.map(|stay| self.stays[*stay as usize].process);
            let here: BTreeSet<u32> = here.collect();
            let begins = if let Begins::Again { first } = view.begins {
                order += 1;
                let certain = self.views[first as usize].certain;
                been.extend(&here);
                let view = &mut self.views[number];
                (view.order, view.certain) = (order, certain);
                continue;
            } else if number == 0 {
                Begins::Anew
            } else if members.iter().any(|member| been.contains(member)) {
                Begins::Behind
            } else if may_begin(&self.base, members, &been) {
                order += 1;
                Begins::Anew
            } else {
                Begins::Unfounded
            };
            let untraced = |member: &&u32| !is_known(&self.base, **member);
            let certain = members.iter().all(|member| here.contains(member));
            been.extend(&here);
            been.extend(members.iter().filter(untraced));
            let view = &mut self.views[number];
            (view.begins, view.order, view.certain) = (begins, order, certain);
        }
    }
}

/// All regular configurations that any process installed, by their ids.
fn views(base: &View<'_>) -> Vec<Installed> {
    let mut found: BTreeMap<RingId, Installed> = BTreeMap::new();
    for (_, _, step) in base.all_steps() {
        let Step::Conf { conf, members } = *step else {
            continue;
        };
        let ConfigurationKind::Regular(id) = base.id(conf) else {
            continue;
        };
        found.entry(id).or_insert_with(|| Installed {
            id,
            conf,
            members,
            begins: Begins::Behind,
            order: 0,
            certain: false,
            sequence: Vec::new(),
            stays: Vec::new(),
        });
    }
    found.into_values().collect()
}

/// Whether an order may begin in a view of members that have never been in one; the processes in `been` have.
fn may_begin(base: &View<'_>, members: &[u32], been: &BTreeSet<u32>) -> bool {
    let alive = |process: &u32| base.end(*process) == End::Alive;
    if !been.iter().any(alive) {
        return true;
    }
    // The other rules promise nothing there.
    majority_forgot(base, members, been).unwrap_or(true)
}

/// Whether there is a trace of a process: without one it is not known where the process was; it may well have been
/// anywhere.
pub(super) fn is_known(base: &View<'_>, process: u32) -> bool {
    base.end(process) != End::Untraced
}

/// Whether more than half of the nodes are members of a view and have forgotten; the processes in `been` were in
/// earlier views. `None` if the rule for primaries counts no majority of configured nodes.
pub(super) fn majority_forgot(
    base: &View<'_>,
    members: &[u32],
    been: &BTreeSet<u32>,
) -> Option<bool> {
    let configured = match &base.options.primary {
        Some(PrimaryRule::Successive | PrimaryRule::Overlapping) => return None,
        Some(PrimaryRule::Majority(nodes)) => nodes.clone(),
        None => {
            let named = base.trace.processes().iter();
            let named: BTreeSet<NodeId> = named.map(|process| process.node).collect();
            named.into_iter().collect()
        }
    };
    // A node has forgotten if this is not its first life.
    let mut first: BTreeMap<NodeId, u32> = BTreeMap::new();
    for process in base.trace.began() {
        first.entry(base.process(*process).node).or_insert(*process);
    }
    let forgot = members.iter().filter(|member| {
        let node = base.process(**member).node;
        let again = first.get(&node).is_some_and(|first| first != *member);
        configured.contains(&node) && again && !been.contains(member)
    });
    Some(2 * forgot.count() > configured.len())
}
