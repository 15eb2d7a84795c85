//! Lines in the log about clients, which must not be able to fill it.

use std::fmt::Display;

use rota_core::contract::Time;
use rota_net::monotonic;

/// One reason has a line at most this often.
const PERIOD_NANOS: u64 = 10_000_000_000;

/// Says once in a period for what clients are refused, whatever they do.
#[derive(Debug, Default)]
pub(crate) struct Complaints {
    /// The reasons that there were: when there may be another line, and how often there was none.
    reasons: Vec<(&'static str, Time, u64)>,
}

impl Complaints {
    /// Somebody is refused: a line for the log, unless there was one just now.
    pub fn say(&mut self, reason: &'static str, who: &dyn Display, what: &dyn Display) {
        if let Some(unsaid) = self.is_due(reason, monotonic()) {
            tracing::warn!(%who, %what, unsaid, "{reason}");
        }
    }

    /// How many lines there were not since the last one; `None` if there is to be none now.
    fn is_due(&mut self, reason: &'static str, now: Time) -> Option<u64> {
        let again = now.after(PERIOD_NANOS);
        let Some((_, due, unsaid)) = self.reasons.iter_mut().find(|(said, ..)| *said == reason)
        else {
            self.reasons.push((reason, again, 0));
            return Some(0);
        };
        if now < *due {
            *unsaid += 1;
            return None;
        }
        *due = again;
        Some(std::mem::take(unsaid))
    }
}

/// Lines about clients that have gone, in a period.
const FAREWELLS: u64 = 100;

/// Says who has gone, as long as these are not too many.
#[derive(Debug, Default)]
pub(crate) struct Farewells {
    /// When there may be as many lines again.
    until: Time,
    said: u64,
    unsaid: u64,
}

impl Farewells {
    /// A client has gone: a line for the log, unless there were many just now.
    pub fn say(&mut self, name: &str, why: &str) {
        if let Some(unsaid) = self.is_due(monotonic()) {
            tracing::info!(name, why, unsaid, "a client has gone");
        }
    }

    /// How many lines there were not since the last one; `None` if there is to be none now.
    fn is_due(&mut self, now: Time) -> Option<u64> {
        if now >= self.until {
            self.until = now.after(PERIOD_NANOS);
            self.said = 0;
        }
        if self.said >= FAREWELLS {
            self.unsaid += 1;
            return None;
        }
        self.said += 1;
        Some(std::mem::take(&mut self.unsaid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_who_go_at_once_have_only_so_many_lines() {
        let mut farewells = Farewells::default();
        for _ in 0..FAREWELLS {
            assert_eq!(farewells.is_due(Time(5)), Some(0));
        }
        assert_eq!(farewells.is_due(Time(5)), None);
        assert_eq!(farewells.is_due(Time(5 + PERIOD_NANOS - 1)), None);
        assert_eq!(farewells.is_due(Time(5 + PERIOD_NANOS)), Some(2));
        assert_eq!(farewells.is_due(Time(5 + PERIOD_NANOS)), Some(0));
    }

    #[test]
    fn each_reason_has_a_line_a_period_and_says_how_many_it_stands_for() {
        let mut complaints = Complaints::default();
        let start = Time(5);
        assert_eq!(complaints.is_due("one", start), Some(0));
        assert_eq!(complaints.is_due("one", start), None);
        assert_eq!(complaints.is_due("two", start), Some(0));
        let last = start.after(PERIOD_NANOS - 1);
        assert_eq!(complaints.is_due("one", last), None);
        let next = start.after(PERIOD_NANOS);
        assert_eq!(complaints.is_due("one", next), Some(2));
        assert_eq!(complaints.is_due("one", next), None);
    }
}
