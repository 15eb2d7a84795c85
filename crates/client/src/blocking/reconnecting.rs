//! A client that connects again.

use std::collections::BTreeSet;
use std::io;
use std::time::{Duration, Instant};

use rota_core::groups::GroupName;

use super::{Builder, Client, GroupSizes};
use crate::address::Address;
use crate::backoff::{Backoff, Loss};
use crate::envelope::Envelope;
use crate::error::{ConnectError, ConnectionLost, RequestError, SendError};
use crate::event::{Event, Gap};
use crate::protocol::PrivateName;

/// A client that connects again when its connection is lost, joins its groups again, and says so:
/// [`Event::Reconnected`] stands where something may be missing.
///
/// It connects again while it waits for events, and nowhere else, so that nothing is sent or received
/// behind a gap that the application has not seen. When [`Self::send`] says that the connection is lost,
/// take events until `Reconnected`. A daemon may take a while to notice that the old connection is gone; a
/// client with a name of its own is refused as long.
#[derive(Debug)]
pub struct Reconnecting {
    address: Address,
    builder: Builder,
    backoff: Backoff,
    groups: BTreeSet<GroupName>,
    state: State,
}

#[derive(Debug)]
enum State {
    Connected(Client),
    Lost(Loss),
}

impl Reconnecting {
    /// Connects for the first time; a failure of this attempt is final.
    pub fn connect(
        address: impl Into<Address>,
        builder: Builder,
        backoff: Backoff,
    ) -> Result<Self, ConnectError> {
        let address = address.into();
        let client = builder.connect(address.clone())?;
        Ok(Self {
            address,
            builder,
            backoff,
            groups: BTreeSet::new(),
            state: State::Connected(client),
        })
    }

    /// The connection, while there is one: to list groups, for instance. Joins and leaves made here are
    /// not made again.
    pub const fn client(&mut self) -> Option<&mut Client> {
        match &mut self.state {
            State::Connected(client) => Some(client),
            State::Lost(_) => None,
        }
    }

    fn connected(&mut self) -> Result<&mut Client, ConnectionLost> {
        match &mut self.state {
            State::Connected(client) => Ok(client),
            State::Lost(loss) => Err(loss.lost.clone()),
        }
    }

    /// As [`Client::join`]; and again on each new connection, also if this one is lost meanwhile or the answer does not
    /// come in time. Only a group that the daemon refuses is not joined again.
    pub fn join(&mut self, group: &str) -> Result<(), RequestError> {
        let name = GroupName::new(group)?;
        let joined = self.connected()?.join(group);
        // A join without an answer may still take effect, so the group stays on the list.
        if !matches!(joined, Err(RequestError::Failed { .. })) {
            self.groups.insert(name);
        }
        joined
    }

    /// As [`Client::leave`]; no new connection joins the group again.
    pub fn leave(&mut self, group: &str) -> Result<(), RequestError> {
        self.groups.remove(&GroupName::new(group)?);
        self.connected()?.leave(group)
    }

    /// As [`Client::send`].
    pub fn send<E: TryInto<Envelope>>(&mut self, to: E, payload: &[u8]) -> Result<(), SendError>
    where
        SendError: From<E::Error>,
    {
        self.connected()?.send(to, payload)
    }

    /// As [`Client::feed`].
    pub fn feed<E: TryInto<Envelope>>(&mut self, to: E, payload: &[u8]) -> Result<(), SendError>
    where
        SendError: From<E::Error>,
    {
        self.connected()?.feed(to, payload)
    }

    /// As [`Client::try_send`].
    pub fn try_send<E: TryInto<Envelope>>(&mut self, to: E, payload: &[u8]) -> Result<(), SendError>
    where
        SendError: From<E::Error>,
    {
        self.connected()?.try_send(to, payload)
    }

    /// As [`Client::try_feed`].
    pub fn try_feed<E: TryInto<Envelope>>(&mut self, to: E, payload: &[u8]) -> Result<(), SendError>
    where
        SendError: From<E::Error>,
    {
        self.connected()?.try_feed(to, payload)
    }

