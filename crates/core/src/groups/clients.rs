//! The clients of this daemon, and their requests that have not come back in the order yet.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use core::fmt;

use super::event::{Connection, Member};
use super::message::{PIECE_BYTES, Request, stamp};
use super::name::{ClientName, GroupName};
use crate::contract::{Process, RingId, Service};

/// What a request costs beside its bytes.
const REQUEST_BYTES: usize = 64;

/// How much is kept for clients. Each daemon has its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Clients of this daemon.
    pub clients: usize,
    /// Groups that the clients of this daemon are in, all together: bounds what daemons tell each other.
    pub memberships: usize,
    /// Bytes of a client's requests that have not come back in the order. One larger request fits
    /// when there is no other.
    pub backlog_bytes: usize,
    /// Bytes of the application in one message.
    pub payload_bytes: usize,
    /// Requests of all clients handed to the engine that have not come back: so many are handed over a
    /// second time when the configuration changes.
    pub window: usize,
    /// Bytes of each message in which daemons tell each other what they know, but for the last: at most
    /// [`PIECE_BYTES`], and at least 1.
    pub piece_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            clients: 4096,
            memberships: 16_384,
            backlog_bytes: 256 << 10,
            payload_bytes: 128 << 10,
            window: 1024,
            piece_bytes: PIECE_BYTES,
        }
    }
}

/// Why a request of a client was not taken. Nothing of it was kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RequestError {
    /// There is no such connection.
    NotConnected,
    /// Another client of this daemon has that name.
    NotUnique,
    /// Too much of this client's is on its way: ask again later.
    Full,
    /// The daemon has as many clients, or its clients are in as many groups, as it may.
    TooMany,
    /// The message is too large.
    TooLarge {
        /// The limit that was passed, in bytes.
        limit: usize,
    },
    /// A message needs from 1 to 100 destinations.
    Destinations,
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotConnected => f.write_str("not connected"),
            Self::NotUnique => f.write_str("another client of this daemon has that name"),
            Self::Full => f.write_str("too much is on its way; ask again later"),
            Self::TooMany => f.write_str("the daemon takes no more of these"),
            Self::TooLarge { limit } => write!(f, "a message may have at most {limit} bytes"),
            Self::Destinations => f.write_str("a message needs from 1 to 100 destinations"),
        }
    }
}

impl core::error::Error for RequestError {}

#[derive(Debug)]
struct Client {
    name: ClientName,
    /// What it has asked to be in.
    wants: BTreeSet<GroupName>,
    backlog: usize,
}

/// A request on its way.
#[derive(Debug)]
struct Waiting {
    connection: Connection,
    service: Service,
    message: Vec<u8>,
}

/// Clients and requests.
#[derive(Debug)]
pub(super) struct Clients {
    me: Process,
    pub limits: Limits,
    connected: BTreeMap<Connection, Client>,
    names: BTreeMap<ClientName, Connection>,
    newest: u64,
    memberships: usize,
    /// In the order of the requests; the first of them have been handed to the engine.
    waiting: VecDeque<Waiting>,
    under_way: usize,
}

impl Clients {
    pub const fn new(me: Process, limits: Limits) -> Self {
        Self {
            me,
            limits,
            connected: BTreeMap::new(),
            names: BTreeMap::new(),
            newest: 0,
            memberships: 0,
            waiting: VecDeque::new(),
            under_way: 0,
        }
    }

    pub fn connect(&mut self, name: ClientName) -> Result<Connection, RequestError> {
        if self.names.contains_key(&name) {
            return Err(RequestError::NotUnique);
        }
        if self.connected.len() >= self.limits.clients {
            return Err(RequestError::TooMany);
        }
        self.newest += 1;
        let connection = Connection(self.newest);
        let client = Client {
            name,
            wants: BTreeSet::new(),
            backlog: 0,
        };
        self.connected.insert(connection, client);
        self.names.insert(name, connection);
        Ok(connection)
    }

    pub fn member(&self, connection: Connection) -> Result<Member, RequestError> {
        let client = self.connected.get(&connection);
        let client = client.ok_or(RequestError::NotConnected)?;
        Ok(Member {
            daemon: self.me,
            name: client.name,
            connection,
        })
    }

    pub fn named(&self, name: ClientName) -> Option<Connection> {
        self.names.get(&name).copied()
    }

