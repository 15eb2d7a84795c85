//! Records, and runs of them: the same bytes on every replica, on its disk and on the wire.
//!
//! Little-endian:
//!
//! | bytes | what |
//! |---|---|
//! | 4 | CRC-32C of the log's id, as 8 bytes, and all that follows |
//! | 4 | length of the payload |
//! | 8 | position |
//! | 8, 8, 2, 4 | place: round, instance, rank, index |
//! | 8 | stamp, in milliseconds |
//! | … | payload |
//!
//! The log's id is in the sum alone: a record that got into another log's file is a bad one there.

use std::fmt;

use bytes::{BufMut as _, Bytes, BytesMut};
use crc_fast::{CrcAlgorithm, Digest};
use rota_multiring::{Place, Rank};

/// The length of a record's header, before its payload.
pub const HEADER_BYTES: usize = 46;

/// The longest payload.
pub const PAYLOAD_LIMIT: usize = 4 << 20;

/// An error in bytes that were to be a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RunError {
    /// There is no record.
    Empty,
    /// The bytes end within the record of this position.
    Cut(u64),
    /// The record that should have this position has another one, or an impossible length.
    Header(u64),
    /// The sum of this position's record is wrong: the record is damaged, or of another log.
    Sum(u64),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => write!(f, "a run without records"),
            Self::Cut(at) => write!(f, "the run is cut within record {at}"),
            Self::Header(at) => write!(f, "the header of record {at} is wrong"),
            Self::Sum(at) => write!(f, "the sum of record {at} is wrong"),
        }
    }
}

impl std::error::Error for RunError {}

/// The sum of a log's id, with which the sums of all of its records begin.
#[derive(Clone, Copy)]
pub(super) struct Seed(u64);

impl Seed {
    pub(super) fn of(log: u64) -> Self {
        let mut digest = Digest::new(CrcAlgorithm::Crc32Iscsi);
        digest.update(&log.to_le_bytes());
        Self(digest.get_state())
    }

    fn sum(self, bytes: &[u8]) -> u32 {
        let mut digest = Digest::new_with_init_state(CrcAlgorithm::Crc32Iscsi, self.0);
        digest.update(bytes);
        digest.finalize() as u32
    }
}

/// A record's header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Head {
    sum: u32,
    length: usize,
    pub(super) position: u64,
    place: Place,
    pub(super) stamp_ms: u64,
}

impl Head {
    /// The header at the beginning of `bytes`: none when they are too few or no header.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; HEADER_BYTES] = bytes.first_chunk()?;
        let length = u32::from_le_bytes(field(bytes, 4)) as usize;
        (length <= PAYLOAD_LIMIT).then(|| Self {
            sum: u32::from_le_bytes(field(bytes, 0)),
            length,
            position: u64::from_le_bytes(field(bytes, 8)),
            place: Place {
                round: u64::from_le_bytes(field(bytes, 16)),
                instance: u64::from_le_bytes(field(bytes, 24)),
                rank: Rank(u16::from_le_bytes(field(bytes, 32))),
                index: u32::from_le_bytes(field(bytes, 34)),
            },
            stamp_ms: u64::from_le_bytes(field(bytes, 38)),
        })
    }

    /// The length of the record.
    pub(super) const fn total(&self) -> usize {
        HEADER_BYTES + self.length
    }

    /// Whether `record`, which has its whole length, is as it was written.
    pub(super) fn is_good(&self, seed: Seed, record: &[u8]) -> bool {
        seed.sum(&record[4..]) == self.sum
    }
}

fn field<const N: usize>(bytes: &[u8; HEADER_BYTES], at: usize) -> [u8; N] {
    std::array::from_fn(|i| bytes[at + i])
}

/// A record, borrowed from its run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecordRef<'a> {
    /// Its position in the log.
    pub position: u64,
    /// Its place in the order of all logs.
    pub place: Place,
    /// The time of the append, in milliseconds since 1970, by the clock of its sender.
    pub stamp_ms: u64,
    /// The bytes that were appended. [`Bytes::slice_ref`] on the run's bytes makes it owned without a copy.
    pub payload: &'a [u8],
}

/// Consecutive records of one log, at least one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Run {
    log: u64,
    first: u64,
    next: u64,
    bytes: Bytes,
}

impl Run {
    /// A run from another process: every record is checked.
    ///
    /// # Errors
    /// The first error in the run.
    pub fn check(log: u64, first: u64, bytes: Bytes) -> Result<Self, RunError> {
        let seed = Seed::of(log);
        let (mut at, mut next) = (0, first);
        while at < bytes.len() {
            let rest = &bytes[at..];
            if rest.len() < HEADER_BYTES {
                return Err(RunError::Cut(next));
            }
            let head = Head::read(rest).filter(|head| head.position == next);
            let head = head.ok_or(RunError::Header(next))?;
            let record = rest.get(..head.total()).ok_or(RunError::Cut(next))?;
            if !head.is_good(seed, record) {
                return Err(RunError::Sum(next));
            }
            at += head.total();
            next = next.checked_add(1).ok_or(RunError::Header(next))?;
        }
        match next == first {
            true => Err(RunError::Empty),
            false => Ok(Self::trusted(log, first, next, bytes)),
        }
    }

