//! The logs of an engine of this family, and the part of their records that a driver has to know.
//!
//! The bytes of a vote begin with a [`VoteHead`]; the rest is the engine's. A driver that keeps votes by instance reads
//! the head, since a vote for a range may be written over in part.

use bytes::{Bytes, BytesMut};

use rota_core::contract::LogId;

/// Votes: a record's position is its first instance, and it takes the place of earlier votes for its instances.
/// Everything below the position of a trim is forgotten.
pub const VOTES_LOG: LogId = LogId(3);

/// Everything else: a record's position is its key, below [`STATE_KEYS`], and it takes the place of the key's earlier
/// record. This log is never trimmed.
pub const STATE_LOG: LogId = LogId(4);

/// All keys of [`STATE_LOG`] are below this number.
pub const STATE_KEYS: u64 = 8;

/// The keys of [`STATE_LOG`], and the record under each. Numbers are of eight bytes, little-endian.
pub mod state_key {
    /// A number: the promised round. The acceptor votes in no earlier one.
    pub const PROMISED: u64 = 0;
    /// The newest configuration.
    pub const CONFIG: u64 = 1;
    /// A number: the configuration that the register is about; then the promised ballot, and the accepted one with its
    /// configuration.
    pub const SLOT: u64 = 2;
    /// The snapshot of a place in the order. It begins with the place's number.
    pub const BASE: u64 = 3;
    /// A number: the name of the store, under which the acceptor votes.
    pub const STORE: u64 = 4;
    /// A number: the votes before this instance are for decided values.
    pub const DECIDED: u64 = 5;
    /// A number: everything before this instance is decided, and some acceptor has forgotten the values.
    pub const FLOOR: u64 = 6;
    /// A number: the newest configuration that was known to be complete.
    pub const COMPLETE: u64 = 7;
}

/// The first bytes of a vote, little-endian: the round, then the number of its instances.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VoteHead {
    /// The round in which it was cast.
    pub round: u64,
    /// The number of its instances; at least 1. A vote for more than one is for a skip of all of them.
    pub span: u64,
}

impl VoteHead {
    /// The bytes that it takes.
    pub const BYTES: usize = 16;

    /// Reads it. `None` if the bytes are too few, or the vote is for no instance.
    pub fn read(vote: &[u8]) -> Option<Self> {
        let (round, rest) = vote.split_first_chunk()?;
        let (span, _) = rest.split_first_chunk()?;
        let head = Self {
            round: u64::from_le_bytes(*round),
            span: u64::from_le_bytes(*span),
        };
        (head.span > 0).then_some(head)
    }

    /// As bytes.
    pub fn encode(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(&self.round.to_le_bytes());
        bytes[8..].copy_from_slice(&self.span.to_le_bytes());
        bytes
    }

    /// The bytes of a vote with another span: the rest of the vote when a part of its range was written over. `None` if
    /// there is no head.
    pub fn with_span(vote: Bytes, span: u64) -> Option<Bytes> {
        let head = Self::read(&vote)?;
        if head.span == span {
            return Some(vote);
        }
        let mut part = BytesMut::from(vote);
        part[..Self::BYTES].copy_from_slice(&Self { span, ..head }.encode());
        Some(part.freeze())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_as_it_was_written_and_its_span_can_be_cut() {
        let head = VoteHead {
            round: 1 << 40,
            span: 7,
        };
        let mut bytes = head.encode().to_vec();
        assert_eq!(VoteHead::read(&bytes), Some(head));
        for len in 0..bytes.len() {
            assert_eq!(VoteHead::read(&bytes[..len]), None);
        }
        bytes.extend(b"rest");
        let whole = Bytes::from(bytes);
        assert_eq!(VoteHead::with_span(whole.clone(), 7).as_ref(), Some(&whole));
        let part = VoteHead::with_span(whole, 3).unwrap();
        assert_eq!(VoteHead::read(&part), Some(VoteHead { span: 3, ..head }));
        assert_eq!(&part[VoteHead::BYTES..], b"rest");
    }

    #[test]
    fn a_vote_for_no_instance_is_none() {
        let none = VoteHead { round: 1, span: 0 }.encode();
        assert_eq!(VoteHead::read(&none), None);
        assert_eq!(VoteHead::with_span(Bytes::copy_from_slice(&none), 1), None);
    }
}
