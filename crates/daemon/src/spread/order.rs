//! The byte order of numbers, and the marks that tell it.
//!
//! Each side writes numbers in its own order and says so inside the first one: a little-endian sender
//! sets [`MARK`], a big-endian one leaves it clear. The mark reads the same in both orders.

/// The bits of a type or hint that tell the order of its bytes.
pub(super) const MARK: u32 = 0x8000_0080;

/// In which order the bytes of a number are sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ByteOrder {
    /// Lowest byte first.
    Little,
    /// Highest byte first.
    Big,
}

impl ByteOrder {
    /// The order these four bytes are marked with; `None` if half of the mark is there.
    pub(super) const fn marked(bytes: [u8; 4]) -> Option<Self> {
        match u32::from_le_bytes(bytes) & MARK {
            MARK => Some(Self::Little),
            0 => Some(Self::Big),
            _ => None,
        }
    }

    /// Reads a number, its mark included.
    pub(super) const fn get(self, bytes: [u8; 4]) -> u32 {
        match self {
            Self::Little => u32::from_le_bytes(bytes),
            Self::Big => u32::from_be_bytes(bytes),
        }
    }

    /// The bytes of a plain number.
    pub(super) const fn put(self, value: u32) -> [u8; 4] {
        match self {
            Self::Little => value.to_le_bytes(),
            Self::Big => value.to_be_bytes(),
        }
    }

    /// The bytes of a number that carries the mark.
    pub(super) const fn put_marked(self, value: u32) -> [u8; 4] {
        match self {
            Self::Little => (value | MARK).to_le_bytes(),
            Self::Big => (value & !MARK).to_be_bytes(),
        }
    }
}
