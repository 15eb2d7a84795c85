//! What was decided and counts, on its way to the application.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;

use super::base::Base;
use crate::contract::{
    Configuration, ConfigurationKind, Delivery, Incarnation, Message, MessageId, NodeId, Process,
    RingId, Service,
};
use crate::pack::Inbox;
use crate::paxos::{Instance, ValueId};

/// What may wait for the application, in bytes, before nothing more is taken from the learner.
const WAITING_BYTES: usize = 8 << 20;

#[derive(Debug)]
enum Item {
    Packet(Instance, Process, Bytes),
    Members(Instance, Arc<[Process]>),
    /// So many instances from the first on, and up to which counter own messages are delivered.
    Missed(Instance, u64, u64),
    /// Part of a message that goes on behind what was missed.
    Part(Process, Bytes),
}

/// See the module's page.
#[derive(Debug)]
pub struct HandOut {
    waiting: VecDeque<Item>,
    bytes: usize,
    inbox: Inbox,
    current: Option<(Instance, Process, Service)>,
    /// Whose values were handed out last, by node.
    lives: BTreeMap<NodeId, Incarnation>,
    /// Messages that could not be put together: their senders break the rules.
    pub malformed: u64,
}

impl HandOut {
    /// For messages of at most `message_bytes`.
    pub const fn new(message_bytes: usize) -> Self {
        Self {
            waiting: VecDeque::new(),
            bytes: 0,
            inbox: Inbox::new(message_bytes),
            current: None,
            lives: BTreeMap::new(),
            malformed: 0,
        }
    }

    /// Whether it takes more.
    pub const fn has_room(&self) -> bool {
        self.bytes < WAITING_BYTES
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.current.is_none()
    }

    /// A value that counts.
    pub fn packet(&mut self, instance: Instance, id: ValueId, frame: Bytes) {
        self.bytes += frame.len();
        let packet = Item::Packet(instance, id.process, frame);
        self.waiting.push_back(packet);
    }

    /// Who is a member from here on.
    pub fn members(&mut self, instance: Instance, members: Arc<[Process]>) {
        self.waiting.push_back(Item::Members(instance, members));
    }

    /// What is forgotten everywhere: everything up to a base.
    pub fn missed(&mut self, first: Instance, base: &Base, own: u64) {
        let count = base.next.saturating_sub(first);
        self.waiting.push_back(Item::Missed(first, count, own));
        for (process, values) in &base.open {
            for value in values {
                self.bytes += value.len();
                self.waiting.push_back(Item::Part(*process, value.clone()));
            }
        }
    }

    /// The next delivery.
    pub fn next(&mut self) -> Option<Delivery> {
        loop {
            if let Some(message) = self.message() {
                return Some(Delivery::Message(message));
            }
            match self.waiting.pop_front()? {
                Item::Packet(instance, process, bytes) => self.open(instance, process, bytes),
                Item::Part(process, bytes) => {
                    self.open(0, process, bytes);
                    while self.message().is_some() {}
                }
                Item::Members(instance, members) => {
                    return Some(Delivery::Configuration(configuration(instance, &members)));
                }
                Item::Missed(seq, count, own) => {
                    self.inbox.retain(|_| false);
                    self.lives.clear();
                    return Some(Delivery::Missed { seq, count, own });
                }
            }
        }
    }

    fn open(&mut self, instance: Instance, process: Process, bytes: Bytes) {
        self.bytes -= bytes.len();
        let Some((service, frame)) = super::value::read(bytes) else {
            self.malformed += 1;
            return;
        };
        let Process { node, incarnation } = process;
        if self.lives.insert(node, incarnation) != Some(incarnation) {
            // Another life of the node does not go on with what the one before had begun.
            self.inbox.retain(|other| other != node);
        }
        self.inbox.take(node, frame);
        self.current = Some((instance, process, service));
    }

    fn message(&mut self) -> Option<Message> {
        let (seq, process, service) = self.current?;
        while let Some(unpacked) = self.inbox.next_message() {
            let Ok(unpacked) = unpacked else {
                self.malformed += 1;
                continue;
            };
            let service = if unpacked.reliable {
                Service::Reliable
            } else {
                service
            };
            return Some(Message {
                id: MessageId {
                    process,
                    counter: unpacked.counter,
                },
                service,
                seq,
                index: unpacked.index,
                payload: unpacked.payload,
            });
        }
        self.current = None;
        None
    }
}

/// A configuration is named by the instance in which it was decided: the same everywhere.
fn configuration(instance: Instance, members: &[Process]) -> Configuration {
    let mut members: Vec<Process> = members.to_vec();
    members.sort_unstable();
    let first = members.first().copied();
    let first = first.expect("somebody is in the ring");
    Configuration {
        kind: ConfigurationKind::Regular(RingId {
            ring_seq: instance,
            rep: first.node,
            incarnation: first.incarnation,
        }),
        members,
    }
}
