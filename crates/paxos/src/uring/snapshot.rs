//! A snapshot: a place in the order to begin at, and everything that has to be known of the instances before it.
//!
//! Messages may be cut there: their first parts are values before it. Others are told these values with the snapshot;
//! on the disk the values stay where they are, as votes, so that no record grows with them.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;

use super::accounts::{self, Table};
use crate::{Instance, Proposers, Round, Value, ValueId, Vote};
use rota_core::contract::Process;
use rota_core::mutants::{self, Mutant};

/// Everything that follows from the instances before a place: the same at all processes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Snapshot {
    /// The first instance that is not part of it.
    pub next: Instance,
    /// The table of values that have counted.
    pub table: Proposers,
    /// The instance in which the members were named last, and the members.
    pub view: Option<(Instance, Arc<[Process]>)>,
    /// Messages that are cut and go on behind it.
    pub open: BTreeMap<Process, Open>,
    /// The accounts of the ring.
    pub accounts: Table,
}

/// A message that goes on behind a place: its parts before that.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Open {
    /// The values that hold them, each with its instance. Their counters are dense, and the last is that of the
    /// process's last value that counted. Empty: they are forgotten.
    pub values: Vec<(Instance, Bytes)>,
}

/// A snapshot as it is on the disk: with the instances of values, and without the values.
#[derive(Clone, Default, Debug)]
pub struct SnapshotRecord {
    pub base: Snapshot,
    pub open: Vec<(Process, Vec<Instance>)>,
}

impl Default for Snapshot {
    fn default() -> Self {
        Self {
            next: 1,
            table: Proposers::default(),
            view: None,
            open: BTreeMap::new(),
            accounts: Table::default(),
        }
    }
}

impl Snapshot {
    /// Takes the next decided value. Returns whether it counts.
    pub fn advance(&mut self, vote: &Vote) -> bool {
        self.next = vote.end();
        match &vote.value {
            Value::Packet { id, frame } => {
                let counts = self.table.take(*id) || mutants::on(Mutant::U07);
                if counts {
                    match super::value::account(frame) {
                        Some(command) => self.account(vote.first, command),
                        None => self.open(id.process, vote.first, super::value::cut(frame), frame),
                    }
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
                if !mutants::on(Mutant::U59) {
                    self.open.retain(|process, _| goes_on(process));
                }
                true
            }
            Value::Skip(_) => false,
        }
    }

    /// The same of a value with messages that is not in memory: its instance, its name, and whether it is cut
    /// (`uring::value::cut`). The snapshot may lack it then.
    pub fn advance_without(&mut self, at: Instance, id: ValueId, cut: Option<bool>) {
        self.next = at + 1;
        if self.table.take(id) {
            self.open(id.process, at, cut, &Bytes::new());
        }
    }

    /// The instances of values of messages that go on behind it, which it lacks.
    pub fn lacks(&self) -> Vec<Instance> {
        let values = self.open.values().flat_map(|open| &open.values);
        let lacks = values.filter(|(_, value)| value.is_empty());
        let mut lacks: Vec<Instance> = lacks.map(|(at, _)| *at).collect();
        lacks.sort_unstable();
        lacks
    }

    /// It gets a value that it lacks. `None`: that cannot be read, and the message is forgotten.
    pub fn fill(&mut self, at: Instance, value: Option<&Bytes>) {
        for open in self.open.values_mut() {
            let of = open.values.iter_mut().find(|(of, _)| *of == at);
            match (of, value) {
                (None, _) => {}
                (Some((_, lacks)), Some(value)) => *lacks = value.clone(),
                (Some(_), None) => open.values.clear(),
            }
        }
    }

    /// The counter of a process's last value that has counted, if it is its node's last life.
    pub fn counted(&self, process: Process) -> Option<u64> {
        self.table.counted(process)
    }

    /// The first instance whose value is needed by a process that begins here.
    pub fn floor(&self) -> Instance {
        let firsts = self.open.values().filter_map(|open| open.values.first());
        firsts
            .map(|(at, _)| *at)
            .min()
            .unwrap_or(self.next)
            .min(self.next)
    }

    /// Forgets messages that began before an instance: a process that begins here and sees their last part is told that
    /// it has missed it.
    pub fn forget_open(&mut self, before: Instance) {
        for open in self.open.values_mut() {
            if open.values.first().is_some_and(|(at, _)| *at < before) {
                open.values.clear();
            }
        }
    }

    /// The values of messages that go on, as votes in a round not lower than the one in which they were decided.
    pub fn values(&self, round: Round) -> Vec<Vote> {
        let mut votes = Vec::new();
        for (process, open) in &self.open {
            let last = self.table.counted(*process).unwrap_or(0);
            let count = open.values.len() as u64;
            let counters = last.saturating_sub(count) + 1..;
            for (counter, (first, frame)) in counters.zip(&open.values) {
                let process = *process;
                votes.push(Vote {
                    first: *first,
                    round,
                    value: Value::Packet {
                        id: ValueId { process, counter },
                        frame: frame.clone(),
                    },
                });
            }
        }
        votes
    }

    /// Applies an ordered command on the accounts. A refused command changes nothing, alike everywhere.
    fn account(&mut self, at: Instance, (command, time): (accounts::Command, u64)) {
        let _ = self.accounts.apply((at, time), command);
    }

    fn open(&mut self, process: Process, at: Instance, cut: Option<bool>, value: &Bytes) {
        if mutants::on(Mutant::U09) {
            return;
        }
        match cut {
            None => {
                self.open.remove(&process);
            }
            Some(goes_on) => {
                let is_known = self.open.contains_key(&process);
                let open = self.open.entry(process).or_default();
                // A part of a message whose beginning is forgotten is of no use either.
                if goes_on && is_known && open.values.is_empty() {
                    return;
                }
                if !goes_on {
                    open.values.clear();
                }
                open.values.push((at, value.clone()));
            }
        }
    }
}

impl SnapshotRecord {
    /// The snapshot with the values that votes have; a message with a missing value is forgotten.
    pub fn with_values(self, votes: &[Vote]) -> Snapshot {
        let Self { mut base, open } = self;
        let before = votes.iter().filter(|vote| vote.first < base.next);
        let before: BTreeMap<Instance, &Value> =
            before.map(|vote| (vote.first, &vote.value)).collect();
        let frame = |process: Process, at: Instance| match before.get(&at)? {
            Value::Packet { id, frame } if id.process == process => Some((at, frame.clone())),
            _ => None,
        };
        for (process, instances) in open {
            let values = instances.into_iter().map(|at| frame(process, at));
            let values: Option<Vec<_>> = values.collect();
            let values = values.unwrap_or_default();
            base.open.insert(process, Open { values });
        }
        base
    }
}
