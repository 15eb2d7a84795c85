//! The law of a turn of the driver, and of the deliveries it takes, which [`super::Checked`] asserts.

use core::cell::Cell;

use super::{
    Configuration, ConfigurationKind, Delivery, Input, Seq, Service, Time, TimerReason, position,
};

/// The questions of a driver so far, and the deliveries that it has taken.
#[derive(Debug)]
pub struct TurnLaw {
    /// The driver has asked what to read since the last burst.
    knows_what_to_read: Cell<bool>,
    /// The application takes no deliveries.
    hangs: bool,
    /// The position of the last message that has a place in the one order, in this configuration.
    last: Option<u64>,
    /// Everything before this position was passed.
    passed: Seq,
}

impl TurnLaw {
    /// A law for a driver that has done nothing yet.
    pub const fn new() -> Self {
        Self {
            knows_what_to_read: Cell::new(true),
            hangs: false,
            last: None,
            passed: 0,
        }
    }

    /// Asserts that the driver has asked what to read before it hands in a burst (rule 4), and that the timer is due that
    /// it hands in (rule 5).
    pub fn told(
        &self,
        now: Time,
        input: &Input,
        timer: impl FnOnce() -> Option<(Time, TimerReason)>,
    ) {
        match input {
            Input::Datagrams { .. } => {
                debug_assert!(
                    self.knows_what_to_read.get(),
                    "a burst was handed in, and nobody has asked what to read since the last one"
                );
                self.knows_what_to_read.set(false);
            }
            Input::Timer => {
                let timer = timer();
                debug_assert!(
                    timer.is_some_and(|(due, _)| due <= now),
                    "no timer is due at {now:?}: the next is {timer:?}"
                );
            }
            _ => {}
        }
    }

    /// The driver asks what to read.
    pub fn asked_what_to_read(&self) {
        self.knows_what_to_read.set(true);
    }

    /// The layer above has deliveries that its application does not take, or takes again.
    pub const fn hangs(&mut self, hangs: bool) {
        self.hangs = hangs;
    }

    /// Asserts that deliveries are polled only while the application takes some (rule 6).
    pub fn polls_delivery(&self) {
        debug_assert!(
            !self.hangs,
            "a delivery was polled for an application that takes none"
        );
    }

    /// Asserts that deliveries come in the one order.
    pub fn delivered(&mut self, delivery: &Delivery) {
        match delivery {
            Delivery::Configuration(Configuration {
                kind: ConfigurationKind::Regular(_),
                ..
            }) => self.last = None,
            Delivery::Message(message) => {
                let has_place = matches!(
                    message.service,
                    Service::Causal | Service::Agreed | Service::Safe
                );
                if has_place {
                    self.goes_on(message.position(), message.position());
                }
            }
            Delivery::Missed { seq, count, .. } => {
                // An outsider may come back and have missed nothing but views.
                if let Some(more) = count.checked_sub(1) {
                    let last = seq.saturating_add(more);
                    self.goes_on(position(*seq, 0), position(last, u16::MAX));
                }
            }
            Delivery::Notice { seq, .. } => {
                self.goes_on(position(*seq, 0), position(*seq, u16::MAX));
            }
            Delivery::Passed { next } => {
                debug_assert!(
                    *next >= self.passed,
                    "up to {next} was passed, after {} was",
                    self.passed
                );
                self.passed = *next;
            }
            Delivery::Configuration(_) | Delivery::Primary(_) | Delivery::Excluded(_) => {}
        }
    }

    fn goes_on(&mut self, first: u64, last: u64) {
        debug_assert!(
            self.last.is_none_or(|before| before < first),
            "position {first} comes behind {:?}",
            self.last
        );
        self.last = Some(last);
    }
}
