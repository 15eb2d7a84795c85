//! A record as bytes.
//!
//! | bytes | field, little-endian |
//! |---|---|
//! | 0..4 | CRC32C of the segment's key, the record's offset in the segment, and bytes 4..32 |
//! | 4..8 | CRC32C of the payload with its padding |
//! | 8..12 | length of the payload, n |
//! | 12 | kind |
//! | 13 | flags: 1 if all before this record was durable before it was written |
//! | 14..16 | 0 |
//! | 16..24 | first instance |
//! | 24..32 | last instance |
//! | 32..32 + n | payload, then 0 until the length is a multiple of 8 |
//!
//! The header has a checksum of its own, so that a length is known to be good before anybody acts on it.

use crc_fast::{CrcAlgorithm, Digest};
use rota_core::mutants::{self, Mutant};
use std::fmt;

/// The bytes of a record beside its payload.
pub(super) const HEADER_BYTES: usize = 32;

/// Records begin at multiples of it.
pub(super) const ALIGN: u64 = 8;

/// The longest payload.
pub const PAYLOAD_LIMIT: usize = 16 << 20;

const SYNCED_BEFORE: u8 = 1;

/// The subject of a record. The log knows no more of it: its payload is the caller's.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Kind {
    /// A vote in one instance. A later one takes its place.
    Vote,
    /// One vote in all instances of a range, for nothing.
    Skip,
    /// A promise for all instances from the first on (the last is not looked at). It takes the place of
    /// all before it that begin there or later.
    Promise,
    /// The newest configuration; takes the place of the one before.
    Configuration,
    /// The state under a key, the first instance (the last is not looked at); takes the place of the one before.
    State,
    /// A hint at what is decided; takes the place of the one before.
    Decided,
    /// Written by the log itself: instances before the first are not kept. The last is the oldest segment
    /// that is needed.
    Trim,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Vote,
        Self::Skip,
        Self::Promise,
        Self::Configuration,
        Self::Decided,
        Self::Trim,
        Self::State,
    ];

    const fn byte(self) -> u8 {
        match self {
            Self::Vote => 1,
            Self::Skip => 2,
            Self::Promise => 3,
            Self::Configuration => 4,
            Self::Decided => 5,
            Self::Trim => 6,
            Self::State => 7,
        }
    }

    fn of(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.byte() == byte)
    }

    /// Whether the record is about instances of its own, and found by them.
    pub const fn is_of_instances(self) -> bool {
        matches!(self, Self::Vote | Self::Skip)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Vote => "vote",
            Self::Skip => "skip",
            Self::Promise => "promise",
            Self::Configuration => "configuration",
            Self::Decided => "decided",
            Self::Trim => "trim",
            Self::State => "state",
        })
    }
}

/// A record to be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecordRef<'a> {
    /// The subject of the record.
    pub kind: Kind,
    /// The first instance it is about; of [`Kind::State`] the key.
    pub first: u64,
    /// The last one.
    pub last: u64,
    /// The beginning of the payload, where that is elsewhere.
    pub head: &'a [u8],
    /// The rest of the payload.
    pub bytes: &'a [u8],
}

/// A record that was read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record {
    /// The subject of the record.
    pub kind: Kind,
    /// The first instance it is about. Of a skip, the first of those in which nothing newer was written.
    pub first: u64,
    /// The last one, likewise.
    pub last: u64,
    /// The payload.
    pub bytes: Vec<u8>,
}

impl Record {
    /// The same, borrowed.
    pub fn borrowed(&self) -> RecordRef<'_> {
        RecordRef {
            kind: self.kind,
            first: self.first,
            last: self.last,
            head: &[],
            bytes: &self.bytes,
        }
    }
}

/// A payload's length with its padding.
const fn padded(len: usize) -> usize {
    len.next_multiple_of(ALIGN as usize)
}

