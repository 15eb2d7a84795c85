//! The daemon's side: the writer of the stream.

use std::io::{self, IoSlice, Write};
use std::os::fd::OwnedFd;

use crate::region::Region;
use crate::{INLINE, RECORD_BYTES};

/// Fewer bytes go by the socket: a record would cost about as much.
const LEAST_BYTES: usize = 2 << 10;

/// Bytes that go by the socket, while the memory is full, are cut into pieces of this size: soon after there is room
/// again, it is used.
const INLINE_BYTES: usize = 32 << 10;

/// Writes a stream, through memory and a socket that never blocks.
#[derive(Debug)]
pub struct Writer {
    region: Region,
    /// Bytes that were put into the memory.
    put: u64,
    /// The place of the next byte in the memory.
    at: usize,
    /// Bytes that a record has announced and that have not been written to the socket yet.
    inline: usize,
}

impl Writer {
    /// A stream through memory of this many bytes, and the descriptor for the reader.
    ///
    /// # Errors
    /// The system's.
    pub fn new(bytes: usize) -> io::Result<(Self, OwnedFd)> {
        let (region, memory) = Region::create(bytes)?;
        let writer = Self {
            region,
            put: 0,
            at: 0,
            inline: 0,
        };
        Ok((writer, memory))
    }

    /// Whether the reader has taken all bytes that are in the memory, as it says. Only then, or when the reader has had
    /// time to, is the writer to be dropped: the memory's pages are then given back, even while the reader maps them,
    /// and it reads nothing more of them.
    pub fn is_read(&self) -> bool {
        self.region.taken() == self.put
    }

    /// For a process that ends: bytes that the reader has not taken stay in the memory for it, until it gives that up
    /// itself.
    pub fn leave(self) {
        core::mem::forget(self);
    }

    /// Writes some of these bytes, and returns their number: the caller offers the rest again.
    ///
    /// # Errors
    /// The socket's: [`io::ErrorKind::WouldBlock`] where nothing could be written;
    /// [`io::ErrorKind::InvalidData`] if the reader's count of taken bytes is impossible.
    pub fn write(&mut self, socket: &mut impl Write, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        if self.inline > 0 {
            return self.write_inline(socket, pieces);
        }
        let offered: usize = pieces.iter().map(|piece| piece.len()).sum();
        if offered == 0 {
            return Ok(0);
        }
        let room = self.room()?.min(offered);
        if room >= LEAST_BYTES {
            return self.write_memory(socket, pieces, room);
        }
        let bytes = offered.min(INLINE_BYTES);
        let record = record(bytes, INLINE);
        let mut parts = vec![IoSlice::new(&record)];
        parts.extend(first(pieces, bytes));
        let written = socket.write_vectored(&parts)?;
        let written = written.checked_sub(RECORD_BYTES).ok_or_else(torn)?;
        self.inline = bytes - written;
        Ok(written)
    }

    fn write_inline(
        &mut self,
        socket: &mut impl Write,
        pieces: &[IoSlice<'_>],
    ) -> io::Result<usize> {
        let parts: Vec<_> = first(pieces, self.inline).collect();
        let written = socket.write_vectored(&parts)?;
        self.inline -= written;
        Ok(written)
    }

    fn write_memory(
        &mut self,
        socket: &mut impl Write,
        pieces: &[IoSlice<'_>],
        bytes: usize,
    ) -> io::Result<usize> {
        let start = self.at;
        let mut at = start;
        for piece in first(pieces, bytes) {
            self.region.put(at, &piece);
            at += piece.len();
        }
        // The socket makes what was put visible: it is written before, and read after.
        let written = socket.write(&record(bytes, start as u32))?;
        if written != RECORD_BYTES {
            return Err(torn());
        }
        self.put += bytes as u64;
        self.at = if at == self.region.len() { 0 } else { at };
        Ok(bytes)
    }

    /// The number of free bytes in one piece.
    fn room(&mut self) -> io::Result<usize> {
        let waiting = self.put.checked_sub(self.region.taken());
        let waiting = waiting.and_then(|waiting| usize::try_from(waiting).ok());
        let all = self.region.len();
        let free = waiting.and_then(|waiting| all.checked_sub(waiting));
        let free = free.ok_or(io::ErrorKind::InvalidData)?;
        if free == all {
            // Memory that was just used is the fastest.
            self.at = 0;
        }
        Ok(free.min(all - self.at))
    }
}

/// The first bytes, in this number.
fn first<'a>(
    pieces: &'a [IoSlice<'_>],
    mut bytes: usize,
) -> impl Iterator<Item = IoSlice<'a>> + use<'a> {
    pieces.iter().map_while(move |piece| {
        let part = &piece[..piece.len().min(bytes)];
        bytes -= part.len();
        (!part.is_empty()).then(|| IoSlice::new(part))
    })
}

fn record(bytes: usize, at: u32) -> [u8; RECORD_BYTES] {
    let mut record = [0; RECORD_BYTES];
    record[..4].copy_from_slice(&(bytes as u32).to_le_bytes());
    record[4..].copy_from_slice(&at.to_le_bytes());
    record
}

/// A Unix socket takes a few bytes whole or not at all.
fn torn() -> io::Error {
    io::Error::other("the socket has taken a part of a record")
}
