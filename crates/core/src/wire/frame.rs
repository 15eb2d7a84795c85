//! The body of a data packet: whole messages, or parts of large ones.
//!
//! A frame starts with the counter of its first message (a variable-length number), followed by
//! records. A record is a tag, a 16-bit length and the bytes; the first part of a cut message also
//! has the message's whole size, every further part its index. In a frame, a further part can only
//! stand first and a first part only last, so that the counters of all its messages follow from
//! the first.

use bytes::{Buf, BufMut, Bytes};

use super::DecodeError;

/// Overhead of a whole message, in bytes.
pub const WHOLE_RECORD_BYTES: usize = 3;
/// Overhead of the first part of a cut message, in bytes.
pub const FIRST_RECORD_BYTES: usize = 7;
/// Overhead of a further part, in bytes.
pub const NEXT_RECORD_BYTES: usize = 5;
/// Parts that one message can have.
pub const MAX_FRAGMENTS: usize = u16::MAX as usize;

const TAG_WHOLE: u8 = 0;
const TAG_FIRST: u8 = 1;
const TAG_MIDDLE: u8 = 2;
const TAG_LAST: u8 = 3;
/// Set on the parts of a large message that asked for reliable service and travels as fifo.
const TAG_RELIABLE: u8 = 0x80;

/// A place in the stream of one sender: a message and, inside a cut one, a part.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FrameCursor {
    /// Counter of the message.
    pub counter: u64,
    /// Index of the part; 0 for the start of a message.
    pub fragment: u16,
}

/// A checked frame. Kept small: every member keeps one for each packet in flight.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Frame {
    bytes: Bytes,
    /// Counter of the first message.
    counter: u64,
    /// The number of messages that end in it: each takes at least three of its bytes, of which a datagram has
    /// at most 65,507.
    messages: u16,
    /// Part of the first message that it starts with.
    first_part: u16,
    /// Part that the sender's next frame starts with.
    next_part: u16,
    records_at: u8,
}

/// The content of a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecordKind {
    /// A whole message.
    Whole,
    /// The first part of a message of `total` bytes.
    First {
        /// Size of the whole message.
        total: u32,
    },
    /// Part `index`, neither first nor last.
    Middle {
        /// Index of the part, from 1.
        index: u16,
    },
    /// Part `index`, the last.
    Last {
        /// Index of the part, from 1.
        index: u16,
    },
}

/// One record of a frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record {
    /// The content.
    pub kind: RecordKind,
    /// Its message asked for reliable service, though the frame is of another.
    pub reliable: bool,
    /// The bytes.
    pub payload: Bytes,
}

impl Frame {
    /// Checks a frame.
    #[inline(always)]
    pub fn parse(bytes: Bytes) -> Result<Self, DecodeError> {
        let (counter, records_at) = read_varint(&bytes)?;
        if counter == 0 {
            return Err(DecodeError::Frame("message counters start at 1"));
        }
        let mut rest = &bytes[records_at..];
        if rest.is_empty() {
            return Err(DecodeError::Frame("a frame without records"));
        }
        let first = RawRecord::read(rest)?;
        let first_part = first.part().unwrap_or(0);
        let mut ends = first.ends(0)?;
        rest = &rest[first.size..];
        // Most frames have one record.
        while !rest.is_empty() {
            if ends.part != 0 {
                return Err(DecodeError::Frame(
                    "a record after a part that ends its frame",
                ));
            }
            let raw = RawRecord::read(rest)?;
            if raw.part().is_some() {
                return Err(DecodeError::Frame("a further part inside a frame"));
            }
            ends = raw.ends(ends.messages)?;
            rest = &rest[raw.size..];
        }
        if counter > u64::MAX - u64::from(ends.messages) {
            return Err(OVERFLOW);
        }
        let frame = Self {
            bytes,
            counter,
            messages: ends.messages,
            first_part,
            next_part: ends.part,
            records_at: records_at as u8,
        };
        debug_assert!(frame.start() < frame.end(), "a frame holds something");
        Ok(frame)
    }

