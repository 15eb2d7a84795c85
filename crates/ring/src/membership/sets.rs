//! The process set and the fail set: the processes that are wanted on the ring, and those given up.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use crate::wire::{Join, MAX_JOIN_PROCESSES};
use rota_core::contract::{NodeId, Process};
use rota_core::invariants::FEW;
use rota_core::mutants::{self, Mutant};

/// The beliefs of one process while it gathers. The process set and the fail set only grow until a ring is installed,
/// so gathering ends (A6).
#[derive(Clone, Default, Hash, Debug)]
pub(super) struct Sets {
    /// All processes heard of.
    procs: BTreeSet<Process>,
    /// The processes given up.
    fails: BTreeSet<Process>,
    /// The processes that have given this one up, by the last join of each: no ring is wanted with them, and joins do
    /// not name them. If joins called them given up, others that hear such a join before they hear these processes
    /// would give them up as well, on the word of the process that was away.
    against: BTreeSet<Process>,
}

/// The effect of a join on the sets (A6, process(J)).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    /// Its sender believes the same.
    Agrees,
    /// Its sender is behind; the joins of this process will tell it.
    Behind,
    /// Its sender was given up.
    GivenUp,
    /// It brought news.
    Merged,
}

impl Sets {
    /// The sets of an installed ring.
    pub fn of_ring(members: &[Process]) -> Self {
        Self {
            procs: members.iter().copied().collect(),
            ..Self::default()
        }
    }

    /// Sets of some processes, and some given up.
    #[cfg(test)]
    pub fn new(procs: BTreeSet<Process>, fails: BTreeSet<Process>) -> Self {
        Self {
            procs,
            fails,
            ..Self::default()
        }
    }

    /// Begins anew with the members of a ring.
    pub fn begin_anew(&mut self, members: &[Process]) {
        let before = core::mem::replace(self, Self::of_ring(members));
        if mutants::on(Mutant::M30) {
            self.fails = before.fails;
        }
    }

    /// All processes heard of.
    pub const fn procs(&self) -> &BTreeSet<Process> {
        &self.procs
    }

    /// The processes given up.
    pub const fn fails(&self) -> &BTreeSet<Process> {
        &self.fails
    }

    /// Whether a process was heard of.
    pub fn know(&self, process: Process) -> bool {
        self.procs.contains(&process)
    }

    /// The process of a node that was heard of.
    pub fn process_of(&self, node: NodeId) -> Option<Process> {
        let mut procs = self.procs.iter();
        procs.find(|process| process.node == node).copied()
    }

    /// Whether a process was given up.
    pub fn have_given_up(&self, process: Process) -> bool {
        self.fails.contains(&process)
    }

    /// Wants a process on the ring.
    pub fn want(&mut self, process: Process) {
        self.procs.insert(process);
    }

    /// Gives up some processes.
    pub fn give_up(&mut self, processes: impl IntoIterator<Item = Process>) {
        self.fails.extend(processes);
    }

    /// Gives up the processes whose nodes are not `listed`.
    pub fn give_up_unlisted(&mut self, listed: &[NodeId]) {
        let unlisted = |process: &&Process| !listed.contains(&process.node);
        self.fails.extend(self.procs.iter().filter(unlisted));
    }

    /// Whether some process has given this one up, and is not given up for that yet.
    pub fn have_unspoken(&self) -> bool {
        !self.against.is_subset(&self.fails)
    }

    /// Gives up the processes that have given this one up.
    pub fn give_up_those_against(&mut self) {
        self.fails.extend(&self.against);
    }

    /// Whether a join tells of nothing that is not known.
    pub fn cover(&self, join: &Join) -> bool {
        join.procs.is_subset(&self.procs) && join.fails.is_subset(&self.fails)
    }

    /// The processes that a join names: not those that are against this process and not given up.
    pub fn said(&self) -> BTreeSet<Process> {
        let is_said =
            |process: &&Process| !self.against.contains(process) || self.fails.contains(process);
        self.procs.iter().filter(is_said).copied().collect()
    }

    /// Whether one join has room for all known processes and those of `join`. A stranger can make up any number of
    /// processes.
    pub fn have_room_for(&self, join: &Join) -> bool {
        let known =
            |process: &&Process| self.procs.contains(process) || self.fails.contains(process);
        let news = join.procs.union(&join.fails);
        self.len() + news.filter(|process| !known(process)).count() <= MAX_JOIN_PROCESSES
    }

    /// Whether one more process can be named in a join.
    pub fn have_room(&self) -> bool {
        self.procs.len() + self.fails.len() < MAX_JOIN_PROCESSES
    }

    fn len(&self) -> usize {
        self.procs.union(&self.fails).count()
    }

    /// The processes that a ring is wanted with, by ascending id.
    pub fn members(&self) -> Vec<Process> {
        let wanted = self.procs.difference(&self.fails);
        let wanted = wanted.filter(|process| !self.against.contains(process));
        wanted.copied().collect()
    }

    /// Notes that a process was heard: gives up other lives of its node.
    pub fn hear(&mut self, process: Process) {
        let before = |other: &&Process| other.node == process.node && **other != process;
        let over: Vec<Process> = self.procs.iter().filter(before).copied().collect();
        self.fails.extend(over);
    }

    /// Takes in the beliefs of another process.
    pub fn process(&mut self, me: Process, join: &Join) -> Verdict {
        if join.fails.contains(&me) && !mutants::on(Mutant::M26) {
            return self.given_up_by(join.sender);
        }
        let is_back = self.against.remove(&join.sender);
        let same_fails = join.fails == self.fails || mutants::on(Mutant::M28);
        let agrees = same_fails && join.procs == self.said();
        if agrees || self.cover(join) {
            return match (is_back, agrees) {
                (true, _) => Verdict::Merged,
                (false, true) => Verdict::Agrees,
                (false, false) => Verdict::Behind,
            };
        }
        if self.fails.contains(&join.sender) {
            return Verdict::GivenUp;
        }
        self.procs.extend(join.procs.iter().copied());
        self.fails.extend(join.fails.iter().copied());
        // Others may not know yet which lives are over.
        self.hear(me);
        if self.procs.contains(&join.sender) && !self.fails.contains(&join.sender) {
            self.hear(join.sender);
        }
        Verdict::Merged
    }

    /// Notes that `sender` has given this process up: the two cannot be on one ring (§0.10).
    fn given_up_by(&mut self, sender: Process) -> Verdict {
        if self.fails.contains(&sender) {
            return Verdict::GivenUp;
        }
        self.procs.insert(sender);
        if mutants::on(Mutant::M50) {
            self.fails.insert(sender);
        }
        match self.against.insert(sender) {
            true => Verdict::Merged,
            false => Verdict::Behind,
        }
    }
}

impl Sets {
    /// Its invariants.
    pub fn check(&self, me: Process) {
        assert!(!self.fails.contains(&me), "no process gives itself up");
        assert!(!self.against.contains(&me), "or is against itself");
        assert!(
            self.procs.is_empty() || self.procs.contains(&me),
            "it wants itself"
        );
        assert!(
            self.procs.len().max(self.fails.len()) <= MAX_JOIN_PROCESSES,
            "one join has room for each set"
        );
        assert!(
            self.procs.len() > FEW || self.against.is_subset(&self.procs),
            "processes that are against this one are known"
        );
    }

    /// Asserts what holds on a ring that is well.
    pub fn check_at_rest(&self) {
        assert!(
            self.fails.is_empty() && self.against.is_empty(),
            "nobody is given up on a ring that is well"
        );
    }
}
