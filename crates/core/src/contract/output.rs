//! Everything an engine can ask for.

use alloc::vec::Vec;
use bytes::Bytes;

use super::{Channel, Class, LogId, NodeId, PersistId, Pieces, Session};

/// What an engine asks its driver to do. Carried out strictly in order, across classes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Output {
    /// Send datagrams.
    Send {
        /// Which socket of the receivers they go to.
        class: Class,
        /// Which engine they come from.
        channel: Channel,
        /// Who gets them.
        to: Target,
        /// The datagrams.
        burst: Burst,
        /// Not before this request is durable.
        after: Option<PersistId>,
        /// How fast, where the engine plans the link (FastCast); else as fast as the socket takes it.
        pace: Option<Pace>,
    },
    /// Send a whole message over a reliable link. Never more than the link said it can take.
    LinkSend {
        /// To whom.
        peer: NodeId,
        /// In which session; dropped silently if that session has ended.
        session: Session,
        /// Which engine it comes from.
        channel: Channel,
        /// The message.
        bytes: Pieces,
        /// Not before this request is durable.
        after: Option<PersistId>,
    },
    /// Make these records durable, then say `Persisted { id }`.
    Persist {
        /// Names the request.
        id: PersistId,
        /// What to write.
        records: Vec<LogRecord>,
    },
    /// Read records back.
    Fetch {
        /// From which log.
        log: LogId,
        /// First position wanted.
        from: u64,
        /// Position after the last one wanted.
        to: u64,
    },
    /// The log of votes is given up: a request has failed, or none was answered for too long. What was requested before and is
    /// not answered never will be; fetches are answered later. The driver opens the log again as soon as it can, trying with longer and longer pauses, and
    /// then says [`Reopened`](super::Input::Reopened) with what is in it.
    Reopen,
    /// Ask the coordination service which configuration has this number: `wanted`, if none has been stored under it;
    /// otherwise the one that was. Only engines that were told that there is a service hand it out.
    Arbitrate {
        /// The number.
        number: u64,
        /// What is stored if nothing is.
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

/// A planned sending speed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pace {
    /// Long-term rate, in bits per second.
    pub bits_per_second: u64,
    /// Bytes that may leave at once.
    pub burst_bytes: usize,
}

/// The largest record that an engine asks for, in bytes. Drivers take it.
pub const MOST_RECORD: usize = 16 << 20;

/// The most that an engine has asked for and not been answered, in bytes. Drivers take it.
pub const MOST_PERSISTING: usize = 48 << 20;

/// A record to make durable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LogRecord {
    /// Put `bytes` at `position`, over whatever was there.
    Put {
        /// Which log.
        log: LogId,
        /// Where in it.
        position: u64,
        /// The contents.
        bytes: Pieces,
    },
    /// Forget everything below `position`.
    Trim {
        /// Which log.
        log: LogId,
        /// First position to keep.
        position: u64,
    },
}

/// What a wake-up is for; shown in logs and traces.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum TimerReason {
    /// Say again whom a ring is wanted with.
    Join,
    /// Give up those who have not agreed on a ring.
    Consensus,
    /// Send the commit token again, or give up the ring it was to form.
    Commit,
    /// Look for nodes that are not on the ring.
    Merge,
    /// Send the last token again: nobody has shown that it arrived.
    TokenRetransmit,
    /// No token for so long that the ring counts as broken.
    TokenLoss,
    /// Let the held token of an idle ring go round once.
    TokenHold,
    /// Ask again for the token that an idle ring holds.
    Hurry,
    /// An engine's own.
    Other(&'static str),
}
