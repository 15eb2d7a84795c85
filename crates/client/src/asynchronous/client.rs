//! A client for one task.

use std::io;
use std::time::{Duration, Instant};

use rota_core::groups::GroupName;
use tokio::time;

use super::stream::Stream;
use crate::address::Address;
use crate::blocking::Builder;
use crate::envelope::Envelope;
use crate::error::{ConnectError, ConnectionLost, RequestError, SendError};
use crate::event::Event;
use crate::protocol::{Credit, PrivateName, Request};
use crate::session::{
    Answer, Handshake, Incoming, Outgoing, OutstandingRequests, Settled, Stop, Taken, is_long_over,
};

/// The most bytes that one system call reads.
const READ_BYTES: usize = 64 << 10;

/// A connection to a daemon, for tokio. It is the counterpart of [`crate::Client`], with the same events, errors and
/// rules of when bytes are written.
///
/// A call that is cancelled loses nothing: events stay for the next [`Self::recv`], a message was taken or not, and a
/// later call writes all that was taken. A request that is cancelled may still take effect.
#[derive(Debug)]
pub struct AsyncClient {
    stream: Stream,
    name: PrivateName,
    account: OutstandingRequests,
    incoming: Incoming,
    outgoing: Outgoing,
    buffer: Box<[u8]>,
    timeout: Duration,
    most_unread: usize,
}

impl AsyncClient {
    /// Connects under a name that the daemon invents, without membership.
    pub async fn connect(address: impl Into<Address>) -> Result<Self, ConnectError> {
        Self::connect_as(&Builder::new(), address).await
    }

    /// Connects as the builder says.
    pub async fn connect_as(
        builder: &Builder,
        address: impl Into<Address>,
    ) -> Result<Self, ConnectError> {
        let (handshake, hello) = builder.handshake()?;
        let address = address.into();
        let connecting = async {
            let stream = Stream::connect(&address, builder).await?;
            let mut taken = shake_hands(&stream, handshake, &hello).await?;
            let stream = stream.with_memory(taken.memory.take());
            Ok((stream, taken))
        };
        let connected = time::timeout(builder.timeout, connecting).await;
        let (stream, taken) = connected.unwrap_or(Err(ConnectError::TimedOut))?;
        let mut account = OutstandingRequests::new(Credit::new(taken.welcome.credit));
        account.settle(taken.settled);
        Ok(Self {
            stream,
            name: taken.welcome.name,
            account,
            incoming: taken.incoming,
            outgoing: Outgoing::new(&taken.welcome, builder.service),
            buffer: vec![0; READ_BYTES].into(),
            timeout: builder.timeout,
            most_unread: builder.unread_bytes,
        })
    }

    /// The private name of this client: `#client#daemon`.
    pub const fn name(&self) -> PrivateName {
        self.name
    }

    /// The most bytes of one payload.
    pub const fn largest_payload(&self) -> usize {
        self.outgoing.largest_payload()
    }

    /// As [`crate::Client::join`].
    pub async fn join(&mut self, group: &str) -> Result<(), RequestError> {
        let group = GroupName::new(group)?;
        let answer = self.ask(|request| Request::Join { request, group });
        answer.await?.done()
    }

    /// As [`crate::Client::leave`].
    pub async fn leave(&mut self, group: &str) -> Result<(), RequestError> {
        let group = GroupName::new(group)?;
        let answer = self.ask(|request| Request::Leave { request, group });
        answer.await?.done()
    }

    /// As [`crate::Client::groups`].
    pub async fn groups(&mut self) -> Result<Vec<(GroupName, u32)>, RequestError> {
        let group = None;
        let answer = self.ask(|request| Request::List { request, group });
        answer.await?.groups()
    }

    /// As [`crate::Client::members`].
    pub async fn members(&mut self, group: &str) -> Result<Vec<PrivateName>, RequestError> {
        let group = Some(GroupName::new(group)?);
        let answer = self.ask(|request| Request::List { request, group });
        answer.await?.members()
    }

    /// As [`crate::Client::send`].
    pub async fn send<E: TryInto<Envelope>>(
        &mut self,
        to: E,
        payload: &[u8],
    ) -> Result<(), SendError>
    where
        SendError: From<E::Error>,
    {
        self.put(&to.try_into()?, payload).await?;
        self.write_all().await
    }

