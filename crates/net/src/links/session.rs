//! A session: a connection whose ends know each other.

use bytes::Bytes;
use rota_core::contract::{Channel, Input, Pieces, Process, Session, Time};
use std::collections::VecDeque;
use std::fmt;
use std::io::{self, ErrorKind};

use super::QUEUE_BYTES;
use super::handshake::Agreed;
use super::record::{Broken, Found, Inbox, Outbox};
use super::stream::Stream;
use crate::pool::Pool;
use crate::stats::NetStats;

/// The growth of room of which the engine is told.
const TELL_BYTES: usize = QUEUE_BYTES / 16;

/// Why a session ended.
#[derive(Debug)]
pub(super) enum Ending {
    /// The other end has closed the connection, or is gone.
    Lost(io::Error),
    /// The bytes that came are not those that the other end sends.
    Broken(Broken),
    /// The other end has begun another session.
    Replaced,
    /// A fault on purpose.
    Cut,
}

impl From<io::Error> for Ending {
    fn from(error: io::Error) -> Self {
        Self::Lost(error)
    }
}

impl From<Broken> for Ending {
    fn from(broken: Broken) -> Self {
        Self::Broken(broken)
    }
}

/// A session that is up.
#[derive(Debug)]
pub(super) struct Live {
    pub(super) peer: Process,
    pub(super) number: Session,
    pub(super) since: Time,
    pub(super) stream: Stream,
    outbox: Outbox,
    inbox: Inbox,
    /// The beginning of a record that has not come whole.
    rest: Bytes,
    /// The bytes that the engine may still send, as it was told.
    granted: usize,
}

impl Live {
    pub(super) fn new(agreed: Agreed, stream: Stream, since: Time) -> Self {
        Self {
            peer: agreed.peer,
            number: agreed.session,
            since,
            stream,
            outbox: Outbox::new(agreed.seals),
            inbox: Inbox::new(agreed.opens),
            rest: Bytes::new(),
            granted: 0,
        }
    }

    /// Takes a message: it leaves with the next [`Self::flush`], in order.
    pub(super) fn send(&mut self, channel: Channel, bytes: Pieces) {
        debug_assert!(
            bytes.len() <= self.granted,
            "{} bytes for a link that takes {}",
            bytes.len(),
            self.granted
        );
        self.granted = self.granted.saturating_sub(bytes.len());
        self.outbox.push(channel, bytes);
    }

    /// Hands to the kernel what it takes.
    pub(super) fn flush(&mut self, stats: &mut NetStats) -> Result<(), Ending> {
        while self.stream.is_writable() && self.outbox.waiting() > 0 {
            let (pieces, count) = self.outbox.unsent();
            let sent = self.stream.write(&pieces[..count])?;
            self.outbox.sent(sent);
            stats.link_bytes_out += sent as u64;
        }
        Ok(())
    }

    /// Total room, if it has grown enough since the engine was last told.
    pub(super) fn room_to_tell(&mut self) -> Option<usize> {
        let room = QUEUE_BYTES.saturating_sub(self.outbox.waiting());
        let grown = room >= self.granted + TELL_BYTES;
        grown.then(|| {
            self.granted = room;
            room
        })
    }

    /// Reads once and appends what came to `events`; `false` when nothing waited.
    pub(super) fn read(
        &mut self,
        pool: &mut Pool,
        found: &mut Vec<Found>,
        events: &mut VecDeque<Input>,
        stats: &mut NetStats,
    ) -> Result<bool, Ending> {
        let buffer = pool.buffer();
        let kept = self.rest.len();
        buffer[..kept].copy_from_slice(&self.rest);
        let Some(came) = self.stream.read(&mut buffer[kept..])? else {
            return Ok(false);
        };
        stats.link_bytes_in += came as u64;
        let all = kept + came;
        let end = self.inbox.open(&mut buffer[..all], found)?;
        let bytes = pool.take(all);
        self.rest = bytes.slice(end..);
        stats.link_messages_in += found.len() as u64;
        events.extend(found.drain(..).map(|found| {
            let (channel, bytes) = match found {
                Found::Here(channel, range) => (channel, bytes.slice(range)),
                Found::Joined(channel, bytes) => (channel, bytes),
            };
            Input::LinkMessage {
                peer: self.peer.node,
                session: self.number,
                channel,
                bytes,
            }
        }));
        Ok(true)
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost(error) if error.kind() == ErrorKind::UnexpectedEof => {
                f.write_str("the other end has closed it")
            }
            Self::Lost(error) => error.fmt(f),
            Self::Broken(Broken::Length) => f.write_str("a record came with an impossible length"),
            Self::Broken(Broken::Forged) => f.write_str(
                "a record came that is not the next one of the other end: damaged, forged, or sent again",
            ),
            Self::Broken(Broken::Layout) => f.write_str("a record came that holds no messages"),
            Self::Replaced => f.write_str("the other end has begun another"),
            Self::Cut => f.write_str("cut, as a fault"),
        }
    }
}

impl Ending {
    /// Whether the other end closed as a node does that stops.
    pub(super) fn is_plain(&self) -> bool {
        match self {
            Self::Lost(error) => matches!(
                error.kind(),
                ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe
            ),
            Self::Broken(_) => false,
            Self::Replaced | Self::Cut => true,
        }
    }
}
