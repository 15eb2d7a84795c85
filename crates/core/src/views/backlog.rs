//! What this process has to send, and keeps until it is delivered: a view may end first.

use crate::contract::{Service, SubmitError};
use crate::pack::{OutFrame, Outbox};

/// Messages of this process, as frames.
#[derive(Debug)]
pub struct Backlog {
    outbox: Outbox,
}

impl Backlog {
    /// For frames of up to `frame_bytes`, messages of up to `message_bytes`, and up to `backlog_bytes`
    /// of what has not been taken.
    pub fn new(frame_bytes: usize, message_bytes: usize, backlog_bytes: usize) -> Self {
        Self {
            outbox: Outbox::new(frame_bytes, message_bytes, backlog_bytes),
        }
    }

    /// Takes a message and says its counter.
    ///
    /// # Errors
    /// [`SubmitError::Full`], [`SubmitError::TooLarge`].
    pub fn push(&mut self, service: Service, payload: &[u8]) -> Result<u64, SubmitError> {
        self.outbox.push(service, payload)
    }

    /// How many frames wait to be sent.
    pub fn len(&self) -> usize {
        self.outbox.len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.outbox.is_empty()
    }

    /// The next frame to send. A data path numbers it and keeps it until the view ends or all have it.
    pub fn take(&mut self) -> Option<OutFrame> {
        self.outbox.take()
    }
}
