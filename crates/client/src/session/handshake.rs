//! The handshake, up to the daemon's welcome.

use std::os::fd::OwnedFd;

use super::{Incoming, Settled};
use crate::error::{ConnectError, ConnectionLost};
use crate::memory::Memory;
use crate::protocol::{Hello, Inbox, MAX_REPLY_BYTES, Reply, Request, Welcome};

/// The most bytes of credit, and of one payload, whatever the daemon says: they may wait in memory.
const MOST_ALLOWED: u32 = 1 << 30;

/// The beginning of a connection.
#[derive(Debug)]
pub struct Handshake {
    hello: Hello,
    inbox: Inbox<Reply>,
    descriptor: Option<OwnedFd>,
}

/// A client that was taken.
#[derive(Debug)]
pub struct Taken {
    pub welcome: Welcome,
    pub incoming: Incoming,
    /// The news from the bytes behind the welcome.
    pub settled: Settled,
    /// The memory that the daemon writes to, if it does not use the socket alone.
    pub memory: Option<Box<Memory>>,
}

impl Handshake {
    /// The handshake, and the bytes to send.
    pub fn new(hello: Hello) -> (Self, Vec<u8>) {
        let mut bytes = Vec::new();
        let request = Request::Hello(hello);
        request.encode(&mut bytes).expect("a hello always fits");
        let inbox = Inbox::new(MAX_REPLY_BYTES);
        let handshake = Self {
            hello,
            inbox,
            descriptor: None,
        };
        (handshake, bytes)
    }

    /// Bytes have arrived, and a descriptor with them or not. Gives the handshake back while the answer is not whole.
    pub fn feed(
        mut self,
        (bytes, descriptor): (&[u8], Option<OwnedFd>),
    ) -> Result<Result<Taken, Self>, ConnectError> {
        self.descriptor = descriptor.or(self.descriptor);
        self.inbox.feed(bytes);
        let reply = self.inbox.pull();
        let versions = self.hello.lowest..=self.hello.highest;
        match reply.map_err(|error| ConnectError::Lost(error.into()))? {
            None => Ok(Err(self)),
            Some(Reply::Welcome(mut welcome)) if versions.contains(&welcome.version) => {
                welcome.credit = welcome.credit.min(MOST_ALLOWED);
                welcome.largest_payload = welcome.largest_payload.min(MOST_ALLOWED);
                let mut incoming = Incoming::new(self.inbox);
                let settled = incoming.feed(&[]);
                Ok(Ok(Taken {
                    welcome,
                    incoming,
                    settled,
                    memory: Memory::of(&welcome, self.descriptor.as_ref())?,
                }))
            }
            Some(Reply::Welcome(welcome)) => Err(ConnectError::Version(welcome.version)),
            Some(Reply::Refused { code, text } | Reply::Goodbye { code, text }) => {
                Err(ConnectError::Refused { code, text })
            }
            Some(_) => Err(ConnectError::Lost(ConnectionLost::Unexpected)),
        }
    }
}
