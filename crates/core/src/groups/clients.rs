//! The clients of this daemon, and their requests that have not come back in the order yet.

mod elsewhere;
mod gone;
mod memberships;
mod restart;
mod room;

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;

use self::gone::Gone;
use self::memberships::Memberships;
use super::event::{Connection, Member};
use super::large::Outgoing;
use super::limits::{Limits, Owner, RequestError};
use super::message::{Request, stamp};
use super::name::{ClientName, GroupName};
use crate::contract::{Process, RingId, Service};

/// The cost of a request beside its bytes.
const REQUEST_BYTES: usize = 64;

/// The bound on the bytes of requests of clients that have gone, as a multiple of the backlog of one client. Beyond it
/// no client connects.
const MOST_GONE: usize = 256;

#[derive(Debug)]
struct Client {
    name: ClientName,
    owner: Option<Owner>,
    /// The groups that it has asked to be in.
    wants: BTreeSet<GroupName>,
    backlog: usize,
    /// The connection that this one follows, while that still has events.
    follows: Option<Connection>,
}

/// A request on its way.
#[derive(Debug)]
pub(super) struct Waiting {
    connection: Connection,
    service: Service,
    message: Vec<u8>,
    asks: Asks,
    /// The engine's counter of the message, once the engine has taken it.
    counter: u64,
}

/// The kind of a request: says what becomes of it if this daemon has missed its place in the order.
#[derive(Clone, Copy, Debug)]
enum Asks {
    /// A message: nothing more is done, as it was delivered.
    Data,
    /// A join or a leave: it is sent again.
    Change,
    /// The end of this client, which others have seen.
    End(Member),
}

/// The next thing that is offered to the engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Turn {
    Request,
    Part,
}

/// Clients and requests.
#[derive(Debug)]
pub(super) struct Clients {
    me: Process,
    pub limits: Limits,
    connected: BTreeMap<Connection, Client>,
    names: BTreeMap<ClientName, Connection>,
    newest: u64,
    memberships: Memberships,
    /// Connections that others follow, and that still have events.
    followed: usize,
    /// The clients that have gone, and whose requests have not all come back.
    gone: Gone,
    /// In the order of the requests; the first of them have been handed to the engine.
    waiting: VecDeque<Waiting>,
    under_way: usize,
    large: Outgoing,
    /// The first client whose large message found no room: no other large message passes it.
    next_large: Option<Connection>,
    /// The number of clients that have something on its way.
    busy: usize,
    /// Bytes of requests that were handed to the engine since the last part of a large message.
    since_part: usize,
}

impl Clients {
    pub fn new(me: Process, limits: Limits) -> Self {
        Self {
            me,
            limits,
            connected: BTreeMap::new(),
            names: BTreeMap::new(),
            newest: 0,
            memberships: Memberships::default(),
            followed: 0,
            gone: Gone::default(),
            waiting: VecDeque::new(),
            under_way: 0,
            large: Outgoing::new(limits.piece_bytes),
            next_large: None,
            busy: 0,
            since_part: 0,
        }
    }

    pub fn connect(
        &mut self,
        owner: Option<Owner>,
        name: ClientName,
    ) -> Result<Connection, RequestError> {
        if self.names.contains_key(&name) {
            return Err(RequestError::NotUnique);
        }
        let here = self.connected.len() - self.followed;
        if here >= self.limits.clients || self.is_crowded() {
            return Err(RequestError::TooMany);
        }
        let connection = self.admit((owner, name), None);
        self.names.insert(name, connection);
        Ok(connection)
    }

