//! The bytes that a client may send before the daemon has taken some of them.

use std::fmt;

/// A client's credit, as both sides count it: whole frames of [`super::Send`], in bytes.
///
/// The limit bounds the outstanding bytes: sent, and not known to be in the daemon's queue for the ring. One larger
/// frame is allowed when nothing is outstanding, so that the largest message always has its turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Credit {
    limit: u64,
    outstanding: u64,
}

/// A frame was sent for which there was no credit. The connection cannot go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CreditExceeded;

impl fmt::Display for CreditExceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("more was sent than the credit")
    }
}

impl std::error::Error for CreditExceeded {}

impl Credit {
    /// A credit of this limit, with no bytes outstanding.
    pub fn new(limit: u32) -> Self {
        Self {
            limit: limit.into(),
            outstanding: 0,
        }
    }

    /// Whether a frame of this many bytes may be sent now.
    pub const fn allows(&self, bytes: usize) -> bool {
        self.outstanding == 0 || self.outstanding.saturating_add(bytes as u64) <= self.limit
    }

    /// Charges a frame of this many bytes, which is sent now. After an error nothing has changed.
    pub const fn spend(&mut self, bytes: usize) -> Result<(), CreditExceeded> {
        if !self.allows(bytes) {
            return Err(CreditExceeded);
        }
        self.outstanding = self.outstanding.saturating_add(bytes as u64);
        Ok(())
    }

    /// Returns this many bytes. More than there were counts as all of them.
    pub const fn give_back(&mut self, bytes: u64) {
        self.outstanding = self.outstanding.saturating_sub(bytes);
    }

    /// Bytes that have been sent and not given back.
    pub const fn outstanding(&self) -> u64 {
        self.outstanding
    }

    /// Bytes that may be outstanding.
    pub const fn limit(&self) -> u64 {
        self.limit
    }
}
