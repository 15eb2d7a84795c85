//! The keys, and the draw of one.

use rota_core::random::Random;

use super::workload::Choice;

/// The most keys.
pub const MOST_KEYS: u64 = 100_000_000;
/// The exponent of Zipf's law, as YCSB has it.
const THETA: f64 = 0.99;

/// All keys: each has a number, and those that are inserted the next ones.
#[derive(Clone, Debug)]
pub struct Keys {
    /// The number of keys; grows as keys are inserted.
    count: u64,
    /// The number of keys at first, which Zipf's law is over.
    first: u64,
    zeta: f64,
    zeta_of_two: f64,
}

fn zeta(count: u64) -> f64 {
    (1..=count).map(|at| (at as f64).powf(-THETA)).sum()
}

/// FNV-1a of a number, with which YCSB spreads keys.
fn spread(number: u64) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    number
        .to_le_bytes()
        .into_iter()
        .fold(0xcbf2_9ce4_8422_2325, step)
}

impl Keys {
    /// Makes this number of keys.
    pub fn new(count: u64) -> Self {
        Self {
            count,
            first: count,
            zeta: zeta(count),
            zeta_of_two: zeta(2.min(count)),
        }
    }

    /// The key with a number.
    pub fn name(number: u64) -> String {
        format!("user{:020}", spread(number))
    }

    /// One that was not there.
    pub const fn insert(&mut self) -> u64 {
        self.count += 1;
        self.count - 1
    }

    /// The number of keys at first.
    pub const fn first(&self) -> u64 {
        self.first
    }

    /// One that is there.
    pub fn draw(&self, choice: Choice, random: &mut Random) -> u64 {
        match choice {
            Choice::Uniform => random.below(self.count),
            Choice::Zipf => spread(self.rank(random)) % self.first,
            Choice::Latest => self.count - 1 - self.rank(random),
        }
    }

    /// By Zipf's law: 0 most often (Gray et al., "Quickly generating billion-record synthetic databases", as in YCSB).
    fn rank(&self, random: &mut Random) -> u64 {
        const PARTS: u64 = 1 << 52;
        let count = self.first as f64;
        let drawn = random.below(PARTS) as f64 / PARTS as f64;
        let at = drawn * self.zeta;
        if at < 1.0 {
            return 0;
        }
        if at < self.zeta_of_two {
            return 1;
        }
        let alpha = 1.0 / (1.0 - THETA);
        let eta = (1.0 - (2.0 / count).powf(1.0 - THETA)) / (1.0 - self.zeta_of_two / self.zeta);
        let rank = count * (eta * drawn - eta + 1.0).powf(alpha);
        (rank as u64).min(self.first - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_a_thousand_is_drawn_as_often_as_zipfs_law_says() {
        let (keys, mut random) = (Keys::new(1_000), Random::new(1));
        let mut counts = vec![0_u64; 1_000];
        for _ in 0..100_000 {
            counts[keys.rank(&mut random) as usize] += 1;
        }
        for rank in [0, 1, 9, 99] {
            let wanted = 100_000.0 * (rank as f64 + 1.0).powf(-THETA) / keys.zeta;
            let is = counts[rank] as f64;
            assert!(
                (is - wanted).abs() < wanted * 0.25 + 30.0,
                "{rank}: {is}, not {wanted}"
            );
        }
    }

    #[test]
    fn what_is_drawn_is_there() {
        for count in [1, 2, 3, 100] {
            let (mut keys, mut random) = (Keys::new(count), Random::new(count));
            for choice in [Choice::Zipf, Choice::Latest, Choice::Uniform] {
                assert!((0..1_000).all(|_| keys.draw(choice, &mut random) < keys.count));
                assert_eq!(keys.insert(), keys.count - 1);
            }
        }
    }
}
