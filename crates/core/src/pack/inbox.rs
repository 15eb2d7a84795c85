//! Messages from frames.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use bytes::Bytes;

use crate::contract::NodeId;
use crate::wire::{Frame, FrameCursor, Record, RecordKind, Records};

/// The largest message of any node, in bytes. The configuration of its sender bounds a message, not that of this node:
/// all members deliver every ordered message.
pub const MOST_MESSAGE_BYTES: usize = 1 << 30;

/// Puts the messages of delivered frames together again: one frame at a time, its messages one by
/// one.
#[derive(Clone, Hash, Debug)]
pub struct Inbox {
    message_bytes: usize,
    partial: BTreeMap<NodeId, Partial>,
    current: Option<Current>,
}

#[derive(Clone, Hash, Debug)]
struct Current {
    sender: NodeId,
    counter: u64,
    index: u16,
    records: Records,
}

/// A message whose parts are still coming in.
#[derive(Clone, Hash, Debug)]
struct Partial {
    next: FrameCursor,
    total: usize,
    bytes: Vec<u8>,
}

/// A whole message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unpacked {
    /// Its place among its sender's messages.
    pub counter: u64,
    /// Its index among the messages of its frame.
    pub index: u16,
    /// The message asked for reliable service and travelled as fifo.
    pub reliable: bool,
    /// The bytes.
    pub payload: Bytes,
}

/// The reason for which a record could not become (part of) a message: its sender breaks the rules.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InboxError {
    /// A part without the parts before it.
    MissingParts,
    /// A message larger than allowed, or other than announced.
    WrongSize,
}

impl Inbox {
    /// An inbox for messages of at most `message_bytes`.
    pub const fn new(message_bytes: usize) -> Self {
        Self {
            message_bytes,
            partial: BTreeMap::new(),
            current: None,
        }
    }

    /// Takes the next frame. The one before must have been unpacked.
    pub fn take(&mut self, sender: NodeId, frame: Frame) {
        debug_assert!(self.current.is_none(), "the frame before is not unpacked");
        let counter = frame.start().counter;
        self.current = Some(Current {
            sender,
            counter,
            index: 0,
            records: frame.into_records(),
        });
    }

    /// Forgets the parts of messages of all senders for which `keeps` is false: the rest of those messages does not
    /// come.
    pub fn retain(&mut self, keeps: impl Fn(NodeId) -> bool) {
        self.partial.retain(|sender, _| keeps(*sender));
    }

    /// The next message of the current frame; `None` when the frame is used up.
    pub fn next_message(&mut self) -> Option<Result<Unpacked, InboxError>> {
        loop {
            let current = self.current.as_mut()?;
            let Some(record) = current.records.next() else {
                self.current = None;
                return None;
            };
            let (sender, counter, index) = (current.sender, current.counter, current.index);
            current.index = index.saturating_add(1);
            match record.kind {
                RecordKind::Whole => {
                    current.counter += 1;
                    let Record {
                        reliable, payload, ..
                    } = record;
                    return Some(Ok(Unpacked {
                        counter,
                        index,
                        reliable,
                        payload,
                    }));
                }
                RecordKind::First { total } => self.begin(sender, counter, total, &record),
                RecordKind::Middle { index } => {
                    if let Err(error) = self.append(sender, counter, index, &record) {
                        return Some(Err(error));
                    }
                }
                RecordKind::Last { index: part } => {
                    current.counter += 1;
                    let payload = self.finish(sender, counter, part, &record);
                    let reliable = record.reliable;
                    return Some(payload.map(|payload| Unpacked {
                        counter,
                        index,
                        reliable,
                        payload,
                    }));
                }
            }
        }
    }

    fn begin(&mut self, sender: NodeId, counter: u64, total: u32, record: &Record) {
        // The announced size is a peer's word: memory is taken as the parts come in.
        let bytes = record.payload.to_vec();
        let next = FrameCursor {
            counter,
            fragment: 1,
        };
        self.partial.insert(
            sender,
            Partial {
                next,
                total: total as usize,
                bytes,
            },
        );
    }

    fn append(
        &mut self,
        sender: NodeId,
        counter: u64,
        fragment: u16,
        record: &Record,
    ) -> Result<(), InboxError> {
        let partial = self
            .partial
            .get_mut(&sender)
            .ok_or(InboxError::MissingParts)?;
        if partial.next != (FrameCursor { counter, fragment }) {
            self.partial.remove(&sender);
            return Err(InboxError::MissingParts);
        }
        let size = partial.bytes.len() + record.payload.len();
        if size > partial.total || size > self.message_bytes {
            self.partial.remove(&sender);
            return Err(InboxError::WrongSize);
        }
        partial.bytes.extend_from_slice(&record.payload);
        partial.next.fragment = fragment.saturating_add(1);
        Ok(())
    }

    fn finish(
        &mut self,
        sender: NodeId,
        counter: u64,
        fragment: u16,
        record: &Record,
    ) -> Result<Bytes, InboxError> {
        self.append(sender, counter, fragment, record)?;
        let partial = self
            .partial
            .remove(&sender)
            .ok_or(InboxError::MissingParts)?;
        if partial.bytes.len() == partial.total {
            Ok(Bytes::from(partial.bytes))
        } else {
            Err(InboxError::WrongSize)
        }
    }
}
