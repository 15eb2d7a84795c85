//! A daemon's knowledge of the groups: one part while all daemons know of the same groups, and several while they tell
//! each other.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use super::event::{Connection, Member};
use super::name::GroupName;
use super::part::{Group, Merged, Origin, Part, Sets, daemons, merge};
use super::state;
use crate::contract::{Process, RingId};
use crate::invariants::FEW;
use crate::mutants::{self, Mutant};

/// The groups that a daemon knows of, by the daemons that came together.
#[derive(Debug, Default)]
pub(super) struct Knowledge {
    parts: Vec<Part>,
}

impl Knowledge {
    /// Begins with a daemon that is alone and has no clients.
    pub fn begin(&mut self, ring: RingId, me: Process) {
        self.replace(Vec::from([Part::first(ring, me)]));
    }

    /// Takes these parts for what there is to know.
    pub fn replace(&mut self, parts: Vec<Part>) {
        self.parts = parts;
    }

    /// Whether all daemons that it tells of know of the same groups.
    pub const fn is_one(&self) -> bool {
        self.parts.len() == 1
    }

    /// The daemons that it tells of.
    pub fn daemons(&self) -> BTreeSet<Process> {
        daemons(&self.parts)
    }

    /// The daemon that tells others of all this.
    pub fn speaker(&self) -> Option<Process> {
        self.daemons().first().copied()
    }

    /// All this as bytes for the others.
    pub fn encode(&self) -> Vec<u8> {
        state::encode(&self.parts)
    }

    /// Only these daemons go from one ring to the next, those of each part together.
    pub fn keep(&mut self, rings: (RingId, RingId), stay: &BTreeSet<Process>) {
        let parts = core::mem::take(&mut self.parts).into_iter();
        self.parts = parts.filter_map(|part| part.moved(rings, stay)).collect();
    }

    /// The engine does not say which daemons come along: each tells its own knowledge. Daemons that came together are
    /// known by the configuration they had, if they had one group state in it and have got all of it (`together`).
    pub fn keep_own(
        &mut self,
        me: Process,
        (old, new): (RingId, RingId),
        members: &BTreeSet<Process>,
        together: bool,
    ) {
        self.parts.retain(|part| part.daemons.contains(&me));
        for part in &mut self.parts {
            let first = part.daemons.first().copied().filter(|_| together);
            let first = first.unwrap_or(me);
            part.keep(|daemon| members.contains(&daemon));
            part.keep_only(me);
            if !together {
                part.part_from_others();
            }
            part.origin = Origin { old, new, first };
        }
    }

    /// All daemons of this ring know all of this: makes one part of all. Returns the groups whose members get a view,
    /// with their members by the daemons that came together.
    pub fn unite(&mut self, ring: RingId, me: Process) -> Vec<(GroupName, Sets)> {
        let Merged { part, changed } = merge(ring, me, &self.parts);
        self.replace(Vec::from([part]));
        changed
    }

    /// The groups that daemons with members have gone from, without a view since.
    pub fn changed(&self) -> Vec<GroupName> {
        let groups = self.parts.iter().flat_map(|part| &part.groups);
        let changed = groups.filter(|(_, group)| group.changed && !mutants::on(Mutant::G06));
        changed.map(|(name, _)| *name).collect()
    }

    /// Each group gets a view when daemons come together next.
    pub fn change_all(&mut self) {
        let groups = self.parts.iter_mut().flat_map(|part| &mut part.groups);
        for (_, group) in groups {
            group.changed |= !mutants::on(Mutant::G25);
        }
    }

    /// A group, where all daemons know of the same.
    pub fn group(&self, name: GroupName) -> Option<&Group> {
        self.parts.first()?.groups.get(&name)
    }

    fn group_mut(&mut self, name: GroupName) -> Option<&mut Group> {
        self.parts.first_mut()?.groups.get_mut(&name)
    }

    /// Forgets a group, as it has no members any more.
    pub fn forget_group(&mut self, name: GroupName) {
        if let Some(part) = self.parts.first_mut() {
            part.groups.remove(&name);
        }
    }

