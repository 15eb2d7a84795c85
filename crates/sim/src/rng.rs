//! The only source of chance: splitmix64, seeded by the plan.

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Rng(u64);

/// One in a million.
pub type Ppm = u32;

impl Rng {
    /// The stream of a seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A stream of its own for one purpose, so that what one part of the world draws does not move
    /// what another part draws.
    pub const fn split(seed: u64, purpose: u64) -> Self {
        let mut rng = Self(seed ^ purpose.wrapping_mul(0xd134_2543_de82_ef95));
        Self(rng.next())
    }

    /// 64 random bits.
    #[allow(clippy::should_implement_trait)]
    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Below `end`; 0 if that is 0.
    pub const fn below(&mut self, end: u64) -> u64 {
        ((self.next() as u128 * end as u128) >> 64) as u64
    }

    /// From `low` up to and with `high`.
    pub const fn range(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low).saturating_add(1))
    }

    /// From `low` to `high`, small and large numbers alike: the number of bits is what is drawn.
    pub const fn spread(&mut self, low: u64, high: u64) -> u64 {
        let (low, high) = (if low == 0 { 1 } else { low }, high);
        let bits = self.range(low.ilog2() as u64, high.ilog2() as u64);
        let (from, to) = (1_u64 << bits, (1_u64 << bits) * 2 - 1);
        let (from, to) = (
            if from < low { low } else { from },
            if to > high { high } else { to },
        );
        self.range(from, to)
    }

    /// True so many times in a million.
    pub const fn ppm(&mut self, chance: Ppm) -> bool {
        chance > 0 && self.below(1_000_000) < chance as u64
    }

    /// True so many times in a hundred.
    pub const fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }

    /// One of these.
    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }

    /// Somewhere in a list of so many.
    pub const fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_stays_within_its_bounds_and_reaches_both_ends() {
        let mut rng = Rng::new(1);
        let drawn: Vec<u64> = (0..1000).map(|_| rng.spread(3, 9)).collect();
        assert_eq!(
            (drawn.iter().min(), drawn.iter().max()),
            (Some(&3), Some(&9))
        );
    }

    #[test]
    fn two_purposes_of_one_seed_have_different_streams() {
        assert_ne!(Rng::split(7, 1).next(), Rng::split(7, 2).next());
    }
}
