//! The messages that were delivered: of each process all up to its watermark.

use alloc::collections::BTreeMap;

use rota_core::contract::{Incarnation, NodeId, Process};
use rota_core::mutants::{self, Mutant};

/// For each node the life that was heard last, and the counter of the last message of that life that was delivered.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Watermarks(BTreeMap<NodeId, (Incarnation, u64)>);

impl Watermarks {
    /// The counter of the last message of this process that was delivered; 0 if none was.
    pub fn of(&self, process: Process) -> u64 {
        match self.0.get(&process.node) {
            Some((incarnation, counter)) if *incarnation == process.incarnation => *counter,
            _ => 0,
        }
    }

    /// Notes that all messages of this process up to this counter are delivered.
    pub fn raise(&mut self, process: Process, counter: u64) {
        let counter = counter.max(self.of(process));
        if counter > 0 || mutants::on(Mutant::I01) {
            self.0.insert(process.node, (process.incarnation, counter));
        }
    }

    /// Forgets earlier lives of these members: a node that is here as one process is no other one any more.
    pub fn retain_lives(&mut self, members: &[Process]) {
        for member in members {
            let of_other = |life: &(Incarnation, u64)| life.0 != member.incarnation;
            if self.0.get(&member.node).is_some_and(of_other) {
                self.0.remove(&member.node);
            }
        }
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = (Process, u64)> {
        self.0.iter().map(|(node, (incarnation, counter))| {
            let process = Process {
                node: *node,
                incarnation: *incarnation,
            };
            (process, *counter)
        })
    }
}

impl Watermarks {
    /// Its invariants.
    pub fn check(&self) {
        assert!(
            self.0.values().all(|(_, counter)| *counter > 0),
            "nothing delivered has no watermark"
        );
    }
}
