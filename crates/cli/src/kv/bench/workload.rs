//! The operations of a benchmark: YCSB's core workloads, and three that are simpler.

use std::str::FromStr;

use rota_core::random::Random;

/// One operation of a client.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Work {
    /// Reads a key.
    Read,
    /// Writes one that is there.
    Update,
    /// Writes one that is not.
    Insert,
    /// Reads up to a hundred, in order.
    Scan,
    /// Reads one, and writes it then.
    Modify,
    /// Writes three together.
    Batch,
}

impl Work {
    /// For people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Update => "update",
            Self::Insert => "insert",
            Self::Scan => "scan",
            Self::Modify => "read, then write",
            Self::Batch => "three written",
        }
    }
}

/// The choice of keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Choice {
    /// Some far more often than others (Zipf's law with 0.99), spread over all.
    Zipf,
    /// The last that were written more often.
    Latest,
    /// All alike.
    Uniform,
}

/// A mixture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Workload {
    name: &'static str,
    /// In hundredths, together 100.
    parts: &'static [(Work, u64)],
    /// The choice of keys.
    pub choice: Choice,
}

use Work::{Batch, Insert, Modify, Read, Scan, Update};

const ALL: [Workload; 9] = [
    Workload::new("a", &[(Read, 50), (Update, 50)], Choice::Zipf),
    Workload::new("b", &[(Read, 95), (Update, 5)], Choice::Zipf),
    Workload::new("c", &[(Read, 100)], Choice::Zipf),
    Workload::new("d", &[(Read, 95), (Insert, 5)], Choice::Latest),
    Workload::new("e", &[(Scan, 95), (Insert, 5)], Choice::Zipf),
    Workload::new("f", &[(Read, 50), (Modify, 50)], Choice::Zipf),
    Workload::new("get", &[(Read, 100)], Choice::Uniform),
    Workload::new("put", &[(Update, 100)], Choice::Uniform),
    Workload::new("batch", &[(Batch, 100)], Choice::Uniform),
];

impl Workload {
    const fn new(name: &'static str, parts: &'static [(Work, u64)], choice: Choice) -> Self {
        Self {
            name,
            parts,
            choice,
        }
    }

    /// As it is asked for.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Draws the next operation.
    pub fn draw(&self, random: &mut Random) -> Work {
        let mut at = random.below(100);
        for (work, part) in self.parts {
            match at < *part {
                true => return *work,
                false => at -= part,
            }
        }
        Work::Read
    }
}

impl FromStr for Workload {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = ALL.iter().find(|workload| workload.name == text);
        let names = || ALL.map(|workload| workload.name).join(", ");
        found.copied().ok_or_else(|| format!("one of {}", names()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_a_hundred_and_are_drawn_as_often() {
        let mut random = Random::new(1);
        for workload in ALL {
            let parts: u64 = workload.parts.iter().map(|(_, part)| part).sum();
            assert_eq!(parts, 100, "{}", workload.name);
            let drawn: Vec<Work> = (0..10_000).map(|_| workload.draw(&mut random)).collect();
            for (work, part) in workload.parts {
                let count = drawn.iter().filter(|drawn| *drawn == work).count() as u64;
                assert!(
                    count.abs_diff(part * 100) < 200,
                    "{} {work:?} {count}",
                    workload.name
                );
            }
        }
        assert_eq!("a".parse::<Workload>().map(|of| of.name), Ok("a"));
        assert!("g".parse::<Workload>().is_err());
    }
}
