//! What is told of the list of nodes, or is to be told, and cannot be: it is counted, and the log has a line of it once a
//! second at most, as it may come with every notice. Without I/O.

use rota_core::contract::Time;

/// The time from one line to the next, in nanoseconds.
const LINE_NANOS: u64 = 1_000_000_000;

/// What could not be used.
#[derive(Debug, Default)]
pub(super) struct Rejected {
    malformed: u64,
    /// The newest that no line has said yet, and how many others there are.
    unsaid: Option<(String, u64)>,
    /// There is no line before this time.
    next: Time,
}

impl Rejected {
    /// Messages and notices that made no sense.
    pub const fn malformed(&self) -> u64 {
        self.malformed
    }

    /// A message or a notice makes no sense.
    pub const fn count(&mut self) {
        self.malformed += 1;
    }

    /// An operator should know of this.
    pub fn complain(&mut self, what: String) {
        let others = self.unsaid.take().map_or(0, |(_, others)| others + 1);
        self.unsaid = Some((what, others));
    }

    /// The line that is due for the log, and the number of others that it stands for.
    pub fn line(&mut self, now: Time) -> Option<(String, u64)> {
        if self.unsaid.is_none() || now < self.next {
            return None;
        }
        self.next = now.after(LINE_NANOS);
        self.unsaid.take()
    }

    /// The time at which there is a line.
    pub fn next_wake(&self) -> Option<Time> {
        self.unsaid.as_ref().map(|_| self.next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_has_a_line_a_second_and_each_says_how_many_it_stands_for() {
        let mut rejected = Rejected::default();
        let start = Time(5);
        assert_eq!((rejected.line(start), rejected.next_wake()), (None, None));
        rejected.complain("one".to_owned());
        assert!(rejected.next_wake().is_some_and(|at| at <= start));
        assert_eq!(rejected.line(start), Some(("one".to_owned(), 0)));
        for what in ["two", "three", "four"] {
            rejected.complain(what.to_owned());
            assert_eq!(rejected.line(start.after(LINE_NANOS - 1)), None);
        }
        let next = start.after(LINE_NANOS);
        assert_eq!(rejected.next_wake(), Some(next));
        assert_eq!(rejected.line(next), Some(("four".to_owned(), 2)));
        assert_eq!((rejected.line(next), rejected.next_wake()), (None, None));
    }
}
