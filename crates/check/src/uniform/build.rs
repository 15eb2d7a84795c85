//! Builds it, in a few passes over the events.

use std::collections::{BTreeMap, BTreeSet};

use rota_core::contract::{ConfigurationKind, NodeId, RingId};

use super::{Begins, Broadcast, Installed, Stay, Uniform};
use crate::report::{Options, PrimaryRule};
use crate::trace::{Step, Trace};
use crate::view::{End, View};

impl<'a> Uniform<'a> {
    pub fn new(trace: &'a Trace, options: &'a Options) -> Self {
        let base = View::new(trace, options);
        let views = views(&base);
        let mut uniform = Self {
            lives: vec![Vec::new(); trace.processes().len()],
            broadcasts: vec![None; trace.messages().len()],
            stays: Vec::new(),
            base,
            views,
        };
        let numbers = uniform.views.iter().map(|view| view.conf).zip(0..);
        let numbers: BTreeMap<u32, u32> = numbers.collect();
        for process in trace.began() {
            uniform.find_stays(*process, &numbers);
        }
        for view in &mut uniform.views {
            let stays = &uniform.stays;
            view.stays.sort_by_key(|stay| stays[*stay as usize].process);
        }
        uniform.find_orders();
        uniform.find_sequences();
        uniform
    }

    fn find_stays(&mut self, process: u32, numbers: &BTreeMap<u32, u32>) {
        let mut current: Option<Stay> = None;
        for (at, step) in self.base.trace.story(process).steps.iter().enumerate() {
            match *step {
                Step::Conf { conf, .. } => {
                    let Some(view) = numbers.get(&conf).copied() else {
                        continue;
                    };
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
            let begins = if number == 0 {
                Begins::Anew
            } else if members.iter().any(|member| been.contains(member)) {
                Begins::Behind
            } else if may_begin(&self.base, members, &been) {
                order += 1;
                Begins::Anew
            } else {
                Begins::Unfounded
            };
            // Of whom there is no trace it is not known; it may well have been there.
            let untraced = |member: &&u32| self.base.end(**member) == End::Untraced;
            let certain = members.iter().all(|member| here.contains(member));
            been.extend(&here);
            been.extend(members.iter().filter(untraced));
            let view = &mut self.views[number];
            (view.begins, view.order, view.certain) = (begins, order, certain);
        }
    }

    fn find_sequences(&mut self) {
        let mut sequences: Vec<Vec<(u64, u32)>> = vec![Vec::new(); self.views.len()];
        for stay in &self.stays {
            let places = self.deliveries(stay);
            let places = places.map(|(_, place)| (place.position, place.message));
            let sequence = &mut sequences[stay.view as usize];
            sequence.extend(places);
            // Members deliver nearly the same: what is there twice is not kept.
            sequence.sort_unstable();
            sequence.dedup();
        }
        for (view, sequence) in self.views.iter_mut().zip(sequences) {
            view.sequence = sequence;
        }
    }
}

/// All regular configurations that anybody installed, by their ids.
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

/// Whether an order may begin in a view of these, who have never been in one; `been` have.
fn may_begin(base: &View<'_>, members: &[u32], been: &BTreeSet<u32>) -> bool {
    let alive = |process: &u32| base.end(*process) == End::Alive;
    if !been.iter().any(alive) {
        return true;
    }
    let configured = match &base.options.primary {
        // It promises nothing there.
        Some(PrimaryRule::Successive) => return true,
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
        configured.contains(&node) && first.get(&node).is_some_and(|first| first != *member)
    });
    2 * forgot.count() > configured.len()
}
