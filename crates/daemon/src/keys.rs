//! Sessions or links in a row, by their keys.

use std::collections::VecDeque;

/// With more keys than this, debug builds do not look at all of them after each input.
pub(crate) const CHECKED: usize = 256;

/// Sessions that wait for the same thing, the first one ahead, each of them once.
///
/// A session that ends stays in the row: another session that has its key by then comes when it would have come.
#[derive(Debug, Default)]
pub(crate) struct KeyQueue {
    row: VecDeque<usize>,
    /// Whether a key is in the row, by key.
    has: Vec<bool>,
}

impl KeyQueue {
    /// Puts a session behind the others, unless it waits already.
    pub fn push(&mut self, key: usize) {
        if self.has.len() <= key {
            self.has.resize(key + 1, false);
        }
        if !std::mem::replace(&mut self.has[key], true) {
            self.row.push_back(key);
        }
    }

    /// Takes the session that has waited longest.
    pub fn pop(&mut self) -> Option<usize> {
        let key = self.row.pop_front()?;
        self.has[key] = false;
        Some(key)
    }

    pub fn len(&self) -> usize {
        self.row.len()
    }

    pub fn is_empty(&self) -> bool {
        self.row.is_empty()
    }

    /// Puts all sessions of another row behind those of this one.
    pub fn append(&mut self, other: &mut Self) {
        while let Some(key) = other.pop() {
            self.push(key);
        }
    }

    /// Those in the row are marked, and, as long as there are few, nobody else.
    pub fn check(&self) {
        debug_assert!(self.row.iter().all(|key| self.has[*key]));
        let marked = || self.has.iter().filter(|has| **has).count();
        debug_assert!(self.has.len() > CHECKED || self.row.len() == marked());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_session_is_in_the_row_once_and_comes_in_its_turn() {
        let mut row = KeyQueue::default();
        for key in [7, 3, 7, 0, 3] {
            row.push(key);
        }
        row.check();
        assert_eq!((row.len(), row.pop()), (3, Some(7)));
        row.push(7);
        row.check();
        let rest: Vec<usize> = std::iter::from_fn(|| row.pop()).collect();
        assert_eq!(rest, [3, 0, 7]);
        assert!(row.is_empty());
    }

    #[test]
    fn the_sessions_of_another_row_come_last() {
        let (mut row, mut other) = (KeyQueue::default(), KeyQueue::default());
        [1, 2].into_iter().for_each(|key| row.push(key));
        [2, 3].into_iter().for_each(|key| other.push(key));
        row.append(&mut other);
        row.check();
        other.check();
        assert!(other.is_empty());
        let all: Vec<usize> = std::iter::from_fn(|| row.pop()).collect();
        assert_eq!(all, [1, 2, 3]);
    }
}