    /// As [`crate::Client::feed`].
    pub async fn feed<E: TryInto<Envelope>>(
        &mut self,
        to: E,
        payload: &[u8],
    ) -> Result<(), SendError>
    where
        SendError: From<E::Error>,
    {
        self.put(&to.try_into()?, payload).await?;
        if self.outgoing.is_due() {
            self.write_all().await?;
        }
        Ok(())
    }

    /// As [`crate::Client::try_send`].
    pub fn try_send<E: TryInto<Envelope>>(&mut self, to: E, payload: &[u8]) -> Result<(), SendError>
    where
        SendError: From<E::Error>,
    {
        let to = to.try_into()?;
        let mut taken = self.outgoing.put(&mut self.account, &to, payload)?;
        if !taken && !self.outgoing.pending().is_empty() {
            // Perhaps only bytes that were not written are in the way.
            self.try_flush()?;
            taken = self.outgoing.put(&mut self.account, &to, payload)?;
        }
        if !taken {
            return Err(SendError::WouldBlock);
        }
        self.try_flush()?;
        Ok(())
    }

    /// As [`crate::Client::flush`].
    pub async fn flush(&mut self) -> Result<(), ConnectionLost> {
        match self.write_all().await {
            Err(SendError::Lost(lost)) => Err(lost),
            _ => Ok(()),
        }
    }

    /// As [`crate::Client::recv`].
    pub async fn recv(&mut self) -> Result<Event, ConnectionLost> {
        loop {
            if let Some(event) = self.incoming.next() {
                return Ok(event);
            }
            self.account.standing()?;
            // A socket that takes nothing more will also say so when it is read, and why.
            let write = self.try_flush().unwrap_or(false);
            self.stream.ready(write).await?;
            self.read();
        }
    }

    /// The next event, if one has arrived; reads what is there. Never waits.
    pub fn try_recv(&mut self) -> Result<Option<Event>, ConnectionLost> {
        let _ = self.try_flush();
        // Most events have come together with another, and need no clock.
        if let Some(event) = self.incoming.next() {
            return Ok(Some(event));
        }
        let begun = Instant::now();
        loop {
            self.account.standing()?;
            if is_long_over(begun) || !self.read() {
                return Ok(None);
            }
            if let Some(event) = self.incoming.next() {
                return Ok(Some(event));
            }
        }
    }

    /// As [`crate::Client::close`].
    pub async fn close(mut self) -> Result<(), ConnectionLost> {
        self.outgoing.ask(&self.account, &Request::Bye)?;
        let timeout = self.timeout;
        let ended = async {
            loop {
                // Writes what is left, too.
                match self.recv().await {
                    Ok(_) => {}
                    Err(ConnectionLost::Ended) => return Ok(()),
                    Err(lost) => return Err(lost),
                }
            }
        };
        let late = |_| Err(io::Error::from(io::ErrorKind::TimedOut).into());
        time::timeout(timeout, ended).await.unwrap_or_else(late)
    }

    /// Bytes of messages, with their frames, of which the daemon has not said that it took them.
    pub const fn unsettled_bytes(&self) -> u64 {
        self.account.credit.outstanding()
    }

    /// Sets how many bytes of events may lie unread while a call waits, and returns how many that were.
    pub(super) const fn set_most_unread(&mut self, bytes: usize) -> usize {
        std::mem::replace(&mut self.most_unread, bytes)
    }

    /// Takes a message as soon as there is credit.
    async fn put(&mut self, to: &Envelope, payload: &[u8]) -> Result<(), SendError> {
        while !self.outgoing.put(&mut self.account, to, payload)? {
            // The daemon gives no credit back for bytes that were not written, and perhaps only they are in the way.
            let waited = !self.outgoing.pending().is_empty();
            let write = self.try_flush()?;
            if write || !waited {
                self.wait(write).await?;
            }
        }
        Ok(())
    }

    /// Writes all that was taken. If the client has to take events first, a later call writes it.
    async fn write_all(&mut self) -> Result<(), SendError> {
        while self.try_flush()? {
            match self.wait(true).await {
                Err(Stop::Unread(_)) => return Ok(()),
                other => other?,
            }
        }
        Ok(())
    }

