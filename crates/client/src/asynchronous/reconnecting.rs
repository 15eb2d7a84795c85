//! A client for one task that connects again.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::time::Instant;
use std::{fmt, io};

use rota_core::groups::GroupName;
use tokio::time;

use super::AsyncClient;
use crate::address::Address;
use crate::backoff::{Backoff, Loss};
use crate::blocking::Builder;
use crate::envelope::Envelope;
use crate::error::{ConnectError, ConnectionLost, RequestError, SendError};
use crate::event::Event;

/// The counterpart of [`crate::Reconnecting`] for tokio: a client that connects again when its connection is lost, joins its
/// groups again, and says so. [`Event::Reconnected`] stands where something may be missing.
///
/// It connects again while [`Self::recv`] waits for events, and nowhere else. A `recv` that is cancelled loses nothing: an
/// attempt that has begun goes on with the next call.
#[derive(Debug)]
pub struct AsyncReconnecting {
    address: Address,
    builder: Builder,
    backoff: Backoff,
    groups: BTreeSet<GroupName>,
    state: State,
}

#[derive(Debug)]
enum State {
    Connected(Box<AsyncClient>),
    Lost(Box<Lost>),
}

/// There is no connection.
struct Lost {
    loss: Loss,
    /// The attempt that is under way. It stays here while nobody waits for it.
    attempt: Option<Attempt>,
}

type Attempt = Pin<Box<dyn Future<Output = Result<Joined, ConnectError>> + Send>>;

/// A new connection, and the groups that the daemon does not let it join.
struct Joined {
    client: AsyncClient,
    not_joined: Vec<(GroupName, RequestError)>,
}

impl fmt::Debug for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lost")
            .field("loss", &self.loss)
            .finish_non_exhaustive()
    }
}

impl AsyncReconnecting {
    /// Connects for the first time; a failure of this attempt is final.
    pub async fn connect(
        address: impl Into<Address>,
        builder: Builder,
        backoff: Backoff,
    ) -> Result<Self, ConnectError> {
        let address = address.into();
        let client = AsyncClient::connect_as(&builder, address.clone()).await?;
        Ok(Self {
            address,
            builder,
            backoff,
            groups: BTreeSet::new(),
            state: State::Connected(Box::new(client)),
        })
    }

    /// The connection, while there is one: to list groups, for instance. Joins and leaves made here are
    /// not made again.
    pub fn client(&mut self) -> Option<&mut AsyncClient> {
        match &mut self.state {
            State::Connected(client) => Some(client),
            State::Lost(_) => None,
        }
    }

    fn connected(&mut self) -> Result<&mut AsyncClient, ConnectionLost> {
        match &mut self.state {
            State::Connected(client) => Ok(client),
            State::Lost(lost) => Err(lost.loss.lost.clone()),
        }
    }

    /// As [`crate::Reconnecting::join`].
    pub async fn join(&mut self, group: &str) -> Result<(), RequestError> {
        let name = GroupName::new(group)?;
        self.connected()?;
        // A join that is cancelled, or without an answer, may still take effect.
        self.groups.insert(name);
        let joined = self.connected()?.join(group).await;
        if matches!(joined, Err(RequestError::Failed { .. })) {
            self.groups.remove(&name);
        }
        joined
    }

    /// As [`crate::Reconnecting::leave`].
    pub async fn leave(&mut self, group: &str) -> Result<(), RequestError> {
        self.groups.remove(&GroupName::new(group)?);
        if let State::Lost(lost) = &mut self.state {
            // It may have joined the group by now.
            lost.attempt = None;
        }
        self.connected()?.leave(group).await
    }

    /// As [`AsyncClient::send`].
    pub async fn send<E: TryInto<Envelope>>(
        &mut self,
        to: E,
        payload: &[u8],
    ) -> Result<(), SendError>
    where
        SendError: From<E::Error>,
    {
        self.connected()?.send(to, payload).await
    }

    /// As [`AsyncClient::feed`].
    pub async fn feed<E: TryInto<Envelope>>(
        &mut self,
        to: E,
        payload: &[u8],
    ) -> Result<(), SendError>
    where
        SendError: From<E::Error>,
    {
        self.connected()?.feed(to, payload).await
    }

    /// As [`AsyncClient::try_send`].
    pub fn try_send<E: TryInto<Envelope>>(&mut self, to: E, payload: &[u8]) -> Result<(), SendError>
    where
        SendError: From<E::Error>,
    {
        self.connected()?.try_send(to, payload)
    }

    /// As [`AsyncClient::flush`].
    pub async fn flush(&mut self) -> Result<(), ConnectionLost> {
        self.connected()?.flush().await
    }

    /// As [`crate::Reconnecting::recv`]: an error means that somebody has to change something before an attempt can succeed,
    /// and each further call tries once more.
    pub async fn recv(&mut self) -> Result<Event, ConnectError> {
        loop {
            match &mut self.state {
                State::Connected(client) => match client.recv().await {
                    Ok(event) => return Ok(event),
                    Err(lost) => {
                        let loss = Loss::new(lost, client.unsettled_bytes(), &self.backoff);
                        let attempt = None;
                        self.state = State::Lost(Box::new(Lost { loss, attempt }));
                    }
                },
                State::Lost(lost) => {
                    let at = lost.loss.next_attempt;
                    let attempt = lost.attempt.get_or_insert_with(|| {
                        let of = (&self.address, &self.builder, &self.groups);
                        let of = (of.0.clone(), of.1.clone(), of.2.clone());
                        Box::pin(connect_again(of, at))
                    });
                    let ended = attempt.as_mut().await;
                    lost.attempt = None;
                    match ended {
                        Ok(joined) => return Ok(self.go_on(joined)),
                        Err(error) if error.may_pass() => lost.loss.failed(&self.backoff),
                        Err(error) => return Err(error),
                    }
                }
            }
        }
    }

    fn go_on(&mut self, Joined { client, not_joined }: Joined) -> Event {
        for (group, _) in &not_joined {
            self.groups.remove(group);
        }
        let name = client.name();
        let connected = State::Connected(Box::new(client));
        match std::mem::replace(&mut self.state, connected) {
            State::Lost(lost) => Event::Reconnected(lost.loss.gap(name, not_joined)),
            State::Connected(_) => unreachable!("only a lost connection is followed by another"),
        }
    }

    /// As [`AsyncClient::close`]; while there is no connection there is nothing to close.
    pub async fn close(self) -> Result<(), ConnectionLost> {
        match self.state {
            State::Connected(client) => client.close().await,
            State::Lost(_) => Ok(()),
        }
    }
}

/// Connects and joins once more, when it is time.
async fn connect_again(
    (address, builder, groups): (Address, Builder, BTreeSet<GroupName>),
    at: Instant,
) -> Result<Joined, ConnectError> {
    time::sleep_until(at.into()).await;
    let mut client = AsyncClient::connect_as(&builder, address).await?;
    // Events wait until the gap is known, since the application takes none before: very many, but not without end.
    let most_unread = client.set_most_unread(builder.most_early());
    let mut not_joined = Vec::new();
    for group in groups {
        match client.join(group.as_str()).await {
            Ok(()) => {}
            Err(error @ RequestError::Failed { .. }) => not_joined.push((group, error)),
            Err(RequestError::Lost(lost)) => return Err(ConnectError::Lost(lost)),
            // The join may still take effect, unheard: only another connection makes it certain.
            Err(error) => return Err(ConnectError::Lost(io::Error::other(error).into())),
        }
    }
    client.set_most_unread(most_unread);
    Ok(Joined { client, not_joined })
}
