//! The way of each frame, for drawings.

/// The way of one frame to one of its receivers. All times are nanoseconds since the measured time began.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Passage {
    /// The sender, from 0.
    pub from: usize,
    /// The receiver, from 0.
    pub to: usize,
    /// Whether it is a token.
    pub is_token: bool,
    /// The sequence number of a packet, or the number of a token.
    pub number: u64,
    /// When it begins to leave its sender's network card.
    pub leaves: u64,
    /// When the switch has all of it.
    pub crosses: u64,
    /// When it begins to leave the port of its receiver.
    pub forwarded: u64,
    /// When it is in its receiver's socket.
    pub arrives: u64,
}

/// The passages of a run, in the order in which the switch had them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Tape {
    /// Frames of data and of the token.
    pub passages: Vec<Passage>,
}

/// The longest tape.
const MOST: usize = 20_000;

impl Tape {
    /// Writes a passage down, while there is room.
    pub(crate) fn note(&mut self, passage: Passage) {
        if self.passages.len() < MOST {
            self.passages.push(passage);
        }
    }
}
