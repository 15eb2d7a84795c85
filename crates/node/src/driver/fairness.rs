//! The order in which what waits is handed in, so that nothing waits for ever: a timer that is due, links, datagrams,
//! and the application's submissions.

use rota_core::contract::Class;

/// Bursts that may be handed in while a timer is due: datagrams that wait in a socket may be the
/// very ones whose absence the timer would report.
const BURSTS_BEFORE_TIMER: u32 = 16;

/// Bursts of datagrams that may be handed in before the links get a turn, whatever else waits.
const BURSTS_BEFORE_LINKS: u32 = 4;

/// Bursts of data that may be handed in before the application submits again: not every engine gets a token.
const BURSTS_BEFORE_FILL: u32 = 8;

/// What was handed in past something else that waits.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Fairness {
    past_timer: u32,
    past_links: u32,
    past_fill: u32,
}

impl Fairness {
    /// A timer that is due comes first.
    pub(super) const fn timer_is_first(&self) -> bool {
        self.past_timer >= BURSTS_BEFORE_TIMER
    }

    /// The links come first.
    pub(super) const fn links_are_first(&self) -> bool {
        self.past_links >= BURSTS_BEFORE_LINKS
    }

    /// A burst of datagrams is handed in, while a timer is due or not.
    pub(super) fn burst(&mut self, timer_is_due: bool) {
        self.past_timer += u32::from(timer_is_due);
        self.past_links += 1;
        self.past_fill += 1;
    }

    /// What the links have was handed in, while a timer is due or not.
    pub(super) fn links(&mut self, timer_is_due: bool) {
        self.past_timer += u32::from(timer_is_due);
    }

    /// The links were looked at.
    pub(super) const fn looked_at_links(&mut self) {
        self.past_links = 0;
    }

    /// Whether the application submits before this burst is handed in. What it submits before a token can leave with
    /// the token's visit.
    pub(super) fn fills_before(&self, class: Class) -> bool {
        class == Class::Token || self.past_fill >= BURSTS_BEFORE_FILL
    }

    /// The application has submitted.
    pub(super) const fn filled(&mut self) {
        self.past_fill = 0;
    }

    /// The timer was handed in.
    pub(super) const fn timer(&mut self) {
        self.past_timer = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_that_is_due_waits_for_so_many_bursts() {
        let mut fairness = Fairness::default();
        for _ in 0..BURSTS_BEFORE_TIMER {
            assert!(!fairness.timer_is_first());
            fairness.burst(true);
        }
        assert!(fairness.timer_is_first());
        fairness.timer();
        (0..100).for_each(|_| fairness.burst(false));
        assert!(!fairness.timer_is_first(), "none is due");
    }

    #[test]
    fn links_and_the_application_have_their_turns_between_bursts_of_data() {
        let mut fairness = Fairness::default();
        for at in 1..=BURSTS_BEFORE_FILL {
            assert!(!fairness.fills_before(Class::Data));
            assert!(fairness.fills_before(Class::Token));
            fairness.burst(false);
            assert_eq!(fairness.links_are_first(), at >= BURSTS_BEFORE_LINKS);
        }
        assert!(fairness.fills_before(Class::Data));
        fairness.filled();
        fairness.looked_at_links();
        assert!(!fairness.fills_before(Class::Data) && !fairness.links_are_first());
    }
}
