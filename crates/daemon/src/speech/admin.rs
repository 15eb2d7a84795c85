//! A peer at the admin socket: it gets the status as one line of JSON, and nothing is read of it.

use std::io::IoSlice;

use crate::status::StatusRefused;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct AdminSpeech {
    outbox: Vec<u8>,
    sent: usize,
    answered: bool,
}

impl AdminSpeech {
    /// The answer to a peer that has no right to the status.
    pub fn refused() -> Self {
        let mut speech = Self::default();
        let refused = StatusRefused {
            refused: "not allowed",
        };
        // A string is always JSON.
        speech.answer(&serde_json::to_string(&refused).unwrap_or_default());
        speech
    }

    /// The answer. There is only one.
    pub fn answer(&mut self, line: &str) {
        if !self.answered {
            self.outbox.extend_from_slice(line.as_bytes());
            self.outbox.push(b'\n');
            self.answered = true;
        }
    }

    pub fn chunks<'a>(&'a self, into: &mut Vec<IoSlice<'a>>) {
        into.push(IoSlice::new(&self.outbox[self.sent..]));
    }

    pub const fn sent(&mut self, bytes: usize) {
        self.sent += bytes;
    }

    pub const fn backlog(&self) -> usize {
        self.outbox.len() - self.sent
    }

    pub const fn is_ended(&self) -> bool {
        self.answered
    }
}