    /// The frame as it travels.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The frame as it travels, shared.
    pub fn into_bytes(self) -> Bytes {
        self.bytes
    }

    /// The place of its first record in the stream of its sender.
    pub const fn start(&self) -> FrameCursor {
        FrameCursor {
            counter: self.counter,
            fragment: self.first_part,
        }
    }

    /// The place in the stream of its sender at which the next frame continues.
    pub const fn end(&self) -> FrameCursor {
        FrameCursor {
            counter: self.counter + self.messages as u64,
            fragment: self.next_part,
        }
    }

    /// The counter and the bytes of its message, if it holds just one whole message: the short way for the most
    /// frequent kind of frame.
    ///
    /// # Errors
    /// The frame itself, if it holds anything else.
    #[inline(always)]
    pub fn into_single_message(mut self) -> Result<(u64, Bytes), Self> {
        let records_at = usize::from(self.records_at);
        let whole = (self.messages, self.first_part, self.next_part) == (1, 0, 0);
        if whole && self.bytes[records_at] == TAG_WHOLE {
            self.bytes.advance(records_at + WHOLE_RECORD_BYTES);
            Ok((self.counter, self.bytes))
        } else {
            Err(self)
        }
    }

    /// Its records, in order; the frame stays.
    pub fn records(&self) -> Records {
        self.clone().into_records()
    }

    /// Its records, in order.
    pub fn into_records(self) -> Records {
        Records {
            bytes: self.bytes,
            at: usize::from(self.records_at),
        }
    }
}

/// The records of a frame, in order. Owns the frame's bytes.
#[derive(Clone, Hash, Debug)]
pub struct Records {
    bytes: Bytes,
    at: usize,
}

impl Iterator for Records {
    type Item = Record;

    fn next(&mut self) -> Option<Record> {
        // `Frame::parse` has read them all before.
        let raw = RawRecord::read(&self.bytes[self.at..]).ok()?;
        let payload_at = self.at + raw.overhead;
        self.at += raw.size;
        let payload = if self.at == self.bytes.len() {
            // The last record takes the frame's share of the buffer: most frames have only one, and
            // counting shares costs more than all else here.
            self.at = 0;
            core::mem::take(&mut self.bytes).split_off(payload_at)
        } else {
            self.bytes.slice(payload_at..self.at)
        };
        Some(Record {
            kind: raw.kind,
            reliable: raw.reliable,
            payload,
        })
    }
}

struct RawRecord {
    kind: RecordKind,
    reliable: bool,
    overhead: usize,
    size: usize,
}

impl RawRecord {
    #[inline(always)]
    fn read(rest: &[u8]) -> Result<Self, DecodeError> {
        let [tag, low, high] = *rest.first_chunk().ok_or(DecodeError::Short)?;
        let len = usize::from(u16::from_le_bytes([low, high]));
        let extra = &rest[WHOLE_RECORD_BYTES..];
        let (kind, overhead) = match tag & !TAG_RELIABLE {
            TAG_WHOLE => (RecordKind::Whole, WHOLE_RECORD_BYTES),
            TAG_FIRST => {
                let total = u32::from_le_bytes(*extra.first_chunk().ok_or(DecodeError::Short)?);
                (RecordKind::First { total }, FIRST_RECORD_BYTES)
            }
            code @ (TAG_MIDDLE | TAG_LAST) => {
                let index = u16::from_le_bytes(*extra.first_chunk().ok_or(DecodeError::Short)?);
                let middle = code == TAG_MIDDLE;
                let kind = if middle {
                    RecordKind::Middle { index }
                } else {
                    RecordKind::Last { index }
                };
                (kind, NEXT_RECORD_BYTES)
            }
            _ => return Err(DecodeError::Frame("a record with an unknown tag")),
        };
        let size = overhead + len;
        if rest.len() < size {
            return Err(DecodeError::Short);
        }
        Ok(Self {
            kind,
            reliable: tag & TAG_RELIABLE != 0,
            overhead,
            size,
        })
    }

