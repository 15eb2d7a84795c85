//! A part of a value that Ring Paxos multicasts.
//!
//! Of the common header it uses `incarnation` (the proposer's), `seq` (the value's counter), `round` (the index of the
//! part), `rep` (the number of parts) and `ring_seq` (the value's size in bytes).

use alloc::vec::Vec;

use super::header::{HEADER_BYTES, Header, Kind};
use super::{DecodeError, split_header};
use crate::contract::{Incarnation, Process};

/// The identity of a part of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PartHead {
    /// The cluster that it belongs to.
    pub cluster: u32,
    /// The process that proposes the value.
    pub proposer: Process,
    /// The value's counter, from 1.
    pub counter: u64,
    /// The index of the part, from 0.
    pub index: u16,
    /// The number of parts; all but the last have one size.
    pub count: u16,
    /// The size of the value, in bytes.
    pub total: u32,
}

/// A part of a value. It is copied into its value at once, so that its bytes are only lent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part<'a> {
    /// The identity of the part.
    pub head: PartHead,
    /// The offset in the value at which it begins, in bytes.
    pub offset: usize,
    /// Its bytes.
    pub bytes: &'a [u8],
}

const CONTRADICTION: DecodeError = DecodeError::Part("a part does not fit into its value");

impl<'a> Part<'a> {
    /// Reads one datagram whose last `seal_bytes` bytes are for the owner of the sockets.
    ///
    /// # Errors
    /// Any bytes that are no part of a value.
    pub fn decode(bytes: &'a [u8], seal_bytes: usize) -> Result<Self, DecodeError> {
        let (header, bytes) = split_header(bytes, seal_bytes)?;
        if !matches!(header.kind, Kind::Part) || header.service != 0 {
            return Err(DecodeError::Kind(header.kind as u8));
        }
        if header.seq == 0 {
            return Err(DecodeError::ZeroSeq);
        }
        if header.incarnation > Incarnation::MAX {
            return Err(DecodeError::Incarnation);
        }
        let total = u32::try_from(header.ring_seq).map_err(|_| CONTRADICTION)?;
        let head = PartHead {
            cluster: header.cluster,
            proposer: Process {
                node: header.sender,
                incarnation: Incarnation(header.incarnation),
            },
            counter: header.seq,
            index: header.round,
            count: header.rep,
            total,
        };
        let offset = head.offset(bytes.len()).ok_or(CONTRADICTION)?;
        debug_assert!(
            offset + bytes.len() <= total as usize,
            "a part ends in its value"
        );
        Ok(Self {
            head,
            offset,
            bytes,
        })
    }

    /// The size of all parts but the last, in bytes; of an only part, its own.
    pub fn size(&self) -> usize {
        match self.head.index {
            0 => self.bytes.len(),
            index => self.offset / usize::from(index),
        }
    }
}

impl PartHead {
    /// The offset of a part of `len` bytes; `None` if there is no such part of this value.
    fn offset(&self, len: usize) -> Option<usize> {
        let (index, count) = (usize::from(self.index), usize::from(self.count));
        let total = usize::try_from(self.total).ok()?;
        if len == 0 || index >= count {
            return None;
        }
        let before = count - 1;
        if index < before {
            let is_fit = before * len < total && total <= count * len;
            return is_fit.then_some(index * len);
        }
        let offset = total.checked_sub(len)?;
        let is_fit = match before {
            0 => offset == 0,
            _ => offset % before == 0 && offset / before >= len,
        };
        is_fit.then_some(offset)
    }

    /// Appends the datagram with these bytes of the value to `out`, with `seal_bytes` at its end left 0.
    pub fn encode_into(&self, bytes: &[u8], out: &mut Vec<u8>, seal_bytes: usize) {
        let mut header = Header::without_ring(Kind::Part, self.cluster, self.proposer.node);
        header.incarnation = self.proposer.incarnation.0;
        header.seq = self.counter;
        header.round = self.index;
        header.rep = self.count;
        header.ring_seq = u64::from(self.total);
        header.write(out);
        out.extend_from_slice(bytes);
        out.resize(out.len() + seal_bytes, 0);
    }
}

/// The number of bytes of a value that a datagram of this size has room for.
pub const fn part_bytes(datagram_bytes: usize, seal_bytes: usize) -> usize {
    datagram_bytes - HEADER_BYTES - seal_bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::NodeId;

    fn head(index: u16, count: u16, total: u32) -> PartHead {
        PartHead {
            cluster: 7,
            proposer: Process {
                node: NodeId::new(3).unwrap(),
                incarnation: Incarnation(5),
            },
            counter: 9,
            index,
            count,
            total,
        }
    }

    fn encode(head: PartHead, len: usize) -> Vec<u8> {
        let mut out = Vec::new();
        head.encode_into(&[1; 200][..len], &mut out, 4);
        out
    }

    #[test]
    fn every_part_knows_its_place() {
        for (index, len, offset) in [(0, 100, 0), (1, 100, 100), (2, 30, 200)] {
            let datagram = encode(head(index, 3, 230), len);
            let part = Part::decode(&datagram, 4).unwrap();
            assert_eq!((part.offset, part.size()), (offset, 100));
            assert_eq!(part.head, head(index, 3, 230));
        }
        let datagram = encode(head(0, 1, 40), 40);
        let only = Part::decode(&datagram, 4).unwrap();
        assert_eq!((only.offset, only.size()), (0, 40));
    }

    #[test]
    fn what_does_not_fit_is_no_part() {
        for (index, count, total, len) in [
            (0, 0, 10, 10),
            (1, 1, 10, 10),
            (0, 1, 11, 10),
            (0, 1, 10, 0),
            (0, 2, 100, 100),
            (0, 2, 201, 100),
            (2, 3, 230, 31),
            (2, 3, 10, 30),
            (1, 2, 130, 100),
        ] {
            let datagram = encode(head(index, count, total), len);
            let read = Part::decode(&datagram, 4);
            assert_eq!(read, Err(CONTRADICTION), "{index} {count} {total} {len}");
        }
    }

    #[test]
    fn other_datagrams_are_none() {
        let mut out = Vec::new();
        head(0, 1, 5).encode_into(b"value", &mut out, 4);
        assert!(Part::decode(&out, 4).is_ok());
        for cut in 0..out.len() {
            assert!(Part::decode(&out[..cut], 4).is_err());
        }
        for (at, byte) in [(0, 1), (1, 0), (1, 12 | 16), (23, 0xff)] {
            let mut other = out.clone();
            other[at] = byte;
            assert!(Part::decode(&other, 4).is_err(), "{at}");
        }
        out[24..32].fill(0);
        assert_eq!(Part::decode(&out, 4), Err(DecodeError::ZeroSeq));
    }
}
