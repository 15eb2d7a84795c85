//! Proposals of a round, as they go on to the successor, without a gap.

use alloc::collections::{BTreeMap, VecDeque};

use super::codec::vote_bytes;
use crate::{Instance, Value, Vote};
use rota_core::contract::Process;
use rota_core::invariants::FEW;
use rota_core::mutants::{self, Mutant};

/// A proposal.
#[derive(Clone, Debug)]
pub struct Item {
    pub vote: Vote,
    /// No process has had the value before.
    pub whole: bool,
}

/// The proposals that some process may still lack.
#[derive(Debug)]
pub struct Window {
    items: VecDeque<Item>,
    bytes: usize,
    most_bytes: usize,
    /// The number of the first proposals that were passed: all acceptors have them.
    passed: usize,
    /// By process: the bytes of its values that were not passed.
    ahead: BTreeMap<Process, usize>,
    /// The first instance without a proposal; 0 if there was none at all.
    next: Instance,
}

impl Window {
    /// An empty one.
    pub const fn new(most_bytes: usize) -> Self {
        Self {
            items: VecDeque::new(),
            bytes: 0,
            most_bytes,
            passed: 0,
            ahead: BTreeMap::new(),
            next: 0,
        }
    }

    /// The first instance without a proposal; 0 if there was none at all.
    pub const fn next(&self) -> Instance {
        self.next
    }

    /// The bytes of a process's values that some acceptor may lack.
    pub fn ahead(&self, process: Process) -> usize {
        self.ahead.get(&process).copied().unwrap_or(0)
    }

    /// All acceptors have the proposals before this place.
    pub fn pass(&mut self, low: Instance) {
        while let Some(item) = self.items.get(self.passed)
            && item.vote.end() <= low
        {
            is_passed(&mut self.ahead, &item.vote);
            self.passed += 1;
        }
    }

    /// The first instance that is in it, or would be.
    pub fn first(&self) -> Instance {
        let first = self.items.front();
        first.map_or(self.next, |item| item.vote.first)
    }

    /// The proposals from an instance on.
    pub fn from(&self, at: Instance) -> impl Iterator<Item = &Item> {
        let first = self.items.partition_point(|item| item.vote.first < at);
        self.items.iter().skip(first)
    }

    /// The next proposal.
    pub fn push(&mut self, vote: Vote, whole: bool) {
        self.next = vote.end();
        self.bytes += vote_bytes(&vote) + usize::from(mutants::on(Mutant::I05));
        if let Value::Packet { id, frame } = &vote.value {
            *self.ahead.entry(id.process).or_insert(0) += frame.len();
        }
        self.items.push_back(Item { vote, whole });
    }

    /// Proposals before this place do not come.
    pub fn jump(&mut self, to: Instance) {
        self.items.clear();
        self.ahead.clear();
        self.passed = 0;
        self.bytes = 0;
        self.next = to;
    }

    /// Forgets proposals: nobody lacks those before `low`. Proposals before `reached` are decided: an acceptor that is
    /// very far behind that does not grow everybody's memory. It lacks proposals, and votes again in the next round.
    pub fn forget(&mut self, low: Instance, reached: Instance) {
        while let Some(item) = self.items.front() {
            let end = item.vote.end();
            let is_far = self.bytes > self.most_bytes && end <= reached;
            if end > low && !is_far {
                return;
            }
            self.bytes -= vote_bytes(&item.vote);
            if self.passed == 0 {
                is_passed(&mut self.ahead, &item.vote);
            }
            self.passed = self.passed.saturating_sub(1);
            self.items.pop_front();
        }
    }
}

fn is_passed(ahead: &mut BTreeMap<Process, usize>, vote: &Vote) {
    if let Value::Packet { id, frame } = &vote.value
        && let Some(bytes) = ahead.get_mut(&id.process)
    {
        *bytes -= frame.len();
        if *bytes == 0 {
            ahead.remove(&id.process);
        }
    }
}

impl Window {
    /// Its invariants.
    pub fn check(&self) {
        assert!(self.passed <= self.items.len(), "what was passed is there");
        let last = self.items.back();
        assert!(
            last.is_none_or(|item| item.vote.end() == self.next),
            "nothing is missing before the next"
        );
        assert!(
            self.first() <= self.next,
            "the first is not behind the next"
        );
        if self.items.len() > FEW {
            return;
        }
        let bytes: usize = self.items.iter().map(|item| vote_bytes(&item.vote)).sum();
        assert_eq!(self.bytes, bytes, "bytes are counted");
        let places = self.items.iter().map(|item| &item.vote);
        assert!(
            places
                .clone()
                .zip(places.skip(1))
                .all(|(one, next)| one.end() == next.first),
            "proposals have no gap"
        );
        let packets = self.items.iter().skip(self.passed);
        assert_eq!(
            self.ahead.values().sum::<usize>(),
            packets.map(|item| item.vote.value.bytes()).sum::<usize>(),
            "what some lack is counted"
        );
    }
}
