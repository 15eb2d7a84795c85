//! Lines in the log about clients that have gone, with a limit: clients must not be able to fill the log.

use rota_core::contract::Time;
use rota_net::monotonic;

/// There may be more lines after so long.
const PERIOD_NANOS: u64 = 10_000_000_000;

/// Lines about clients that have gone, in a period.
const FAREWELLS: u64 = 100;

/// Logs clients that have gone, as long as these are not too many.
#[derive(Debug, Default)]
pub(crate) struct Farewells {
    /// The end of the period for which lines are counted.
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

    /// The number of lines that were left out since the last one; `None` if this line is left out too.
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
}
