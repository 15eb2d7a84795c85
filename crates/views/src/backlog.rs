//! The messages that this process has to send, and keeps until they are delivered: a view may end first.

use alloc::collections::VecDeque;

use rota_core::contract::{Service, SubmitError};
use rota_core::invariants::FEW;
use rota_core::mutants::{self, Mutant};
use rota_core::pack::{OutFrame, Outbox};
use rota_core::wire::Frame;

/// Messages of this process, as frames. A frame that was taken stays until all its messages are
/// delivered; if the view ends before, it is taken again in the next one.
#[derive(Debug)]
pub struct Backlog {
    outbox: Outbox,
    /// The frames that were taken and are not delivered, oldest first.
    taken: VecDeque<OutFrame>,
}

impl Backlog {
    /// An empty backlog, for frames of up to `frame_bytes`, messages of up to `message_bytes`, and up to
    /// `backlog_bytes` of frames that have not been taken.
    pub fn new(frame_bytes: usize, message_bytes: usize, backlog_bytes: usize) -> Self {
        Self {
            outbox: Outbox::new(frame_bytes, message_bytes, backlog_bytes),
            taken: VecDeque::new(),
        }
    }

    /// Takes a message and says its counter.
    ///
    /// # Errors
    /// [`SubmitError::Full`], [`SubmitError::TooLarge`].
    pub fn push(&mut self, service: Service, payload: &[u8]) -> Result<u64, SubmitError> {
        self.outbox.push(service, payload)
    }

    /// The number of frames that wait to be sent.
    pub fn len(&self) -> usize {
        self.outbox.len()
    }

    /// Whether no frame waits.
    pub fn is_empty(&self) -> bool {
        self.outbox.is_empty()
    }

    /// Whether nothing waits, and all that was taken is delivered.
    pub fn is_delivered(&self) -> bool {
        self.is_empty() && self.taken.is_empty()
    }

    /// The next frame to send. A data path numbers it and keeps it until the view ends or all have it.
    pub fn take(&mut self) -> Option<OutFrame> {
        let out = self.outbox.take()?;
        self.taken.push_back(out.clone());
        Some(out)
    }

    /// Forgets frames, as all messages up to this counter are delivered.
    pub fn delivered(&mut self, counter: u64) {
        let done = |out: &mut OutFrame| last_of(&out.frame) <= counter;
        while self.taken.pop_front_if(done).is_some() {}
    }

    /// Notes that a packet was delivered. If its frame were forgotten, the rest of a large message in it would go on in
    /// the next view, whose joiners have no beginning of it: only a broken version forgets the frame.
    pub(super) fn packet_delivered(&mut self) {
        if mutants::on(Mutant::V05) {
            self.taken.pop_front();
        }
    }

    /// Prepares for a view that begins: messages that were taken in the view before, and are not delivered, are sent
    /// again. All messages up to `delivered` are delivered. A large message of which only parts were delivered is sent
    /// again from its beginning.
    pub fn rewind(&mut self, delivered: u64) {
        self.delivered(delivered);
        if mutants::on(Mutant::V08) {
            self.taken.pop_front_if(|out| out.frame.end().fragment > 0);
        }
        self.outbox.take_back(self.taken.drain(..), delivered);
    }
}

/// The last message that a frame has at least a part of.
const fn last_of(frame: &Frame) -> u64 {
    let end = frame.end();
    if end.fragment > 0 {
        end.counter
    } else {
        end.counter - 1
    }
}

impl Backlog {
    /// Its invariants.
    pub fn check(&self) {
        self.outbox.check();
        if self.taken.len() <= FEW {
            let begins = self.taken.iter().map(|out| out.frame.start().counter);
            assert!(
                begins.is_sorted(),
                "frames are in the order of their messages"
            );
        }
    }
}
