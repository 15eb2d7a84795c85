//! The receiving half.

use std::io;
use std::net::Shutdown;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::link::Interest;
use super::shared::{Need, Shared, Wait};
use crate::error::ConnectionLost;
use crate::event::Event;
use crate::protocol::PrivateName;
use crate::session::{Incoming, Settled, Stop, is_long_over};

/// The most bytes that one system call reads.
pub(super) const READ_BYTES: usize = 64 << 10;

/// The receiving half of a [`super::Client`]: its methods mean the same. The connection ends when it is dropped,
/// because no other half takes events.
#[derive(Debug)]
pub struct Receiver {
    pub(super) shared: Arc<Shared>,
    pub(super) incoming: Incoming,
    buffer: Box<[u8]>,
    /// The bytes of events that may lie unread while a sender waits.
    pub(super) most_unread: usize,
    /// The last read has emptied the socket: a receiver that is going to wait need not read once more.
    drained: bool,
}

impl Receiver {
    pub(super) fn new(shared: Arc<Shared>, incoming: Incoming, most_unread: usize) -> Self {
        Self {
            shared,
            incoming,
            buffer: vec![0; READ_BYTES].into(),
            most_unread,
            drained: false,
        }
    }

    /// The private name of this client: `#client#daemon`.
    pub fn name(&self) -> PrivateName {
        self.shared.name
    }

    /// As [`super::Client::recv`].
    pub fn recv(&mut self) -> Result<Event, ConnectionLost> {
        loop {
            // Without a deadline there is always something in the end.
            if let Some(event) = self.next(None, &mut || false)? {
                return Ok(event);
            }
        }
    }

    /// As [`super::Client::recv_timeout`].
    pub fn recv_timeout(&mut self, timeout: Duration) -> Result<Option<Event>, ConnectionLost> {
        match self.ready() {
            None => self.next(Instant::now().checked_add(timeout), &mut || false),
            ready => Ok(ready),
        }
    }

    /// The next event if it has been read: most have come together with another, and need no clock.
    pub(super) fn ready(&mut self) -> Option<Event> {
        self.incoming.next()
    }

    /// As [`super::Client::try_recv`].
    pub fn try_recv(&mut self) -> Result<Option<Event>, ConnectionLost> {
        self.recv_timeout(Duration::ZERO)
    }

    /// The next event, or nothing when the time has come. Before it waits it calls `flush`, which says
    /// whether there is still something to write; then it waits for room as well.
    pub(super) fn next(
        &mut self,
        deadline: Option<Instant>,
        flush: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Event>, ConnectionLost> {
        loop {
            if let Some(event) = self.incoming.next() {
                return Ok(Some(event));
            }
            self.shared.account().standing()?;
            let write = flush();
            // The wait itself tells whether there is more, which saves one system call.
            let waits = deadline.is_none_or(|deadline| deadline > Instant::now());
            if !(self.drained && waits) && self.read_some() {
                if !deadline.is_some_and(is_long_over) {
                    continue;
                }
                return Ok(self.incoming.next());
            }
            let interest = Interest { read: true, write };
            if !waits || !self.shared.link.wait(interest, deadline)? {
                return Ok(None);
            }
            self.drained = false;
        }
    }

    /// Reads once; whether there was anything, the end of the stream included.
    pub(super) fn read(&mut self) -> bool {
        // Who waits for the descriptor does not wait for bytes that were read already, so this reads them now.
        self.read_while(|_| true)
    }

    /// As [`Self::read`], but no further than until as many bytes of events lie unread as may. What is left needs no wait.
    fn read_some(&mut self) -> bool {
        let most = self.most_unread;
        self.read_while(|unread| unread <= most)
    }

    /// Reads once, and goes on with bytes of which no descriptor tells as long as so many may lie unread.
    fn read_while(&mut self, may_lie: impl Fn(usize) -> bool) -> bool {
        let any = self.read_once();
        while self.shared.link.has_more()
            && may_lie(self.incoming.unread())
            && self.shared.account().standing().is_ok()
            && self.read_once()
        {}
        any
    }

    fn read_once(&mut self) -> bool {
        let settled = match self.shared.link.read(&mut self.buffer) {
            Ok(Some(0)) => self.incoming.end(),
            Ok(Some(bytes)) => {
                self.drained = bytes < self.buffer.len();
                self.incoming.feed(&self.buffer[..bytes])
            }
            Ok(None) => {
                self.drained = true;
                return false;
            }
            Err(error) => Settled::from(ConnectionLost::from(error)),
        };
        self.shared.settle(settled);
        true
    }

    /// Reads until the daemon closes, and drops it all. It is an error if that takes too long.
    pub(super) fn drain(&mut self, deadline: Option<Instant>) -> Result<(), ConnectionLost> {
        loop {
            match self.next(deadline, &mut || false) {
                Ok(Some(_)) if deadline.is_none_or(|deadline| Instant::now() < deadline) => {}
                Ok(_) => return Err(io::Error::from(io::ErrorKind::TimedOut).into()),
                Err(ConnectionLost::Ended) => return Ok(()),
                Err(lost) => return Err(lost),
            }
        }
    }
}

impl Wait for Receiver {
    fn wait(&mut self, shared: &Shared, need: Need, deadline: Option<Instant>) -> Result<(), Stop> {
        if self.incoming.unread() > self.most_unread {
            return Err(Stop::Unread(self.most_unread));
        }
        shared.account().standing()?;
        if deadline.is_some_and(is_long_over) {
            return Err(Stop::TimedOut);
        }
        let write = need == Need::Write;
        let interest = Interest { read: true, write };
        if self.read_some() {
            return Ok(());
        }
        if !shared.link.wait(interest, deadline)? {
            return Err(Stop::TimedOut);
        }
        self.read_some();
        Ok(())
    }

    /// A daemon that closes sends its reason first; its earlier frames come before the loss.
    fn write_failed(&mut self, shared: &Shared, error: io::Error) -> ConnectionLost {
        let begun = Instant::now();
        while shared.account().lost.is_none()
            && self.incoming.has_room_behind(self.most_unread)
            && !is_long_over(begun)
            && self.read_some()
        {}
        let lost = shared.account().lost.clone();
        lost.unwrap_or_else(|| {
            let lost = ConnectionLost::from(error);
            shared.settle(lost.clone().into());
            lost
        })
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        if !self.shared.link.is_own() {
            return;
        }
        self.shared.settle(ConnectionLost::Ended.into());
        self.shared.link.shutdown(Shutdown::Both);
    }
}
