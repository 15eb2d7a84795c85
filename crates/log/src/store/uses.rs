//! The order in which indexes of segments were used: a limited number stays in memory.

use std::collections::BTreeMap;

/// A segment: its log and the position of its first record.
type Of = (u64, u64);

/// The segments that have an index, in the order of its last use.
#[derive(Debug, Default)]
pub(super) struct Uses {
    /// The least recently used first.
    order: BTreeMap<u64, Of>,
    newest: u64,
}

impl Uses {
    /// Notes a use of a segment's index. Takes the number of the use before it, which is 0 if there was none, and
    /// returns that of this one.
    pub(super) fn note(&mut self, before: u64, of: Of) -> u64 {
        self.newest += 1;
        self.order.remove(&before);
        self.order.insert(self.newest, of);
        self.newest
    }

    /// Forgets a segment, by the number of its last use.
    pub(super) fn forget(&mut self, used: u64) {
        self.order.remove(&used);
    }

    /// Forgets the least recently used segment, if there are more than `most`: its index has to go.
    pub(super) fn drop_oldest(&mut self, most: usize) -> Option<Of> {
        let has_too_many = self.order.len() > most;
        let oldest = has_too_many.then(|| self.order.pop_first())?;
        oldest.map(|(_, of)| of)
    }

    /// Forgets all segments.
    pub(super) fn clear(&mut self) {
        self.order.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_goes_first_and_only_beyond_the_limit() {
        let mut uses = Uses::default();
        let (a, b, c) = ((1, 1), (1, 9), (2, 1));
        let first = uses.note(0, a);
        let second = uses.note(0, b);
        uses.note(0, c);
        assert_eq!(uses.drop_oldest(3), None);
        uses.note(first, a);
        assert_eq!(uses.drop_oldest(2), Some(b));
        uses.forget(second);
        assert_eq!(uses.drop_oldest(2), None);
        assert_eq!(uses.drop_oldest(1), Some(c));
        uses.clear();
        assert_eq!(uses.drop_oldest(0), None);
    }
}