    /// A run that was checked, or encoded here.
    pub(super) const fn trusted(log: u64, first: u64, next: u64, bytes: Bytes) -> Self {
        Self {
            log,
            first,
            next,
            bytes,
        }
    }

    /// Its log.
    pub const fn log(&self) -> u64 {
        self.log
    }

    /// The position of its first record.
    pub const fn first(&self) -> u64 {
        self.first
    }

    /// The position behind its last record.
    pub const fn next(&self) -> u64 {
        self.next
    }

    /// The encoded records.
    pub const fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The encoded records, to keep or to send.
    pub fn into_bytes(self) -> Bytes {
        self.bytes
    }

    /// Its records in order.
    pub fn iter(&self) -> Records<'_> {
        Records {
            next: self.first,
            rest: &self.bytes,
        }
    }

    /// The records from `from` on that are before `to`, of about `most` bytes but at least one.
    pub(super) fn part(&self, from: u64, to: u64, most: usize) -> Option<Self> {
        let (from, to) = (from.max(self.first), to.min(self.next));
        if from >= to {
            return None;
        }
        let (start, _) = hop(&self.bytes, self.first, from, usize::MAX)?;
        let (length, next) = hop(&self.bytes[start..], from, to, most)?;
        let bytes = self.bytes.slice(start..start + length);
        (next > from).then(|| Self::trusted(self.log, from, next, bytes))
    }
}

impl<'a> IntoIterator for &'a Run {
    type Item = RecordRef<'a>;
    type IntoIter = Records<'a>;

    fn into_iter(self) -> Records<'a> {
        self.iter()
    }
}

/// Goes from the record `first` towards `to`, over about `most` bytes but at least one record. Returns the distance, in
/// bytes, and the position reached; none when the bytes in between are no run.
pub(super) fn hop(bytes: &[u8], first: u64, to: u64, most: usize) -> Option<(usize, u64)> {
    let (mut at, mut position) = (0, first);
    while position < to {
        let head = Head::read(bytes.get(at..)?)?;
        let end = at + head.total();
        if head.position != position || end > bytes.len() {
            return None;
        }
        if at > 0 && end > most {
            break;
        }
        (at, position) = (end, position + 1);
    }
    Some((at, position))
}

/// The records of a [`Run`], in order.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    next: u64,
    rest: &'a [u8],
}

impl<'a> Iterator for Records<'a> {
    type Item = RecordRef<'a>;

    fn next(&mut self) -> Option<RecordRef<'a>> {
        let head = Head::read(self.rest).filter(|head| head.position == self.next)?;
        let (record, rest) = self.rest.split_at_checked(head.total())?;
        self.rest = rest;
        self.next += 1;
        Some(RecordRef {
            position: head.position,
            place: head.place,
            stamp_ms: head.stamp_ms,
            payload: &record[HEADER_BYTES..],
        })
    }
}

/// Puts records of one log one behind the other.
#[derive(Debug)]
pub struct RunBuilder {
    log: u64,
    first: u64,
    next: u64,
    bytes: BytesMut,
}

impl RunBuilder {
    /// A run that begins at this position.
    pub fn new(log: u64, first: u64) -> Self {
        Self {
            log,
            first,
            next: first,
            bytes: BytesMut::new(),
        }
    }

    /// Adds a record; returns its position.
    ///
    /// # Panics
    /// When the payload is longer than [`PAYLOAD_LIMIT`].
    pub fn push(&mut self, place: Place, stamp_ms: u64, payload: &[u8]) -> u64 {
        let position = self.next;
        encode(
            &mut self.bytes,
            self.log,
            position,
            place,
            stamp_ms,
            payload,
        );
        self.next += 1;
        position
    }

    /// The run: none without records.
    pub fn finish(self) -> Option<Run> {
        let bytes = self.bytes.freeze();
        let is_any = self.next > self.first;
        is_any.then(|| Run::trusted(self.log, self.first, self.next, bytes))
    }
}

/// Adds one record to `out`.
///
/// # Panics
/// When the payload is longer than [`PAYLOAD_LIMIT`]: callers that take messages in refuse longer ones.
pub fn encode(
    out: &mut BytesMut,
    log: u64,
    position: u64,
    place: Place,
    stamp_ms: u64,
    payload: &[u8],
) {
    assert!(payload.len() <= PAYLOAD_LIMIT, "a payload over the limit");
    let start = out.len();
    out.reserve(HEADER_BYTES + payload.len());
    out.put_u32_le(0);
    out.put_u32_le(payload.len() as u32);
    out.put_u64_le(position);
    out.put_u64_le(place.round);
    out.put_u64_le(place.instance);
    out.put_u16_le(place.rank.0);
    out.put_u32_le(place.index);
    out.put_u64_le(stamp_ms);
    out.put_slice(payload);
    let sum = Seed::of(log).sum(&out[start + 4..]);
    out[start..start + 4].copy_from_slice(&sum.to_le_bytes());
}

#[cfg(test)]
mod tests;
