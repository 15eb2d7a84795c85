//! Random numbers: the same numbers from the same seed.

use crate::contract::StartState;

/// Splitmix64.
#[derive(Clone, Copy, Debug, Default)]
pub struct Random(u64);

impl Random {
    /// The numbers of this seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Other numbers for each life of each process, though all processes are given the same seed.
    pub fn of(start: &StartState) -> Self {
        let me = start.me;
        Self(start.seed ^ me.incarnation.0 ^ u64::from(me.node.get()) << 48)
    }

    /// A number below `end`, which must not be 0.
    pub const fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % end
    }
}
