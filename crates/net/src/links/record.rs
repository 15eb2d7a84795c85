//! Messages in records, and records in a stream of bytes.
//!
//! A record is sealed and opened as one: it has up to [`RECORD_BYTES`], with as many messages as were there when it
//! left. A message that does not fit is cut, and its parts travel in records that follow each other. The messages of a
//! record are handed on where they were decrypted; only those that were cut are put together anew.

use bytes::{Buf, Bytes};
use rota_core::contract::{Channel, Pieces};
use std::collections::VecDeque;
use std::io::IoSlice;
use std::mem::take;
use std::ops::Range;

use super::MESSAGE_BYTES;
use super::cipher::{Direction, MOST_TAG_BYTES};

/// The header: the length of the rest of the record.
pub(super) const HEADER_BYTES: usize = 4;
/// A whole record at most, header and tag included: half of what one read takes, so that each read can end one.
pub(super) const RECORD_BYTES: usize = 32 << 10;
/// Before each message, or part of one: channel 1, length 4 with [`MORE`].
const ITEM_BYTES: usize = 5;
/// Body of a record at most.
const BODY_BYTES: usize = RECORD_BYTES - HEADER_BYTES - MOST_TAG_BYTES;
/// In the length of a part: the message goes on in the next one.
const MORE: u32 = 1 << 31;

/// Pieces handed to the kernel with one call.
const PIECES_AT_ONCE: usize = 64;

/// Room for the bytes of a record beside large pieces, most often.
const TEXT_BYTES: usize = 256;

/// A piece below this size is copied, as that costs less than to keep it apart.
const COPY_BELOW: usize = 512;

/// Records on their way out: sealed ones, and one that still takes messages. Where records are not encrypted, large
/// pieces of messages are not copied on their way to the kernel.
#[derive(Debug)]
pub(super) struct Outbox {
    /// The sealed pieces that have not left.
    sealed: VecDeque<Bytes>,
    sealed_bytes: usize,
    open: Open,
    seals: Direction,
}

/// A record that still takes messages.
#[derive(Debug, Default)]
struct Open {
    /// The record but for its large pieces; nothing, not even its header, where no message was begun.
    text: Vec<u8>,
    /// The large pieces, and the length of the text before each.
    large: Vec<(usize, Bytes)>,
    large_bytes: usize,
}

impl Open {
    fn len(&self) -> usize {
        self.text.len() + self.large_bytes
    }

    /// Whether one more item with `part` bytes of a message fits.
    fn takes(&self, part: usize) -> bool {
        !self.text.is_empty() && self.len() - HEADER_BYTES + ITEM_BYTES + part <= BODY_BYTES
    }

    fn push(&mut self, piece: Bytes) {
        if piece.len() < COPY_BELOW {
            self.text.extend_from_slice(&piece);
        } else {
            self.large_bytes += piece.len();
            self.large.push((self.text.len(), piece));
        }
    }

    /// The record without its header, in order.
    fn body(&self) -> impl Iterator<Item = &[u8]> {
        let mut from = HEADER_BYTES;
        let pairs = self.large.iter().flat_map(move |(at, piece)| {
            let text = &self.text[from..*at];
            from = *at;
            [text, &piece[..]]
        });
        let behind = self.large.last().map_or(HEADER_BYTES, |(at, _)| *at);
        pairs.chain([&self.text[behind..]])
    }
}

impl Outbox {
    pub(super) fn new(seals: Direction) -> Self {
        Self {
            sealed: VecDeque::new(),
            sealed_bytes: 0,
            open: Open::default(),
            seals,
        }
    }

    /// Bytes that have not left.
    pub(super) fn waiting(&self) -> usize {
        self.sealed_bytes + self.open.len()
    }

    pub(super) fn push(&mut self, channel: Channel, message: Pieces) {
        let most = BODY_BYTES - ITEM_BYTES;
        let mut left = message.len();
        let mut pieces = message.into_iter();
        let mut piece = Bytes::new();
        loop {
            let size = left.min(most);
            left -= size;
            self.begin_item(channel, size, left > 0);
            let mut wanted = size;
            while wanted > 0 {
                if piece.is_empty() {
                    piece = pieces.next().unwrap_or_default();
                }
                let part = piece.split_to(wanted.min(piece.len()));
                wanted -= part.len();
                self.open.push(part);
            }
            if left == 0 {
                return;
            }
        }
    }

    fn begin_item(&mut self, channel: Channel, size: usize, more: bool) {
        if !self.open.takes(size) {
            self.close();
            self.open.text.reserve(TEXT_BYTES);
            self.open.text.extend_from_slice(&[0; HEADER_BYTES]);
        }
        let length = size as u32 | if more { MORE } else { 0 };
        self.open.text.push(channel.0);
        self.open.text.extend_from_slice(&length.to_le_bytes());
    }

