//! The place of the newest record of each instance.
//!
//! Eight bytes an instance where they are dense: places are kept in blocks of 64. Votes and skips never overlap in it;
//! a later record takes the place of earlier ones.

use std::collections::BTreeMap;

use super::header::Position;
use super::record::{Kind, RecordRef};

/// Instances in a block.
const BLOCK: u64 = 64;

/// A position in eight bytes. Segments are shorter than 4 GiB. 0 is no place: records begin behind a page.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Place(u64);

const NOWHERE: Place = Place(0);

impl Place {
    const fn of(position: Position) -> Self {
        Self(position.segment << 32 | (position.offset & 0xffff_ffff))
    }

    const fn position(self) -> Position {
        Position {
            segment: self.0 >> 32,
            offset: self.0 & 0xffff_ffff,
        }
    }
}

/// Instances that are found in one record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Entry {
    pub first: u64,
    pub last: u64,
    pub at: Position,
}

/// Places by instance.
#[derive(Debug, Default)]
pub(super) struct Index {
    votes: BTreeMap<u64, Box<[Place; BLOCK as usize]>>,
    /// By the first instance: the last one, and the place. They do not overlap.
    skips: BTreeMap<u64, (u64, Place)>,
    /// The instances before this one are not kept.
    from: u64,
}

impl Index {
    /// The first instance that is kept.
    pub const fn from(&self) -> u64 {
        self.from
    }

    /// Takes over a record.
    pub fn take(&mut self, at: Position, record: RecordRef<'_>) {
        match record.kind {
            Kind::Vote => self.vote(record.first, at),
            Kind::Skip => self.skip(record.first, record.last, at),
            Kind::Trim => self.trim(record.first),
            Kind::Promise | Kind::Configuration | Kind::Decided | Kind::State => {}
        }
    }

    /// The number of instances of which something is kept.
    pub fn count(&self) -> u64 {
        let in_block = |places: &[Place]| places.iter().filter(|p| **p != NOWHERE).count() as u64;
        let votes = self.votes.values().map(|places| in_block(&places[..]));
        let skips = self
            .skips
            .iter()
            .map(|(first, (last, _))| (last - first).saturating_add(1));
        votes.chain(skips).fold(0, u64::saturating_add)
    }

    pub fn vote(&mut self, instance: u64, at: Position) {
        if instance < self.from {
            return;
        }
        self.cut_skips(instance, instance);
        let block = self.votes.entry(instance / BLOCK);
        let block = block.or_insert_with(|| Box::new([NOWHERE; BLOCK as usize]));
        block[(instance % BLOCK) as usize] = Place::of(at);
    }

    pub fn skip(&mut self, first: u64, last: u64, at: Position) {
        let first = first.max(self.from);
        if first > last {
            return;
        }
        self.cut_skips(first, last);
        self.cut_votes(first, last);
        self.skips.insert(first, (last, Place::of(at)));
    }

    /// Forgets all instances before this one.
    pub fn trim(&mut self, from: u64) {
        let Some(last) = from.checked_sub(1).filter(|_| from > self.from) else {
            return;
        };
        self.cut_skips(0, last);
        self.cut_votes(0, last);
        self.from = from;
    }

    /// The first entry between two instances.
    pub fn next(&self, first: u64, last: u64) -> Option<Entry> {
        let skip = self.skip_at_or_after(first);
        // No vote behind the skip is asked for.
        let end = skip.map_or(last, |skip| last.min(skip.first));
        let vote = self.vote_between(first, end);
        vote.or(skip).filter(|entry| entry.first <= last)
    }

    /// The last instance that is kept.
    pub fn last(&self) -> Option<u64> {
        let vote = self.votes.iter().next_back().and_then(|(block, places)| {
            // A block without a vote is not kept.
            let at = places.iter().rposition(|place| *place != NOWHERE)?;
            Some(block * BLOCK + at as u64)
        });
        let skip = self.skips.values().next_back().map(|(last, _)| *last);
        vote.max(skip)
    }

    fn skip_at_or_after(&self, first: u64) -> Option<Entry> {
        let before = self.skips.range(..=first).next_back();
        let around = before.filter(|(_, (last, _))| *last >= first);
        let (start, (last, place)) = around.or_else(|| self.skips.range(first..).next())?;
        Some(Entry {
            first: *start,
            last: *last,
            at: place.position(),
        })
    }

    fn vote_between(&self, first: u64, last: u64) -> Option<Entry> {
        for (block, places) in self.votes.range(first / BLOCK..=last / BLOCK) {
            let start = block * BLOCK;
            let from = first.saturating_sub(start) as usize;
            let to = (last - start).min(BLOCK - 1) as usize;
            let found = (from..=to).find(|at| places[*at] != NOWHERE);
            if let Some(at) = found {
                let instance = start + at as u64;
                return Some(Entry {
                    first: instance,
                    last: instance,
                    at: places[at].position(),
                });
            }
        }
        None
    }

