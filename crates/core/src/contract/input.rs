//! All inputs of an engine.

use alloc::string::String;
use alloc::vec::Vec;
use bytes::Bytes;

use super::{Channel, Class, LogId, NodeId, PersistId, Process, Session};

/// An input of an engine, from its driver.
#[derive(Clone, Debug)]
pub enum Input {
    /// The first input: the identity of this process, a seed for everything random, and the records found on disk.
    Start(StartState),
    /// Datagrams that arrived together and share one buffer (receive offload): each has `segment`
    /// bytes, the last may be shorter. A single datagram has `segment == bytes.len()`.
    Datagrams {
        /// The socket that received the datagrams.
        class: Class,
        /// The engine that the datagrams are for.
        channel: Channel,
        /// The datagrams, one after the other.
        bytes: Bytes,
        /// Size of each but the last, in bytes; never 0.
        segment: usize,
    },
    /// The time that `next_timer` named has come.
    Timer,
    /// Evidence that no process listens at a peer's address (ICMP port unreachable).
    Unreachable {
        /// The peer that was sent to.
        peer: NodeId,
    },
    /// A reliable link is up.
    LinkUp {
        /// The process at its other end.
        peer: Process,
        /// Larger than every earlier session with this node.
        session: Session,
    },
    /// A reliable link is gone; nothing more arrives in this session.
    LinkDown {
        /// The node at its other end.
        peer: NodeId,
        /// The session that ended.
        session: Session,
    },
    /// A whole message arrived over a reliable link.
    LinkMessage {
        /// The node that sent it.
        peer: NodeId,
        /// The session of the link.
        session: Session,
        /// The engine that it is for.
        channel: Channel,
        /// The message.
        bytes: Bytes,
    },
    /// A reliable link takes up to `bytes` more. The engine holds back what the link cannot take.
    Writable {
        /// The node at its other end.
        peer: NodeId,
        /// The session this credit belongs to.
        session: Session,
        /// Total room in the link's queue, in bytes. The engine is told at the latest when the room has grown by an
        /// eighth of the queue.
        bytes: usize,
    },
    /// Everything of this request is durable, and so is everything requested before it.
    Persisted {
        /// The request.
        id: PersistId,
    },
    /// The request failed, and sends that wait for it will not be made.
    PersistFailed {
        /// The request.
        id: PersistId,
        /// The cause of the failure.
        error: PersistError,
    },
    /// The answer to an `Output::Reopen`: the log of votes, or a new beginning of it, is open again. A record that was
    /// requested before that output, without an answer, is there or is not.
    Reopened {
        /// The records found: log, position, contents; in order.
        records: Vec<(LogId, u64, Bytes)>,
        /// As in [`StartState`].
        lost_some: bool,
    },
    /// The coordination service has answered an `Output::Arbitrate`; until it does, the engine asks again now and then.
    Arbitrated {
        /// The number.
        number: u64,
        /// The configuration that is stored under the number, for good.
        chosen: Bytes,
    },
    /// The answer to an `Output::Fetch`, which it names by repeating it: records of a log, in order of
    /// their positions.
    Fetched {
        /// The log.
        log: LogId,
        /// First position that was wanted.
        from: u64,
        /// Position after the last one that was wanted.
        to: u64,
        /// Position and contents of each record found; an empty list says that none is kept there.
        records: Vec<(u64, Bytes)>,
    },
}

/// The knowledge of an engine when its process starts.
#[derive(Clone, Debug)]
pub struct StartState {
    /// This process.
    pub me: Process,
    /// Seeds everything random in the engine.
    pub seed: u64,
    /// The records found on disk: log, position, contents; in order. Empty on a first start.
    pub records: Vec<(LogId, u64, Bytes)>,
    /// Records that were answered as durable may be missing at the end: the machine lost its power where records are
    /// not synced before the answer, or an older copy was put back. The records that are there are true, but not all:
    /// an engine that promises anything begins as one that has lost its store.
    pub lost_some: bool,
}

/// The reason for which records could not be made durable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PersistError {
    /// No room on the device; trying again later may work.
    NoSpace,
    /// The device failed. After a failed sync nothing is known about earlier writes.
    Io(String),
}
