//! Frames that wait for a client's socket, of which those of the ordered stream can be taken back.

use std::collections::VecDeque;
use std::io::IoSlice;

use bytes::Bytes;
use rota_client::protocol::{HEAD_BYTES, Skimmed, skim};

/// Frames are written into chunks that end once they have so many bytes.
const CHUNK_BYTES: usize = 256 << 10;

/// Frames in the order in which they leave.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    /// None is empty, but for one that is kept for its room.
    chunks: VecDeque<Chunk>,
    /// So many bytes of the first have been sent.
    sent: usize,
    backlog: usize,
}

/// Whole frames.
#[derive(Debug, Default)]
struct Chunk {
    bytes: Vec<u8>,
    /// Ends the last frame, and is shared with others who get the same.
    payload: Bytes,
}

impl Chunk {
    const fn len(&self) -> usize {
        self.bytes.len() + self.payload.len()
    }

    /// The frame that begins there: its bytes, but for a shared payload, and where the next one begins.
    fn frame(&self, at: usize) -> (&[u8], usize) {
        let rest = &self.bytes[at..];
        let length = rest
            .first_chunk()
            .map_or(0, |length| u32::from_le_bytes(*length));
        let length = (4 + length as usize).max(HEAD_BYTES);
        (&rest[..length.min(rest.len())], at + length)
    }
}

impl Outbox {
    /// Bytes that wait.
    pub const fn len(&self) -> usize {
        self.backlog
    }

    /// Appends what `write` appends: whole frames.
    pub fn append<T>(&mut self, write: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        let full = |chunk: &Chunk| chunk.bytes.len() >= CHUNK_BYTES || !chunk.payload.is_empty();
        if self.chunks.back().is_none_or(full) {
            self.chunks.push_back(Chunk::default());
        }
        let last = self.chunks.len() - 1;
        let bytes = &mut self.chunks[last].bytes;
        let before = bytes.len();
        let written = write(bytes);
        self.backlog += bytes.len() - before;
        written
    }

    /// Appends a frame whose payload is not copied.
    pub fn append_shared(&mut self, head: &[u8], payload: Bytes) {
        self.append(|bytes| bytes.extend_from_slice(head));
        self.backlog += payload.len();
        if let Some(last) = self.chunks.back_mut() {
            last.payload = payload;
        }
    }

    /// A frame that leaves next, behind the one that has begun to leave.
    pub fn put_first(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let place = self.cut();
        let mut chunk = Chunk::default();
        write(&mut chunk.bytes);
        self.backlog += chunk.len();
        self.chunks.insert(place, chunk);
    }

