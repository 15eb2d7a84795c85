//! Frames out of bytes in pieces of any size.

use std::marker::PhantomData;

use bytes::{Bytes, BytesMut};

use rota_core::groups::MOST_PAYLOAD_BYTES;

use super::{DecodeError, MAX_DESTINATIONS};

/// Bytes of a frame's length and kind.
pub const HEAD_BYTES: usize = 5;

/// The largest frame a client takes, by its length field: a message of 64 MiB fits, and a view of a million
/// members.
pub const MAX_REPLY_BYTES: usize = largest_message_frame(MOST_PAYLOAD_BYTES);

/// The same of clients of version 1.
pub const MAX_REPLY_BYTES_1: usize = 16 << 20;

/// Room that an empty inbox may keep, in bytes.
const KEPT_BYTES: usize = 64 << 10;

/// The largest hello a daemon takes, by its length field: before it knows whom it keeps memory for.
pub const MAX_HELLO_BYTES: usize = 1 << 10;

/// The largest frame a daemon takes, by its length field, when messages have at most `payload` bytes.
pub const fn request_limit(payload: usize) -> usize {
    // Kind, service, flags, the application's kind, the number of destinations.
    let fixed = 6;
    let destination = 1 + 31;
    fixed + MAX_DESTINATIONS * destination + payload
}

/// The bytes of the largest frame in which a daemon hands out a message with a payload of at most `payload` bytes.
pub const fn largest_message_frame(payload: usize) -> usize {
    let sender = 1 + 32;
    4 + sender + request_limit(payload)
}

/// The result of reading one frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Decoded<T> {
    /// A frame, and the number of its bytes.
    Frame(T, usize),
    /// The start of a frame of this many bytes; while its head is incomplete, the bytes of a head.
    Needs(usize),
}

/// One direction's frames: [`super::Request`] or [`super::Reply`].
pub trait Frame: Sized + sealed::Read {
    /// Reads one frame from the start of `bytes`, sharing its payload with them. `limit` is for its
    /// length field.
    ///
    /// The decoder checks length and kind as soon as they are there, so no reader waits for the bytes of a wrong frame.
    fn decode(bytes: &Bytes, limit: usize) -> Result<Decoded<Self>, DecodeError> {
        let length = length::<Self>(bytes, limit)?;
        if bytes.len() < length {
            return Ok(Decoded::Needs(length));
        }
        let body = bytes.slice(HEAD_BYTES..length);
        let frame = Self::read(bytes[4], body, &mut Self::Known::default())?;
        Ok(Decoded::Frame(frame, length))
    }
}

pub(super) mod sealed {
    use std::fmt::Debug;

    use super::{Bytes, DecodeError};

    pub trait Read: Sized {
        /// The knowledge from earlier frames of a stream. It changes nothing but the time that reading takes.
        type Known: Default + Debug;

        /// Whether this direction has such frames.
        fn has(kind: u8) -> bool;

        /// Reads a whole frame without its head.
        fn read(kind: u8, body: Bytes, known: &mut Self::Known) -> Result<Self, DecodeError>;
    }
}

/// The length of the frame that begins with these bytes; of its head, if the head is not whole yet.
fn length<T: Frame>(bytes: &[u8], limit: usize) -> Result<usize, DecodeError> {
    let Some(field) = bytes.first_chunk() else {
        return Ok(HEAD_BYTES);
    };
    let length = u32::from_le_bytes(*field);
    let after = length as usize;
    if !(1..=limit).contains(&after) {
        return Err(DecodeError::Length { length, limit });
    }
    match bytes.get(4) {
        Some(&kind) if !T::has(kind) => Err(DecodeError::Kind(kind)),
        _ => Ok(4 + after),
    }
}

/// Collects bytes of a stream and gives its frames.
///
/// Payloads share the inbox's memory: one that is kept for long keeps what arrived with it as well.
#[derive(Debug)]
pub struct Inbox<T: Frame> {
    known: T::Known,
    bytes: BytesMut,
    limit: usize,
    failed: Option<DecodeError>,
    frames: PhantomData<fn() -> T>,
}

impl<T: Frame> Inbox<T> {
    /// An inbox for frames whose length field is at most `limit`.
    pub fn new(limit: usize) -> Self {
        Self {
            known: T::Known::default(),
            bytes: BytesMut::new(),
            limit,
            failed: None,
            frames: PhantomData,
        }
    }

    /// Frames that are not whole yet, and all that follow, may have a length field of at most `limit`.
    pub const fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// Bytes have arrived. They are copied; memory grows with them, at most to twice their number.
    /// [`Self::pull`] until there is no frame before more are fed, or they pile up.
    pub fn feed(&mut self, bytes: &[u8]) {
        if self.failed.is_none() {
            self.bytes.extend_from_slice(bytes);
        }
    }

    /// The next frame, if it is whole. After an error all calls give that error.
    pub fn pull(&mut self) -> Result<Option<T>, DecodeError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        self.read().inspect_err(|error| {
            self.failed = Some(*error);
            self.bytes = BytesMut::new();
        })
    }

    fn read(&mut self) -> Result<Option<T>, DecodeError> {
        let length = length::<T>(&self.bytes, self.limit)?;
        if self.bytes.len() < length {
            return Ok(None);
        }
        let mut frame = self.bytes.split_to(length);
        if self.bytes.is_empty() && self.bytes.capacity() > KEPT_BYTES {
            self.bytes = BytesMut::new();
        }
        let kind = frame[4];
        let body = frame.split_off(HEAD_BYTES).freeze();
        T::read(kind, body, &mut self.known).map(Some)
    }

    /// Whether a frame has begun that is not whole. Only when there was none to [`Self::pull`].
    pub fn is_within_a_frame(&self) -> bool {
        !self.bytes.is_empty()
    }

    /// The bytes of memory that hold an incomplete frame.
    pub fn buffered(&self) -> usize {
        self.bytes.capacity()
    }
}