    /// Adds a member to a group; returns whether it was not in it. Requests of daemons that did not stay may still be
    /// ordered behind the transitional configuration. Those daemons keep count of their clients themselves, and nobody
    /// here would hear of the end of such a client: they are not added.
    pub fn add(&mut self, member: Member, name: GroupName) -> bool {
        let Some(part) = self.parts.first_mut() else {
            return false;
        };
        if !part.daemons.contains(&member.daemon) && !mutants::on(Mutant::G12) {
            return false;
        }
        let group = part.groups.entry(name).or_default();
        group.members.insert(member)
    }

    /// Removes a member from a group; returns whether it was in it. The group may have no members now.
    pub fn remove(&mut self, member: &Member, name: GroupName) -> bool {
        let group = self.group_mut(name);
        group.is_some_and(|group| group.members.remove(member))
    }

    /// Puts a member back into its group (for a mutant).
    pub fn put_back(&mut self, member: Member, name: GroupName) {
        if let Some(group) = self.group_mut(name) {
            group.members.insert(member);
        }
    }

    /// The groups that a client is in.
    pub fn groups_of(&self, member: &Member) -> Vec<GroupName> {
        let groups = self.parts.iter().flat_map(|part| &part.groups);
        let of = groups.filter(|(_, group)| group.members.contains(member));
        of.map(|(name, _)| *name).collect()
    }

    /// Removes a client from all groups, and groups that have no members then.
    pub fn forget_member(&mut self, gone: &Member) {
        for part in &mut self.parts {
            part.groups.retain(|_, group| {
                group.members.remove(gone);
                !group.members.is_empty()
            });
        }
    }

    /// The connections of a daemon's clients in a group; one may be named by several parts.
    pub fn members_at(&self, daemon: Process, name: GroupName) -> impl Iterator<Item = Connection> {
        let from = Member::before_all(daemon);
        let parts = self.parts.iter();
        let groups = parts.filter_map(move |part| part.groups.get(&name));
        groups.flat_map(move |group| {
            // Members are ordered by their daemons.
            let members = group.members.range(from..);
            let members = members.take_while(move |member| member.daemon == daemon);
            members.map(|member| member.connection)
        })
    }

    /// All groups, and the number of members of each.
    pub fn list_groups(&self) -> BTreeMap<GroupName, usize> {
        let count = |(name, group): (&GroupName, &Group)| (*name, group.members.len());
        if let [part] = &self.parts[..] {
            // Most often there is one part: it is in order, and so need not be sorted.
            return part.groups.iter().map(count).collect();
        }
        let mut groups = BTreeMap::new();
        for (name, members) in self.parts.iter().flat_map(|part| &part.groups).map(count) {
            *groups.entry(name).or_default() += members;
        }
        groups
    }

    /// The number of groups.
    pub fn count_groups(&self) -> usize {
        if let [part] = &self.parts[..] {
            return part.groups.len();
        }
        let names = self.parts.iter().flat_map(|part| part.groups.keys());
        names.collect::<BTreeSet<_>>().len()
    }

    /// The members of a group, ascending.
    pub fn list_members(&self, group: &GroupName) -> Vec<Member> {
        let parts = self.parts.iter();
        let groups = parts.filter_map(|part| part.groups.get(group));
        let members: BTreeSet<Member> = groups.flat_map(|group| &group.members).copied().collect();
        members.into_iter().collect()
    }

    /// Its invariants.
    pub fn check(&self) {
        if self.parts.len() > FEW {
            return;
        }
        assert!(
            self.parts.iter().all(|part| !part.daemons.is_empty()),
            "somebody knows each part"
        );
        let small = self.parts.iter().filter(|part| part.groups.len() <= FEW);
        let mut groups = small.flat_map(|part| part.groups.values());
        assert!(
            groups.all(|group| !group.members.is_empty()),
            "a group has members"
        );
    }
}
