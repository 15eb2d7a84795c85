//! The values that count: each proposer's in the order of their counters, none twice, and only while the proposer is a
//! member. All learners see the same values in the same instances, so all of them agree on this.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use super::value::{Round, ValueId};
use rota_core::contract::{Incarnation, NodeId, Process};
use rota_core::mutants::{self, Mutant};

/// Lives of a node that are remembered as over.
const LIVES: usize = 64;

/// The state of a node.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Life {
    incarnation: Incarnation,
    /// The counter of its last value that counted.
    last: u64,
    member: bool,
    /// Its earlier lives: they are over, and values that still come from them do not count.
    over: VecDeque<Incarnation>,
}

/// The table.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Proposers {
    nodes: BTreeMap<NodeId, Life>,
    /// The configuration whose members were named last.
    named: Round,
}

impl Proposers {
    /// Whether this value is the next one of its proposer that counts.
    pub fn admits(&self, id: ValueId) -> bool {
        self.last(id.process)
            .is_some_and(|last| last + 1 == id.counter)
    }

    /// Takes a decided value. Returns whether it counts.
    pub fn take(&mut self, id: ValueId) -> bool {
        let Some(life) = self.nodes.get_mut(&id.process.node) else {
            return false;
        };
        let is_next = life.last + 1 == id.counter || mutants::on(Mutant::N12);
        let counts = life.member && life.incarnation == id.process.incarnation && is_next;
        if counts {
            life.last = id.counter;
        }
        counts
    }

    /// The counter of a member's last value that counted; `None` if it is no member.
    pub fn last(&self, who: Process) -> Option<u64> {
        let life = self.life(who).filter(|life| life.member)?;
        Some(life.last)
    }

    /// The counter of the last value that counted of the last life of a node, member or not; `None` for earlier ones.
    pub fn counted(&self, who: Process) -> Option<u64> {
        self.life(who).map(|life| life.last)
    }

    fn life(&self, who: Process) -> Option<&Life> {
        let life = self.nodes.get(&who.node);
        life.filter(|life| life.incarnation == who.incarnation)
    }

    /// From here on these are the members, unless those of a later configuration than this one (`number`) were named
    /// before: a proposal of an old coordinator, for which only some had voted, may be decided behind a proposal of a
    /// later one. Returns whether they are. A process that was a member before goes on with its counter, unless its
    /// node has had another life since.
    pub fn install(&mut self, number: Round, members: &[Process]) -> bool {
        if number < self.named && !mutants::on(Mutant::U35) {
            return false;
        }
        self.named = number;
        for life in self.nodes.values_mut() {
            life.member = false;
        }
        for member in members {
            let life = self.nodes.entry(member.node).or_insert_with(|| Life {
                incarnation: member.incarnation,
                last: 0,
                member: false,
                over: VecDeque::new(),
            });
            life.install(member.incarnation);
        }
        true
    }

    /// The configuration whose members were named last; 0 if none were.
    pub const fn named(&self) -> Round {
        self.named
    }

    /// The state of each node, to be kept: its last life, with the counter of that life's last value that counted and
    /// whether it is a member, and earlier lives, oldest first.
    pub fn lives(&self) -> impl Iterator<Item = (Process, u64, bool, Vec<Incarnation>)> {
        self.nodes.iter().map(|(node, life)| {
            let process = Process {
                node: *node,
                incarnation: life.incarnation,
            };
            let over = life.over.iter().copied().collect();
            (process, life.last, life.member, over)
        })
    }

    /// The table of which [`Self::named`] and [`Self::lives`] told.
    pub fn restore(
        named: Round,
        lives: impl IntoIterator<Item = (Process, u64, bool, Vec<Incarnation>)>,
    ) -> Self {
        let life = |(process, last, member, over): (Process, u64, bool, Vec<Incarnation>)| {
            let life = Life {
                incarnation: process.incarnation,
                last,
                member,
                over: over.into_iter().take(LIVES).collect(),
            };
            (process.node, life)
        };
        Self {
            nodes: lives.into_iter().map(life).collect(),
            named,
        }
    }

    /// The members, by node.
    pub fn members(&self) -> impl Iterator<Item = Process> {
        let members = self.nodes.iter().filter(|(_, life)| life.member);
        members.map(|(node, life)| Process {
            node: *node,
            incarnation: life.incarnation,
        })
    }
}

impl Life {
    fn install(&mut self, incarnation: Incarnation) {
        if incarnation != self.incarnation {
            if self.over.contains(&incarnation) {
                return;
            }
            if self.over.len() == LIVES {
                self.over.pop_front();
            }
            self.over.push_back(self.incarnation);
            (self.incarnation, self.last) = (incarnation, 0);
        }
        self.member = true;
    }
}

impl Proposers {
    /// Its invariants.
    pub fn check(&self) {
        for (node, life) in &self.nodes {
            assert!(
                life.over.len() <= LIVES,
                "few lives of {node} are remembered"
            );
            assert!(
                !life.over.contains(&life.incarnation),
                "the last life of {node} is not over"
            );
        }
    }
}
