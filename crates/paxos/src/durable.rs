//! Where an engine of this family keeps what has to be durable, and what a driver has to know of it.
//!
//! A vote's bytes begin with a [`VoteHead`]; what follows is the engine's. A driver that keeps votes by instance reads
//! it, since a vote for a range may be written over in part.

use bytes::{Bytes, BytesMut};

use rota_core::contract::LogId;

/// Votes: a record's position is its first instance, and it takes the place of whatever was kept of its instances.
/// Everything below the position of a trim is forgotten.
pub const VOTES_LOG: LogId = LogId(3);

/// Everything else: a record's position is its key, below [`STATE_KEYS`], and it takes the place of what the key had.
/// Never trimmed.
pub const STATE_LOG: LogId = LogId(4);

/// Keys of [`STATE_LOG`] are below it.
pub const STATE_KEYS: u64 = 8;

/// The keys of [`STATE_LOG`], and what is kept under each. Numbers are of eight bytes, little-endian.
pub mod state_key {
    /// A number: no vote in an earlier round.
    pub const PROMISED: u64 = 0;
    /// The newest configuration.
    pub const CONFIG: u64 = 1;
    /// A number: which configuration the register is about; then what was promised and accepted there.
    pub const SLOT: u64 = 2;
    /// What follows from everything before a place in the order. It begins with the place's number.
    pub const BASE: u64 = 3;
    /// A number: the name of the store, under which the acceptor votes.
    pub const STORE: u64 = 4;
    /// A number: votes before this instance are what was decided.
    pub const DECIDED: u64 = 5;
    /// A number: everything before this instance is decided, and somebody has forgotten as what.
    pub const FLOOR: u64 = 6;
    /// A number: the newest configuration that was known to be complete.
    pub const COMPLETE: u64 = 7;
}

/// What a vote's bytes begin with, little-endian: the round, then how many instances the vote is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VoteHead {
    /// In which round it was cast.
    pub round: u64,
    /// For how many instances; at least 1. More than one is a vote for nothing in all of them.
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

    /// A vote's bytes with another span: what is left of it when part of its range was written over. `None` where
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
