//! Whether the list of nodes is kept on disk, and when that is tried again. Without I/O.

use rota_core::contract::Time;

/// The time from a list that could not be stored to the next try, in nanoseconds.
const AGAIN_NANOS: u64 = 1_000_000_000;

#[derive(Clone, PartialEq, Eq, Debug, Default)]
enum State {
    /// Nothing is known to be missing on disk.
    #[default]
    Well,
    /// It could not be stored, and is to be stored again from then on.
    Waits(Time),
    /// It could not be stored, and is being stored again.
    Again,
}

/// Whether the newest list is on disk, where lists are kept; and why it could not be stored last, as the log says.
#[derive(Debug, Default)]
pub(super) struct Keeping(State, String);

impl Keeping {
    /// The newest list could not be stored, and is not yet.
    pub fn has_failed(&self) -> bool {
        self.0 != State::Well
    }

    /// A list is stored, or could not be; whether it is the newest.
    pub fn stored(&mut self, is_newest: bool, outcome: &Result<(), String>, now: Time) {
        match outcome {
            Ok(()) if is_newest && self.has_failed() => {
                tracing::info!("the list of nodes is kept on disk again");
                *self = Self::default();
            }
            Ok(()) => {}
            Err(what) => {
                if self.1 != *what {
                    tracing::error!(
                        what,
                        "the list of nodes is not kept, and would be forgotten: it is stored again each second until it is"
                    );
                }
                self.0 = State::Waits(now.after(AGAIN_NANOS));
                self.1.clone_from(what);
            }
        }
    }

    /// Whether the newest list is to be stored again now: that is said once.
    pub fn is_due(&mut self, now: Time) -> bool {
        let is_due = matches!(self.0, State::Waits(until) if until <= now);
        if is_due {
            self.0 = State::Again;
        }
        is_due
    }

    /// The time at which it is.
    pub const fn next_wake(&self) -> Option<Time> {
        match self.0 {
            State::Waits(until) => Some(until),
            State::Well | State::Again => None,
        }
    }
}
