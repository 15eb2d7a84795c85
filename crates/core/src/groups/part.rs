//! The knowledge of daemons of groups, by the daemons that came together.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use super::event::Member;
use super::name::GroupName;
use crate::contract::{Process, RingId};
use crate::mutants::{self, Mutant};

/// Names a set of daemons that have shared everything up to here: their clients have had the same views and the same
/// messages.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Origin {
    pub old: RingId,
    pub new: RingId,
    /// Tells apart several sets that came from `old` to `new` without sharing everything before.
    pub first: Process,
}

#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Group {
    /// Daemons with members of it have gone, and there has been no view without them yet.
    pub changed: bool,
    /// Other daemons had members of it in the last view, and tell of these members themselves.
    pub shared: bool,
    /// Never empty.
    pub members: BTreeSet<Member>,
}

/// The groups of daemons that came together, as far as their own clients are in them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Part {
    pub origin: Origin,
    /// Never empty.
    pub daemons: BTreeSet<Process>,
    pub groups: BTreeMap<GroupName, Group>,
}

impl Part {
    /// The part of a daemon that has just started.
    pub fn first(ring: RingId, me: Process) -> Self {
        Self {
            origin: Origin {
                old: ring,
                new: ring,
                first: me,
            },
            daemons: BTreeSet::from([me]),
            groups: BTreeMap::new(),
        }
    }

    /// Some daemons have gone, and their clients with them.
    pub fn keep(&mut self, stays: impl Fn(Process) -> bool) {
        self.daemons.retain(|daemon| stays(*daemon));
        self.groups.retain(|_, group| {
            let before = group.members.len();
            group.members.retain(|member| stays(member.daemon));
            group.changed |= group.members.len() < before;
            !group.members.is_empty()
        });
    }

    /// Other daemons go on too, but tell their knowledge themselves.
    pub fn keep_only(&mut self, me: Process) {
        self.daemons.retain(|daemon| *daemon == me);
        self.groups.retain(|_, group| {
            let before = group.members.len();
            group.members.retain(|member| member.daemon == me);
            group.shared |= group.members.len() < before;
            !group.members.is_empty()
        });
    }

    /// Daemons that tell of themselves may be gone before anybody has heard them: there is a view in any case.
    pub fn part_from_others(&mut self) {
        for group in self.groups.values_mut() {
            group.changed |= group.shared && !mutants::on(Mutant::G32);
        }
    }

    /// The daemons that stay go from one ring to the next together; `None` when none stays.
    pub fn moved(
        mut self,
        (old, new): (RingId, RingId),
        stays: &BTreeSet<Process>,
    ) -> Option<Self> {
        self.keep(|daemon| stays.contains(&daemon));
        let first = *self.daemons.first()?;
        self.origin = Origin { old, new, first };
        Some(self)
    }
}

/// All daemons of these parts.
pub(super) fn daemons(parts: &[Part]) -> BTreeSet<Process> {
    let all = parts.iter().flat_map(|part| &part.daemons);
    all.copied().collect()
}

/// A group's members, by the daemons that came together.
pub(super) type Sets = BTreeMap<Origin, Vec<Member>>;

/// The result of a merge of several parts.
#[derive(Debug)]
pub(super) struct Merged {
    pub part: Part,
    /// The groups whose members get a view, with their members by the daemons that came together.
    pub changed: Vec<(GroupName, Sets)>,
}

/// Merges the knowledge of these parts, for the daemons of a ring that all know it.
pub(super) fn merge(ring: RingId, me: Process, parts: &[Part]) -> Merged {
    let mut groups: BTreeMap<GroupName, (bool, Sets)> = BTreeMap::new();
    for part in parts {
        for (name, group) in &part.groups {
            let (changed, sets) = groups.entry(*name).or_default();
            *changed |= group.changed && !mutants::on(Mutant::G14);
            let origin = if mutants::on(Mutant::G04) {
                Part::first(ring, me).origin
            } else {
                part.origin
            };
            sets.entry(origin).or_default().extend(&group.members);
        }
    }
    let mut part = Part::first(ring, me);
    part.daemons.extend(daemons(parts));
    part.origin.first = part.daemons.first().copied().unwrap_or(me);
    let mut merged = Merged {
        part,
        changed: Vec::new(),
    };
    for (name, (changed, mut sets)) in groups {
        sets.values_mut().for_each(|set| set.sort_unstable());
        let group = Group {
            changed: false,
            shared: false,
            members: sets.values().flatten().copied().collect(),
        };
        merged.part.groups.insert(name, group);
        if changed || sets.len() > 1 || mutants::on(Mutant::G04) {
            merged.changed.push((name, sets));
        }
    }
    merged
}
