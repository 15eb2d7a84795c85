//! Frames from messages.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use bytes::{BufMut, Bytes, BytesMut};

use crate::contract::{Service, SubmitError};
use crate::mutants::{self, Mutant};
use crate::wire::{
    FIRST_RECORD_BYTES, Frame, MAX_FRAGMENTS, NEXT_RECORD_BYTES, RecordKind, WHOLE_RECORD_BYTES,
    push_first, push_next, push_whole, start_frame,
};

/// Room for the counter at the start of a frame.
const COUNTER_BYTES: usize = 10;

/// The cost of a waiting frame beside its bytes: its place in the queue, which doubles as it grows. It counts, so that
/// many tiny frames (services in turns) cannot outgrow the bound.
const FRAME_COST: usize = 100;

/// Frames are written into chunks of this size, so that a frame costs no allocation of its own.
const CHUNK_BYTES: usize = 32_768;

/// Gives the byte before a frame, from the service that its messages asked for, and from whether the last of them goes
/// on in the next frame.
pub type Lead = fn(Service, bool) -> u8;

/// Submitted messages, packed into frames, waiting for an engine. Bounded in bytes.
#[derive(Clone, Hash, Debug)]
pub struct Outbox {
    frame_bytes: usize,
    message_bytes: usize,
    backlog_bytes: usize,
    /// Small messages share frames.
    shares: bool,
    /// The function that gives the byte before each frame, if there is one.
    lead: Option<Lead>,
    queued_bytes: usize,
    next_counter: u64,
    ready: VecDeque<Ready>,
    /// The service of the frame that still takes messages, if there is one.
    open: Option<Service>,
    /// That frame's bytes, and room for more frames.
    chunk: BytesMut,
    /// Frames that have left, of a cut message whose last part has not.
    unfinished: Vec<Ready>,
    /// The first message that has not left whole.
    next_to_leave: u64,
}

/// A frame that leaves the outbox.
#[derive(Clone, Debug)]
pub struct OutFrame {
    /// The guarantee all its messages asked for.
    pub service: Service,
    /// The frame.
    pub frame: Frame,
}

/// A frame that takes no more messages.
#[derive(Clone, Hash, Debug)]
struct Ready {
    service: Service,
    bytes: Bytes,
}

impl Outbox {
    /// An outbox for frames of `frame_bytes`, messages of at most `message_bytes`, and
    /// `backlog_bytes` in all.
    pub fn new(frame_bytes: usize, message_bytes: usize, backlog_bytes: usize) -> Self {
        Self {
            frame_bytes,
            message_bytes,
            backlog_bytes,
            shares: true,
            lead: None,
            queued_bytes: 0,
            next_counter: 1,
            ready: VecDeque::new(),
            open: None,
            chunk: BytesMut::new(),
            unfinished: Vec::new(),
            next_to_leave: 1,
        }
    }

    /// The same, in which no frame has more than one message, or parts of one.
    pub const fn with_one_each(mut self) -> Self {
        self.shares = false;
        self
    }

    /// The same, in which a byte comes before each frame, so that nobody has to copy frames to put one there
    /// ([`take_led`](Self::take_led)). It takes nothing back.
    pub const fn with_lead(mut self, lead: Lead) -> Self {
        self.lead = Some(lead);
        self
    }