    /// Takes back the messages and what is told of groups, as far as nothing of them has left: `lost` sees
    /// each of these messages. Answers and credit stay.
    pub fn take_back(&mut self, mut lost: impl FnMut(&Skimmed<'_>)) {
        let place = self.cut();
        for chunk in self.chunks.split_off(place) {
            self.backlog -= chunk.len();
            let mut at = 0;
            while at < chunk.bytes.len() {
                let (frame, next) = chunk.frame(at);
                at = next;
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
        let mut at = 0;
        while at < self.sent {
            at = first.frame(at).1;
        }
        if at == 0 {
            return 0;
        }
        if at < first.len() {
            let rest = Chunk {
                bytes: first.bytes.split_off(at),
                payload: std::mem::take(&mut first.payload),
            };
            self.chunks.insert(1, rest);
        }
        1
    }

    /// What to send next, at most so many pieces of it.
    pub fn pieces<'a>(&'a self, into: &mut Vec<IoSlice<'a>>, most: usize) {
        let mut skip = self.sent;
        for chunk in &self.chunks {
            for bytes in [&chunk.bytes[..], &chunk.payload[..]] {
                let bytes = &bytes[skip.min(bytes.len())..];
                skip = skip.saturating_sub(chunk.bytes.len());
                if !bytes.is_empty() && into.len() < most {
                    into.push(IoSlice::new(bytes));
                }
            }
            skip = 0;
            if into.len() >= most {
                break;
            }
        }
    }

    /// So many bytes have been sent.
    pub fn sent(&mut self, bytes: usize) {
        self.backlog -= bytes;
        self.sent += bytes;
        let mut chunks = self.chunks.len();
        while let Some(first) = self.chunks.front_mut()
            && self.sent >= first.len()
        {
            self.sent -= first.len();
            if chunks == 1 && first.payload.is_empty() {
                first.bytes.clear();
                first.bytes.shrink_to(CHUNK_BYTES);
                return;
            }
            self.chunks.pop_front();
            chunks -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rota_client::protocol::{Destination, Inbox, MAX_REPLY_BYTES, Message, Reply};
    use rota_core::contract::Service;

    fn message(number: u8, bytes: usize) -> Message {
        let name = |text: &str| text.parse().expect("a name");
        Message {
            sender: name("#ann#n1"),
            service: Service::Agreed,
            self_discard: false,
            kind: 0,
            to: vec![Destination::Group(name_of("g"))],
            payload: vec![number; bytes].into(),
        }
    }

    fn name_of(text: &str) -> rota_core::groups::GroupName {
        rota_core::groups::GroupName::new(text).expect("a name")
    }

    fn put(outbox: &mut Outbox, reply: &Reply) {
        outbox.append(|bytes| reply.encode(bytes)).expect("it fits");
    }

    /// Sends so many bytes, in small pieces.
    fn leave(outbox: &mut Outbox, mut bytes: usize, inbox: &mut Inbox<Reply>) {
        while bytes > 0 {
            let mut pieces = Vec::new();
            outbox.pieces(&mut pieces, 2);
            let piece = pieces[0].len().min(bytes).min(1000);
            inbox.feed(&pieces[0][..piece]);
            drop(pieces);
            outbox.sent(piece);
            bytes -= piece;
        }
    }

    fn all(inbox: &mut Inbox<Reply>) -> Vec<Reply> {
        std::iter::from_fn(|| inbox.pull().expect("the protocol")).collect()
    }

    /// From each place in the stream: what has begun to leave arrives whole, answers do, and the rest of
    /// the messages is seen as lost.
    #[test]
    fn what_is_taken_back_leaves_whole_frames() {
        for sent in 0..1190 {
            let mut outbox = Outbox::default();
            for number in 0..10 {
                put(&mut outbox, &Reply::Message(message(number, 90)));
                let request = u32::from(number);
                put(&mut outbox, &Reply::Done { request });
            }
            let large = Reply::Message(message(10, 300_000));
            let [head, payload] = large.chunks().expect("it fits");
            outbox.append_shared(&head, payload);
            let mut inbox = Inbox::new(MAX_REPLY_BYTES);
            leave(&mut outbox, sent, &mut inbox);
            let (mut lost, mut bytes) = (0, 0);
            outbox.take_back(|skimmed| match skimmed {
                Skimmed::Message { payload, .. } => {
                    lost += 1;
                    bytes += payload;
                }
                other => panic!("{other:?}"),
            });
            outbox.put_first(|bytes| {
                let credit = Reply::Credit { bytes: 7 };
                credit.encode(bytes).expect("it fits");
            });
            put(&mut outbox, &Reply::Message(message(11, 90)));
            let rest = outbox.len();
            leave(&mut outbox, rest, &mut inbox);
            assert_eq!(outbox.len(), 0);
            let got = all(&mut inbox);
            let is = |wanted: fn(&Reply) -> bool| got.iter().filter(|reply| wanted(reply)).count();
            assert_eq!(
                is(|reply| matches!(reply, Reply::Done { .. })),
                10,
                "{sent}"
            );
            assert_eq!(is(|reply| matches!(reply, Reply::Credit { .. })), 1);
            assert_eq!(is(|reply| matches!(reply, Reply::Message(_))), 12 - lost);
            assert_eq!(bytes, 300_000 + 90 * (lost - 1), "{sent}");
            assert_eq!(got.last(), Some(&Reply::Message(message(11, 90))));
        }
    }

    #[test]
    fn a_shared_payload_that_has_begun_to_leave_arrives_whole() {
        let mut outbox = Outbox::default();
        let large = Reply::Message(message(1, 300_000));
        let [head, payload] = large.chunks().expect("it fits");
        outbox.append_shared(&head, payload.clone());
        outbox.append_shared(&head, payload);
        let mut inbox = Inbox::new(MAX_REPLY_BYTES);
        leave(&mut outbox, 200_000, &mut inbox);
        let mut lost = 0;
        outbox.take_back(|_| lost += 1);
        let rest = outbox.len();
        leave(&mut outbox, rest, &mut inbox);
        assert_eq!((lost, all(&mut inbox)), (1, vec![large]));
        assert!(outbox.chunks.is_empty(), "nothing is kept of it");
    }
}