    pub fn is_connected(&self, connection: Connection) -> bool {
        self.connected.contains_key(&connection)
    }

    pub fn join(&mut self, connection: Connection, group: GroupName) -> Result<(), RequestError> {
        let member = self.member(connection)?;
        if self.wants(connection, group) {
            return Ok(());
        }
        if self.memberships >= self.limits.memberships {
            return Err(RequestError::TooMany);
        }
        self.ask(member, Service::Agreed, &Request::Join(member, group))?;
        if let Some(client) = self.connected.get_mut(&connection) {
            client.wants.insert(group);
            self.memberships += 1;
        }
        Ok(())
    }

    pub fn leave(&mut self, connection: Connection, group: GroupName) -> Result<(), RequestError> {
        let member = self.member(connection)?;
        if !self.wants(connection, group) {
            return Ok(());
        }
        self.ask(member, Service::Agreed, &Request::Leave(member, group))?;
        if let Some(client) = self.connected.get_mut(&connection) {
            client.wants.remove(&group);
            self.memberships -= 1;
        }
        Ok(())
    }

    fn wants(&self, connection: Connection, group: GroupName) -> bool {
        let client = self.connected.get(&connection);
        client.is_some_and(|client| client.wants.contains(&group))
    }

    /// Forgets the client. The others are told in the order, after all that it has asked for; that is
    /// never refused, as it comes once.
    pub fn disconnect(&mut self, connection: Connection) {
        let Ok(member) = self.member(connection) else {
            return;
        };
        self.names.remove(&member.name);
        if let Some(client) = self.connected.remove(&connection) {
            self.memberships -= client.wants.len();
        }
        self.push(connection, Service::Agreed, &Request::Disconnect(member));
    }

    /// Whether this client's requests leave room for one with so large a payload.
    pub fn has_room(&self, connection: Connection, payload: usize) -> Result<bool, RequestError> {
        let client = self.connected.get(&connection);
        let backlog = client.ok_or(RequestError::NotConnected)?.backlog;
        Ok(backlog == 0 || backlog + payload + REQUEST_BYTES <= self.limits.backlog_bytes)
    }

    /// Takes a request, if this client's others leave room for it.
    pub fn ask(
        &mut self,
        member: Member,
        service: Service,
        request: &Request,
    ) -> Result<(), RequestError> {
        let payload = match request {
            Request::Data(data, _) => data.payload.len(),
            _ => 0,
        };
        if !self.has_room(member.connection, payload)? {
            return Err(RequestError::Full);
        }
        self.push(member.connection, service, request);
        Ok(())
    }

    fn push(&mut self, connection: Connection, service: Service, request: &Request) {
        let message = request.message();
        if let Some(client) = self.connected.get_mut(&connection) {
            client.backlog += message.len() + REQUEST_BYTES;
        }
        self.waiting.push_back(Waiting {
            connection,
            service,
            message,
        });
    }

    /// Requests that have not come back.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Whether there is a request for the engine.
    pub fn has_unsent(&self) -> bool {
        self.under_way < self.limits.window.min(self.waiting.len())
    }

    /// The next request for the engine, as a message for this ring.
    pub fn unsent(&mut self, ring: RingId) -> Option<(Service, &[u8])> {
        if !self.has_unsent() {
            return None;
        }
        let next = self.waiting.get_mut(self.under_way)?;
        stamp(&mut next.message, ring);
        Some((next.service, &next.message))
    }

    pub fn sent(&mut self) {
        self.under_way += 1;
    }

    /// The next request will never be taken by the engine.
    pub fn refused(&mut self) {
        let refused = self.waiting.remove(self.under_way);
        self.settle(refused);
    }

    /// The first of the requests under way has come back.
    pub fn returned(&mut self) {
        if self.under_way > 0 {
            self.under_way -= 1;
            let returned = self.waiting.pop_front();
            self.settle(returned);
        }
    }

    fn settle(&mut self, request: Option<Waiting>) {
        let Some(request) = request else { return };
        if let Some(client) = self.connected.get_mut(&request.connection) {
            client.backlog -= request.message.len() + REQUEST_BYTES;
        }
    }

    /// What has not come back by now will count for nobody: all of it is to be sent again. Says how
    /// much that is.
    pub fn send_again(&mut self) -> u64 {
        core::mem::take(&mut self.under_way) as u64
    }
}