    /// Seals the record that still takes messages.
    fn close(&mut self) {
        let mut open = take(&mut self.open);
        if open.text.is_empty() {
            return;
        }
        let tag = self.seals.tag_bytes();
        let header = ((open.len() - HEADER_BYTES + tag) as u32).to_le_bytes();
        self.sealed_bytes += open.len() + tag;
        open.text[..HEADER_BYTES].copy_from_slice(&header);
        if self.seals.is_keyed() {
            let mut record = Vec::with_capacity(open.len() + tag);
            record.extend_from_slice(&header);
            open.body().for_each(|part| record.extend_from_slice(part));
            record.resize(record.len() + tag, 0);
            self.seals.seal(&header, &mut record[HEADER_BYTES..]);
            self.sealed.push_back(record.into());
            return;
        }
        let sum = self.seals.sum(&header, open.body());
        open.text.extend_from_slice(&sum);
        let mut text = Bytes::from(open.text);
        let mut before = 0;
        for (at, piece) in open.large {
            self.sealed.push_back(text.split_to(at - before));
            self.sealed.push_back(piece);
            before = at;
        }
        self.sealed.push_back(text);
    }

    /// The pieces that can leave now, or the first of them. The caller can send some of them: later messages go into
    /// another record.
    pub(super) fn unsent(&mut self) -> ([IoSlice<'_>; PIECES_AT_ONCE], usize) {
        self.close();
        let mut slices = [IoSlice::new(&[]); PIECES_AT_ONCE];
        let places = slices.iter_mut().zip(&self.sealed);
        let count = places
            .map(|(slice, piece)| *slice = IoSlice::new(piece))
            .count();
        (slices, count)
    }

    /// Notes that `count` bytes of these have left.
    pub(super) fn sent(&mut self, mut count: usize) {
        self.sealed_bytes -= count;
        while let Some(first) = self.sealed.front_mut()
            && count > 0
        {
            let gone = count.min(first.len());
            first.advance(gone);
            count -= gone;
            if first.is_empty() {
                self.sealed.pop_front();
            }
        }
    }
}

/// The reason why received bytes are not those that the other end sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Broken {
    /// A length that no record has.
    Length,
    /// Damaged, forged, left out or sent again.
    Forged,
    /// Opened, and yet no messages.
    Layout,
}

/// A message that came.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Found {
    /// The message lies here in the bytes that were read.
    Here(Channel, Range<usize>),
    /// The message came in parts.
    Joined(Channel, Bytes),
}

/// Records on their way in.
#[derive(Debug)]
pub(super) struct Inbox {
    opens: Direction,
    /// The parts of a message so far.
    parts: Option<(Channel, Vec<u8>)>,
    /// The memory that the last such message took: the next one may take as much.
    joined: usize,
}

impl Inbox {
    pub(super) const fn new(opens: Direction) -> Self {
        Self {
            opens,
            parts: None,
            joined: 0,
        }
    }

    /// Opens all whole records in place and appends their messages to `found`. Answers with the end of the last of
    /// them.
    pub(super) fn open(
        &mut self,
        bytes: &mut [u8],
        found: &mut Vec<Found>,
    ) -> Result<usize, Broken> {
        let mut at = 0;
        loop {
            let rest = &mut bytes[at..];
            let Some((header, after)) = rest.split_first_chunk_mut::<HEADER_BYTES>() else {
                return Ok(at);
            };
            let length = u32::from_le_bytes(*header) as usize;
            if length <= self.opens.tag_bytes() || length > RECORD_BYTES - HEADER_BYTES {
                return Err(Broken::Length);
            }
            let Some(sealed) = after.get_mut(..length) else {
                return Ok(at);
            };
            let body = self.opens.open(header, sealed).ok_or(Broken::Forged)?;
            let body = &sealed[..body];
            self.read_items(body, at + HEADER_BYTES, found)
                .ok_or(Broken::Layout)?;
            at += HEADER_BYTES + length;
        }
    }

    /// Takes the messages of a record whose body begins at byte `at` of the bytes that were read.
    fn read_items(&mut self, body: &[u8], mut at: usize, found: &mut Vec<Found>) -> Option<()> {
        let mut rest = body;
        while !rest.is_empty() {
            let (item, after) = rest.split_first_chunk::<ITEM_BYTES>()?;
            let channel = Channel(item[0]);
            let length = u32::from_le_bytes([item[1], item[2], item[3], item[4]]);
            let (length, more) = ((length & !MORE) as usize, length & MORE != 0);
            let (part, behind) = after.split_at_checked(length)?;
            let range = at + ITEM_BYTES..at + ITEM_BYTES + length;
            at = range.end;
            rest = behind;
            match (self.parts.take(), more) {
                (None, false) => found.push(Found::Here(channel, range)),
                (None, true) => {
                    let mut parts = Vec::with_capacity(self.joined.max(length));
                    parts.extend_from_slice(part);
                    self.parts = Some((channel, parts));
                }
                (Some((of, mut parts)), more) => {
                    if of != channel || parts.len() + length > MESSAGE_BYTES {
                        return None;
                    }
                    parts.extend_from_slice(part);
                    if more {
                        self.parts = Some((of, parts));
                    } else {
                        self.joined = parts.len();
                        // A kept part of the message keeps all of its memory.
                        if parts.capacity() > parts.len() + parts.len() / 8 {
                            parts.shrink_to_fit();
                        }
                        found.push(Found::Joined(of, Bytes::from(parts)));
                    }
                }
            }
        }
        Some(())
    }
}
