//! All outputs of an engine.

use alloc::vec::Vec;
use bytes::Bytes;

use super::{Channel, Class, LogId, NodeId, PersistId, Pieces, Session};

/// An action that an engine asks of its driver. The driver carries out actions strictly in order, across classes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Output {
    /// Send datagrams.
    Send {
        /// The socket of the receivers that the datagrams go to.
        class: Class,
        /// The engine that they come from.
        channel: Channel,
        /// The receivers.
        to: Target,
        /// The datagrams.
        burst: Burst,
        /// The request that has to be durable before.
        after: Option<PersistId>,
    },
    /// Send a whole message over a reliable link. Never more than the link said it can take.
    LinkSend {
        /// The receiver.
        peer: NodeId,
        /// The session of the link; the message is dropped silently if that session has ended.
        session: Session,
        /// The engine that it comes from.
        channel: Channel,
        /// The message. It waits for nothing: an engine keeps what has to be durable first.
        bytes: Pieces,
    },
    /// Make these records durable, then say `Persisted { id }`.
    Persist {
        /// Names the request.
        id: PersistId,
        /// The records.
        records: Vec<LogRecord>,
    },
    /// Read records back.
    Fetch {
        /// The log.
        log: LogId,
        /// First position wanted.
        from: u64,
        /// Position after the last one wanted.
        to: u64,
    },
    /// Give up the log of votes: a request has failed, or none was answered for too long. Earlier requests without an
    /// answer never get one; fetches are answered later. The driver tries to open the log again with longer and longer
    /// pauses, and then says [`Reopened`](super::Input::Reopened) with the records in it.
    Reopen,
    /// Ask the coordination service which configuration has this number: `wanted`, if none has been stored under it;
    /// otherwise the one that was. Only engines that were told that there is a service hand it out.
    Arbitrate {
        /// The number.
        number: u64,
        /// The configuration to store if there is none.
        wanted: Bytes,
    },
    /// A message of the application got its place in the order. It comes before the `Send` of the
    /// burst that carries the message, so that a trace can be on disk before the message is on the
    /// wire. Only engines told to trace hand it out.
    Originated {
        /// The message's counter.
        counter: u64,
        /// The packet that carries (the last fragment of) it.
        seq: super::Seq,
        /// Its index among the messages of that packet.
        index: u16,
    },
}

/// Receivers of a send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    /// Every other node.
    Others,
    /// One node.
    Node(NodeId),
}

/// Datagrams in one buffer, laid out for segmentation offload: each has `segment` bytes, the last
/// may be shorter. Never empty, at most [`Burst::MAX_BYTES`] and [`Burst::MAX_SEGMENTS`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Burst {
    /// The datagrams, one after the other.
    pub bytes: Vec<u8>,
    /// Size of each but the last, in bytes.
    pub segment: usize,
}

impl Burst {
    /// The kernel's limit for one offloaded send: the largest UDP payload over IPv4, in bytes.
    pub const MAX_BYTES: usize = 65_507;
    /// The kernel's limit on the datagrams of one offloaded send (`UDP_MAX_SEGMENTS` before 6.9).
    pub const MAX_SEGMENTS: usize = 64;

    /// A burst of one datagram.
    pub fn single(bytes: Vec<u8>) -> Self {
        let segment = bytes.len();
        Self { bytes, segment }
    }

    /// The datagrams, one by one.
    pub fn datagrams(&self) -> impl Iterator<Item = &[u8]> {
        self.bytes.chunks(self.segment.max(1))
    }

    /// The datagrams, one by one, to be sealed in place.
    pub fn datagrams_mut(&mut self) -> impl Iterator<Item = &mut [u8]> {
        self.bytes.chunks_mut(self.segment.max(1))
    }
}

/// The largest record that an engine asks for, in bytes. Drivers take records of this size.
pub const MOST_RECORD: usize = 16 << 20;

/// The most bytes of records that an engine has asked for without an answer. Drivers take as many.
pub const MOST_PERSISTING: usize = 48 << 20;

/// A record to make durable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LogRecord {
    /// Put `bytes` at `position`, over an older record there.
    Put {
        /// The log.
        log: LogId,
        /// The place in the log.
        position: u64,
        /// The contents.
        bytes: Pieces,
    },
    /// Forget everything below `position`.
    Trim {
        /// The log.
        log: LogId,
        /// First position to keep.
        position: u64,
    },
}

/// The purpose of a wake-up; shown in logs and traces.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum TimerReason {
    /// Send the join again.
    Join,
    /// Give up the processes that have not agreed on a ring.
    Consensus,
    /// Send the commit token again, or give up the ring it was to form.
    Commit,
    /// Look for nodes that are not on the ring.
    Merge,
    /// Send the last token again: no packet has shown that it arrived.
    TokenRetransmit,
    /// Count the ring as broken: no token came for the token-loss time.
    TokenLoss,
    /// Let the held token of an idle ring go round once.
    TokenHold,
    /// Ask again for the token that an idle ring holds.
    Hurry,
    /// A purpose of one engine alone.
    Other(&'static str),
}
