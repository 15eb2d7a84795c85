//! The options of a client, and its connection.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rota_core::contract::Service;
use rota_core::groups::ClientName;

use super::link::{Interest, Link};
use super::receiver::READ_BYTES;
use super::shared::Shared;
use super::{Client, Receiver, Sender};
use crate::address::Address;
use crate::error::{ConnectError, ConnectionLost};
use crate::protocol::{Credit, Hello, SlowPolicy};
use crate::session::{Handshake, Outgoing, OutstandingRequests, Taken};
#[cfg(feature = "tls")]
use crate::tls::Tls;

/// The options of a client before it connects.
#[derive(Clone, Debug)]
#[must_use]
pub struct Builder {
    pub(crate) name: Option<String>,
    pub(crate) membership: bool,
    pub(crate) when_slow: Option<SlowPolicy>,
    pub(crate) service: Service,
    pub(crate) insecure: bool,
    pub(crate) timeout: Duration,
    pub(crate) unread_bytes: usize,
    /// The most bytes of events that may come while groups are joined again, unless `unread_bytes` is more.
    pub(crate) early_bytes: usize,
    #[cfg(feature = "tls")]
    pub(crate) tls: Option<Tls>,
}

impl Default for Builder {
    fn default() -> Self {
        Self::new()
    }
}

impl Builder {
    /// The defaults.
    pub const fn new() -> Self {
        Self {
            name: None,
            membership: false,
            when_slow: None,
            service: Service::Agreed,
            insecure: false,
            timeout: Duration::from_secs(30),
            unread_bytes: 16 << 20,
            early_bytes: 1 << 30,
            #[cfg(feature = "tls")]
            tls: None,
        }
    }

    /// The name that the client asks for at its daemon: 1 to 10 characters from `$` to `~`, unique among the clients of
    /// that daemon. Without this call the daemon invents a name.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Whether the client gets views, transitional signals and self-leaves; false.
    pub const fn membership(mut self, membership: bool) -> Self {
        self.membership = membership;
        self
    }

    /// The policy for this client if it takes its events too slowly, within the limits of the daemon; without this call
    /// the daemon's own policy.
    pub const fn when_slow(mut self, policy: SlowPolicy) -> Self {
        self.when_slow = Some(policy);
        self
    }

    /// The guarantee for messages whose envelope names none; agreed.
    pub const fn service(mut self, service: Service) -> Self {
        self.service = service;
        self
    }

    /// Whether TCP may leave this machine, although everybody on the way can read and change everything; false.
    pub const fn insecure(mut self, insecure: bool) -> Self {
        self.insecure = insecure;
        self
    }

    /// The certificates by which this client and a daemon at a `tls:` address know each other.
    #[cfg(feature = "tls")]
    pub fn tls(mut self, tls: Tls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// The time that the daemon may take to let the client in, and to answer a request; 30 s. While daemons look for
    /// each other, joins and leaves wait.
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// The bytes of events, about, that may lie unread while a call of [`Client`] waits for credit or an answer; 16
    /// MiB. The credit of this client does not bound the messages of other clients: a client that sends and never takes
    /// its events is stopped here, with an error, before it takes all memory. At most one read (64 KiB) or one frame
    /// (64 MiB) goes beyond.
    pub const fn unread_bytes(mut self, bytes: usize) -> Self {
        self.unread_bytes = bytes;
        self
    }

    pub(crate) fn most_early(&self) -> usize {
        self.early_bytes.max(self.unread_bytes)
    }

    pub(crate) fn handshake(&self) -> Result<(Handshake, Vec<u8>), ConnectError> {
        let name = self.name.as_deref().map(ClientName::new).transpose()?;
        Ok(Handshake::new(Hello {
            when_slow: self.when_slow,
            memory: true,
            ..Hello::new(name, self.membership)
        }))
    }

    /// Connects, and waits until the daemon has let the client in.
    pub fn connect(&self, address: impl Into<Address>) -> Result<Client, ConnectError> {
        let (handshake, hello) = self.handshake()?;
        let deadline = Instant::now().checked_add(self.timeout);
        let link = Link::connect(&address.into(), self, deadline)?;
        let taken = shake_hands(&link, handshake, &hello, deadline)?;
        let link = link.with_memory(taken.memory);
        let account = OutstandingRequests::new(Credit::new(taken.welcome.credit));
        let shared = Arc::new(Shared::new(link, taken.welcome.name, self.timeout, account));
        shared.settle(taken.settled);
        let sender = Sender {
            shared: Arc::clone(&shared),
            outgoing: Outgoing::new(&taken.welcome, self.service),
        };
        let receiver = Receiver::new(shared, taken.incoming, self.unread_bytes);
        Ok(Client::new(sender, receiver))
    }
}

fn shake_hands(
    link: &Link,
    mut handshake: Handshake,
    hello: &[u8],
    deadline: Option<Instant>,
) -> Result<Taken, ConnectError> {
    // A new socket takes these few bytes at once.
    if link.write(hello)? != Some(hello.len()) {
        return Err(ConnectError::TimedOut);
    }
    // The handshake takes all bytes out of the link: no descriptor becomes ready for bytes that the link holds already.
    let mut buffer = vec![0; READ_BYTES];
    loop {
        match link.receive(&mut buffer)? {
            Some((0, _)) => return Err(ConnectError::Lost(ConnectionLost::Ended)),
            Some((bytes, descriptor)) => match handshake.feed((&buffer[..bytes], descriptor))? {
                Ok(taken) => return Ok(taken),
                Err(more) => handshake = more,
            },
            None => {
                let (read, write) = (true, false);
                if !link.wait(Interest { read, write }, deadline)? {
                    return Err(ConnectError::TimedOut);
                }
            }
        }
    }
}
