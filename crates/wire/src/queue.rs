//! Things that come at a time each, the earliest first; those of one time in the order in which they were put in.

use std::collections::VecDeque;

use crate::agenda::NEVER;

/// See the module page. What is put in is nearly always the latest.
#[derive(Debug)]
pub struct Queue<T>(VecDeque<(u64, T)>);

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<T> Queue<T> {
    /// Something comes at a time.
    pub fn put(&mut self, at: u64, thing: T) {
        let later = self.0.iter().rev().take_while(|(other, _)| *other > at);
        let later = later.count();
        self.0.insert(self.0.len() - later, (at, thing));
    }

    /// The time of the next.
    pub fn next(&self) -> u64 {
        self.0.front().map_or(NEVER, |(at, _)| *at)
    }

    /// The next, with its time, if it has come by now.
    pub fn take(&mut self, now: u64) -> Option<(u64, T)> {
        let has = self.next() <= now;
        has.then(|| self.0.pop_front()).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_comes_first_and_the_first_among_equals() {
        let mut queue = Queue::default();
        for (at, name) in [(5, "c"), (9, "e"), (5, "d"), (1, "a"), (1, "b")] {
            queue.put(at, name);
        }
        assert_eq!((queue.next(), queue.take(0)), (1, None));
        assert_eq!(queue.take(4), Some((1, "a")));
        assert_eq!(queue.take(4), Some((1, "b")));
        assert_eq!((queue.next(), queue.take(4)), (5, None));
        let rest: Vec<_> = std::iter::from_fn(|| queue.take(9)).collect();
        assert_eq!(rest, [(5, "c"), (5, "d"), (9, "e")]);
        assert_eq!((queue.next(), queue.take(NEVER)), (NEVER, None));
    }
}
