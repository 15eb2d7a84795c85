//! Marks: points in the order of all appends at which a checkpoint may be taken.

use std::collections::BTreeMap;

use super::Missing;
use super::tails::Extent;

/// The number of marks without a sync that are remembered.
const MARKS: usize = 8;

/// The contents of the files when all before a mark was written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Snapshot {
    pub(super) logs: BTreeMap<u64, Vec<Extent>>,
    pub(super) gap: Option<Missing>,
}

/// The newest mark, and those that may still be synced.
#[derive(Debug, Default)]
pub(super) struct Marks {
    newest: u64,
    /// Each with the contents of the files when the writer reached it.
    open: BTreeMap<u64, Option<Snapshot>>,
}

/// The knowledge of a mark.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Known {
    /// It was synced, forgotten, or a later one was synced.
    Nothing,
    /// The writer has not reached it.
    Set,
    Reached(Snapshot),
}

impl Marks {
    /// The newest mark; 0 if there was none.
    pub(super) const fn newest(&self) -> u64 {
        self.newest
    }

    /// Sets a mark behind all appends until now. The oldest one is forgotten if there are too many.
    pub(super) fn set(&mut self) -> u64 {
        self.newest += 1;
        self.open.insert(self.newest, None);
        while self.open.len() > MARKS {
            self.open.pop_first();
        }
        self.newest
    }

    /// The writer has reached a mark. Returns whether anybody may ask for it.
    pub(super) fn reach(&mut self, mark: u64, snapshot: impl FnOnce() -> Snapshot) -> bool {
        let open = self.open.get_mut(&mark);
        let is_open = open.is_some();
        if let Some(open) = open {
            *open = Some(snapshot());
        }
        is_open
    }

    /// Takes out a mark that was reached, with all before it.
    pub(super) fn take(&mut self, mark: u64) -> Known {
        match self.open.get(&mark) {
            None => Known::Nothing,
            Some(None) => Known::Set,
            Some(Some(_)) => {
                let later = self.open.split_off(&(mark + 1));
                let mut reached = std::mem::replace(&mut self.open, later);
                let snapshot = reached.remove(&mark).flatten();
                snapshot.map_or(Known::Nothing, Known::Reached)
            }
        }
    }

    /// Forgets all marks. Later ones get higher numbers.
    pub(super) fn clear(&mut self) {
        self.open.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot() -> Snapshot {
        Snapshot {
            logs: BTreeMap::new(),
            gap: None,
        }
    }

    #[test]
    fn a_mark_is_taken_once_and_takes_all_before_it_along() {
        let mut marks = Marks::default();
        let (first, second, third) = (marks.set(), marks.set(), marks.set());
        assert_eq!(marks.take(second), Known::Set);
        for mark in [first, second, third] {
            assert!(marks.reach(mark, snapshot));
        }
        assert_eq!(marks.take(second), Known::Reached(snapshot()));
        assert_eq!(marks.take(second), Known::Nothing);
        assert_eq!(marks.take(first), Known::Nothing);
        assert_eq!(marks.take(third), Known::Reached(snapshot()));
    }

    #[test]
    fn of_many_marks_the_oldest_is_forgotten_and_reached_by_nobody() {
        let mut marks = Marks::default();
        let first = marks.set();
        for _ in 1..MARKS {
            marks.set();
        }
        assert_eq!(marks.take(first), Known::Set);
        let newest = marks.set();
        assert_eq!(marks.take(first), Known::Nothing);
        assert!(!marks.reach(first, snapshot));
        marks.clear();
        assert_eq!(marks.take(newest), Known::Nothing);
        assert_eq!(marks.set(), newest + 1);
    }
}
