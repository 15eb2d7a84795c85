//! Votes by instance. A later one for the same instances takes the place of an earlier one.

use alloc::collections::BTreeMap;

use super::value::{Instance, Round, Value, Vote};
use rota_core::invariants::FEW;

/// Votes that do not overlap.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Votes {
    /// By first instance.
    votes: BTreeMap<Instance, (Round, Value)>,
    /// Their bytes in memory.
    bytes: usize,
}

/// The bytes of a vote beside its value, about.
const RECORD: usize = 128;

fn bytes_of(value: &Value) -> usize {
    RECORD + value.bytes()
}

impl Votes {
    /// The number of votes; a range of skipped instances is one vote.
    pub fn len(&self) -> usize {
        self.votes.len()
    }

    /// The bytes that they take in memory, about.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.votes.is_empty()
    }

    /// Puts a vote in place of all votes for its instances.
    pub fn put(&mut self, vote: Vote) {
        let (first, end) = (vote.first, vote.end());
        if let Some(before) = self
            .last_before(first)
            .filter(|before| before.end() > first)
        {
            self.replace(&before, 0, first);
            self.replace(&before, end, Instance::MAX);
        }
        while let Some(inside) = self.first_in(first, end) {
            self.remove(inside.first);
            self.replace(&inside, end, Instance::MAX);
        }
        self.insert(first, (vote.round, vote.value));
    }

    /// The vote that covers this instance.
    pub fn at(&self, instance: Instance) -> Option<Vote> {
        let (first, held) = self.votes.range(..=instance).next_back()?;
        Some(vote(first, held)).filter(|vote| vote.end() > instance)
    }

    /// All votes from this instance on, without their parts for earlier ones.
    pub fn from(&self, instance: Instance) -> impl Iterator<Item = Vote> {
        let before = self.last_before(instance);
        let part = before.and_then(|vote| vote.part(instance, Instance::MAX));
        let rest = self.votes.range(instance..);
        part.into_iter()
            .chain(rest.map(|(first, held)| vote(first, held)))
    }

    /// The first instance from this one on without a vote.
    pub fn hole(&self, from: Instance) -> Instance {
        let before = self.last_before(from).map_or(0, |vote| vote.end());
        let mut hole = before.max(from);
        for (first, (_, value)) in self.votes.range(from..) {
            if *first > hole {
                break;
            }
            hole = value.end(*first);
        }
        hole
    }

    /// Forgets everything below this instance.
    pub fn trim(&mut self, below: Instance) {
        while let Some(first) = self.first().filter(|first| *first < below)
            && let Some(old) = self.take(first)
        {
            if old.end() > below {
                self.replace(&old, below, Instance::MAX);
            }
        }
    }

    /// Takes the vote out that begins at this instance.
    pub fn take(&mut self, first: Instance) -> Option<Vote> {
        let held = self.remove(first)?;
        Some(vote(&first, &held))
    }

    fn insert(&mut self, first: Instance, held: (Round, Value)) {
        self.bytes += bytes_of(&held.1);
        if let Some((_, before)) = self.votes.insert(first, held) {
            self.bytes -= bytes_of(&before);
        }
    }

    fn remove(&mut self, first: Instance) -> Option<(Round, Value)> {
        let held = self.votes.remove(&first)?;
        self.bytes -= bytes_of(&held.1);
        Some(held)
    }

    fn last_before(&self, instance: Instance) -> Option<Vote> {
        let (first, held) = self.votes.range(..instance).next_back()?;
        Some(vote(first, held))
    }

    fn first_in(&self, from: Instance, to: Instance) -> Option<Vote> {
        let (first, held) = self.votes.range(from..to.max(from)).next()?;
        Some(vote(first, held))
    }

    /// Puts back the part of an old vote in `[from, to)`, for which there is no other vote.
    fn replace(&mut self, old: &Vote, from: Instance, to: Instance) {
        if let Some(Vote {
            first,
            round,
            value,
        }) = old.part(from, to)
        {
            self.insert(first, (round, value));
        }
    }
}

fn vote(first: &Instance, (round, value): &(Round, Value)) -> Vote {
    Vote {
        first: *first,
        round: *round,
        value: value.clone(),
    }
}

impl Votes {
    /// They do not overlap.
    pub fn check(&self) {
        let first = self.votes.first_key_value();
        if let Some((first, (_, value))) = first {
            assert!(*first >= 1, "instances count from 1");
            assert!(value.end(*first) > *first, "a vote is for something");
        }
        if self.votes.len() <= FEW {
            let bytes: usize = self.votes.values().map(|(_, value)| bytes_of(value)).sum();
            assert_eq!(self.bytes, bytes, "bytes are counted");
            let mut behind = 0;
            for (first, (_, value)) in &self.votes {
                assert!(*first >= behind, "votes overlap at {first}");
                behind = value.end(*first);
            }
        }
    }

    /// The first instance with a vote, if there is one.
    pub fn first(&self) -> Option<Instance> {
        self.votes.first_key_value().map(|(first, _)| *first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_are_where_no_vote_is() {
        let skip = |first, count| Vote {
            first,
            round: 1,
            value: Value::Skip(count),
        };
        let mut votes = Votes::default();
        for vote in [skip(3, 1), skip(4, 3), skip(7, 1), skip(10, 5), skip(20, 1)] {
            votes.put(vote);
        }
        let has = |at: &Instance| matches!(*at, 3..=7 | 10..=14 | 20);
        for from in 0..25 {
            let mut behind = from..;
            let hole = behind.find(|at| !has(at));
            assert_eq!(Some(votes.hole(from)), hole, "{from}");
            let some = (from..25).find(has);
            let next = votes.from(from).next().map(|vote| vote.first);
            assert_eq!(next, some, "{from}");
        }
    }
}
