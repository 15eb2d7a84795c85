//! Receive buffers that come back.
//!
//! A fresh 64 KiB buffer costs page faults that are dearer than the system call that fills it, so buffers are kept. The
//! bytes that are read become [`Bytes`] that point into the buffer; when the last of them is gone, on whatever thread,
//! the buffer returns to the pool.

use bytes::Bytes;
use std::sync::{Arc, Mutex, PoisonError};

use crate::slab::Buffer;

/// Room for the largest burst the kernel hands out at once, in bytes.
pub(crate) const BUFFER_BYTES: usize = 65_536;

/// Buffers kept for later; more are given back.
const KEPT: usize = 128;

/// Below this share of a buffer, what was read is copied out: a small datagram that an engine keeps
/// for long must not hold a whole buffer.
const COPY_BELOW: usize = BUFFER_BYTES / 4;

type Shelf = Arc<Mutex<Vec<Buffer>>>;

/// A bounded store of receive buffers, and the one in use.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    shelf: Shelf,
    current: Option<Buffer>,
}

impl Pool {
    /// The buffer to read into next.
    pub(crate) fn buffer(&mut self) -> &mut [u8] {
        let shelf = &self.shelf;
        let buffer = self.current.get_or_insert_with(|| {
            let mut shelf = shelf.lock().unwrap_or_else(PoisonError::into_inner);
            if shelf.is_empty() {
                // As with any allocation: without memory there is no way on.
                shelf.extend(Buffer::slab().expect("memory for receive buffers"));
            }
            shelf.pop().expect("a slab has buffers")
        });
        buffer.bytes_mut()
    }

    /// Takes the first `len` bytes that were read into [`Self::buffer`].
    pub(crate) fn take(&mut self, len: usize) -> Bytes {
        if len < COPY_BELOW {
            return Bytes::copy_from_slice(&self.buffer()[..len]);
        }
        match self.current.take() {
            Some(buffer) => Bytes::from_owner(Lent {
                buffer: Some(buffer),
                len,
                shelf: Arc::clone(&self.shelf),
            }),
            None => Bytes::new(),
        }
    }
}

/// A buffer on loan to the engine.
struct Lent {
    /// Taken out only when the loan ends.
    buffer: Option<Buffer>,
    len: usize,
    shelf: Shelf,
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        self.buffer
            .as_ref()
            .map_or(&[], |buffer| &buffer.bytes()[..self.len])
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let mut shelf = self.shelf.lock().unwrap_or_else(PoisonError::into_inner);
        if shelf.len() < KEPT {
            shelf.extend(self.buffer.take());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_returns_when_the_last_slice_of_it_is_gone() {
        let mut pool = Pool::default();
        pool.buffer()[..3].copy_from_slice(b"abc");
        let first = pool.buffer().as_ptr();
        let whole = pool.take(COPY_BELOW);
        let slice = whole.slice(..3);
        drop(whole);
        assert_ne!(pool.buffer().as_ptr(), first);
        pool.current = None;
        assert_eq!(&slice[..], b"abc");
        drop(slice);
        assert_eq!(pool.buffer().as_ptr(), first);
    }

    #[test]
    fn a_small_read_is_copied_and_keeps_no_buffer() {
        let mut pool = Pool::default();
        pool.buffer()[0] = 7;
        let first = pool.buffer().as_ptr();
        let small = pool.take(1);
        assert_eq!(pool.buffer().as_ptr(), first);
        assert_eq!(&small[..], &[7]);
    }
}
