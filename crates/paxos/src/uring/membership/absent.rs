//! The processes that are not there: those to which there is no link, and those that have said that they leave.

use alloc::collections::{BTreeMap, BTreeSet};

use rota_core::contract::{Process, Time};

/// See the module's page. One life of each node is kept.
#[derive(Debug, Default)]
pub struct Absent {
    /// By process: the time since which there is no link.
    down: BTreeMap<Process, Time>,
    /// Processes that have said that they leave.
    left: BTreeSet<Process>,
}

impl Absent {
    /// There is a link to a process.
    pub fn on_up(&mut self, process: Process) {
        self.down.remove(&process);
    }

    /// There is no link to a process any more.
    pub fn on_down(&mut self, process: Process, now: Time) {
        self.down.retain(|who, _| who.node != process.node);
        self.down.insert(process, now);
    }

    /// A process has said that it leaves.
    pub fn on_leaving(&mut self, process: Process) {
        self.left.retain(|who| who.node != process.node);
        self.left.insert(process);
    }

    /// Whether a process has said that it leaves.
    pub fn has_left(&self, process: Process) -> bool {
        self.left.contains(&process)
    }

    /// The time since which there is no link to a process; `None` if there is one, or there has never been.
    pub fn down_since(&self, process: Process) -> Option<Time> {
        self.down.get(&process).copied()
    }

    /// Its invariants.
    pub fn check(&self) {
        let ascends = |one: &&Process, next: &&Process| one.node < next.node;
        assert!(
            self.down.keys().is_sorted_by(ascends),
            "a node has one life that is away"
        );
        assert!(
            self.left.iter().is_sorted_by(ascends),
            "and one that has left"
        );
    }
}
