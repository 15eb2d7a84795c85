//! The data that an application with a state needs beside it to go on: its point, and the snapshot of each ring at that
//! point.

use alloc::vec::Vec;
use bytes::{Buf as _, Bytes};
use core::num::NonZeroU32;
use rota_paxos::uring::Snapshot;

use crate::order::{Constants, Instance, Point, Rank};

const VERSION: u8 = 1;
/// The same, with holds that serve nobody any more behind the rings.
const WITH_SPENT: u8 = 2;
/// The most rings of an application.
const MOST_RINGS: u16 = 1024;

/// The data of one ring.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResumeRing {
    /// The ring.
    pub of: Constants,
    /// The foundation of the ring: a ring of another foundation is another ring.
    pub founded: u64,
    /// The snapshot of everything before the point.
    pub base: Snapshot,
}

/// See the module's page.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Resume {
    /// Everything before it is in the state.
    pub point: Point,
    /// The rings that are delivered there, by rank: the partition's subscriptions. No change of them is pending.
    pub rings: Vec<ResumeRing>,
    /// By ring: the last hold that serves no subscription any more, where the partition has left a ring before, or has
    /// let a hold go.
    pub spent: Vec<(Rank, Instance)>,
}

impl Resume {
    /// Whether the snapshots are those of the point.
    pub fn is_sound(&self) -> bool {
        let ranks = self.rings.iter().map(|ring| ring.of.rank);
        let is_sorted = ranks.is_sorted_by(|one, other| one < other);
        let stands =
            |ring: &ResumeRing| ring.founded > 0 && self.point.next_of(&ring.of) == ring.base.next;
        let are_sorted = self.spent.is_sorted_by(|one, other| one.0 < other.0);
        is_sorted && are_sorted && !self.rings.is_empty() && self.rings.iter().all(stands)
    }

    /// As bytes, for a checkpoint.
    pub fn encode(&self) -> Vec<u8> {
        let Point { round, turn, used } = self.point;
        let has_spent = !self.spent.is_empty();
        let mut out = Vec::from([if has_spent { WITH_SPENT } else { VERSION }]);
        out.extend(round.to_le_bytes());
        out.extend(turn.0.to_le_bytes());
        out.extend(used.to_le_bytes());
        out.extend((self.rings.len() as u16).to_le_bytes());
        for ring in &self.rings {
            out.extend(ring.of.rank.0.to_le_bytes());
            out.extend(ring.of.per_round.get().to_le_bytes());
            out.extend(ring.of.origin.to_le_bytes());
            out.extend(ring.founded.to_le_bytes());
            let base = ring.base.encode();
            out.extend((base.len() as u32).to_le_bytes());
            out.extend(base);
        }
        if has_spent {
            out.extend((self.spent.len() as u16).to_le_bytes());
        }
        for (rank, instance) in &self.spent {
            out.extend(rank.0.to_le_bytes());
            out.extend(instance.to_le_bytes());
        }
        out
    }

    /// Reads the bytes of [`Self::encode`]; `None` for anything else, also if snapshots and point contradict each
    /// other.
    pub fn decode(mut bytes: Bytes) -> Option<Self> {
        let version = bytes.try_get_u8().ok()?;
        if ![VERSION, WITH_SPENT].contains(&version) {
            return None;
        }
        let point = Point {
            round: bytes.try_get_u64_le().ok()?,
            turn: Rank(bytes.try_get_u16_le().ok()?),
            used: bytes.try_get_u32_le().ok()?,
        };
        let count = count(&mut bytes)?;
        let rings: Option<Vec<ResumeRing>> = (0..count).map(|_| ring(&mut bytes)).collect();
        let spent = match version {
            WITH_SPENT => spent(&mut bytes)?,
            _ => Vec::new(),
        };
        let resume = Self {
            point,
            rings: rings?,
            spent,
        };
        (bytes.is_empty() && resume.is_sound()).then_some(resume)
    }
}

fn count(bytes: &mut Bytes) -> Option<u16> {
    let count = bytes.try_get_u16_le().ok()?;
    (count <= MOST_RINGS).then_some(count)
}

/// Holds that serve nobody any more: at least one, as there is another form for none.
fn spent(bytes: &mut Bytes) -> Option<Vec<(Rank, Instance)>> {
    let count = count(bytes).filter(|count| *count > 0)?;
    let one = |bytes: &mut Bytes| {
        let rank = Rank(bytes.try_get_u16_le().ok()?);
        Some((rank, bytes.try_get_u64_le().ok()?))
    };
    (0..count).map(|_| one(bytes)).collect()
}

fn ring(bytes: &mut Bytes) -> Option<ResumeRing> {
    let of = Constants {
        rank: Rank(bytes.try_get_u16_le().ok()?),
        per_round: NonZeroU32::new(bytes.try_get_u32_le().ok()?)?,
        origin: bytes.try_get_u64_le().ok()?,
    };
    let founded = bytes.try_get_u64_le().ok().filter(|founded| *founded > 0)?;
    let length = bytes.try_get_u32_le().ok()? as usize;
    let base = (length <= bytes.len()).then(|| bytes.split_to(length))?;
    let base = Snapshot::decode(base)?;
    Some(ResumeRing { of, founded, base })
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    fn resume() -> Resume {
        let of = |rank, per_round, origin| Constants {
            rank: Rank(rank),
            per_round: NonZeroU32::new(per_round).expect("not 0"),
            origin,
        };
        let rings = [of(1, 1, 0), of(4, 3, 7)];
        let point = Point {
            round: 40,
            turn: Rank(4),
            used: 2,
        };
        let ring = |of: Constants| {
            let next = point.next_of(&of);
            let base = Snapshot {
                next,
                ..Snapshot::default()
            };
            let founded = 5;
            ResumeRing { of, founded, base }
        };
        Resume {
            point,
            rings: rings.map(ring).to_vec(),
            spent: Vec::new(),
        }
    }

    #[test]
    fn it_is_read_as_it_was_written_and_nothing_else_is() {
        let spent = vec![(Rank(3), 70), (Rank(9), 1 << 40)];
        let with_spent = Resume { spent, ..resume() };
        for resume in [resume(), with_spent] {
            let whole = resume.encode();
            assert_eq!(Resume::decode(whole.clone().into()), Some(resume));
            for at in 0..whole.len() {
                assert_eq!(Resume::decode(whole[..at].to_vec().into()), None, "{at}");
            }
            let more = [&whole[..], &[0]].concat();
            assert_eq!(Resume::decode(more.into()), None);
        }
    }

    #[test]
    fn bases_are_those_of_the_point() {
        let with = |change: &dyn Fn(&mut Resume)| {
            let mut other = resume();
            change(&mut other);
            Resume::decode(other.encode().into()).is_some()
        };
        assert!(with(&|_| {}));
        assert!(!with(&|other| other.rings[0].base.next += 1));
        assert!(!with(&|other| other.point.used = 1));
        assert!(!with(&|other| other.rings.reverse()));
        assert!(!with(&|other| other.rings.clear()));
        assert!(!with(&|other| other.rings[1].founded = 0));
        assert!(!with(&|other| other.spent = [(Rank(2), 5); 2].to_vec()));
    }
}
