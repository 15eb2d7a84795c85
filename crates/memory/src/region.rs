//! Memory that two processes see.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering, fence};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};

/// The offset of the stream's bytes. The reader writes before it, in cache lines that the bytes do not share.
const HEAD_BYTES: usize = 4096;

/// The offset of the writer's mark that the memory is there: not 0. On a line of its own, as it is read all the time.
const LIFE_AT: usize = 1024;

/// The most bytes of one region. A reader takes what it tells of at once, and a writer may tell the shortest things.
pub const MOST_BYTES: usize = 64 << 20;

/// The seals without which the other side could shrink the memory, and end this process by that.
const SEALS: SealFlags = SealFlags::SHRINK
    .union(SealFlags::GROW)
    .union(SealFlags::SEAL);

/// A mapping of such memory, of a fixed size.
#[derive(Debug)]
pub struct Region {
    start: NonNull<u8>,
    bytes: usize,
    side: Side,
}

/// The process that has the mapping.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Side {
    /// Of the process that made the memory.
    Writer,
    Reader,
    /// The writer marks the memory while it is there; earlier writers did not.
    ReaderThatIsTold,
}

// SAFETY: the mapping belongs to this value alone, whichever thread has it; it is not tied to one.
unsafe impl Send for Region {}

impl Region {
    /// New memory for `bytes`, and the descriptor by which another process finds it.
    pub fn create(bytes: usize) -> io::Result<(Self, OwnedFd)> {
        if !(1..=MOST_BYTES).contains(&bytes) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let memory = rustix::fs::memfd_create("rota-client", flags)?;
        ftruncate(&memory, (HEAD_BYTES + bytes) as u64)?;
        fcntl_add_seals(&memory, SEALS)?;
        let region = Self::map(&memory, bytes, Side::Writer)?;
        region.life().store(1, Ordering::Release);
        Ok((region, memory))
    }

    /// The memory of another process, if it is what [`Self::create`] makes.
    pub fn open(memory: &OwnedFd, bytes: usize) -> io::Result<Self> {
        let size = fstat(memory)?.st_size;
        let sealed = fcntl_get_seals(memory)?.contains(SEALS);
        if !(1..=MOST_BYTES).contains(&bytes) || size != (HEAD_BYTES + bytes) as i64 || !sealed {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut region = Self::map(memory, bytes, Side::Reader)?;
        if region.life().load(Ordering::Acquire) != 0 {
            region.side = Side::ReaderThatIsTold;
        }
        Ok(region)
    }

    fn map(memory: &OwnedFd, bytes: usize, side: Side) -> io::Result<Self> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let length = HEAD_BYTES + bytes;
        // SAFETY: a new mapping where the kernel likes it. The file cannot shrink, so all of it stays there.
        let start = unsafe {
            let flags = MapFlags::SHARED;
            mmap(
                ptr::null_mut(),
                length,
                protection,
                flags,
                memory.as_fd(),
                0,
            )?
        };
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, bytes, side })
    }

    pub const fn len(&self) -> usize {
        self.bytes
    }

    /// The bytes that the reader has taken, as it says.
    pub fn taken(&self) -> u64 {
        self.count().load(Ordering::Acquire)
    }

    pub fn set_taken(&self, taken: u64) {
        self.count().store(taken, Ordering::Release);
    }

    fn count(&self) -> &AtomicU64 {
        // SAFETY: the mapping is aligned to a page, begins with these 8 bytes and lives as long as `self`;
        // both processes use them as an atomic number only.
        unsafe { AtomicU64::from_ptr(self.start.as_ptr().cast()) }
    }

    fn life(&self) -> &AtomicU64 {
        // SAFETY: as in `count`; it is aligned, and within the head.
        unsafe { AtomicU64::from_ptr(self.start.as_ptr().add(LIFE_AT).cast()) }
    }

    /// Copies into the region.
    ///
    /// # Panics
    /// Beyond its end.
    pub fn put(&mut self, at: usize, from: &[u8]) {
        assert!(at <= self.bytes && from.len() <= self.bytes - at);
        // SAFETY: within the mapping, which Rust has no reference into. The other process may read or write the same
        // bytes meanwhile only against the protocol, and then what it gets are wrong bytes.
        unsafe {
            let to = self.start.as_ptr().add(HEAD_BYTES + at);
            ptr::copy_nonoverlapping(from.as_ptr(), to, from.len());
        }
    }

    /// Copies out of the region.
    ///
    /// # Errors
    /// [`io::ErrorKind::ConnectionReset`] if the writer has taken the memory away: the copied bytes may not be the
    /// writer's.
    ///
    /// # Panics
    /// Beyond its end.
    pub fn get(&self, at: usize, into: &mut [u8]) -> io::Result<()> {
        assert!(at <= self.bytes && into.len() <= self.bytes - at);
        // SAFETY: as in `put`.
        unsafe {
            let from = self.start.as_ptr().add(HEAD_BYTES + at);
            ptr::copy_nonoverlapping(from, into.as_mut_ptr(), into.len());
        }
        // The writer clears its mark first, and takes the memory away then.
        fence(Ordering::SeqCst);
        let is_gone =
            self.side == Side::ReaderThatIsTold && self.life().load(Ordering::SeqCst) == 0;
        if is_gone {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        Ok(())
    }

    /// Gives all pages back to the system, though another process may still have the memory: it has none that this one
    /// has filled, and what it puts there is its own.
    fn take_away(&self) {
        self.life().store(0, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        // SAFETY: the whole mapping, which Rust has no reference into, but for atomic numbers that may be 0 at any time.
        // It stays mapped, and reads as zeros. The seals allow it. Of a failure nothing follows but that pages stay.
        let _ = unsafe {
            let length = HEAD_BYTES + self.bytes;
            madvise(self.start.as_ptr().cast(), length, Advice::LinuxRemove)
        };
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        if self.side == Side::Writer {
            self.take_away();
        }
        // SAFETY: the whole mapping, which nothing uses any more. Of a failure nothing follows.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), HEAD_BYTES + self.bytes) };
    }
}