impl RecordRef<'_> {
    /// The bytes of its payload.
    pub(super) const fn len(&self) -> usize {
        self.head.len() + self.bytes.len()
    }

    /// Its payload.
    pub(super) fn payload(&self) -> Vec<u8> {
        [self.head, self.bytes].concat()
    }

    /// The bytes that the record takes.
    pub(super) const fn encoded_bytes(&self) -> usize {
        HEADER_BYTES + padded(self.len())
    }

    /// Appends it to `out` as the record at `offset` of the segment with this key.
    pub(super) fn encode(&self, out: &mut Vec<u8>, key: u32, offset: u64, synced_before: bool) {
        let start = out.len();
        out.resize(start + self.encoded_bytes(), 0);
        self.encode_to(&mut out[start..], key, offset, synced_before);
    }

    /// The same, to where there is just room for it.
    pub(super) fn encode_to(&self, out: &mut [u8], key: u32, offset: u64, synced_before: bool) {
        self.prepare_in(out);
        seal(&mut out[..HEADER_BYTES], key, offset, synced_before);
    }

    /// The same without the fields that depend on its place: [`seal`] has to follow.
    pub(super) fn prepare_in(&self, out: &mut [u8]) {
        let (header, payload) = out.split_at_mut(HEADER_BYTES);
        let (head, rest) = payload.split_at_mut(self.head.len());
        let (bytes, padding) = rest.split_at_mut(self.bytes.len());
        head.copy_from_slice(self.head);
        bytes.copy_from_slice(self.bytes);
        padding.fill(0);
        header.fill(0);
        header[4..8].copy_from_slice(&crc_fast::crc32_iscsi(payload).to_le_bytes());
        header[8..12].copy_from_slice(&(self.len() as u32).to_le_bytes());
        header[12] = self.kind.byte();
        header[16..24].copy_from_slice(&self.first.to_le_bytes());
        header[24..32].copy_from_slice(&self.last.to_le_bytes());
    }
}

/// Makes a header good at the offset `offset` of the segment with this key.
pub(super) fn seal(header: &mut [u8], key: u32, offset: u64, synced_before: bool) {
    header[13] = if synced_before { SYNCED_BEFORE } else { 0 };
    let sum = header_sum(header, key, offset);
    header[..4].copy_from_slice(&sum.to_le_bytes());
}

fn header_sum(header: &[u8], key: u32, offset: u64) -> u32 {
    let mut digest = Digest::new_with_init_state(CrcAlgorithm::Crc32Iscsi, u64::from(!key));
    digest.update(&offset.to_le_bytes());
    digest.update(&header[4..HEADER_BYTES]);
    digest.finalize() as u32
}

/// A record's header, known to be as it was written, at this place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Header {
    payload_sum: u32,
    pub len: usize,
    /// `None`: of a later version.
    pub kind: Option<Kind>,
    pub synced_before: bool,
    pub first: u64,
    pub last: u64,
}

