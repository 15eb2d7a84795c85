//! A set of small numbers.

/// A set of numbers below a fixed size.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Bits(Vec<u64>);

impl Bits {
    pub fn new(size: usize) -> Self {
        Self(vec![0; size.div_ceil(64)])
    }

    pub fn contains(&self, number: u32) -> bool {
        let word = self.0.get(number as usize / 64).copied().unwrap_or(0);
        word >> (number % 64) & 1 == 1
    }

    pub fn insert(&mut self, number: u32) {
        self.0[number as usize / 64] |= 1 << (number % 64);
    }

    /// Adds all of `other`, which has the same size.
    pub fn union(&mut self, other: &Self) {
        for (word, more) in self.0.iter_mut().zip(&other.0) {
            *word |= more;
        }
    }

    /// The smallest number of this set that `other` lacks.
    pub fn first_not_in(&self, other: &Self) -> Option<u32> {
        let others = other.0.iter().chain(std::iter::repeat(&0));
        let words = self.0.iter().zip(others).enumerate();
        words
            .map(|(place, (word, other))| (place, word & !other))
            .find(|(_, rest)| *rest != 0)
            .map(|(place, rest)| place as u32 * 64 + rest.trailing_zeros())
    }

    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }
}
