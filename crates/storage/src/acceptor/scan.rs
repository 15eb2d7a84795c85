//! Reading the records of a segment.

use std::io;

use super::dir::LogFile;
use super::header::SegmentHeader;
use super::record::{ALIGN, HEADER_BYTES, Header};

/// The bytes that are read at once.
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

/// Looks behind a record that is not good for one that says that all before it was durable. Each place where a record may
/// begin is tried, but none behind the end of the file: a segment may be cut off, and there every try would be a read for
/// nothing.
pub(super) fn find_synced<F: LogFile>(
    file: &F,
    segment: &SegmentHeader,
    from: u64,
) -> io::Result<Option<u64>> {
    let (key, limit) = (segment.key(), segment.size.min(file.bytes()?));
    let mut window = Window::of(file, segment);
    let mut at = from.next_multiple_of(ALIGN);
    while at + HEADER_BYTES as u64 <= limit {
        if Header::would_be_synced(window.get(at, HEADER_BYTES)?)
            && window.header(key, at, limit)?.is_some()
            && window.record(key, at, limit)?.is_some()
        {
            return Ok(Some(at));
        }
        at += ALIGN;
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::super::header::{Identity, PAGE};
    use super::super::record::{Kind, PAYLOAD_LIMIT, RecordRef};
    use super::*;
    use rota_core::contract::{LogId, NodeId};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Bytes in memory, and what was asked for.
    #[derive(Clone, Default)]
    struct Bytes(Arc<Vec<u8>>, Arc<Asked>);

    #[derive(Default)]
    struct Asked {
        most: AtomicUsize,
        reads: AtomicUsize,
        bytes: AtomicUsize,
    }

    impl LogFile for Bytes {
        fn read_at(&self, at: u64, buf: &mut [u8]) -> io::Result<usize> {
            self.1.most.fetch_max(buf.len(), Ordering::Relaxed);
            self.1.reads.fetch_add(1, Ordering::Relaxed);
            self.1.bytes.fetch_add(buf.len(), Ordering::Relaxed);
            let from = usize::try_from(at).unwrap().min(self.0.len());
            let len = buf.len().min(self.0.len() - from);
            buf[..len].copy_from_slice(&self.0[from..from + len]);
            Ok(len)
        }

        fn write_at(&self, _: u64, _: &[u8]) -> io::Result<()> {
            unreachable!("nothing is written")
        }

        fn sync(&self) -> io::Result<()> {
            unreachable!("nothing is written")
        }

        fn bytes(&self) -> io::Result<u64> {
            Ok(self.0.len() as u64)
        }
    }

    fn segment(size: u64) -> SegmentHeader {
        SegmentHeader {
            identity: Identity {
                cluster: 1,
                node: NodeId::new(1).unwrap(),
                log: LogId(1),
            },
            number: 1,
            life: 1,
            size,
            previous_end: 0,
            preamble_end: PAGE,
        }
    }

    /// Cut off in a record, or in what was never written; and whole, but nothing good in it.
    #[test]
    fn nothing_is_read_twice_and_nothing_behind_the_end_of_the_file() {
        const SIZE: usize = 16 << 20;
        let segment = segment(SIZE as u64);
        let mut good = vec![0; PAGE as usize];
        while good.len() < 200_000 {
            let (offset, payload) = (good.len() as u64, vec![7; 3000]);
            let record = RecordRef {
                kind: Kind::Vote,
                first: 1,
                last: 1,
                head: &[],
                bytes: &payload,
            };
            record.encode(&mut good, segment.key(), offset, true);
        }
        let end = good.len();
        let filled = |bytes: &[u8], with: &dyn Fn(usize) -> u8| {
            let rest = (bytes.len()..SIZE).map(with);
            bytes.iter().copied().chain(rest).collect::<Vec<u8>>()
        };
        let noise = |at: usize| {
            (at as u64)
                .wrapping_mul(0x9e37_79b9_7f4a_7c15)
                .to_le_bytes()[6]
        };
        for file in [
            good[..end - 1000].to_vec(),
            filled(&good, &|_| 0)[..300_000].to_vec(),
            filled(&good, &|_| 0),
            filled(&good, &noise),
            filled(&[], &|_| 0),
            filled(&[], &noise),
            good[..10].to_vec(),
        ] {
            let length = file.len();
            let file = Bytes(Arc::new(file), Arc::default());
            let at = scan(&file, &segment, PAGE, segment.size, &mut |_, _, _| {}).unwrap();
            assert!(at >= PAGE && at <= end as u64);
            assert_eq!(find_synced(&file, &segment, at).unwrap(), None);
            let asked = |what: &AtomicUsize| what.load(Ordering::Relaxed);
            // Once to its end, and once more from there on; where windows meet, a part is read again.
            let (reads, bytes) = (asked(&file.1.reads), asked(&file.1.bytes));
            assert!(reads <= 6 + 2 * length / CHUNK, "{length}: {reads} reads");
            assert!(bytes <= 2 * length + 6 * CHUNK, "{length}: {bytes} bytes");
        }
    }

    #[test]
    fn a_length_that_does_not_fit_takes_no_memory() {
        let segment = segment(2 * PAGE);
        let mut bytes = vec![0; PAGE as usize];
        let payload = vec![7; PAYLOAD_LIMIT];
        let record = RecordRef {
            kind: Kind::Vote,
            first: 1,
            last: 1,
            head: &[],
            bytes: &payload,
        };
        // A good header, of a record that cannot be in this segment.
        record.encode(&mut bytes, segment.key(), PAGE, true);
        bytes.truncate(2 * PAGE as usize);
        let file = Bytes(Arc::new(bytes), Arc::default());
        let end = scan(&file, &segment, PAGE, segment.size, &mut |_, _, _| {
            panic!("there is no record")
        });
        assert_eq!(end.unwrap(), PAGE);
        assert_eq!(find_synced(&file, &segment, PAGE).unwrap(), None);
        assert_eq!(file.1.most.load(Ordering::Relaxed), 2 * PAGE as usize);
    }
}
