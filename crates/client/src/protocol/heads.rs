//! Heads of messages that were read before: most messages have the head of an earlier one.

use std::sync::Arc;

use bytes::Bytes;

use super::bytes::Reader;
use super::{DecodeError, Message};

/// Heads that are known at once. A sender's newest is, unless another one has its place.
const SLOTS: usize = 16;

/// A longer one is not worth its memory.
const MOST_BYTES: usize = 1024;

#[derive(Debug)]
struct Head {
    /// The bytes before the payload: another message with the same bytes has the same fields.
    bytes: Vec<u8>,
    /// Without a payload.
    message: Message,
}

/// See the module.
#[derive(Default, Debug)]
pub struct Heads(Vec<Option<Head>>);

impl Heads {
    /// Reads a message.
    pub(super) fn read(&mut self, body: Bytes) -> Result<Message, DecodeError> {
        let slot = slot(&body);
        if let Some(Some(head)) = self.0.get(slot)
            && body.starts_with(&head.bytes)
        {
            return Ok(Message {
                sender: head.message.sender,
                to: Arc::clone(&head.message.to),
                payload: body.slice(head.bytes.len()..),
                ..head.message
            });
        }
        let message = Message::read(Reader::new(body.clone()))?;
        self.keep(slot, &body[..body.len() - message.payload.len()], &message);
        Ok(message)
    }

    fn keep(&mut self, slot: usize, bytes: &[u8], message: &Message) {
        if self.0.is_empty() {
            self.0.resize_with(SLOTS, || None);
        }
        self.0[slot] = (bytes.len() <= MOST_BYTES).then(|| Head {
            bytes: bytes.to_vec(),
            message: Message {
                payload: Bytes::new(),
                ..message.clone()
            },
        });
    }
}

/// The slot of a sender, with whose name a message begins: from the beginning and the end of that name.
fn slot(body: &[u8]) -> usize {
    let length = body.first().map_or(0, |&length| usize::from(length));
    let name = body.get(1..=length).unwrap_or(&[]);
    let number = |bytes: Option<&[u8; 8]>| bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let short = || name.iter().fold(0, |sum, &byte| sum << 8 | u64::from(byte));
    let (first, last) = (number(name.first_chunk()), number(name.last_chunk()));
    let mixed = if name.len() < 8 {
        short()
    } else {
        first.rotate_left(7) ^ last
    };
    (mixed.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 60) as usize
}

#[cfg(test)]
mod tests {
    use rota_core::contract::Service;

    use super::*;
    use crate::protocol::{Inbox, MAX_REPLY_BYTES, Reply};

    /// All messages that differ in something, from senders that share places and senders that do not.
    fn messages() -> Vec<Message> {
        let names = ["#a#n1", "#b#n1", "#a#n2", "#averylong#daemonwithlongname"];
        let mut all = Vec::new();
        for (number, sender) in names.into_iter().enumerate() {
            for to in [&["g"][..], &["g", "h"], &["g2"], &["#a#n1"]] {
                for (service, kind) in
                    [(Service::Agreed, 7), (Service::Safe, 7), (Service::Safe, 8)]
                {
                    all.push(Message {
                        sender: sender.parse().expect("a name"),
                        service,
                        self_discard: kind == 8,
                        kind,
                        to: to.iter().map(|to| to.parse().expect("a name")).collect(),
                        payload: vec![number as u8; 10 * number].into(),
                    });
                }
            }
        }
        all
    }

    #[test]
    fn what_is_known_of_a_head_is_what_it_says() {
        let messages = messages();
        let mut inbox = Inbox::<Reply>::new(MAX_REPLY_BYTES);
        for first in &messages {
            for second in &messages {
                for message in [first, second, second, first] {
                    let reply = Reply::Message(message.clone());
                    let mut frame = Vec::new();
                    reply.encode(&mut frame).expect("it fits");
                    inbox.feed(&frame);
                    assert_eq!(inbox.pull(), Ok(Some(reply)));
                }
            }
        }
    }

    #[test]
    fn a_known_head_shares_its_destinations() {
        let message = &messages()[1];
        let mut body = Vec::new();
        Reply::Message(message.clone())
            .encode(&mut body)
            .expect("it fits");
        let body = Bytes::from(body).slice(5..);
        let mut heads = Heads::default();
        let first = heads.read(body.clone()).expect("a message");
        let second = heads.read(body).expect("a message");
        assert!(Arc::ptr_eq(&first.to, &second.to));
    }
}