    fn admit(
        &mut self,
        (owner, name): (Option<Owner>, ClientName),
        follows: Option<Connection>,
    ) -> Connection {
        self.newest += 1;
        let connection = Connection(self.newest);
        let client = Client {
            name,
            owner,
            wants: BTreeSet::new(),
            backlog: 0,
            follows,
        };
        self.connected.insert(connection, client);
        connection
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

    pub fn all_connected(&self) -> Vec<Connection> {
        self.connected.keys().copied().collect()
    }

    pub fn is_connected(&self, connection: Connection) -> bool {
        self.connected.contains_key(&connection)
    }

    pub fn join(&mut self, connection: Connection, group: GroupName) -> Result<(), RequestError> {
        let member = self.member(connection)?;
        if self.wants(connection, group) {
            return Ok(());
        }
        if !self.may_join(connection) {
            return Err(RequestError::TooMany);
        }
        self.ask(member, Service::Agreed, &Request::Join(member, group))?;
        if let Some(client) = self.connected.get_mut(&connection) {
            client.wants.insert(group);
            self.memberships.add(client.owner);
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
            self.memberships.remove(client.owner, 1);
        }
        Ok(())
    }

    pub fn wanted(&self, connection: Connection) -> Vec<GroupName> {
        let client = self.connected.get(&connection).into_iter();
        client.flat_map(|client| &client.wants).copied().collect()
    }

    pub fn wants(&self, connection: Connection, group: GroupName) -> bool {
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
        self.next_large.take_if(|next| *next == connection);
        if let Some(client) = self.forget(connection) {
            self.memberships.remove(client.owner, client.wants.len());
            if let Some(before) = client.follows {
                self.forget(before);
                self.followed -= 1;
            }
        }
        self.push(member, Service::Agreed, &Request::Disconnect(member));
    }

    /// Takes a request, if the earlier requests of this client leave room for it.
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
        if self.is_large(payload) {
            let (head, payload) = request.divided();
            self.owe(&member, head.len() + payload.len());
            self.large.push(member, service, head, payload);
        } else {
            self.push(member, service, request);
        }
        Ok(())
    }

    fn push(&mut self, member: Member, service: Service, request: &Request) {
        let connection = member.connection;
        let message = request.message();
        self.owe(&member, message.len());
        let asks = match request {
            Request::Data(..) => Asks::Data,
            Request::Join(..) | Request::Leave(..) => Asks::Change,
            Request::Disconnect(member) => Asks::End(*member),
        };
        let waiting = Waiting {
            connection,
            service,
            message,
            asks,
            counter: 0,
        };
        match self.large.behind(member.name) {
            Some(behind) => behind.push(waiting),
            None => self.waiting.push_back(waiting),
        }
    }

    /// Requests that have not come back.
    pub fn waiting(&self) -> usize {
        self.waiting.len() + self.large.waiting()
    }

    fn has_request(&self) -> bool {
        self.under_way < self.limits.window.min(self.waiting.len())
    }

    /// A part of a large message has its turn when each of the other clients could have sent as much.
    fn turn(&self) -> Option<Turn> {
        let share = self.busy.saturating_sub(1).max(1) * self.large.part_bytes();
        match (self.has_request(), self.large.has_unsent()) {
            (false, false) => None,
            (true, true) if self.since_part < share => Some(Turn::Request),
            (_, true) => Some(Turn::Part),
            (true, false) => Some(Turn::Request),
        }
    }

    /// Whether there is something for the engine.
    pub fn has_unsent(&self) -> bool {
        self.turn().is_some()
    }

    /// The next request or part for the engine, as a message for this ring.
    pub fn unsent(&mut self, ring: RingId) -> Option<(Service, &[u8])> {
        match self.turn()? {
            Turn::Part => self.large.unsent(ring),
            Turn::Request => {
                let next = self.waiting.get_mut(self.under_way)?;
                stamp(&mut next.message, ring);
                Some((next.service, &next.message))
            }
        }
    }

    pub fn sent(&mut self, counter: u64) {
        match self.turn() {
            Some(Turn::Request) => {
                let sent = &mut self.waiting[self.under_way];
                sent.counter = counter;
                self.since_part += sent.message.len();
                self.under_way += 1;
            }
            Some(Turn::Part) => {
                self.since_part = 0;
                self.large.sent(counter);
            }
            None => {}
        }
    }

    /// The engine will never take the next request or part.
    pub fn refused(&mut self) {
        match self.turn() {
            Some(Turn::Request) => {
                let refused = self.waiting.remove(self.under_way);
                self.settle(refused);
            }
            Some(Turn::Part) => {
                let refused = self.large.refused();
                self.placed(refused);
            }
            None => {}
        }
    }

    /// The first of the parts under way has come back, with this number of bytes of its message.
    pub fn part_returned(&mut self, bytes: usize) {
        let placed = self.large.returned(bytes);
        self.placed(placed);
    }

    fn placed(&mut self, large: Option<(usize, Connection, Vec<Waiting>)>) {
        if let Some((bytes, connection, then)) = large {
            self.repay(connection, bytes);
            self.waiting.extend(then);
        }
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
        if let Some(request) = request {
            self.repay(request.connection, request.message.len());
        }
    }

    /// Requests that have not come back by now count for nobody: all of them are to be sent again. Returns the number
    /// of the requests and parts that were under way.
    pub fn send_again(&mut self) -> u64 {
        (core::mem::take(&mut self.under_way) + self.large.send_again()) as u64
    }
}
