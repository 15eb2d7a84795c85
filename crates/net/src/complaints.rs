//! Lines in the log about what others do: clients, peers and other daemons must not be able to fill it.

use std::fmt::Display;

use crate::monotonic;
use rota_core::contract::Time;

/// One reason has a line at most this often.
const PERIOD_NANOS: u64 = 10_000_000_000;

/// Logs each reason once in a period, however often it comes.
#[derive(Debug, Default)]
pub struct Complaints {
    /// The reasons so far: the time at which there may be another line, and the number of lines left out.
    reasons: Vec<(&'static str, Time, u64)>,
}

impl Complaints {
    /// A line for the log about `who`, and `what` came of it, unless there was one of this reason just now.
    pub fn say(&mut self, reason: &'static str, who: &dyn Display, what: &dyn Display) {
        if let Some(unsaid) = self.is_due(reason, monotonic()) {
            tracing::warn!(%who, %what, unsaid, "{reason}");
        }
    }

    /// The number of lines left out since the last one; `None` if there is to be none now, and then this one is left out.
    pub fn is_due(&mut self, reason: &'static str, now: Time) -> Option<u64> {
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

#[cfg(test)]
mod tests {
    use super::*;

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