    /// The index of the part, if the record is a further part of a cut message.
    const fn part(&self) -> Option<u16> {
        match self.kind {
            RecordKind::Whole | RecordKind::First { .. } => None,
            RecordKind::Middle { index } | RecordKind::Last { index } => Some(index),
        }
    }

    /// The place of the stream behind the record, if `messages` messages of the frame ended before it.
    #[inline(always)]
    fn ends(&self, messages: u16) -> Result<Ends, DecodeError> {
        let part = match self.kind {
            RecordKind::Middle { index: 0 } | RecordKind::Last { index: 0 } => {
                return Err(DecodeError::Frame("part 0 of a message must be its first"));
            }
            RecordKind::Middle { index: u16::MAX } => {
                return Err(OVERFLOW);
            }
            RecordKind::Whole | RecordKind::Last { .. } => 0,
            RecordKind::First { .. } => 1,
            RecordKind::Middle { index } => index + 1,
        };
        let messages = if part == 0 {
            messages.checked_add(1)
        } else {
            Some(messages)
        };
        let messages = messages.ok_or(OVERFLOW)?;
        Ok(Ends { messages, part })
    }
}

const OVERFLOW: DecodeError = DecodeError::Frame("a message counter or part index overflows");

/// The place of a sender's stream behind a record.
struct Ends {
    /// Messages of the frame that have ended.
    messages: u16,
    /// The part that comes next, if a message is open, else 0.
    part: u16,
}

/// A variable-length number at the start of `bytes`, and the number of its bytes.
#[inline(always)]
pub fn read_varint(bytes: &[u8]) -> Result<(u64, usize), DecodeError> {
    let mut value = 0_u64;
    for (index, byte) in bytes.iter().take(10).enumerate() {
        let bits = u64::from(byte & 0x7f);
        if index == 9 && bits > 1 {
            break;
        }
        value |= bits << (7 * index);
        if byte & 0x80 == 0 {
            return Ok((value, index + 1));
        }
    }
    Err(DecodeError::Frame("a malformed message counter"))
}

/// Begins a frame whose first record belongs to message `counter`.
pub fn start_frame(out: &mut impl BufMut, counter: u64) {
    put_varint(out, counter);
}

/// Appends a variable-length number: seven bits in a byte, the low ones first.
pub fn put_varint(out: &mut impl BufMut, mut number: u64) {
    while number >= 0x80 {
        out.put_u8((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    out.put_u8(number as u8);
}

/// Appends a whole message, of at most 65,535 bytes.
pub fn push_whole(out: &mut impl BufMut, payload: &[u8]) {
    push_record(out, TAG_WHOLE, &[], payload);
}

/// Appends the first part of a message of `total` bytes.
pub fn push_first(out: &mut impl BufMut, reliable: bool, total: u32, part: &[u8]) {
    push_record(out, tag(TAG_FIRST, reliable), &total.to_le_bytes(), part);
}

/// Appends part `index` of a message; `last` says that the message ends with it.
pub fn push_next(out: &mut impl BufMut, reliable: bool, index: u16, last: bool, part: &[u8]) {
    let code = if last { TAG_LAST } else { TAG_MIDDLE };
    push_record(out, tag(code, reliable), &index.to_le_bytes(), part);
}

const fn tag(code: u8, reliable: bool) -> u8 {
    if reliable { code | TAG_RELIABLE } else { code }
}

fn push_record(out: &mut impl BufMut, tag: u8, extra: &[u8], payload: &[u8]) {
    let len = u16::try_from(payload.len()).expect("a record is smaller than its datagram");
    out.put_u8(tag);
    out.put_u16_le(len);
    out.put_slice(extra);
    out.put_slice(payload);
}