    async fn ask(&mut self, make: impl FnOnce(u32) -> Request) -> Result<Answer, RequestError> {
        // One that was cancelled.
        self.account.forget_all();
        let request = self.account.expect();
        self.outgoing.ask(&self.account, &make(request))?;
        let timeout = self.timeout;
        let answer = time::timeout(timeout, self.await_answer(request)).await;
        answer.unwrap_or(Err(RequestError::TimedOut))
    }

    async fn await_answer(&mut self, request: u32) -> Result<Answer, RequestError> {
        loop {
            if let Some(answer) = self.account.answer(request) {
                return Ok(answer);
            }
            self.account.standing()?;
            let write = self.try_flush()?;
            self.wait(write).await?;
        }
    }

    /// Reads once there is something, or comes back when there is room to write.
    async fn wait(&mut self, write: bool) -> Result<(), Stop> {
        if self.incoming.unread() > self.most_unread {
            return Err(Stop::Unread(self.most_unread));
        }
        // A stream that has ended is ready to be read for ever: this would not wait.
        self.account.standing()?;
        self.stream.ready(write).await?;
        self.read();
        Ok(())
    }

    /// Reads once, and goes on with what no descriptor tells of until as many bytes of events lie unread as may: what is
    /// left needs no wait. Whether there was anything, the end of the stream included.
    fn read(&mut self) -> bool {
        let any = self.read_once();
        while self.stream.has_more()
            && self.incoming.unread() <= self.most_unread
            && self.account.standing().is_ok()
            && self.read_once()
        {}
        any
    }

    fn read_once(&mut self) -> bool {
        let settled = match self.stream.read(&mut self.buffer) {
            Ok(Some(0)) => self.incoming.end(),
            Ok(Some(bytes)) => self.incoming.feed(&self.buffer[..bytes]),
            Ok(None) => return false,
            Err(error) => Settled::from(ConnectionLost::from(error)),
        };
        self.account.settle(settled);
        self.mind();
        true
    }

    fn mind(&self) {
        self.stream.mind(self.account.credit.outstanding());
    }

    /// Writes what the socket takes; whether that has left something.
    fn try_flush(&mut self) -> Result<bool, ConnectionLost> {
        if self.outgoing.pending().is_empty() {
            return Ok(false);
        }
        self.mind();
        while !self.outgoing.pending().is_empty() {
            match self.stream.write(self.outgoing.pending()) {
                Ok(Some(bytes)) => self.outgoing.wrote(bytes),
                Ok(None) => return Ok(true),
                Err(error) => {
                    // A daemon that closes says why before.
                    let begun = Instant::now();
                    while self.account.lost.is_none()
                        && self.incoming.has_room_behind(self.most_unread)
                        && !is_long_over(begun)
                        && self.read()
                    {}
                    let lost = self.account.lost.get_or_insert_with(|| error.into());
                    return Err(lost.clone());
                }
            }
        }
        Ok(false)
    }
}

impl Drop for AsyncClient {
    /// Writes fed messages, as far as that needs no waiting; not in a child of the process that connected.
    fn drop(&mut self) {
        // The parent writes these bytes, so a child must not.
        if !self.stream.is_own() {
            return;
        }
        // No caller can take an error here; `close` returns it.
        let _ = self.try_flush();
    }
}

async fn shake_hands(
    stream: &Stream,
    mut handshake: Handshake,
    hello: &[u8],
) -> Result<Taken, ConnectError> {
    let mut written = 0;
    let mut buffer = [0; 4096];
    loop {
        if written < hello.len() {
            written += stream.write(&hello[written..])?.unwrap_or(0);
        }
        stream.ready(written < hello.len()).await?;
        match stream.receive(&mut buffer)? {
            Some((0, _)) => return Err(ConnectError::Lost(ConnectionLost::Ended)),
            Some((bytes, descriptor)) => match handshake.feed((&buffer[..bytes], descriptor))? {
                Ok(taken) => return Ok(taken),
                Err(more) => handshake = more,
            },
            None => {}
        }
    }
}