    /// As [`Client::groups`].
    pub fn groups(&mut self) -> Result<GroupSizes, RequestError> {
        self.connected()?.groups()
    }

    /// As [`Client::members`].
    pub fn members(&mut self, group: &str) -> Result<Vec<PrivateName>, RequestError> {
        self.connected()?.members(group)
    }

    /// As [`Client::flush`].
    pub fn flush(&mut self) -> Result<(), ConnectionLost> {
        self.connected()?.flush()
    }

    /// As [`Client::close`]; while there is no connection there is nothing to close.
    pub fn close(self) -> Result<(), ConnectionLost> {
        match self.state {
            State::Connected(client) => client.close(),
            State::Lost(_) => Ok(()),
        }
    }

    /// The next event; waits until there is one. An error means that somebody has to change something before an
    /// attempt can succeed ([`ConnectError::may_pass`]), as a certificate that has expired. Each further call tries once
    /// more: so a program may call again, after a pause of its own, and goes on once that has been done.
    pub fn recv(&mut self) -> Result<Event, ConnectError> {
        loop {
            // Without a deadline there is always something in the end.
            if let Some(event) = self.next(None)? {
                return Ok(event);
            }
        }
    }

    /// The next event, if there is one within so long. An attempt to connect that has begun may take
    /// longer ([`Builder::timeout`]).
    pub fn recv_timeout(&mut self, timeout: Duration) -> Result<Option<Event>, ConnectError> {
        self.next(Instant::now().checked_add(timeout))
    }

    fn next(&mut self, deadline: Option<Instant>) -> Result<Option<Event>, ConnectError> {
        loop {
            match &mut self.state {
                State::Connected(client) => {
                    let next = match deadline {
                        None => client.recv().map(Some),
                        Some(deadline) => {
                            client.recv_timeout(deadline.saturating_duration_since(Instant::now()))
                        }
                    };
                    match next {
                        Ok(next) => return Ok(next),
                        Err(lost) => {
                            let unsettled = client.unsettled_bytes();
                            self.state = State::Lost(Loss::new(lost, unsettled, &self.backoff));
                        }
                    }
                }
                State::Lost(loss) => {
                    let until = loss.next_attempt.min(deadline.unwrap_or(loss.next_attempt));
                    std::thread::sleep(until.saturating_duration_since(Instant::now()));
                    if Instant::now() < loss.next_attempt {
                        return Ok(None);
                    }
                    let loss = loss.clone();
                    if let Some(gap) = self.attempt(loss)? {
                        return Ok(Some(Event::Reconnected(gap)));
                    }
                }
            }
        }
    }

    /// Connects and joins once more.
    fn attempt(&mut self, mut loss: Loss) -> Result<Option<Gap>, ConnectError> {
        let error = match self.builder.connect(self.address.clone()) {
            Ok(client) => match self.rejoin(client, &loss) {
                Ok(gap) => return Ok(Some(gap)),
                Err(lost) => ConnectError::Lost(lost),
            },
            Err(error) => error,
        };
        if !error.may_pass() {
            return Err(error);
        }
        loss.failed(&self.backoff);
        self.state = State::Lost(loss);
        Ok(None)
    }

    fn rejoin(&mut self, mut client: Client, loss: &Loss) -> Result<Gap, ConnectionLost> {
        let mut not_joined = Vec::new();
        // Events wait until the gap is known, since the application takes none before: very many, but not without end.
        let most_unread = client.set_most_unread(self.builder.most_early());
        for group in &self.groups {
            match client.join(group.as_str()) {
                Ok(()) => {}
                Err(error @ RequestError::Failed { .. }) => not_joined.push((*group, error)),
                Err(RequestError::Lost(lost)) => return Err(lost),
                // The join may still take effect, unheard: only another connection makes it certain.
                Err(error) => return Err(io::Error::other(error).into()),
            }
        }
        client.set_most_unread(most_unread);
        for (group, _) in &not_joined {
            self.groups.remove(group);
        }
        let gap = loss.gap(client.name(), not_joined);
        self.state = State::Connected(client);
        Ok(gap)
    }
}
