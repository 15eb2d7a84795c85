//! The owner of a log, and the first page of a segment.

use rota_core::contract::{LogId, NodeId};
use std::fmt;

/// The first page of a segment: its header, alone, so that no record shares a page with it.
pub(super) const PAGE: u64 = 4096;

/// The bytes of the page that are used.
pub(super) const HEADER_BYTES: usize = 64;

const MAGIC: &[u8; 8] = b"ROTAPLOG";
const VERSION: u16 = 1;
const SUM_AT: usize = HEADER_BYTES - 4;

/// The owner of a log. No other one uses it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Identity {
    /// The cluster's number.
    pub cluster: u32,
    /// The acceptor.
    pub node: NodeId,
    /// The ring, as each has a log of its own.
    pub log: LogId,
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cluster, node, log } = self;
        write!(f, "cluster {cluster}, node {node}, ring {}", log.0)
    }
}

/// A place in the log.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Position {
    /// The segment's number; the first is 1.
    pub segment: u64,
    /// The offset in its file.
    pub offset: u64,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.segment, self.offset)
    }
}

/// Fields of a page, one after another, little-endian.
pub(super) struct Fields<'a>(pub &'a [u8]);

impl Fields<'_> {
    /// The next `N` bytes; zeros where there are none.
    pub fn take<const N: usize>(&mut self) -> [u8; N] {
        let (taken, rest) = self.0.split_first_chunk().unwrap_or((&[0; N], &[]));
        self.0 = rest;
        *taken
    }

    pub fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.take())
    }

    pub fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }

    pub fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }

    /// The owner of the log; `None` if there is no such node.
    pub fn identity(&mut self) -> Option<Identity> {
        let (cluster, node, log) = (self.u32(), self.u16(), self.u16());
        Some(Identity {
            cluster,
            node: NodeId::new(node)?,
            log: LogId(log),
        })
    }
}

pub(super) fn put_identity(out: &mut Vec<u8>, identity: Identity) {
    out.extend(identity.cluster.to_le_bytes());
    out.extend(identity.node.get().to_le_bytes());
    out.extend(identity.log.0.to_le_bytes());
}

/// Why a page was not understood.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum BadPage {
    /// The page is not as it was written.
    Damaged,
    /// A later version wrote it.
    Version(u16),
}

/// Appends the sum of the bytes in `out`.
pub(super) fn put_sum(out: &mut Vec<u8>) {
    let sum = crc_fast::crc32_iscsi(out);
    out.extend(sum.to_le_bytes());
}

/// The fields behind magic and version, if magic, sum and version are good.
pub(super) fn checked<'a>(
    bytes: &'a [u8],
    magic: &[u8; 8],
    version: u16,
    sum_at: usize,
) -> Result<Fields<'a>, BadPage> {
    let (summed, sum) = bytes.split_at_checked(sum_at).ok_or(BadPage::Damaged)?;
    let sum: &[u8; 4] = sum.first_chunk().ok_or(BadPage::Damaged)?;
    if &summed[..8] != magic || crc_fast::crc32_iscsi(summed).to_le_bytes() != *sum {
        return Err(BadPage::Damaged);
    }
    let mut fields = Fields(&summed[8..]);
    match fields.u16() {
        found if found == version => Ok(fields),
        found => Err(BadPage::Version(found)),
    }
}

/// The contents of the first page of a segment.
///
/// | bytes | field, little-endian |
/// |---|---|
/// | 0..8 | `ROTAPLOG` |
/// | 8..10 | version, 1 |
/// | 10..12 | 0 |
/// | 12..20 | cluster, node, ring |
/// | 20..28 | number of the segment |
/// | 28..36 | the life of the log that made it |
/// | 36..44 | bytes of the file |
/// | 44..52 | the end of the records in the segment before |
/// | 52..60 | the end of the records that were written together with this page |
/// | 60..64 | CRC32C of all before |
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SegmentHeader {
    pub identity: Identity,
    pub number: u64,
    pub life: u64,
    pub size: u64,
    /// 0 where there is none.
    pub previous_end: u64,
    pub preamble_end: u64,
}

impl SegmentHeader {
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEADER_BYTES);
        out.extend(MAGIC);
        out.extend(VERSION.to_le_bytes());
        out.extend([0; 2]);
        put_identity(&mut out, self.identity);
        for field in [
            self.number,
            self.life,
            self.size,
            self.previous_end,
            self.preamble_end,
        ] {
            out.extend(field.to_le_bytes());
        }
        put_sum(&mut out);
        out
    }

    /// Reads one. Any bytes will do.
    pub fn decode(bytes: &[u8]) -> Result<Self, BadPage> {
        let mut fields = checked(bytes, MAGIC, VERSION, SUM_AT)?;
        fields.u16();
        let identity = fields.identity().ok_or(BadPage::Damaged)?;
        Ok(Self {
            identity,
            number: fields.u64(),
            life: fields.u64(),
            size: fields.u64(),
            previous_end: fields.u64(),
            preamble_end: fields.u64(),
        })
    }

    /// The beginning of the checksums of its records: with it, no earlier record of a recycled file is good. Two
    /// segments of one number, made in two lives, differ, too.
    pub fn key(&self) -> u32 {
        let mut bytes = Vec::with_capacity(24);
        put_identity(&mut bytes, self.identity);
        bytes.extend(self.number.to_le_bytes());
        bytes.extend(self.life.to_le_bytes());
        crc_fast::crc32_iscsi(&bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_as_it_was_written_and_any_flipped_bit_is_found() {
        let header = SegmentHeader {
            identity: Identity {
                cluster: 9,
                node: NodeId::new(7).unwrap(),
                log: LogId(3),
            },
            number: 1 << 40,
            life: 5,
            size: 64 << 20,
            previous_end: 4096,
            preamble_end: 5000,
        };
        let bytes = header.encode();
        assert_eq!(bytes.len(), HEADER_BYTES);
        assert_eq!(SegmentHeader::decode(&bytes), Ok(header));
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(SegmentHeader::decode(&damaged), Err(BadPage::Damaged));
        }
        for len in 0..bytes.len() {
            assert_eq!(SegmentHeader::decode(&bytes[..len]), Err(BadPage::Damaged));
        }
    }
}
