//! The one order of all instances of all rings.

use alloc::vec::Vec;
use core::fmt;
use core::num::NonZeroU32;

use rota_core::bytes::Reader;

/// A place in the order of one ring: dense, from 1.
pub type Instance = u64;

/// A run of instances of each ring, in the order of all rings. From 0.
pub type Round = u64;

/// A ring's number, and its rank within a round. One for ever.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Rank(pub u16);

impl fmt::Display for Rank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The constants with which a ring is founded, for ever: two learners with different ones would order differently.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Constants {
    /// The ring.
    pub rank: Rank,
    /// Instances in each round (`M`). Messages do not count: their number in an instance is up to the process that
    /// packs them.
    pub per_round: NonZeroU32,
    /// The round of its first instance.
    pub origin: Round,
}

impl Constants {
    /// A ring with one instance in each round, from the first round on.
    pub const fn new(rank: Rank) -> Self {
        Self {
            rank,
            per_round: NonZeroU32::MIN,
            origin: 0,
        }
    }

    const fn many(&self) -> u64 {
        self.per_round.get() as u64
    }

    /// The round of an instance.
    pub const fn round_of(&self, instance: Instance) -> Round {
        self.origin + instance.saturating_sub(1) / self.many()
    }

    /// The first instance in a round, or behind it: of rounds before its origin a ring has none.
    pub const fn first_of(&self, round: Round) -> Instance {
        round
            .saturating_sub(self.origin)
            .saturating_mul(self.many())
            .saturating_add(1)
    }

    /// The place of an instance, before all of its messages.
    pub const fn place(&self, instance: Instance) -> Place {
        Place {
            round: self.round_of(instance),
            rank: self.rank,
            instance,
            index: 0,
        }
    }
}

/// The place of a message in the order of all rings. Compared field by field: rounds, then rings, then the ring's own
/// order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Place {
    /// The round of its instance.
    pub round: Round,
    /// Its ring.
    pub rank: Rank,
    /// Its instance; of a message that was cut, that of its last part.
    pub instance: Instance,
    /// The index of the message in its instance, from 0.
    pub index: u32,
}

impl Place {
    /// Writes it: 22 bytes.
    pub fn put(&self, out: &mut Vec<u8>) {
        out.extend(self.round.to_le_bytes());
        out.extend(self.rank.0.to_le_bytes());
        out.extend(self.instance.to_le_bytes());
        out.extend(self.index.to_le_bytes());
    }

    /// Reads the next place. `None` if the bytes are too few.
    pub fn take(bytes: &mut Reader<'_>) -> Option<Self> {
        Some(Self {
            round: bytes.u64()?,
            rank: Rank(bytes.u16()?),
            instance: bytes.u64()?,
            index: bytes.u32()?,
        })
    }

    /// Behind everything.
    pub(crate) const MAX: Self = Self {
        round: Round::MAX,
        rank: Rank(u16::MAX),
        instance: Instance::MAX,
        index: u32::MAX,
    };
}

/// A point: everything before it was delivered, and nothing behind. The points of one partition are comparable, since
/// all are cuts of one order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Point {
    /// The round of the instance that is next.
    pub round: Round,
    /// Its ring.
    pub turn: Rank,
    /// The number of that ring's instances in this round that are before the point: always fewer than there are in a
    /// round, so that one cut has one form.
    pub used: u32,
}

impl Point {
    /// The point before an instance.
    pub const fn before(of: &Constants, instance: Instance) -> Self {
        Self {
            round: of.round_of(instance),
            turn: of.rank,
            used: ((instance - 1) % of.many()) as u32,
        }
    }

    /// The first instance of a ring that is not before this point.
    pub fn next_of(&self, of: &Constants) -> Instance {
        let first = of.first_of(self.round);
        match of.rank.cmp(&self.turn) {
            core::cmp::Ordering::Less => of.first_of(self.round.saturating_add(1)),
            core::cmp::Ordering::Equal => first.saturating_add(u64::from(self.used)),
            core::cmp::Ordering::Greater => first,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring(rank: u16, per_round: u32, origin: Round) -> Constants {
        Constants {
            rank: Rank(rank),
            per_round: NonZeroU32::new(per_round).expect("not 0"),
            origin,
        }
    }

    #[test]
    fn rounds_are_absolute() {
        let ring = ring(3, 4, 100);
        assert_eq!(
            (ring.round_of(1), ring.round_of(4), ring.round_of(5)),
            (100, 100, 101)
        );
        assert_eq!(
            (ring.first_of(0), ring.first_of(100), ring.first_of(101)),
            (1, 1, 5)
        );
        for instance in 1..50 {
            let round = ring.round_of(instance);
            assert!((ring.first_of(round)..ring.first_of(round + 1)).contains(&instance));
        }
    }

    #[test]
    fn a_point_says_what_is_next_in_each_ring() {
        let rings = [ring(1, 1, 0), ring(2, 3, 2), ring(5, 2, 1)];
        for of in &rings {
            for instance in 1..40 {
                let point = Point::before(of, instance);
                assert_eq!(point.next_of(of), instance);
                let place = of.place(instance);
                for other in &rings {
                    let next = point.next_of(other);
                    assert!(
                        other.place(next) >= place || next == 0,
                        "{point:?} {other:?}"
                    );
                    assert!(
                        next == 1 || other.place(next - 1) < place,
                        "{point:?} {other:?}"
                    );
                }
            }
        }
    }
}
