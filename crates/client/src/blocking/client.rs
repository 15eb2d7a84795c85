//! A client for one thread.

use std::net::Shutdown;
use std::time::{Duration, Instant};

use rota_core::groups::GroupName;

use super::{Builder, Receiver, Sender};
use crate::address::Address;
use crate::envelope::Envelope;
use crate::error::{ConnectError, ConnectionLost, RequestError, SendError};
use crate::event::Event;
use crate::protocol::{Message, PrivateName};

/// A connection to a daemon.
///
/// Events that arrive while a call waits for something else (credit, an answer) are kept for
/// [`Self::recv`], up to [`Builder::unread_bytes`].
///
/// # When bytes are written
///
/// [`Self::send`] and [`Self::try_send`] write at once, together with all that was fed before.
/// [`Self::feed`] gathers messages; they are written when there are 32 KiB of them, at the next `send`,
/// `flush`, `join`, `leave` or list, and before `recv` waits. So no message is stuck while its sender
/// waits for the answer, and many small messages cost few system calls.
#[derive(Debug)]
pub struct Client {
    /// First, since what it has been fed is written when it is dropped, before the other half hangs up.
    pub(super) sender: Sender,
    pub(super) receiver: Receiver,
}

impl Client {
    /// Connects under a name that the daemon invents, without membership.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mut client = rota_client::Client::connect("/run/rota/rota.sock")?;
    /// client.join("orders")?;
    /// client.send("orders", b"hello")?;
    /// for message in client.messages() {
    ///     println!("{:?}", message?.payload);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn connect(address: impl Into<Address>) -> Result<Self, ConnectError> {
        Builder::new().connect(address)
    }

    /// The options of a client before it connects.
    pub fn builder() -> Builder {
        Builder::new()
    }

    pub(super) const fn new(sender: Sender, receiver: Receiver) -> Self {
        Self { sender, receiver }
    }

    /// The private name of this client: `#client#daemon`. Messages to it come to this client alone.
    pub fn name(&self) -> PrivateName {
        self.sender.name()
    }

    /// The most bytes of one payload.
    pub const fn largest_payload(&self) -> usize {
        self.sender.largest_payload()
    }

    /// Joins a group, and waits until that has taken effect in the order. With membership, the view is
    /// among the events. A group that the client is in already is fine.
    pub fn join(&mut self, group: &str) -> Result<(), RequestError> {
        self.sender.join_by(&mut self.receiver, group)
    }

    /// Leaves a group, and waits until that has taken effect in the order: messages of the group that
    /// were ordered before are still among the events. A group that the client is not in is fine.
    pub fn leave(&mut self, group: &str) -> Result<(), RequestError> {
        self.sender.leave_by(&mut self.receiver, group)
    }

    /// All groups that the daemon knows of, and how many members each has.
    pub fn groups(&mut self) -> Result<Vec<(GroupName, u32)>, RequestError> {
        self.sender.list_by(&mut self.receiver, None)?.groups()
    }

    /// The members of a group as far as the daemon knows, in the order of views; none if there is no such
    /// group. The client need not be in it.
    pub fn members(&mut self, group: &str) -> Result<Vec<PrivateName>, RequestError> {
        let group = Some(GroupName::new(group)?);
        self.sender.list_by(&mut self.receiver, group)?.members()
    }

    /// Sends a message to a group or a client (`"orders"`, `"#alice#n1"`), or as an [`Envelope`] says. Waits while
    /// there is no credit: until the daemon has taken enough of the client's earlier messages. Only the client's own
    /// copy of a message shows that the message has its place in the order. The client does not have to be in the
    /// group.
    pub fn send<E: TryInto<Envelope>>(&mut self, to: E, payload: &[u8]) -> Result<(), SendError>
    where
        SendError: From<E::Error>,
    {
        let to = to.try_into()?;
        self.sender.send_by(&mut self.receiver, &to, payload)
    }

    /// As [`Self::send`], but leaves it to a later call to write the message, together with others.
    pub fn feed<E: TryInto<Envelope>>(&mut self, to: E, payload: &[u8]) -> Result<(), SendError>
    where
        SendError: From<E::Error>,
    {
        let to = to.try_into()?;
        self.sender.feed_by(&mut self.receiver, &to, payload)
    }

    /// As [`Self::send`], but does not wait: [`SendError::WouldBlock`] if there is no credit now. Credit
    /// comes with the events, so take some in between.
    pub fn try_send<E: TryInto<Envelope>>(&mut self, to: E, payload: &[u8]) -> Result<(), SendError>
    where
        SendError: From<E::Error>,
    {
        let to = to.try_into()?;
        self.sender.try_send_by(&mut self.receiver, &to, payload)
    }

    /// As [`Self::feed`], but does not wait, as [`Self::try_send`].
    pub fn try_feed<E: TryInto<Envelope>>(&mut self, to: E, payload: &[u8]) -> Result<(), SendError>
    where
        SendError: From<E::Error>,
    {
        let to = to.try_into()?;
        self.sender.try_feed_by(&mut self.receiver, &to, payload)
    }

    /// Writes all that was fed.
    pub fn flush(&mut self) -> Result<(), ConnectionLost> {
        self.sender.flush_by(&mut self.receiver)
    }

    /// The next event; waits until there is one. When the connection is lost, the events that arrived
    /// before come first.
    pub fn recv(&mut self) -> Result<Event, ConnectionLost> {
        loop {
            // Without a deadline there is always something in the end.
            if let Some(event) = self.next(None)? {
                return Ok(event);
            }
        }
    }

    /// The next event, if there is one within so long.
    pub fn recv_timeout(&mut self, timeout: Duration) -> Result<Option<Event>, ConnectionLost> {
        match self.receiver.ready() {
            None => self.next(Instant::now().checked_add(timeout)),
            ready => Ok(ready),
        }
    }

    /// The next event, if there is one now.
    pub fn try_recv(&mut self) -> Result<Option<Event>, ConnectionLost> {
        self.recv_timeout(Duration::ZERO)
    }

    fn next(&mut self, deadline: Option<Instant>) -> Result<Option<Event>, ConnectionLost> {
        let sender = &mut self.sender;
        // A socket that takes nothing more will also say so when it is read, and why.
        let mut flush = || sender.try_flush(&mut super::shared::Apart).unwrap_or(false);
        self.receiver.next(deadline, &mut flush)
    }

    /// The messages among the events, until the connection is lost; all other events are passed over.
    pub const fn messages(&mut self) -> Messages<'_> {
        Messages(Some(self))
    }

    /// Two halves for two threads.
    pub fn split(self) -> (Sender, Receiver) {
        (self.sender, self.receiver)
    }

    /// Writes what was fed, says bye, and waits until the daemon has read all that, at most
    /// [`Builder::timeout`]: after an error the daemon may not have read everything. Events that nobody has
    /// taken are dropped.
    ///
    /// A program that sends and ends should close: dropping a client hangs up, and what the daemon has not read
    /// by then may be lost.
    pub fn close(mut self) -> Result<(), ConnectionLost> {
        let deadline = Instant::now().checked_add(self.sender.shared.timeout);
        self.sender.say_bye()?;
        loop {
            // Events that nobody will take do not keep back the bytes that are still to be written.
            while self.receiver.ready().is_some() {}
            if !self.sender.flush_once(&mut self.receiver, deadline)? {
                break;
            }
        }
        self.sender.shared.link.shutdown(Shutdown::Write);
        self.receiver.drain(deadline)
    }

    /// Bytes of messages, with their frames, of which the daemon has not said that it took them.
    pub fn unsettled_bytes(&self) -> u64 {
        self.sender.shared.account().credit.outstanding()
    }
}

/// The messages among a client's events.
#[derive(Debug)]
pub struct Messages<'a>(Option<&'a mut Client>);

impl Iterator for Messages<'_> {
    type Item = Result<Message, ConnectionLost>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.0.as_mut()?.recv() {
                Ok(Event::Message(message)) => return Some(Ok(message)),
                Ok(_) => {}
                Err(lost) => {
                    self.0 = None;
                    return Some(Err(lost));
                }
            }
        }
    }
}
