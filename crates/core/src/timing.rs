//! Time-outs, by profile.

/// Time-outs of a ring, in nanoseconds. Derived from a profile, never set one by one
/// (`timing =` in the configuration).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timers {
    /// The time without a token after which the ring counts as broken.
    pub token_loss: u64,
    /// The time without a sign that a sent token arrived after which it is sent again.
    pub token_retransmit: u64,
    /// The time for which an idle ring holds its token between two rotations.
    pub token_hold: u64,
    /// The time after which a gathering process sends its join again; a random part of up to a half is added.
    pub join: u64,
    /// The time for which a gathering process waits for the others to agree before it gives them up.
    pub consensus: u64,
    /// The time between two searches of a ring for configured nodes that it lacks.
    pub merge: u64,
}

/// A family of time-outs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Timing {
    /// Dedicated cores on one switch.
    LanFast,
    /// Data centers.
    Default,
    /// Crowded or virtual hosts, wide areas.
    Relaxed,
}

const MILLIS: u64 = 1_000_000;

const fn at_least(least: u64, nanos: u64) -> u64 {
    if nanos < least { least } else { nanos }
}

impl Timers {
    /// The time-outs of `timing` for a ring of `nodes`.
    pub const fn derive(timing: Timing, nodes: usize) -> Self {
        let beyond_two = nodes.saturating_sub(2) as u64;
        let loss_millis = match timing {
            Timing::LanFast => 100 + 5 * beyond_two,
            Timing::Default => 300 + 10 * beyond_two,
            Timing::Relaxed => 1000 + 100 * beyond_two,
        };
        let token_loss = loss_millis * MILLIS;
        Self {
            token_loss,
            // The thesis's prototype: 5 ms. Many more tries than the four that must fit into a loss.
            token_retransmit: 5 * MILLIS,
            // An idle token is sent again after a fifth of the loss time; the hold must end well before.
            token_hold: token_loss / 10,
            join: at_least(10 * MILLIS, token_loss / 20),
            consensus: token_loss / 4 * 5,
            merge: 100 * MILLIS,
        }
    }

    /// The wait before an idle token is sent again: its receiver may be holding it.
    pub const fn idle_retransmit(&self) -> u64 {
        self.token_loss / 5
    }

    /// Time-outs that are this many times longer.
    #[must_use]
    pub const fn times(self, scale: u32) -> Self {
        let scale = scale as u64;
        Self {
            token_loss: self.token_loss * scale,
            token_retransmit: self.token_retransmit * scale,
            token_hold: self.token_hold * scale,
            join: self.join * scale,
            consensus: self.consensus * scale,
            merge: self.merge * scale,
        }
    }

    /// The same time-outs with this token-loss time, in nanoseconds, and a token hold to match, if it is longer.
    #[must_use]
    pub const fn with_token_loss(self, token_loss: u64) -> Self {
        if token_loss <= self.token_loss {
            return self;
        }
        Self {
            token_loss,
            token_hold: token_loss / 10,
            ..self
        }
    }
}
