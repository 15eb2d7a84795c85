//! The deliveries of an engine to its application.

use alloc::vec::Vec;
use bytes::Bytes;
use core::fmt;

use super::{Process, RingId, Seq, Service};

/// The next thing in an application's ordered stream.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Delivery {
    /// The configuration changed.
    Configuration(Configuration),
    /// A message.
    Message(Message),
    /// Everything before a position was delivered, or carries nothing. An engine says so behind messages, again and
    /// again. It is for a merge of several rings, which has to know of positions that carry nothing; an application
    /// never sees it.
    Passed {
        /// The first position of which nothing is known.
        next: Seq,
    },
    /// A notice at a position of the order. It is for a merge of several rings, which changes its subscriptions by such
    /// notices; an application never sees it, and an engine delivers it only to a merge.
    Notice {
        /// The position, at which nothing else stands.
        seq: Seq,
        /// The notice, of which the engine knows nothing.
        bytes: Bytes,
    },
    /// The current configuration, which is regular and has this ring, is primary from here on. Only
    /// the layer [`crate::primary`] delivers it.
    Primary(RingId),
    /// This process is in no primary configuration, and its current ring is not primary. Until the next configuration
    /// the engine delivers nothing except, right before that configuration, the rest of the last one, if nobody has
    /// gone on without this process. Only engines that order in primary configurations alone deliver it (`rota-views`).
    Excluded(RingId),
    /// This process has missed the packets at these positions, and never gets them. Only engines that order in primary
    /// configurations alone deliver it. With views (`rota-views`) the configuration that takes the process in again
    /// comes next; where members are named within the order (`rota_paxos::uring`) the configuration that was named last
    /// comes at its place, between two such stretches.
    Missed {
        /// The first position that this process skips.
        seq: Seq,
        /// The number of positions that it skips.
        count: u64,
        /// The counter up to which the messages of this process have been delivered, some of them perhaps only at the
        /// others. Nobody delivers those again; later ones are still sent.
        own: u64,
    },
}

/// A delivered message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Message {
    /// The sender, and the counter of the message among those of its sender.
    pub id: MessageId,
    /// The guarantee it was sent with.
    pub service: Service,
    /// Position of the packet that carries (the last fragment of) it: dense over packets, the same
    /// at every receiver.
    pub seq: Seq,
    /// Its index among the messages of that packet. `(seq, index)` orders all messages of a ring.
    pub index: u16,
    /// The application's bytes.
    pub payload: Bytes,
}

impl Message {
    /// `(seq, index)` as one number: ascending in the order, one for each message of a ring.
    /// This is the `seq` of traces.
    pub const fn position(&self) -> u64 {
        position(self.seq, self.index)
    }
}

/// See [`Message::position`].
pub const fn position(seq: Seq, index: u16) -> u64 {
    seq.wrapping_shl(16) | index as u64
}

/// Names a message for ever: its process and a counter, from 1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct MessageId {
    /// The process that submitted it.
    pub process: Process,
    /// Its place among that process's messages.
    pub counter: u64,
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Process { node, incarnation } = self.process;
        write!(f, "{node}.{}.{}", incarnation.0, self.counter)
    }
}

/// A configuration: its members, and its kind (report §II).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Configuration {
    /// Regular, or transitional between two regular ones.
    pub kind: ConfigurationKind,
    /// Its members, by ascending id.
    pub members: Vec<Process>,
}

/// The two kinds of configurations of Extended Virtual Synchrony.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ConfigurationKind {
    /// Installed: new messages are ordered in it.
    Regular(RingId),
    /// The members of `old` that go to `new` together. It delivers the messages that could not be delivered in `old`.
    Transitional {
        /// The configuration that ends.
        old: RingId,
        /// The configuration that follows.
        new: RingId,
    },
}
