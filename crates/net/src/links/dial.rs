//! A connection to a node, until the node has proved that it is the one.

use rota_core::contract::{NodeId, Session, Time};
use std::io;
use std::net::{IpAddr, SocketAddr};

use super::handshake::{Agreed, Dialing, Own, Refusal, WELCOME_BYTES};
use super::stream::{Gather, Stream};
use super::{Context, HANDSHAKE_NANOS, draw_nonce};
use crate::epoll::Epoll;

/// The first wait after a connection failed or a session ended.
const FIRST_WAIT_NANOS: u64 = 20_000_000;
/// The longest: it doubles until then.
const LONGEST_WAIT_NANOS: u64 = 320_000_000;
/// The duration from which on a session was none that fails again and again.
const LASTING_NANOS: u64 = 1_000_000_000;

/// The time that a connection may take at first. A path that comes back is found within this and a wait, and not only
/// when the kernel tries again, after one second, after three.
const CONNECT_NANOS: u64 = 500_000_000;

/// The wait before connecting again.
#[derive(Debug)]
pub(super) struct Patience {
    next: u64,
}

impl Patience {
    pub(super) const fn new() -> Self {
        Self {
            next: FIRST_WAIT_NANOS,
        }
    }

    /// The time to connect again, after another failure.
    pub(super) fn again(&mut self, now: Time) -> Time {
        let at = now.after(self.next);
        self.next = (2 * self.next).min(LONGEST_WAIT_NANOS);
        at
    }

    /// The time for which a connection is waited for: longer after each failure, so that a slow path is reached, too.
    const fn connecting(&self) -> u64 {
        CONNECT_NANOS + 4 * self.next
    }

    /// Notes the end of a session that had begun at `since`.
    pub(super) const fn lasted(&mut self, since: Time, now: Time) {
        if now.since(since) >= LASTING_NANOS {
            self.next = FIRST_WAIT_NANOS;
        }
    }
}

/// The failure of an attempt.
#[derive(Debug)]
pub(super) enum Failure {
    Io(io::Error),
    Refused(Refusal),
}

impl Failure {
    pub(super) fn timed_out() -> Self {
        Self::Io(io::ErrorKind::TimedOut.into())
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

#[derive(Debug)]
enum Step {
    Connecting,
    Welcome(Box<Dialing>, Gather<WELCOME_BYTES>),
}

/// One attempt.
#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) stream: Stream,
    pub(super) deadline: Time,
    /// The latest time at which it may have become a session.
    ends: Time,
    to: NodeId,
    step: Step,
}

impl Attempt {
    pub(super) fn begin(
        (from, to): (IpAddr, (NodeId, SocketAddr)),
        (now, patience): (Time, &Patience),
        epoll: &Epoll,
        next_name: &mut u64,
    ) -> io::Result<Self> {
        *next_name += 1;
        let stream = Stream::dial(from, to.1, *next_name)?;
        epoll.add(&stream, stream.name)?;
        Ok(Self {
            stream,
            deadline: now.after(patience.connecting()),
            ends: now.after(HANDSHAKE_NANOS),
            to: to.0,
            step: Step::Connecting,
        })
    }

    /// Whether the attempt can go on.
    pub(super) const fn is_ready(&self) -> bool {
        match self.step {
            Step::Connecting => self.stream.is_writable(),
            Step::Welcome(..) => self.stream.is_readable(),
        }
    }

    /// Goes on as far as possible; returns the session once it has begun.
    pub(super) fn go_on(
        &mut self,
        own: Own,
        last: Session,
        context: &Context<'_>,
    ) -> Result<Option<Agreed>, Failure> {
        if let Step::Connecting = self.step {
            if !self.stream.is_writable() {
                return Ok(None);
            }
            self.stream.connected()?;
            self.deadline = self.ends;
            let begun = Dialing::begin(own, (self.to, last), context.keys, draw_nonce()?);
            let (dialing, hello) = begun.ok_or(Refusal::UnknownKey)?;
            self.stream.write_whole(&hello)?;
            self.step = Step::Welcome(Box::new(dialing), Gather::new());
        }
        let Step::Welcome(dialing, welcome) = &mut self.step else {
            return Ok(None);
        };
        let Some(welcome) = welcome.read(&mut self.stream)? else {
            return Ok(None);
        };
        let (agreed, confirm) = dialing.welcomed(welcome)?;
        self.stream.write_whole(&confirm)?;
        Ok(Some(agreed))
    }
}
