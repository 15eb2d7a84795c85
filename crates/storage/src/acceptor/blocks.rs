//! Appended bytes that are not written yet, as whole blocks.
//!
//! A group of votes is written once and read again only by processes that come back, so copying it into the system's
//! memory and writing that back page by page is most of what a group costs. With `O_DIRECT` the disk takes it from
//! here: whole blocks from aligned memory. The earlier bytes of the first block are written again as they were, and the
//! last block is filled with zeros, where records end anyway.

use std::io;

use super::dir::LogFile;
use super::pages::Pages;
use super::record::RecordRef;

/// Both the blocks and the memory are aligned to this. Disks with larger blocks are not written to past the system's
/// memory.
pub(super) const BLOCK: usize = 4096;

/// More memory than this is given back after a write.
pub(super) const USUAL: usize = 16 << 20;

#[derive(Debug, Default)]
pub(super) struct Blocks {
    /// Begins with a block.
    memory: Pages,
    /// The bytes of the first block that are in the file already.
    written: usize,
}

impl Blocks {
    /// To be appended to behind `before`, which is in the file and begins with a block of it.
    pub fn behind(before: &[u8]) -> Self {
        let mut blocks = Self::default();
        blocks.go_on_behind(before);
        blocks
    }

    /// The same in the memory that is there: its contents are written.
    pub fn go_on_behind(&mut self, before: &[u8]) {
        let written = before.len() % BLOCK;
        let start = before.len() - written;
        self.memory.truncate(0);
        let block = self.memory.add(written);
        block.copy_from_slice(&before[start..]);
        self.written = written;
    }

    /// The number of bytes that are not written.
    pub fn len(&self) -> usize {
        self.memory.len() - self.written
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn put(&mut self, record: RecordRef<'_>, key: u32, offset: u64, synced_before: bool) {
        let room = self.memory.add(record.encoded_bytes());
        record.encode_to(room, key, offset, synced_before);
    }

    /// The bytes of the block that is written next that are in the file already.
    pub const fn written(&self) -> usize {
        self.written
    }

    /// Has `memory` written next, which goes on behind the block that is begun; hands out its own memory, with nothing
    /// in it that is not written.
    pub fn take_over(&mut self, memory: &mut Pages) {
        memory[..self.written].copy_from_slice(&self.memory[..self.written]);
        std::mem::swap(&mut self.memory, memory);
    }

    /// Writes all of it; `end` is its end in the file.
    pub fn write<F: LogFile>(&mut self, file: &F, end: u64) -> io::Result<()> {
        let bytes = self.memory.len();
        let filled = bytes.next_multiple_of(BLOCK);
        self.memory.add(filled - bytes).fill(0);
        let result = file.append_at(end - bytes as u64, &self.memory);
        let whole = bytes / BLOCK * BLOCK;
        self.memory.copy_within(whole..bytes, 0);
        self.written = bytes - whole;
        self.memory.truncate(self.written);
        if self.memory.room() > USUAL {
            *self = Self::behind(&self.memory);
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acceptor::record::Kind;
    use std::sync::{Arc, Mutex};

    /// A file in memory, which checks the places of writes and the alignment of their memory.
    #[derive(Clone, Debug, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl LogFile for Written {
        fn read_at(&self, _: u64, _: &mut [u8]) -> io::Result<usize> {
            unreachable!("nothing is read")
        }

        fn write_at(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
            assert!(at.is_multiple_of(BLOCK as u64) && bytes.len().is_multiple_of(BLOCK));
            assert_eq!(bytes.as_ptr().align_offset(BLOCK), 0);
            let at = at as usize;
            let mut file = self.0.lock().unwrap();
            let had = file.len();
            assert!(at <= had, "a hole");
            file.resize(had.max(at + bytes.len()), 0);
            file[at..at + bytes.len()].copy_from_slice(bytes);
            Ok(())
        }

        fn sync(&self) -> io::Result<()> {
            Ok(())
        }

        fn bytes(&self) -> io::Result<u64> {
            Ok(self.0.lock().unwrap().len() as u64)
        }
    }

    #[test]
    fn what_is_appended_is_in_the_file_in_aligned_blocks() {
        let before = vec![7; 5000];
        let file = Written::default();
        *file.0.lock().unwrap() = before.clone();
        let mut expected = before.clone();
        let mut blocks = Blocks::behind(&before);
        let put = |blocks: &mut Blocks, expected: &mut Vec<u8>, bytes: &[u8]| {
            let record = RecordRef {
                kind: Kind::Vote,
                first: 1,
                last: 1,
                head: &[],
                bytes,
            };
            let at = expected.len() as u64;
            blocks.put(record, 5, at, true);
            record.encode(expected, 5, at, true);
        };
        for size in [0, 10, 4096, 1, 8192, 3000, 5 << 20, 20, 3 << 20, 100_000, 7] {
            for count in 0..3 {
                put(&mut blocks, &mut expected, &vec![count; size]);
            }
            let from = file.0.lock().unwrap().len();
            assert_eq!(blocks.len(), expected.len() - from.min(expected.len()));
            blocks.write(&file, expected.len() as u64).unwrap();
            assert!(blocks.is_empty());
            // Once in a while they end with a block.
            if size == 3000 || size == 20 {
                let room = BLOCK - (expected.len() + 32) % BLOCK;
                put(&mut blocks, &mut expected, &vec![9; room]);
                assert!(expected.len().is_multiple_of(BLOCK));
                blocks.write(&file, expected.len() as u64).unwrap();
            }
            let mut file = file.0.lock().unwrap();
            assert!(file[expected.len()..].iter().all(|byte| *byte == 0));
            file.truncate(expected.len());
            assert!(*file == expected, "{size}");
        }
    }
}
