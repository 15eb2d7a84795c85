//! The exchange of lists on a new ring: each daemon tells which list it has, and one that has the newest gives it to those
//! that have older ones. After that all daemons of the ring have one list, and changes of it are ordered.

use std::collections::{BTreeMap, BTreeSet};

use rota_core::contract::{NodeId, Process};
use rota_node::MemberList;
use rota_node::members::Version;

use super::message::Tell;

/// What the daemons of the ring have told. The same on all of them, at one place of the order, but for what this daemon gives.
#[derive(Debug)]
pub(super) struct Exchange {
    present: BTreeSet<Process>,
    told: BTreeMap<Process, Tell>,
    settled: bool,
    /// The newest list that this daemon has given, or began with.
    given: Version,
}

/// What has to be done now that all have told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Next {
    /// Others have yet to tell, or to be given the newest list.
    Wait,
    /// This daemon gives its list, which is the newest.
    Give,
}

impl Exchange {
    /// The daemons of a new ring, on which this one has such a list: nothing has been told yet.
    pub const fn begin(present: BTreeSet<Process>, own: Version) -> Self {
        Self {
            present,
            told: BTreeMap::new(),
            settled: false,
            given: own,
        }
    }

    /// Whether this daemon, which has heard of a newer list, gives it now: each is given once.
    pub fn passes_on(&mut self, version: Version) -> bool {
        let is_new = version > self.given;
        self.given = self.given.max(version);
        is_new
    }

    /// The daemons of the ring.
    pub const fn present(&self) -> &BTreeSet<Process> {
        &self.present
    }

    /// Whether a daemon of this node is on the ring.
    pub fn has(&self, node: NodeId) -> bool {
        self.present.iter().any(|process| process.node == node)
    }

    /// All daemons of the ring have one list.
    pub const fn is_settled(&self) -> bool {
        self.settled
    }

    /// A daemon of the ring says which list it has.
    pub fn tell(&mut self, me: Process, from: Process, tell: Tell) -> Next {
        let is_new = self.present.contains(&from) && self.told.insert(from, tell).is_none();
        if !is_new || !self.is_complete() {
            return Next::Wait;
        }
        let newest = self.newest();
        let mut behind = self.told.values().filter(|tell| tell.version < newest);
        if behind.next().is_none() {
            self.settled = self.differing(from).is_empty();
            return Next::Wait;
        }
        let mut ahead = self.told.iter().filter(|(_, tell)| tell.version == newest);
        match ahead.next() {
            Some((giver, _)) if *giver == me => Next::Give,
            _ => Next::Wait,
        }
    }

    /// A daemon gives its list to all.
    pub fn give(&mut self, list: &MemberList) {
        self.settled |= self.is_complete() && list.version >= self.newest();
    }

    fn is_complete(&self) -> bool {
        self.told.len() == self.present.len()
    }

    fn newest(&self) -> Version {
        let versions = self.told.values().map(|tell| tell.version);
        versions.max().unwrap_or(Version::FIRST)
    }

    /// The nodes on the ring that have not told.
    pub fn silent(&self) -> Vec<NodeId> {
        let silent = self
            .present
            .iter()
            .filter(|one| !self.told.contains_key(one));
        silent.map(|process| process.node).collect()
    }

    /// The nodes whose list is another one than that of this daemon, though all have told and none is newer: the files that
    /// they have begun with differ.
    pub fn differing(&self, than: Process) -> Vec<NodeId> {
        let newest = self.newest();
        let same = self.told.values().all(|tell| tell.version == newest);
        let Some(own) = self.told.get(&than).filter(|_| same && self.is_complete()) else {
            return Vec::new();
        };
        let differ = self
            .told
            .iter()
            .filter(|(_, tell)| tell.checksum != own.checksum);
        differ.map(|(process, _)| process.node).collect()
    }

    /// The nodes on the ring that keep no list on disk.
    pub fn forgetful(&self) -> Vec<NodeId> {
        let forgetful = self.told.iter().filter(|(_, tell)| !tell.keeps);
        forgetful.map(|(process, _)| process.node).collect()
    }
}
