//! Appending past the system's memory.
//!
//! A group of votes is written once and read again only by those who come back, so copying it into the system's memory and
//! writing that back page by page is most of what a group costs. With `O_DIRECT` the disk takes it from here. It takes whole
//! blocks from aligned memory: what a group begins in is written again as it was, and its last block is filled with
//! zeros, where records end anyway.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;

/// Both the blocks and the memory are aligned to this. Disks with larger blocks are not written to in this way.
pub(super) const BLOCK: usize = 4096;

/// The most that is written at once.
const CHUNK: usize = 1 << 20;

/// A file that is appended to.
#[derive(Debug)]
pub(super) struct Direct {
    file: File,
    /// One block longer, so that an aligned part of it is long enough.
    buffer: Vec<u8>,
    /// What the buffer begins with is in the file from there on, not a whole block.
    tail: Option<(u64, usize)>,
}

impl Direct {
    /// `None` where the file system has no such thing.
    pub(super) fn open(path: &Path) -> Option<Self> {
        let file = File::options()
            .write(true)
            .custom_flags(libc::O_DIRECT)
            .open(path)
            .ok()?;
        Some(Self {
            file,
            buffer: vec![0; CHUNK + BLOCK],
            tail: None,
        })
    }

    /// Writes all of it, and zeros to the end of the last block. Where the file system refuses, as one with larger
    /// blocks does, nothing is written: `false`.
    pub(super) fn append(&mut self, seen: &File, at: u64, bytes: &[u8]) -> io::Result<bool> {
        let (mut at, mut rest) = (at, bytes);
        let mut is_first = true;
        while !rest.is_empty() {
            let begun = self.begin(seen, at)?;
            let now = rest.len().min(CHUNK - begun);
            let end = begun + now;
            let blocks = end.next_multiple_of(BLOCK);
            let from = at - begun as u64;
            let buffer = aligned(&mut self.buffer);
            buffer[begun..end].copy_from_slice(&rest[..now]);
            buffer[end..blocks].fill(0);
            match write_all(&self.file, &buffer[..blocks], from) {
                Err(error) if is_first && error.kind() == io::ErrorKind::InvalidInput => {
                    return Ok(false);
                }
                written => written?,
            }
            let whole = end / BLOCK * BLOCK;
            buffer.copy_within(whole..end, 0);
            self.tail = Some((from + whole as u64, end - whole));
            (at, rest) = (at + now as u64, &rest[now..]);
            is_first = false;
        }
        Ok(true)
    }

    /// Has the buffer begin with what is in the file before `at`, in the same block; says how much that is.
    fn begin(&mut self, seen: &File, at: u64) -> io::Result<usize> {
        let begun = (at % BLOCK as u64) as usize;
        let from = at - begun as u64;
        if self.tail.take() != Some((from, begun)) {
            seen.read_exact_at(&mut aligned(&mut self.buffer)[..begun], from)?;
        }
        Ok(begun)
    }
}

fn aligned(buffer: &mut [u8]) -> &mut [u8] {
    let from = buffer.as_ptr().align_offset(BLOCK);
    &mut buffer[from..from + CHUNK]
}

/// What is not written at once need not be whole blocks: the system says what is wrong with the rest.
fn write_all(file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
    let mut done = 0;
    while done < bytes.len() {
        match file.write_at(&bytes[done..], at + done as u64) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => done += written,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if done > 0 => return Err(io::Error::other(error)),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
