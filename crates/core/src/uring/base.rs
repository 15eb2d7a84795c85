//! A place in the order to begin at, and what has to be known of everything before it.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;

use crate::contract::Process;
use crate::mutants::{self, Mutant};
use crate::paxos::{Instance, Proposers, Value, Vote};

/// What follows from all instances before one of them: the same for all.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Base {
    /// The first instance that is not part of it.
    pub next: Instance,
    /// Which values have counted.
    pub table: Proposers,
    /// In which instance the members were named last, and who they are.
    pub view: Option<(Instance, Arc<[Process]>)>,
    /// The values of messages that are cut and go on behind it.
    pub open: BTreeMap<Process, Vec<Bytes>>,
}

impl Default for Base {
    fn default() -> Self {
        Self {
            next: 1,
            table: Proposers::default(),
            view: None,
            open: BTreeMap::new(),
        }
    }
}

impl Base {
    /// What was decided next. Whether it counts.
    pub fn advance(&mut self, vote: &Vote) -> bool {
        self.next = vote.end();
        match &vote.value {
            Value::Packet { id, frame } => {
                let counts = self.table.take(*id) || mutants::on(Mutant::U07);
                if counts {
                    self.open(id.process, frame);
                }
                counts
            }
            Value::Members(number, members) => {
                if !self.table.install(*number, members) {
                    return false;
                }
                if !mutants::on(Mutant::U26) {
                    self.view = Some((vote.first, members.clone()));
                }
                // Another life of the node begins with a whole message.
                let goes_on = |process: &Process| {
                    let mut lives = members.iter().filter(|who| who.node == process.node);
                    lives.all(|who| who == process)
                };
                self.open.retain(|process, _| goes_on(process));
                true
            }
            Value::Skip(_) => false,
        }
    }

    /// The counter of a process's last value that has counted, if it is its node's last life.
    pub fn counted(&self, process: Process) -> Option<u64> {
        self.table.counted(process)
    }

    fn open(&mut self, process: Process, value: &Bytes) {
        if mutants::on(Mutant::U09) {
            return;
        }
        match super::value::cut(value) {
            None => {
                self.open.remove(&process);
            }
            Some(goes_on) => {
                let open = self.open.entry(process).or_default();
                if !goes_on {
                    open.clear();
                }
                open.push(value.clone());
            }
        }
    }
}
