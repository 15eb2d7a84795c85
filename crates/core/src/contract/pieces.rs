//! A message in several buffers.

use alloc::vec;
use alloc::vec::Vec;
use bytes::Bytes;
use core::mem;

/// The bytes of one message, in pieces that follow each other. A process that passes on received bytes need not copy
/// them: they are a piece of the message that leaves.
#[derive(Clone, Debug, Default)]
pub struct Pieces {
    /// The pieces, none of them empty.
    pieces: Vec<Bytes>,
    len: usize,
}

impl Pieces {
    /// The number of bytes of all pieces.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no byte.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends a piece.
    pub fn push(&mut self, piece: Bytes) {
        if !piece.is_empty() {
            self.len += piece.len();
            self.pieces.push(piece);
        }
    }

    /// The message in one buffer: copied unless there is one piece.
    pub fn into_bytes(mut self) -> Bytes {
        if self.pieces.len() <= 1 {
            return self.pieces.pop().unwrap_or_default();
        }
        self.pieces.concat().into()
    }
}

/// A message while it is written: large parts are not copied into it.
#[derive(Debug)]
pub struct PiecesWriter {
    pieces: Pieces,
    /// The bytes behind those pieces.
    pub small: Vec<u8>,
}

impl PiecesWriter {
    /// Bytes from this many on are a piece of their own; fewer are cheaper to copy than to name.
    const PIECE_BYTES: usize = 1024;

    /// A message that begins with `head`.
    pub fn new(head: Vec<u8>) -> Self {
        Self {
            pieces: Pieces::default(),
            small: head,
        }
    }

    /// The number of bytes written.
    pub const fn len(&self) -> usize {
        self.pieces.len() + self.small.len()
    }

    /// Whether no byte is written.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends a part that is there already.
    pub fn push(&mut self, part: &Bytes) {
        if part.len() < Self::PIECE_BYTES {
            self.small.extend_from_slice(part);
            return;
        }
        self.pieces.push(mem::take(&mut self.small).into());
        self.pieces.push(part.clone());
    }

    /// The message.
    pub fn finish(mut self) -> Pieces {
        self.pieces.push(self.small.into());
        self.pieces
    }
}

impl From<Bytes> for Pieces {
    fn from(bytes: Bytes) -> Self {
        let len = bytes.len();
        let pieces = if len == 0 { Vec::new() } else { vec![bytes] };
        Self { pieces, len }
    }
}

impl From<Vec<u8>> for Pieces {
    fn from(bytes: Vec<u8>) -> Self {
        Bytes::from(bytes).into()
    }
}

impl IntoIterator for Pieces {
    type Item = Bytes;
    type IntoIter = vec::IntoIter<Bytes>;

    fn into_iter(self) -> Self::IntoIter {
        self.pieces.into_iter()
    }
}

/// Compares messages by their bytes, however they are cut into pieces.
impl PartialEq for Pieces {
    fn eq(&self, other: &Self) -> bool {
        let bytes = |of: &Self| of.pieces.iter().flatten().copied().collect::<Vec<_>>();
        self.len == other.len && bytes(self) == bytes(other)
    }
}

impl Eq for Pieces {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_the_same_however_it_is_cut() {
        let cut = |parts: &[&'static [u8]]| {
            let mut pieces = Pieces::default();
            parts
                .iter()
                .for_each(|part| pieces.push(Bytes::from_static(part)));
            pieces
        };
        let whole = Pieces::from(Bytes::from_static(b"abcdef"));
        for parts in [&[b"abcdef".as_slice()][..], &[b"ab", b"", b"cdef"]] {
            assert_eq!(cut(parts), whole);
            assert_eq!(cut(parts).len(), 6);
            assert_eq!(&cut(parts).into_bytes()[..], b"abcdef");
            assert!(cut(parts).into_iter().all(|piece| !piece.is_empty()));
        }
        assert_ne!(cut(&[b"ab", b"cdeg"]), whole);
        assert!(cut(&[b""]).is_empty() && Pieces::from(Bytes::new()).is_empty());
    }

    #[test]
    fn one_piece_is_not_copied() {
        let bytes = Bytes::from(vec![7; 100]);
        let at = bytes.as_ptr();
        assert_eq!(Pieces::from(bytes).into_bytes().as_ptr(), at);
    }
}
