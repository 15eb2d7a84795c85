//! From messages to frames.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use bytes::Bytes;

use crate::contract::{Service, SubmitError};
use crate::wire::{
    FIRST_RECORD_BYTES, Frame, MAX_FRAGMENTS, NEXT_RECORD_BYTES, WHOLE_RECORD_BYTES, push_first,
    push_next, push_whole, start_frame,
};

/// Room for the counter at the start of a frame.
const COUNTER_BYTES: usize = 10;

/// What a waiting frame costs beside its bytes: its place in the queue, and the room it opens with.
/// Counted, so that many tiny frames (services in turns) cannot outgrow the bound.
const FRAME_COST: usize = 300;

/// Submitted messages, packed into frames, waiting for an engine. Bounded in bytes.
#[derive(Debug)]
pub struct Outbox {
    frame_bytes: usize,
    message_bytes: usize,
    backlog_bytes: usize,
    queued_bytes: usize,
    next_counter: u64,
    frames: VecDeque<Building>,
}

/// A frame that leaves the outbox.
#[derive(Clone, Debug)]
pub struct OutFrame {
    /// The guarantee all its messages asked for.
    pub service: Service,
    /// The frame.
    pub frame: Frame,
}

#[derive(Debug)]
struct Building {
    service: Service,
    bytes: Vec<u8>,
    /// Ends with a part of a cut message that goes on in the next frame.
    closed: bool,
}

impl Outbox {
    /// An outbox for frames of `frame_bytes`, messages of at most `message_bytes`, and
    /// `backlog_bytes` in all.
    pub const fn new(frame_bytes: usize, message_bytes: usize, backlog_bytes: usize) -> Self {
        Self {
            frame_bytes,
            message_bytes,
            backlog_bytes,
            queued_bytes: 0,
            next_counter: 1,
            frames: VecDeque::new(),
        }
    }

    /// Frames waiting.
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// The largest message this outbox takes, in bytes.
    pub fn limit(&self) -> usize {
        let parts = (self.frame_bytes - COUNTER_BYTES - FIRST_RECORD_BYTES) * MAX_FRAGMENTS;
        self.message_bytes.min(parts)
    }

    /// Takes a message; answers with its counter.
    pub fn push(&mut self, service: Service, payload: &[u8]) -> Result<u64, SubmitError> {
        let limit = self.limit();
        if payload.len() > limit {
            return Err(SubmitError::TooLarge { limit });
        }
        if !self.frames.is_empty() && self.queued_bytes + payload.len() > self.backlog_bytes {
            return Err(SubmitError::Full);
        }
        let counter = self.next_counter;
        self.next_counter += 1;
        if COUNTER_BYTES + WHOLE_RECORD_BYTES + payload.len() <= self.frame_bytes {
            self.push_small(service, counter, payload);
        } else {
            self.push_large(service, counter, payload);
        }
        Ok(counter)
    }

    /// The oldest frame.
    pub fn take(&mut self) -> Option<OutFrame> {
        let Building { service, bytes, .. } = self.frames.pop_front()?;
        self.queued_bytes -= bytes.len() + FRAME_COST;
        let frame = Frame::parse(Bytes::from(bytes)).expect("the outbox builds valid frames");
        Some(OutFrame { service, frame })
    }

    fn push_small(&mut self, service: Service, counter: u64, payload: &[u8]) {
        let bytes = self.open(service, counter, WHOLE_RECORD_BYTES + payload.len());
        push_whole(bytes, payload);
        self.queued_bytes += WHOLE_RECORD_BYTES + payload.len();
    }

    /// The open frame if it is of this service and has room for `more` bytes, else a new one.
    fn open(&mut self, service: Service, counter: u64, more: usize) -> &mut Vec<u8> {
        let room = self.frames.back().is_some_and(|last| {
            last.service == service && !last.closed && last.bytes.len() + more <= self.frame_bytes
        });
        if !room {
            let room = (COUNTER_BYTES + more).max(256);
            self.enqueue(service, counter, room, false, |_| ());
        }
        &mut self
            .frames
            .back_mut()
            .expect("there is an open frame")
            .bytes
    }

    /// Cuts a message. Its parts fill their frames, but for the last, which stays open for others.
    /// Parts have to arrive in order, so a reliable message that must be cut is served as fifo.
    fn push_large(&mut self, service: Service, counter: u64, payload: &[u8]) {
        let reliable = service == Service::Reliable;
        let service = if reliable { Service::Fifo } else { service };
        let total = u32::try_from(payload.len()).expect("message_bytes is below 4 GB");
        let room = self.frame_bytes - COUNTER_BYTES;
        let (first, mut rest) = payload.split_at(room - FIRST_RECORD_BYTES);
        self.enqueue(service, counter, self.frame_bytes, true, |out| {
            push_first(out, reliable, total, first)
        });
        let mut index = 0_u16;
        while !rest.is_empty() {
            index += 1;
            let (part, next) = rest.split_at(rest.len().min(room - NEXT_RECORD_BYTES));
            let last = next.is_empty();
            self.enqueue(service, counter, self.frame_bytes, !last, |out| {
                push_next(out, reliable, index, last, part);
            });
            rest = next;
        }
    }

    /// Appends a frame that starts with message `counter` and what `write` puts in; `room` is what it
    /// may grow to without moving.
    fn enqueue(
        &mut self,
        service: Service,
        counter: u64,
        room: usize,
        closed: bool,
        write: impl FnOnce(&mut Vec<u8>),
    ) {
        let mut bytes = Vec::with_capacity(room);
        start_frame(&mut bytes, counter);
        write(&mut bytes);
        self.queued_bytes += bytes.len() + FRAME_COST;
        self.frames.push_back(Building {
            service,
            bytes,
            closed,
        });
    }
}
