//! Votes for decided values that the log alone has: the least that has to be known of each in memory.
//!
//! Values leave memory oldest first, once the log has them durably. In memory stay their names, and whether they are
//! part of a message that goes on: what follows from the instances before a place is known without reading them back.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::ops::Range;

use super::super::snapshot::Snapshot;
use super::super::value;
use crate::{Instance, Value, ValueId, Vote};
use rota_core::mutants::{self, Mutant};

/// The least to know of a vote.
#[derive(Debug)]
enum Stub {
    /// A value with messages: its name, and [`value::cut`] of it.
    Messages(ValueId, Option<bool>),
    /// Any other value; these are small.
    Whole(Value),
}

/// See the module's page.
#[derive(Debug, Default)]
pub struct Archive {
    /// By first instance, without a gap.
    stubs: VecDeque<(Instance, Stub)>,
}

impl Stub {
    fn end(&self, first: Instance) -> Instance {
        match self {
            Self::Messages(..) => first + 1,
            Self::Whole(value) => first + value.span(),
        }
    }

    /// Whether a vote is for this value, or a part of it.
    fn is_of(&self, vote: &Vote) -> bool {
        match (self, &vote.value) {
            (Self::Messages(of, _), Value::Packet { id, .. }) => of == id,
            (Self::Whole(Value::Skip(_)), Value::Skip(_)) => true,
            (Self::Whole(value), other) => value == other,
            (Self::Messages(..), _) => false,
        }
    }
}

impl Archive {
    /// The number of votes.
    pub fn len(&self) -> usize {
        self.stubs.len()
    }

    /// The bytes that it takes in memory.
    pub fn bytes(&self) -> usize {
        self.stubs.capacity() * size_of::<(Instance, Stub)>()
    }

    /// Takes in the vote that left memory next.
    pub fn put(&mut self, vote: Vote) {
        let stub = match vote.value {
            Value::Packet { id, frame } if !value::is_account(&frame) => {
                Stub::Messages(id, value::cut(&frame))
            }
            other => Stub::Whole(other),
        };
        self.stubs.push_back((vote.first, stub));
    }

    /// Everything below is forgotten.
    pub fn trim(&mut self, below: Instance) {
        let is_old = |(first, stub): &mut (Instance, Stub)| stub.end(*first) <= below;
        while self.stubs.pop_front_if(is_old).is_some() {}
        if let Some((first, Stub::Whole(Value::Skip(count)))) = self.stubs.front_mut()
            && *first < below
        {
            *count -= below - *first;
            *first = below;
        }
    }

    /// The stubs from the one of an instance on.
    fn from(&self, at: Instance) -> impl Iterator<Item = &(Instance, Stub)> {
        let before = self
            .stubs
            .partition_point(|(first, stub)| stub.end(*first) <= at);
        self.stubs.range(before..)
    }

    /// Has a snapshot go on to `below`, as far as votes left memory. It lacks the values of messages that go on there
    /// ([`Snapshot::lacks`]). At most `most` votes.
    pub fn advance(&self, base: &mut Snapshot, below: Instance, most: usize) {
        for (first, stub) in self.from(base.next).take(most) {
            match stub {
                _ if *first >= below => return,
                Stub::Messages(id, cut) => {
                    base.advance_without(*first, *id, *cut);
                }
                Stub::Whole(value) => {
                    let vote = Vote {
                        first: *first,
                        round: 0,
                        value: value.clone(),
                    };
                    // A skip may have begun before.
                    if let Some(part) = vote.part(base.next, below) {
                        base.advance(&part);
                    }
                }
            }
        }
    }

    /// The first of the votes that were read back, of instances that had left memory: those that follow each other from
    /// the first instance on, and are for the values that were decided. A record that is damaged, or of something else,
    /// and all behind it are of no use.
    pub fn sound(&self, asked: &Range<Instance>, votes: Vec<Option<Vote>>) -> Vec<Vote> {
        let (mut next, mut sound) = (asked.start, Vec::new());
        for vote in votes {
            let vote = vote.and_then(|vote| vote.part(asked.start, asked.end));
            let Some(vote) = vote.filter(|vote| self.fits(next, vote)) else {
                break;
            };
            next = vote.end();
            sound.push(vote);
        }
        sound
    }

    fn fits(&self, next: Instance, vote: &Vote) -> bool {
        let follows = vote.first == next || mutants::on(Mutant::U128);
        let mut of = self.from(vote.first);
        let (mut at, mut is_of) = (vote.first, true);
        while at < vote.end() && is_of {
            let stub = of.next().filter(|(first, _)| *first <= at);
            is_of = stub.is_some_and(|(_, stub)| stub.is_of(vote));
            at = stub.map_or(at, |(first, stub)| stub.end(*first));
        }
        follows && (is_of || mutants::on(Mutant::U127))
    }

    /// The instance behind the last vote that a log lacks which was opened again with these; `None` if it has all.
    pub fn lost(&self, has: &BTreeMap<Instance, Vote>) -> Option<Instance> {
        let is_there = |(first, stub): &&(Instance, Stub)| {
            let mut at = *first;
            while at < stub.end(*first) {
                let before = has.range(..=at).next_back();
                let vote = before.filter(|(_, vote)| vote.end() > at && stub.is_of(vote));
                let Some((_, vote)) = vote else {
                    return false;
                };
                at = vote.end();
            }
            true
        };
        let lost = self.stubs.iter().rev().find(|stub| !is_there(stub));
        lost.map(|(first, stub)| stub.end(*first))
            .filter(|_| !mutants::on(Mutant::U131))
    }
}

impl Archive {
    /// Its invariants: it ends where the votes in memory begin.
    pub fn check(&self, kept: Instance, resident: Instance) {
        let first = self.stubs.front().map_or(resident, |(first, _)| *first);
        assert!(first == kept || self.stubs.is_empty(), "none is left out");
        let end = self.stubs.back().map(|(first, stub)| stub.end(*first));
        assert_eq!(end.unwrap_or(resident), resident, "votes are somewhere");
    }
}
