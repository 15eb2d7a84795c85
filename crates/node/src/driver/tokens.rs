//! The times for which this node has the token, and their causes.
//!
//! A time begins when the kernel got the token, and ends when the token was handed to the kernel again. A token that is
//! kept because the ring is idle is not counted, nor is work after the token was passed on.

use rota_core::contract::{Histogram, Time};

/// The time for which this node had the token, and its parts. All values only grow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TokenTimes {
    /// From the token's arrival at the host until it was passed on.
    pub held: Histogram,
    /// Of that, until the token was read, in nanoseconds: this process did not run, or was busy with something else.
    pub waited_nanos: u64,
    /// Of that, for the application's submissions just before, in nanoseconds.
    pub application_nanos: u64,
    /// Of that, while a socket was full, in nanoseconds.
    pub blocked_nanos: u64,
}

/// A visit of the token.
#[derive(Clone, Copy, Debug)]
struct Visit {
    arrived: Time,
    began: Time,
    filled: Time,
    blocked: Option<Time>,
}

/// Measures the times.
#[derive(Debug, Default)]
pub(super) struct Tokens {
    visit: Option<Visit>,
    times: TokenTimes,
}

impl Tokens {
    pub(super) const fn times(&self) -> &TokenTimes {
        &self.times
    }

    /// A token that arrived then is handed in at `filled`; from `began` on the application had its turn.
    pub(super) fn begin(&mut self, arrived: Time, began: Time, filled: Time) {
        self.visit = Some(Visit {
            arrived: arrived.min(began),
            began,
            filled,
            blocked: None,
        });
    }

    /// A send waits, since the socket is full.
    pub(super) const fn blocked(&mut self, now: Time) {
        if let Some(visit) = &mut self.visit
            && visit.blocked.is_none()
        {
            visit.blocked = Some(now);
        }
    }

    /// A send has left; it was the token if `token`.
    pub(super) fn left(&mut self, token: bool, now: impl FnOnce() -> Time) {
        let Some(visit) = &mut self.visit else { return };
        if !token && visit.blocked.is_none() {
            return;
        }
        let now = now();
        if let Some(since) = visit.blocked.take() {
            self.times.blocked_nanos += now.since(since);
        }
        if token {
            let Visit {
                arrived,
                began,
                filled,
                ..
            } = *visit;
            self.visit = None;
            self.times.held.record(now.since(arrived));
            self.times.waited_nanos += began.since(arrived);
            self.times.application_nanos += filled.since(began);
        }
    }

    /// Nothing more is to be sent: if the token has not left, it is kept, or was none for this node.
    pub(super) const fn end(&mut self) {
        self.visit = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(tokens: &Tokens) -> (u64, u64) {
        (tokens.times.held.count(), tokens.times.held.sum_nanos())
    }

    #[test]
    fn the_time_of_a_visit_is_parted_by_what_it_went_for() {
        let mut tokens = Tokens::default();
        tokens.begin(Time(1000), Time(4000), Time(4500));
        tokens.left(false, || unreachable!("nothing was blocked"));
        tokens.blocked(Time(5000));
        tokens.blocked(Time(5500));
        tokens.left(false, || Time(6000));
        tokens.left(true, || Time(7000));
        let times = tokens.times;
        assert_eq!(held(&tokens), (1, 6000));
        assert_eq!(
            (
                times.waited_nanos,
                times.application_nanos,
                times.blocked_nanos
            ),
            (3000, 500, 1000)
        );
        tokens.left(true, || unreachable!("a token is passed on once"));
        assert_eq!(held(&tokens), (1, 6000));
    }

    #[test]
    fn a_token_that_is_kept_is_not_counted() {
        let mut tokens = Tokens::default();
        tokens.begin(Time(1000), Time(1000), Time(1000));
        tokens.end();
        tokens.left(true, || unreachable!("the ring was idle"));
        assert_eq!(held(&tokens), (0, 0));
    }

    #[test]
    fn a_clock_that_was_set_takes_nothing_away() {
        let mut tokens = Tokens::default();
        tokens.begin(Time(9000), Time(4000), Time(4000));
        tokens.left(true, || Time(5000));
        assert_eq!(held(&tokens), (1, 1000));
    }
}
