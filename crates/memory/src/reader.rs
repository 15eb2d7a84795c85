//! The client's side: the reader of the stream.

use std::io;
use std::os::fd::OwnedFd;

use crate::region::Region;
use crate::{INLINE, RECORD_BYTES};

/// Several records that wait are read together, with the bytes behind them on the socket.
const AHEAD_BYTES: usize = 256;

/// Reads a stream, from memory and a socket that never blocks.
#[derive(Debug)]
pub struct Reader {
    region: Region,
    /// Bytes that were taken from the memory.
    taken: u64,
    /// For the record that was read last: the place of its next byte, and the number of bytes left.
    at: u32,
    left: usize,
    /// Bytes in the memory that records of the last read of the socket are about.
    announced: usize,
    /// Bytes that were read from the socket and not handled yet: from the first to the second.
    ahead: [u8; AHEAD_BYTES],
    from: usize,
    to: usize,
    /// The error that ended the stream behind bytes that were read: they come first.
    failed: Option<io::Error>,
}

impl Reader {
    /// A reader for memory of this many bytes.
    ///
    /// # Errors
    /// The system's; [`io::ErrorKind::InvalidData`] if the memory is not what a [`crate::Writer`] has.
    pub fn new(memory: &OwnedFd, bytes: usize) -> io::Result<Self> {
        Ok(Self {
            region: Region::open(memory, bytes)?,
            taken: 0,
            at: 0,
            left: 0,
            announced: 0,
            ahead: [0; AHEAD_BYTES],
            from: 0,
            to: 0,
            failed: None,
        })
    }

    /// Reads the bytes that are there: `None` if there are none yet, 0 at the end of the stream. `read` reads from the
    /// socket, with the same results. Bytes before an error are read first; the next call returns the error.
    ///
    /// # Errors
    /// The socket's; [`io::ErrorKind::ConnectionReset`] if the writer has taken the memory away before it was read;
    /// [`io::ErrorKind::InvalidData`] if a record says what cannot be;
    /// [`io::ErrorKind::UnexpectedEof`] if the stream ends where it cannot.
    pub fn read(
        &mut self,
        into: &mut [u8],
        mut read: impl FnMut(&mut [u8]) -> io::Result<Option<usize>>,
    ) -> io::Result<Option<usize>> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let mut done = 0;
        match self.read_on(into, &mut done, &mut read) {
            Err(error) if done > 0 => {
                self.failed = Some(error);
                Ok(Some(done))
            }
            read => read,
        }
    }

    /// Reads behind what is `done`.
    fn read_on(
        &mut self,
        into: &mut [u8],
        done: &mut usize,
        read: &mut impl FnMut(&mut [u8]) -> io::Result<Option<usize>>,
    ) -> io::Result<Option<usize>> {
        while *done < into.len() {
            let rest = &mut into[*done..];
            let got = match (self.left, self.at) {
                (0, _) if self.take_record()? => continue,
                // A call that has got some bytes need not ask the socket once more.
                (0, _) if *done > 0 => break,
                (0, _) => match self.fill(read)? {
                    Some(0) => return Ok(Some(0)),
                    Some(_) => continue,
                    None => return Ok(None),
                },
                (_, INLINE) => self.read_inline(rest, read)?,
                _ => Some(self.read_memory(rest)?),
            };
            match got {
                Some(got) => *done += got,
                None if *done == 0 => return Ok(None),
                None => break,
            }
        }
        Ok(Some(*done))
    }

    /// Whether something can be read that no descriptor tells of.
    pub const fn has_more(&self) -> bool {
        let ahead = self.to - self.from;
        if self.failed.is_some() {
            return true;
        }
        match (self.left, self.at) {
            (0, _) => ahead >= RECORD_BYTES,
            (_, INLINE) => ahead > 0,
            _ => true,
        }
    }

    /// The next record, if it was read already; whether it was.
    fn take_record(&mut self) -> io::Result<bool> {
        let Some(record) = self.ahead[self.from..self.to].first_chunk::<RECORD_BYTES>() else {
            return Ok(false);
        };
        let [bytes, at] = [0, 4].map(|from| {
            let mut word = [0; 4];
            word.copy_from_slice(&record[from..from + 4]);
            u32::from_le_bytes(word)
        });
        self.from += RECORD_BYTES;
        if bytes == 0 || !(at == INLINE || self.can_be_there(bytes as usize, at as usize)) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        (self.left, self.at) = (bytes as usize, at);
        Ok(true)
    }

    /// Whether so many bytes can wait at this place. The writer has written the records of one read before this side has
    /// taken any bytes that they are about: together these are no more than the memory has. So no read gives many times
    /// of that, however small records are.
    fn can_be_there(&mut self, bytes: usize, at: usize) -> bool {
        let most = self.region.len();
        self.announced = self.announced.saturating_add(bytes);
        let end = at.checked_add(bytes);
        end.is_some_and(|end| end <= most) && self.announced <= most
    }

    /// Reads from the socket what belongs to the next record.
    fn fill(
        &mut self,
        read: &mut impl FnMut(&mut [u8]) -> io::Result<Option<usize>>,
    ) -> io::Result<Option<usize>> {
        self.ahead.copy_within(self.from..self.to, 0);
        (self.from, self.to) = (0, self.to - self.from);
        self.announced = 0;
        let got = read(&mut self.ahead[self.to..])?;
        if got == Some(0) && self.to > 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.to += got.unwrap_or(0);
        Ok(got)
    }

    fn read_inline(
        &mut self,
        into: &mut [u8],
        read: &mut impl FnMut(&mut [u8]) -> io::Result<Option<usize>>,
    ) -> io::Result<Option<usize>> {
        let most = into.len().min(self.left);
        let ahead = &self.ahead[self.from..self.to];
        let got = if ahead.is_empty() {
            read(&mut into[..most])?
        } else {
            let got = most.min(ahead.len());
            into[..got].copy_from_slice(&ahead[..got]);
            self.from += got;
            Some(got)
        };
        if got == Some(0) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.left -= got.unwrap_or(0);
        Ok(got)
    }

    fn read_memory(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let bytes = into.len().min(self.left);
        self.region.get(self.at as usize, &mut into[..bytes])?;
        self.at += bytes as u32;
        self.left -= bytes;
        self.taken += bytes as u64;
        self.region.set_taken(self.taken);
        Ok(bytes)
    }
}
