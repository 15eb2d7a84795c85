//! Memory for receive buffers, in huge pages where the kernel has them.
//!
//! Every burst is copied into a buffer and read from it soon after. With 4 KiB pages the address
//! translation of that is a good part of its cost, most of all on virtual machines.

use std::io;
use std::ptr::NonNull;
use std::sync::Arc;

use crate::pool::BUFFER_BYTES;

/// One huge page.
const SLAB_BYTES: usize = 2 << 20;
/// Buffers cut from one slab.
const BUFFERS: usize = SLAB_BYTES / BUFFER_BYTES;

/// A mapping of [`SLAB_BYTES`], given back to the kernel when its last buffer is gone.
#[derive(Debug)]
struct Slab {
    mapping: NonNull<u8>,
    mapped: usize,
    start: NonNull<u8>,
}

// SAFETY: the mapping belongs to the slab alone, is not tied to a thread, and the slab itself never
// reads or writes it; its buffers do, each its own part.
unsafe impl Send for Slab {}
// SAFETY: as above; `&Slab` gives no access to the memory.
unsafe impl Sync for Slab {}

impl Slab {
    fn new() -> io::Result<Self> {
        // Twice the size, so that an aligned huge page lies in it.
        let mapped = 2 * SLAB_BYTES;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: an anonymous mapping at an address of the kernel's choice touches nothing that
        // exists.
        let address = unsafe { libc::mmap(std::ptr::null_mut(), mapped, protection, flags, -1, 0) };
        let mapping = NonNull::new(address.cast::<u8>());
        let mapping = match mapping {
            Some(mapping) if address != libc::MAP_FAILED => mapping,
            _ => return Err(io::Error::last_os_error()),
        };
        let skip = mapping.as_ptr().align_offset(SLAB_BYTES);
        // SAFETY: `skip` is below `SLAB_BYTES`, so the start and the whole slab lie in the mapping.
        let start = unsafe { mapping.add(skip) };
        // A kernel without huge pages refuses; the memory is as good, only slower.
        // SAFETY: the range is part of the mapping just made.
        unsafe { libc::madvise(start.as_ptr().cast(), SLAB_BYTES, libc::MADV_HUGEPAGE) };
        Ok(Self {
            mapping,
            mapped,
            start,
        })
    }
}

impl Drop for Slab {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `new` with this size, and no buffer is left: each holds the
        // slab alive.
        unsafe { libc::munmap(self.mapping.as_ptr().cast(), self.mapped) };
    }
}

/// [`BUFFER_BYTES`] of a slab.
#[derive(Debug)]
pub(crate) struct Buffer {
    slab: Arc<Slab>,
    index: usize,
}

impl Buffer {
    /// The buffers of a fresh slab, zeroed.
    pub(crate) fn slab() -> io::Result<Vec<Self>> {
        let slab = Arc::new(Slab::new()?);
        let buffer = |index| Self {
            slab: Arc::clone(&slab),
            index,
        };
        Ok((0..BUFFERS).map(buffer).collect())
    }

    fn start(&self) -> *mut u8 {
        // SAFETY: `index` is below `BUFFERS`, so the offset stays inside the slab.
        unsafe { self.slab.start.as_ptr().add(self.index * BUFFER_BYTES) }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: the range lies in the slab, which `self` keeps mapped; it was zeroed by the kernel;
        // every index is handed out once, so only `self` refers to it.
        unsafe { std::slice::from_raw_parts(self.start(), BUFFER_BYTES) }
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`, and `&mut self` is the only way to this range now.
        unsafe { std::slice::from_raw_parts_mut(self.start(), BUFFER_BYTES) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_buffers_of_a_slab_do_not_overlap_and_outlive_each_other() {
        let mut buffers = Buffer::slab().unwrap();
        assert_eq!(buffers.len(), BUFFERS);
        for (index, buffer) in (0..).zip(&mut buffers) {
            buffer.bytes_mut().fill(index);
        }
        let last = buffers.pop().unwrap();
        for (index, buffer) in (0..).zip(&buffers) {
            assert!(buffer.bytes().iter().all(|&byte| byte == index));
        }
        drop(buffers);
        assert_eq!(usize::from(last.bytes()[BUFFER_BYTES - 1]), BUFFERS - 1);
    }
}
