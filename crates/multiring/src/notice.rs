//! Notices: commands about the subscriptions of a partition, which rings order for its learners.

use alloc::vec::Vec;
use bytes::{Buf as _, Bytes};
use core::num::NonZeroU32;
use rota_paxos::uring::accounts::Partition;

use crate::order::{Constants, Instance, Rank};

const HOLD: u8 = 1;
const SUBSCRIBE: u8 = 2;
const LEAVE: u8 = 3;
const CANCEL: u8 = 4;

/// A command about the subscriptions of a partition.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Notice {
    /// The partition. Learners of others do nothing.
    pub partition: Partition,
    /// The command.
    pub command: Command,
}

/// The kinds of commands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Command {
    /// Ordered in a ring that the partition is to subscribe to: the replicas keep what they hear of it from here on. The
    /// hold that opens an account of the partition is told as this one.
    Hold,
    /// Ordered in a ring that the partition has: it subscribes to this ring, where a hold was ordered in this instance.
    Subscribe(Constants, Instance),
    /// Ordered in a ring that the partition has: it leaves this ring. The constants of that are those that each replica
    /// delivers the ring by.
    Leave(Rank),
    /// Ordered in a ring that the partition has: the hold that was ordered in this instance of a ring, and earlier ones,
    /// serve nobody any more.
    Cancel(Rank, Instance),
}

impl Notice {
    /// As bytes, for a ring: 27 at most.
    pub fn encode(&self) -> Bytes {
        let mut out = Vec::new();
        let mut head = |kind: u8| {
            out.push(kind);
            out.extend(self.partition.to_le_bytes());
        };
        match self.command {
            Command::Hold => head(HOLD),
            Command::Subscribe(of, hold) => {
                head(SUBSCRIBE);
                put_constants(&mut out, &of);
                out.extend(hold.to_le_bytes());
            }
            Command::Leave(rank) => {
                head(LEAVE);
                out.extend(rank.0.to_le_bytes());
            }
            Command::Cancel(rank, hold) => {
                head(CANCEL);
                out.extend(rank.0.to_le_bytes());
                out.extend(hold.to_le_bytes());
            }
        }
        out.into()
    }

    /// Reads the bytes of [`Self::encode`]; `None` for anything else.
    pub fn decode(mut bytes: Bytes) -> Option<Self> {
        let kind = bytes.try_get_u8().ok()?;
        let partition = bytes.try_get_u32_le().ok()?;
        let command = match kind {
            HOLD => Command::Hold,
            SUBSCRIBE => Command::Subscribe(constants(&mut bytes)?, instance(&mut bytes)?),
            LEAVE => Command::Leave(Rank(bytes.try_get_u16_le().ok()?)),
            CANCEL => {
                let rank = Rank(bytes.try_get_u16_le().ok()?);
                Command::Cancel(rank, instance(&mut bytes)?)
            }
            _ => return None,
        };
        bytes.is_empty().then_some(Self { partition, command })
    }
}

fn put_constants(out: &mut Vec<u8>, of: &Constants) {
    out.extend(of.rank.0.to_le_bytes());
    out.extend(of.per_round.get().to_le_bytes());
    out.extend(of.origin.to_le_bytes());
}

fn constants(bytes: &mut Bytes) -> Option<Constants> {
    let rank = Rank(bytes.try_get_u16_le().ok()?);
    let per_round = NonZeroU32::new(bytes.try_get_u32_le().ok()?)?;
    let origin = bytes.try_get_u64_le().ok()?;
    let is_sound = origin <= MOST;
    is_sound.then_some(Constants {
        rank,
        per_round,
        origin,
    })
}

/// Positions have 48 bits for an instance.
const MOST: u64 = 1 << 48;

fn instance(bytes: &mut Bytes) -> Option<Instance> {
    let instance = bytes.try_get_u64_le().ok()?;
    (1..=MOST).contains(&instance).then_some(instance)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_read_as_it_was_written_and_nothing_else_is() {
        let of = Constants {
            rank: Rank(7),
            per_round: NonZeroU32::new(3).expect("not 0"),
            origin: 12,
        };
        let commands = [
            Command::Hold,
            Command::Subscribe(of, 1 << 40),
            Command::Leave(Rank(7)),
            Command::Cancel(Rank(7), 9),
        ];
        for command in commands {
            let partition = 0x0102_0304;
            let notice = Notice { partition, command };
            let bytes = notice.encode();
            assert_eq!(Notice::decode(bytes.clone()), Some(notice));
            for end in 0..bytes.len() {
                assert_eq!(Notice::decode(bytes.slice(..end)), None, "{command:?}");
            }
            let more = [&bytes[..], &[0]].concat();
            assert_eq!(Notice::decode(more.into()), None, "{command:?}");
        }
    }

    /// So a merge that is told of the hold of an account keeps what comes of the ring from there on.
    #[test]
    fn a_hold_of_an_account_is_told_as_a_hold() {
        let partition = 0x0102_0304;
        let node = rota_core::contract::NodeId::new(1).expect("not 0");
        let hold = rota_paxos::uring::accounts::Command::Hold(partition, [node].into(), 15_000);
        let command = Command::Hold;
        let told = hold.told().map(Notice::decode);
        assert_eq!(told, Some(Some(Notice { partition, command })));
    }

    #[test]
    fn numbers_that_no_ring_has_are_refused() {
        let of = |origin| {
            let ring = Constants {
                origin,
                ..Constants::new(Rank(1))
            };
            Command::Subscribe(ring, 1)
        };
        let wrong = [
            of(u64::MAX),
            Command::Cancel(Rank(1), 0),
            Command::Subscribe(Constants::new(Rank(1)), u64::MAX),
        ];
        for command in wrong {
            let partition = 1;
            let notice = Notice { partition, command };
            assert_eq!(Notice::decode(notice.encode()), None, "{command:?}");
        }
    }
}
