//! Messages in records, and records in a stream of bytes.
//!
//! A record is what is sealed and opened as one: up to [`RECORD_BYTES`], with as many messages as were there when it
//! left. A message that does not fit is cut, and its parts travel in records that follow each other. The messages of a
//! record are handed on where they were decrypted; only those that were cut are put together anew.

use bytes::Bytes;
use rota_core::contract::Channel;
use std::ops::Range;

use super::MESSAGE_BYTES;
use super::cipher::{Direction, MOST_TAG_BYTES};

/// The length of what follows it.
pub(super) const HEADER_BYTES: usize = 4;
/// A whole record at most, header and tag included: half of what one read takes, so that each read can end one.
pub(super) const RECORD_BYTES: usize = 32 << 10;
/// Before each message, or part of one: channel 1, length 4 with [`MORE`].
const ITEM_BYTES: usize = 5;
/// Body of a record at most.
const BODY_BYTES: usize = RECORD_BYTES - HEADER_BYTES - MOST_TAG_BYTES;
/// In the length of a part: the message goes on in the next one.
const MORE: u32 = 1 << 31;

/// What left of a closed queue may be before it is moved to the front, in bytes.
const COMPACT_BYTES: usize = 256 << 10;

/// Records on their way out: sealed ones, and one that still takes messages.
#[derive(Debug)]
pub(super) struct Outbox {
    bytes: Vec<u8>,
    /// So much of it has left.
    left: usize,
    /// Where the record begins that is not sealed yet.
    open: Option<usize>,
    seals: Direction,
}

impl Outbox {
    pub(super) const fn new(seals: Direction) -> Self {
        Self {
            bytes: Vec::new(),
            left: 0,
            open: None,
            seals,
        }
    }

    /// Bytes that have not left.
    pub(super) const fn waiting(&self) -> usize {
        self.bytes.len() - self.left
    }

    pub(super) fn push(&mut self, channel: Channel, message: &[u8]) {
        let most = BODY_BYTES - ITEM_BYTES;
        if message.len() <= most {
            self.push_part(channel, message, false);
            return;
        }
        let mut rest = message;
        while let Some((part, after)) = rest.split_at_checked(most) {
            self.push_part(channel, part, !after.is_empty());
            rest = after;
        }
        if !rest.is_empty() {
            self.push_part(channel, rest, false);
        }
    }

    fn push_part(&mut self, channel: Channel, part: &[u8], more: bool) {
        let fits = |start: usize| {
            let body = self.bytes.len() - start - HEADER_BYTES;
            body + ITEM_BYTES + part.len() <= BODY_BYTES
        };
        if !self.open.is_some_and(fits) {
            self.close();
            self.open = Some(self.bytes.len());
            self.bytes.extend_from_slice(&[0; HEADER_BYTES]);
        }
        let length = part.len() as u32 | if more { MORE } else { 0 };
        self.bytes.push(channel.0);
        self.bytes.extend_from_slice(&length.to_le_bytes());
        self.bytes.extend_from_slice(part);
    }

    /// Seals the record that still takes messages.
    fn close(&mut self) {
        let Some(start) = self.open.take() else {
            return;
        };
        self.bytes
            .resize(self.bytes.len() + self.seals.tag_bytes(), 0);
        let (header, sealed) = self.bytes[start..].split_at_mut(HEADER_BYTES);
        header.copy_from_slice(&(sealed.len() as u32).to_le_bytes());
        self.seals.seal(header, sealed);
    }

    /// What can leave now. Who asks can send some of it: what comes later goes into another record.
    pub(super) fn unsent(&mut self) -> &[u8] {
        self.close();
        &self.bytes[self.left..]
    }

    /// So much of that has left.
    pub(super) fn sent(&mut self, count: usize) {
        self.left += count;
        if self.left == self.bytes.len() {
            self.bytes.clear();
            self.left = 0;
        } else if self.left >= COMPACT_BYTES && self.left > self.bytes.len() / 2 {
            self.bytes.drain(..self.left);
            self.open = self.open.map(|start| start - self.left);
            self.left = 0;
        }
    }
}

/// Why what came is not what the other end sends.
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
    /// It lies here in what was read.
    Here(Channel, Range<usize>),
    /// It came in parts.
    Joined(Channel, Bytes),
}

/// Records on their way in.
#[derive(Debug)]
pub(super) struct Inbox {
    opens: Direction,
    /// The parts of a message so far.
    parts: Option<(Channel, Vec<u8>)>,
}

impl Inbox {
    pub(super) const fn new(opens: Direction) -> Self {
        Self { opens, parts: None }
    }

    /// Opens all whole records in place and appends their messages to `found`. Answers with where the last of them
    /// ends.
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

    /// Takes the messages of a record whose body begins `at` so many bytes into what was read.
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
                (None, true) => self.parts = Some((channel, part.to_vec())),
                (Some((of, mut parts)), more) => {
                    if of != channel || parts.len() + length > MESSAGE_BYTES {
                        return None;
                    }
                    parts.extend_from_slice(part);
                    if more {
                        self.parts = Some((of, parts));
                    } else {
                        found.push(Found::Joined(of, Bytes::from(parts)));
                    }
                }
            }
        }
        Some(())
    }
}