impl Header {
    /// Reads one. Any bytes will do; `None` if it is not good, or of no possible length.
    pub fn decode(bytes: &[u8], key: u32, offset: u64) -> Option<Self> {
        let bytes: &[u8; HEADER_BYTES] = bytes.first_chunk()?;
        let len = u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]);
        let len = usize::try_from(len)
            .ok()
            .filter(|len| *len <= PAYLOAD_LIMIT)?;
        let sum = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        // Bytes that were never written are zeros.
        let is_believed = sum > 0 && mutants::on(Mutant::M37);
        if sum != header_sum(bytes, key, offset) && !is_believed {
            return None;
        }
        let u32_at = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let u64_at = |at: usize| u64::from(u32_at(at)) | u64::from(u32_at(at + 4)) << 32;
        Some(Self {
            payload_sum: u32_at(4),
            len,
            kind: Kind::of(bytes[12]),
            synced_before: bytes[13] & SYNCED_BEFORE != 0,
            first: u64_at(16),
            last: u64_at(24),
        })
    }

    /// Whether these bytes, if they are a header, say that all before was durable. Most bytes are none, and finding
    /// that out takes longer.
    pub fn would_be_synced(bytes: &[u8]) -> bool {
        bytes
            .get(13)
            .is_some_and(|flags| flags & SYNCED_BEFORE != 0)
    }

    /// The bytes that the whole record takes.
    pub const fn record_bytes(&self) -> usize {
        HEADER_BYTES + padded(self.len)
    }

    /// Whether this is the payload of the record, with the padding.
    pub fn fits(&self, padded_payload: &[u8]) -> bool {
        padded_payload.len() == padded(self.len)
            && self.payload_sum == crc_fast::crc32_iscsi(padded_payload)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(bytes: &[u8]) -> RecordRef<'_> {
        RecordRef {
            kind: Kind::Skip,
            first: 3,
            last: u64::MAX,
            head: &[],
            bytes,
        }
    }

    fn read(bytes: &[u8], key: u32, offset: u64) -> Option<(Header, &[u8])> {
        let header = Header::decode(bytes, key, offset)?;
        let payload = bytes.get(HEADER_BYTES..header.record_bytes())?;
        header
            .fits(payload)
            .then_some((header, &payload[..header.len]))
    }

    #[test]
    fn a_payload_is_the_same_in_two_pieces() {
        let bytes: Vec<u8> = (0..60).collect();
        let mut whole = Vec::new();
        sample(&bytes).encode(&mut whole, 7, 64, true);
        for at in 0..=bytes.len() {
            let (head, rest) = bytes.split_at(at);
            let record = RecordRef {
                head,
                ..sample(rest)
            };
            let mut pieces = Vec::new();
            record.encode(&mut pieces, 7, 64, true);
            assert_eq!(
                (pieces, record.payload(), record.len()),
                (whole.clone(), bytes.clone(), 60)
            );
        }
    }

    #[test]
    fn a_record_is_read_as_it_was_written_and_any_flipped_bit_is_found() {
        for payload in [&b""[..], b"x", b"12345678", b"123456789"] {
            let mut bytes = Vec::new();
            sample(payload).encode(&mut bytes, 7, 4096, true);
            assert_eq!(bytes.len(), sample(payload).encoded_bytes());
            let (header, found) = read(&bytes, 7, 4096).unwrap();
            assert_eq!(
                (header.kind, header.synced_before),
                (Some(Kind::Skip), true)
            );
            assert_eq!((header.first, header.last, found), (3, u64::MAX, payload));
            for bit in 0..bytes.len() * 8 {
                let mut damaged = bytes.clone();
                damaged[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(read(&damaged, 7, 4096), None, "{bit}");
            }
        }
    }

    #[test]
    fn a_record_of_another_segment_or_place_is_none() {
        let mut bytes = Vec::new();
        sample(b"abc").encode(&mut bytes, 7, 4096, false);
        assert!(read(&bytes, 7, 4096).is_some());
        assert_eq!(read(&bytes, 8, 4096), None);
        assert_eq!(read(&bytes, 7, 4104), None);
    }

    #[test]
    fn a_length_beyond_the_limit_is_no_record_and_an_unknown_kind_is_told() {
        let with = |at: usize, value: &[u8]| {
            let mut bytes = Vec::new();
            sample(b"abc").encode(&mut bytes, 7, 0, false);
            bytes[at..at + value.len()].copy_from_slice(value);
            let sum = header_sum(&bytes, 7, 0);
            bytes[..4].copy_from_slice(&sum.to_le_bytes());
            Header::decode(&bytes, 7, 0)
        };
        let limit = u32::try_from(PAYLOAD_LIMIT).unwrap();
        assert!(with(8, &limit.to_le_bytes()).is_some());
        assert_eq!(with(8, &(limit + 1).to_le_bytes()), None);
        assert_eq!(with(12, &[9]).unwrap().kind, None);
    }
}
