//! The words of members about shares, and their notes.

use core::fmt;

/// The first byte of a requirement in the one order.
const REQUIREMENT: u8 = 1;

/// The first byte of a capacity in the one order.
const CAPACITY: u8 = 2;

/// The reason for which bytes of a peer are not a word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WordError {
    /// It is not as long as its kind has to be.
    Length,
    /// There is no such kind.
    Kind,
    /// The sender is not in the view.
    Sender,
}

impl fmt::Display for WordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Length => "a word about shares has the wrong length",
            Self::Kind => "a word about shares is of no known kind",
            Self::Sender => "a word about shares is of nobody in the view",
        })
    }
}

impl core::error::Error for WordError {}

/// A word in the one order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Word {
    /// From here on the sender requires this rate, more or less than before (FastCast figure 4: `INCR`, `DECR`; a word
    /// with the whole requirement leaves no sum to get wrong).
    Requirement {
        /// Names the request: grows with each request of this process.
        number: u64,
        /// In bits per second.
        requirement: u64,
    },
    /// From here on the sender's link takes in this rate.
    Capacity {
        /// Grows with each word of this kind of this process.
        number: u64,
        /// In bits per second.
        capacity: u64,
    },
}

impl Word {
    /// Bytes of the longest word.
    pub const MAX_BYTES: usize = 17;

    /// The bytes.
    pub fn encode(self) -> [u8; Self::MAX_BYTES] {
        let (kind, number, value) = match self {
            Self::Requirement {
                number,
                requirement,
            } => (REQUIREMENT, number, requirement),
            Self::Capacity { number, capacity } => (CAPACITY, number, capacity),
        };
        let mut bytes = [kind; Self::MAX_BYTES];
        bytes[1..9].copy_from_slice(&number.to_be_bytes());
        bytes[9..].copy_from_slice(&value.to_be_bytes());
        bytes
    }

    /// The word that a peer has sent.
    ///
    /// # Errors
    /// [`WordError::Length`], [`WordError::Kind`].
    pub fn decode(bytes: &[u8]) -> Result<Self, WordError> {
        let (&kind, rest) = bytes.split_first().ok_or(WordError::Length)?;
        if kind != REQUIREMENT && kind != CAPACITY {
            return Err(WordError::Kind);
        }
        let (number, value) = two(rest).ok_or(WordError::Length)?;
        Ok(if kind == REQUIREMENT {
            Self::Requirement {
                number,
                requirement: value,
            }
        } else {
            Self::Capacity {
                number,
                capacity: value,
            }
        })
    }
}

/// The words of a process to the members of the next view, before that begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Note {
    /// The requirement in force, in bits per second, without a request that is under way.
    pub requirement: u64,
    /// The capacity of its link, in bits per second. All members go by the slowest link.
    pub capacity: u64,
}

impl Note {
    /// Bytes of a note.
    pub const BYTES: usize = 16;

    /// The bytes.
    pub fn encode(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(&self.requirement.to_be_bytes());
        bytes[8..].copy_from_slice(&self.capacity.to_be_bytes());
        bytes
    }

    /// The note of a peer; `None` if it is none.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (requirement, capacity) = two(bytes)?;
        Some(Self {
            requirement,
            capacity,
        })
    }
}

/// Two numbers, and nothing else.
fn two(bytes: &[u8]) -> Option<(u64, u64)> {
    let (first, second) = bytes.split_first_chunk::<8>()?;
    let second: &[u8; 8] = second.try_into().ok()?;
    Some((u64::from_be_bytes(*first), u64::from_be_bytes(*second)))
}
