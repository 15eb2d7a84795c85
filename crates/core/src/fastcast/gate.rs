//! Where bandwidth shares hold packets back (§3.5): all that leaves passes here.

use crate::contract::Time;

/// How much may leave, and when more may.
#[derive(Clone, Debug, Default)]
pub(super) struct Gate {}

impl Gate {
    /// How many bytes of packets may leave now.
    pub const fn allowance(&self, _now: Time) -> usize {
        usize::MAX
    }

    /// Packets of so many bytes leave now.
    pub const fn spend(&mut self, _now: Time, _bytes: usize) {}

    /// When more than now may leave, if packets wait for that.
    pub const fn next_time(&self) -> Option<Time> {
        None
    }
}