    /// Frames waiting.
    pub fn len(&self) -> usize {
        self.ready.len() + usize::from(self.open.is_some())
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The largest message this outbox takes, in bytes.
    pub fn limit(&self) -> usize {
        // The first part may be a small one.
        let parts = (self.frame_bytes - COUNTER_BYTES - FIRST_RECORD_BYTES) * (MAX_FRAGMENTS - 1);
        self.message_bytes.min(parts)
    }

    /// Takes a message; returns its counter.
    pub fn push(&mut self, service: Service, payload: &[u8]) -> Result<u64, SubmitError> {
        let limit = self.limit();
        if payload.len() > limit {
            return Err(SubmitError::TooLarge { limit });
        }
        if !self.is_empty() && self.queued_bytes + payload.len() > self.backlog_bytes {
            return Err(SubmitError::Full);
        }
        let counter = self.next_counter;
        self.next_counter += 1;
        if counter_bytes(counter) + WHOLE_RECORD_BYTES + payload.len() <= self.frame_bytes {
            self.push_small(service, counter, payload);
        } else {
            self.push_large(service, counter, payload);
        }
        Ok(counter)
    }

    /// The oldest frame.
    pub fn take(&mut self) -> Option<OutFrame> {
        let (Ready { service, .. }, frame) = self.take_ready()?;
        Some(OutFrame { service, frame })
    }

    /// The oldest frame, and its bytes with the byte before it.
    pub fn take_led(&mut self) -> Option<(Frame, Bytes)> {
        let (Ready { bytes, .. }, frame) = self.take_ready()?;
        Some((frame, bytes))
    }

    fn take_ready(&mut self) -> Option<(Ready, Frame)> {
        if self.ready.is_empty() {
            self.close(false);
        }
        let ready = self.ready.pop_front()?;
        self.queued_bytes -= ready.bytes.len() + FRAME_COST;
        let bytes = ready.bytes.slice(self.lead_bytes()..);
        let frame = Frame::parse(bytes).expect("the outbox builds valid frames");
        let (start, end) = (frame.start(), frame.end());
        self.next_to_leave = end.counter;
        if end.counter != start.counter {
            // The frames that left before belong to messages that have left whole now.
            self.unfinished.clear();
        }
        if end.fragment != 0 && self.lead.is_none() {
            self.unfinished.push(ready.clone());
        }
        Some((ready, frame))
    }

    /// The first message that has not left whole.
    pub const fn next_to_leave(&self) -> u64 {
        self.next_to_leave
    }

    /// Takes back the frames that have left of a message whose last part has not: the ring they went
    /// out on has ended, and the message is sent whole on the next (membership R4).
    pub fn rewind(&mut self) {
        if mutants::on(Mutant::R10) {
            self.unfinished.reverse();
        }
        if let Some(first) = self.unfinished.first_mut() {
            first.bytes = without_ended(&first.bytes);
        }
        while let Some(ready) = self.unfinished.pop() {
            self.queued_bytes += ready.bytes.len() + FRAME_COST;
            self.ready.push_front(ready);
        }
    }

    /// Takes back frames, oldest first, which are the last that have left: they leave again. If the oldest ends with
    /// the first part of a message, and all messages that end in it are among those up to `delivered`, only that part
    /// leaves again.
    pub fn take_back(&mut self, frames: impl DoubleEndedIterator<Item = OutFrame>, delivered: u64) {
        debug_assert!(self.lead.is_none(), "{self:?}");
        self.unfinished.clear();
        for OutFrame { service, frame } in frames.rev() {
            let (start, end) = (frame.start(), frame.end());
            let bytes = frame.into_bytes();
            self.next_to_leave = start.counter;
            self.queued_bytes += bytes.len() + FRAME_COST;
            self.ready.push_front(Ready { service, bytes });
            if end.counter > start.counter && end.counter <= delivered.saturating_add(1) {
                self.cut_first();
            }
        }
    }

    /// Removes from the first frame the messages that end in it, if it ends with the first part of another.
    fn cut_first(&mut self) {
        let Some(first) = self.ready.front_mut() else {
            return;
        };
        let bytes = without_ended(&first.bytes);
        self.queued_bytes = self.queued_bytes + bytes.len() - first.bytes.len();
        first.bytes = bytes;
    }

    fn push_small(&mut self, service: Service, counter: u64, payload: &[u8]) {
        let size = WHOLE_RECORD_BYTES + payload.len();
        let room = self.filled() + size <= self.frame_bytes;
        if !self.takes(service) || !room {
            // A chunk has the frames of many messages, even if no frame is shared.
            let alone = COUNTER_BYTES + size;
            let needs = if self.shares { self.frame_bytes } else { alone };
            self.open(service, counter, needs);
        }
        push_whole(&mut self.chunk, payload);
        self.queued_bytes += size;
    }

    /// Whether there is an open frame for one more message of this service.
    fn takes(&self, service: Service) -> bool {
        self.shares && self.open == Some(service)
    }

    /// The number of bytes before each frame.
    const fn lead_bytes(&self) -> usize {
        self.lead.is_some() as usize
    }

    /// The bytes of the open frame.
    fn filled(&self) -> usize {
        // Without an open frame there is no lead either.
        self.chunk.len().saturating_sub(self.lead_bytes())
    }

    /// Opens a frame that starts with message `counter` and takes `needs` bytes at most.
    fn open(&mut self, service: Service, counter: u64, needs: usize) {
        self.close(false);
        self.begin(service, counter, needs);
    }

    /// Opens such a frame while none is open.
    fn begin(&mut self, service: Service, counter: u64, needs: usize) {
        let lead = self.lead_bytes();
        if self.chunk.capacity() < lead + needs {
            self.chunk = BytesMut::with_capacity(CHUNK_BYTES.max(lead + self.frame_bytes));
        }
        self.chunk.put_bytes(0, lead);
        start_frame(&mut self.chunk, counter);
        self.open = Some(service);
        self.queued_bytes += self.chunk.len() + FRAME_COST;
    }

    /// Closes the open frame, if there is one; `is_cut` says that its last message goes on in the next.
    fn close(&mut self, is_cut: bool) {
        if let Some(service) = self.open.take() {
            if let (Some(lead), Some(first)) = (self.lead, self.chunk.first_mut()) {
                *first = lead(service, is_cut);
            }
            let bytes = self.chunk.split().freeze();
            self.ready.push_back(Ready { service, bytes });
        }
    }

    /// Cuts a message. Its parts fill their frames: the first part fills the rest of an open frame, and the frame of
    /// the last part stays open for others, as a burst consists of packets of one size. Parts have to arrive in order,
    /// so a reliable message that must be cut is served as fifo.
    fn push_large(&mut self, service: Service, counter: u64, payload: &[u8]) {
        let reliable = service == Service::Reliable;
        let service = if reliable { Service::Fifo } else { service };
        let total = u32::try_from(payload.len()).expect("message_bytes is below 4 GB");
        let (first, mut rest) = payload.split_at(self.room_for_first(service, counter));
        push_first(&mut self.chunk, reliable, total, first);
        self.queued_bytes += FIRST_RECORD_BYTES + first.len();
        let mut index = 0_u16;
        while !rest.is_empty() {
            index += 1;
            self.close(true);
            self.begin(service, counter, self.frame_bytes);
            let room = self.frame_bytes - self.filled() - NEXT_RECORD_BYTES;
            let (part, next) = rest.split_at(rest.len().min(room));
            push_next(&mut self.chunk, reliable, index, next.is_empty(), part);
            self.queued_bytes += NEXT_RECORD_BYTES + part.len();
            rest = next;
        }
    }

    /// The bytes of a message larger than a frame that go into the open frame, or, if that is full or of another
    /// service, into one that is opened for them.
    fn room_for_first(&mut self, service: Service, counter: u64) -> usize {
        let is_open = self.takes(service);
        if !is_open || self.filled() + FIRST_RECORD_BYTES >= self.frame_bytes {
            self.open(service, counter, self.frame_bytes);
        }
        self.frame_bytes - self.filled() - FIRST_RECORD_BYTES
    }
}

/// The bytes that a frame's counter takes in front of its records.
const fn counter_bytes(counter: u64) -> usize {
    let bits = (u64::BITS - counter.leading_zeros()) as usize;
    if bits == 0 { 1 } else { bits.div_ceil(7) }
}

/// A frame that ends with the first part of a message, without the messages that end in it.
fn without_ended(bytes: &Bytes) -> Bytes {
    let frame = Frame::parse(bytes.clone()).expect("the outbox builds valid frames");
    let (counter, last) = (frame.end().counter, frame.records().last());
    match last.map(|record| (record.kind, record)) {
        Some((RecordKind::First { total }, record)) if frame.start().counter != counter => {
            let mut out = BytesMut::with_capacity(bytes.len());
            start_frame(&mut out, counter);
            push_first(&mut out, record.reliable, total, &record.payload);
            out.freeze()
        }
        _ => bytes.clone(),
    }
}

impl Outbox {
    /// Its invariants.
    pub fn check(&self) {
        assert!(
            self.next_to_leave <= self.next_counter,
            "what has left was submitted"
        );
        assert!(
            !self.is_empty() || self.queued_bytes == 0,
            "nothing is counted where nothing waits"
        );
    }
}
