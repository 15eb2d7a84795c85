//! Somebody who wants to know how the daemon is: gets one line of JSON, and nothing is read of him.

use std::io::IoSlice;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct AdminSpeech {
    outbox: Vec<u8>,
    sent: usize,
    answered: bool,
}

impl AdminSpeech {
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
