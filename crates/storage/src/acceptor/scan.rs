//! Reading the records of a segment.

use std::io;

use super::dir::LogFile;
use super::header::SegmentHeader;
use super::record::{ALIGN, HEADER_BYTES, Header};

/// So much is read at once.
const CHUNK: usize = 1 << 20;

/// A part of a file, in memory. It grows to the longest record, and no further.
#[derive(Debug)]
pub(super) struct Window<F> {
    file: F,
    at: u64,
    bytes: Vec<u8>,
    chunk: usize,
}

impl<F: LogFile> Window<F> {
    /// For reading all of a segment.
    pub fn of(file: &F, segment: &SegmentHeader) -> Self {
        let chunk = usize::try_from(segment.size).map_or(CHUNK, |bytes| bytes.min(CHUNK));
        Self::with_chunk(file.clone(), chunk)
    }

    pub const fn with_chunk(file: F, chunk: usize) -> Self {
        Self {
            file,
            at: 0,
            bytes: Vec::new(),
            chunk,
        }
    }

    /// The bytes at `at`; fewer where the file ends.
    pub fn get(&mut self, at: u64, len: usize) -> io::Result<&[u8]> {
        let inside = at
            .checked_sub(self.at)
            .and_then(|skip| usize::try_from(skip).ok())
            .filter(|skip| skip.saturating_add(len) <= self.bytes.len());
        if let Some(skip) = inside {
            return Ok(&self.bytes[skip..skip + len]);
        }
        // Also what is known is read again: it was not enough, and may have been written meanwhile.
        self.bytes.resize(len.max(self.chunk), 0);
        self.at = at;
        match self.file.read_at(at, &mut self.bytes) {
            Ok(read) => self.bytes.truncate(read),
            Err(error) => {
                self.bytes.clear();
                return Err(error);
            }
        }
        Ok(&self.bytes[..len.min(self.bytes.len())])
    }

    /// The good record at `at`, which must end at `limit` or before.
    pub fn record(&mut self, key: u32, at: u64, limit: u64) -> io::Result<Option<(Header, &[u8])>> {
        let Some(header) = self.header(key, at, limit)? else {
            return Ok(None);
        };
        let bytes = self.get(at, header.record_bytes())?;
        let payload = bytes.get(HEADER_BYTES..).unwrap_or(&[]);
        if !header.fits(payload) {
            return Ok(None);
        }
        Ok(Some((header, &payload[..header.len])))
    }

    fn header(&mut self, key: u32, at: u64, limit: u64) -> io::Result<Option<Header>> {
        let bytes = self.get(at, HEADER_BYTES)?;
        let header = Header::decode(bytes, key, at);
        let fits = |header: &Header| at + header.record_bytes() as u64 <= limit;
        Ok(header.filter(fits))
    }
}

/// Takes a good record: its offset, header and payload.
pub(super) type Take<'a> = &'a mut dyn FnMut(u64, &Header, &[u8]);

/// Hands each record from `from` on to `visit`, until one is not good, or `limit`; says where that is.
pub(super) fn scan<F: LogFile>(
    file: &F,
    segment: &SegmentHeader,
    from: u64,
    limit: u64,
    visit: Take<'_>,
) -> io::Result<u64> {
    let (key, mut at) = (segment.key(), from);
    let mut window = Window::of(file, segment);
    while let Some((header, payload)) = window.record(key, at, limit)? {
        visit(at, &header, payload);
        at += header.record_bytes() as u64;
    }
    Ok(at)
}

/// Looks behind a record that is not good for one that says that all before it was durable.
pub(super) fn find_synced<F: LogFile>(
    file: &F,
    segment: &SegmentHeader,
    from: u64,
) -> io::Result<Option<u64>> {
    let (key, limit) = (segment.key(), segment.size);
    let mut window = Window::of(file, segment);
    let mut at = from.next_multiple_of(ALIGN);
    while at + HEADER_BYTES as u64 <= limit {
        let header = window.header(key, at, limit)?;
        if header.is_some_and(|header| header.synced_before)
            && window.record(key, at, limit)?.is_some()
        {
            return Ok(Some(at));
        }
        at += ALIGN;
    }
    Ok(None)
}
