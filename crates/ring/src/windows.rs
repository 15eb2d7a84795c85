//! The windows of a ring: the bounds on the packets that may be sent.

use super::{Protocol, RingConfigError};
use crate::wire::Settings;

/// The windows of one member, in packets. The smallest of all members are in force on a ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Windows {
    /// New packets a member may send in one visit.
    pub personal: u32,
    /// New packets of one visit that may leave after the token, at most. 0 in the original protocol.
    pub accelerated: u32,
    /// Packets all members together may send in one rotation, retransmissions included.
    pub global: u32,
    /// The distance that `seq` may run ahead of the safe line. It bounds the packets that one slow member can make the
    /// others keep (Spread: 1600).
    pub outstanding: u32,
}

impl Default for Windows {
    /// Measured: see `docs/notebook/accelerated-ring.md`.
    fn default() -> Self {
        Self {
            personal: 40,
            accelerated: 40,
            global: 320,
            outstanding: 1600,
        }
    }
}

impl Windows {
    /// Checks that a ring can run with these windows.
    pub(super) fn check(&self, protocol: Protocol) -> Result<(), RingConfigError> {
        let wrong = |what| Err(RingConfigError::Window(what));
        if self.personal == 0 {
            return wrong("personal_window must be at least 1");
        }
        if self.accelerated > self.personal {
            return wrong("accelerated_window must not be larger than personal_window");
        }
        if matches!(protocol, Protocol::Original) && self.accelerated != 0 {
            return wrong("totem-ring sends nothing after the token: accelerated_window must be 0");
        }
        if self.global == 0 {
            return wrong("global_window must be at least 1");
        }
        if self.outstanding < self.personal {
            return wrong("outstanding_window must be at least personal_window");
        }
        if self.outstanding > Settings::MOST_OUTSTANDING {
            return wrong("outstanding_window must be at most 1048576");
        }
        Ok(())
    }

    /// The windows of this member on a ring whose members have told the settings `told`: no member is sent more than it
    /// can keep, and every member may send.
    pub(super) fn agreed(self, told: &[Settings]) -> Self {
        let least = |own: u32, of: fn(&Settings) -> u32| told.iter().map(of).fold(own, u32::min);
        let outstanding = least(self.outstanding, |settings| settings.outstanding_window);
        let personal = self.personal.min(outstanding);
        Self {
            personal,
            accelerated: self.accelerated.min(personal),
            global: least(self.global, |settings| settings.global_window),
            outstanding,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(personal_window: u32, global_window: u32, outstanding_window: u32) -> Settings {
        Settings {
            personal_window,
            global_window,
            outstanding_window,
            token_loss_us: 1,
        }
    }

    #[test]
    fn the_smallest_windows_are_in_force_and_the_own_ones_fit_them() {
        let own = Windows::default();
        assert_eq!(own.agreed(&[told(1, 2000, 2000)]), own);
        let agreed = own.agreed(&[told(5, 2000, 30), told(5, 100, 2000)]);
        let fitting = Windows {
            personal: 30,
            accelerated: 30,
            global: 100,
            outstanding: 30,
        };
        assert_eq!(agreed, fitting);
        assert_eq!(agreed.check(Protocol::Accelerated), Ok(()));
    }

    #[test]
    fn windows_that_no_ring_can_run_with_are_refused() {
        let with = |change: fn(&mut Windows)| {
            let mut windows = Windows::default();
            change(&mut windows);
            windows.check(Protocol::Accelerated)
        };
        assert_eq!(with(|_| ()), Ok(()));
        assert!(with(|of| of.personal = 0).is_err());
        assert!(with(|of| of.accelerated = of.personal + 1).is_err());
        assert!(with(|of| of.global = 0).is_err());
        assert!(with(|of| of.outstanding = of.personal - 1).is_err());
        assert!(with(|of| of.outstanding = Settings::MOST_OUTSTANDING + 1).is_err());
        assert!(Windows::default().check(Protocol::Original).is_err());
    }
}
