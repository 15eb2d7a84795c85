//! Frames that wait for a client's socket, of which those of the ordered stream can be taken back.

mod chunk;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::io::IoSlice;

use bytes::Bytes;
use rota_client::protocol::{Skimmed, skim};

use chunk::{CHUNK_BYTES, Chunk, LARGE_BYTES, Payload, Place};

/// Frames in the order in which they leave.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    /// None is empty, but for one that is kept for its room.
    chunks: VecDeque<Chunk>,
    /// The bytes of the first chunk that have been sent.
    sent: usize,
    backlog: usize,
    /// The socket has not taken everything: bytes that are added from now on may wait long.
    waits: bool,
}

impl Outbox {
    /// The bytes that wait.
    pub const fn len(&self) -> usize {
        self.backlog
    }

    /// The memory of these, but for what others share.
    #[cfg(test)]
    pub fn kept_alone(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.bytes.len()).sum()
    }

    /// Appends what `write` appends: whole frames.
    pub fn append<T>(&mut self, write: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        let chunk = self.last();
        let before = chunk.bytes.len();
        let written = write(&mut chunk.bytes);
        let more = chunk.bytes.len() - before;
        chunk.len += more;
        self.backlog += more;
        written
    }

    /// Appends a frame that ends with its payload. The payload is shared, unless it may wait long and would keep the
    /// buffer in memory that it is a part of.
    pub fn append_shared(&mut self, head: &[u8], payload: &Bytes) {
        let stays = payload.len() > LARGE_BYTES;
        let copies = self.waits && !stays;
        self.append_parts([head, &[]], payload, (copies, stays));
    }

    /// Appends a frame with a middle that was made for all receivers, and keeps no other memory: the middle is shared
    /// for as long as it waits.
    pub fn append_common(&mut self, head: &[u8], common: &Bytes, rest: &[u8]) {
        self.append_parts([head, rest], common, (false, true));
    }

    fn append_parts(
        &mut self,
        [head, rest]: [&[u8]; 2],
        payload: &Bytes,
        (copies, stays): (bool, bool),
    ) {
        let chunk = self.last();
        chunk.bytes.extend_from_slice(head);
        if copies {
            chunk.bytes.extend_from_slice(payload);
        } else if !payload.is_empty() {
            chunk.payloads.push(Payload {
                before: chunk.bytes.len(),
                bytes: payload.clone(),
                stays,
            });
        }
        chunk.bytes.extend_from_slice(rest);
        let more = head.len() + payload.len() + rest.len();
        chunk.len += more;
        self.backlog += more;
    }

    /// The chunk that frames are appended to.
    fn last(&mut self) -> &mut Chunk {
        if self.chunks.back().is_none_or(Chunk::is_full) {
            self.chunks.push_back(Chunk::default());
        }
        let last = self.chunks.len() - 1;
        &mut self.chunks[last]
    }

    /// A frame that leaves next, behind the one that has begun to leave.
    pub fn put_first(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let place = self.cut();
        let mut chunk = Chunk::default();
        write(&mut chunk.bytes);
        chunk.len = chunk.bytes.len();
        self.backlog += chunk.len;
        self.chunks.insert(place, chunk);
    }

    /// Takes back messages, views and transitional signals, as far as nothing of them has left: `lost` sees each of
    /// them. Answers and credit stay.
    pub fn take_back(&mut self, mut lost: impl FnMut(&Skimmed<'_>)) {
        let place = self.cut();
        for chunk in self.chunks.split_off(place) {
            self.backlog -= chunk.len;
            for frame in chunk.frames() {
                match skim(frame) {
                    Skimmed::Other => self.append(|bytes| bytes.extend_from_slice(frame)),
                    skimmed => lost(&skimmed),
                }
            }
        }
    }

    /// Divides what waits behind the frame that has begun to leave; says how many chunks are before that.
    fn cut(&mut self) -> usize {
        let Some(first) = self.chunks.front_mut() else {
            return 0;
        };
        let mut place = Place::default();
        while place.at < self.sent {
            place = first.frame(place).1;
        }
        if place.at == 0 {
            return 0;
        }
        if place.at < first.len {
            let rest = first.split_off(place);
            self.chunks.insert(1, rest);
        }
        1
    }

    /// The next pieces to send, at most `most` of them.
    pub fn pieces<'a>(&'a self, into: &mut Vec<IoSlice<'a>>, most: usize) {
        let mut skip = self.sent;
        for bytes in self.chunks.iter().flat_map(Chunk::pieces) {
            if into.len() >= most {
                break;
            }
            let skipped = skip.min(bytes.len());
            skip -= skipped;
            if skipped < bytes.len() {
                into.push(IoSlice::new(&bytes[skipped..]));
            }
        }
    }

    /// Notes that this many bytes have been sent.
    pub fn sent(&mut self, bytes: usize) {
        self.backlog -= bytes;
        self.sent += bytes;
        self.waits &= self.backlog > 0;
        let mut chunks = self.chunks.len();
        while let Some(first) = self.chunks.front_mut()
            && self.sent >= first.len
        {
            self.sent -= first.len;
            if chunks == 1 {
                first.bytes.clear();
                first.bytes.shrink_to(CHUNK_BYTES);
                first.payloads.clear();
                first.len = 0;
                return;
            }
            self.chunks.pop_front();
            chunks -= 1;
        }
    }

    /// Notes that the socket takes no more for now. Payloads that wait are copied, so that they keep no larger buffers
    /// in memory.
    pub fn wait(&mut self) {
        if self.backlog > 0 && !std::mem::replace(&mut self.waits, true) {
            for chunk in &mut self.chunks {
                chunk.copy_payloads();
            }
        }
    }
}