    /// Takes these instances out of skips.
    fn cut_skips(&mut self, first: u64, last: u64) {
        while let Some(skip) = self.skip_at_or_after(first).filter(|s| s.first <= last) {
            let place = Place::of(skip.at);
            self.skips.remove(&skip.first);
            if skip.first < first {
                self.skips.insert(skip.first, (first - 1, place));
            }
            if skip.last > last {
                self.skips.insert(last + 1, (skip.last, place));
            }
        }
    }

    fn cut_votes(&mut self, first: u64, last: u64) {
        let blocks = self.votes.range(first / BLOCK..=last / BLOCK);
        let blocks: Vec<u64> = blocks.map(|(block, _)| *block).collect();
        for block in blocks {
            let start = block * BLOCK;
            let whole = first <= start && last - start >= BLOCK - 1;
            let Some(places) = self.votes.get_mut(&block).filter(|_| !whole) else {
                self.votes.remove(&block);
                continue;
            };
            let from = first.saturating_sub(start) as usize;
            let to = (last - start).min(BLOCK - 1) as usize;
            places[from..=to].fill(NOWHERE);
            if places.iter().all(|place| *place == NOWHERE) {
                self.votes.remove(&block);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(offset: u64) -> Position {
        Position { segment: 3, offset }
    }

    fn all(index: &Index, first: u64, last: u64) -> Vec<(u64, u64, u64)> {
        let mut found = Vec::new();
        let mut next = Some(first);
        while let Some(entry) = next.and_then(|from| index.next(from, last)) {
            assert_eq!(entry.at.segment, 3);
            found.push((entry.first, entry.last, entry.at.offset));
            next = entry.last.checked_add(1).filter(|next| *next <= last);
        }
        found
    }

    #[test]
    fn a_later_record_takes_the_place_of_an_earlier_one() {
        let mut index = Index::default();
        index.vote(5, at(1));
        index.vote(70, at(2));
        index.skip(3, 200, at(3));
        assert_eq!(all(&index, 0, u64::MAX), [(3, 200, 3)]);
        index.vote(70, at(4));
        index.vote(3, at(5));
        index.vote(200, at(6));
        let found = [
            (3, 3, 5),
            (4, 69, 3),
            (70, 70, 4),
            (71, 199, 3),
            (200, 200, 6),
        ];
        assert_eq!(all(&index, 0, u64::MAX), found);
        assert_eq!(all(&index, 10, 70), [(4, 69, 3), (70, 70, 4)]);
        index.skip(60, 80, at(7));
        index.trim(61);
        index.vote(60, at(8));
        assert_eq!(
            all(&index, 0, u64::MAX),
            [(61, 80, 7), (81, 199, 3), (200, 200, 6)]
        );
        assert_eq!((index.last(), index.count()), (Some(200), 140));
    }

    #[test]
    fn the_ends_of_all_numbers_are_instances_as_others() {
        let mut index = Index::default();
        index.skip(0, u64::MAX, at(1));
        index.vote(u64::MAX, at(2));
        index.vote(0, at(3));
        let found = [(0, 0, 3), (1, u64::MAX - 1, 1), (u64::MAX, u64::MAX, 2)];
        assert_eq!(all(&index, 0, u64::MAX), found);
        assert_eq!(index.count(), u64::MAX);
        index.trim(u64::MAX);
        assert_eq!(all(&index, 0, u64::MAX), [(u64::MAX, u64::MAX, 2)]);
    }

    /// A plain table of a few instances holds the same.
    #[test]
    fn many_changes_lead_to_what_a_plain_table_holds() {
        let mut draw = 7_u64;
        let mut random = |bound: u64| {
            draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (draw >> 33) % bound
        };
        for _ in 0..200 {
            let (mut index, mut plain, mut from) = (Index::default(), [0_u64; 300], 0);
            for offset in 1..60 {
                let (a, b) = (random(300), random(300));
                match random(8) {
                    0 => {
                        index.trim(a / 4);
                        from = from.max(a / 4);
                    }
                    1 => {
                        index.skip(a.min(b), a.max(b), at(offset));
                        plain[a.min(b) as usize..=a.max(b) as usize].fill(offset);
                    }
                    _ => {
                        index.vote(a, at(offset));
                        plain[a as usize] = offset;
                    }
                }
                plain[..from as usize].fill(0);
            }
            let mut found = [0; 300];
            for (first, last, offset) in all(&index, 0, 299) {
                assert!(
                    found[first as usize..=last as usize]
                        .iter()
                        .all(|f| *f == 0)
                );
                found[first as usize..=last as usize].fill(offset);
            }
            assert_eq!(found, plain);
        }
    }
}
