//! The clients of this daemon, and their requests that have not come back in the order yet.

mod gone;
mod memberships;
mod queue;
mod restart;
mod room;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use self::gone::Gone;
use self::memberships::Memberships;
use self::queue::Queue;
pub(super) use self::queue::Waiting;
use super::event::{Connection, Member};
use super::large::Outgoing;
use super::limits::{Limits, Owner, RequestError};
use super::message::Request;
use super::name::{ClientName, GroupName};
use crate::contract::{Process, RingId, Service};
use crate::invariants::FEW;
use crate::mutants::{self, Mutant};

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
    queue: Queue,
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
            queue: Queue::default(),
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

    /// Whether the client may be in one more group.
    fn may_join(&self, connection: Connection) -> bool {
        let client = self.connected.get(&connection);
        client.is_some_and(|client| {
            let groups = client.wants.len();
            self.memberships
                .have_room(&self.limits, client.owner, groups)
        })
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
        let waiting = Waiting::new(member.connection, service, request);
        self.owe(&member, waiting.len());
        match self.large.behind(member.name) {
            Some(behind) => behind.push(waiting),
            None => self.queue.push(waiting),
        }
    }

    /// Requests that have not come back.
    pub fn waiting(&self) -> usize {
        self.queue.len() + self.large.waiting()
    }

    /// A part of a large message has its turn when each of the other clients could have sent as much.
    fn turn(&self) -> Option<Turn> {
        let share = self.busy.saturating_sub(1).max(1) * self.large.part_bytes();
        let has_request = self.queue.has_unsent(self.limits.window);
        match (has_request, self.large.has_unsent()) {
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
            Turn::Request => self.queue.unsent(ring),
        }
    }

    pub fn sent(&mut self, counter: u64) {
        match self.turn() {
            Some(Turn::Request) => self.since_part += self.queue.sent(counter),
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
                let refused = self.queue.refused();
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
            self.queue.extend(then);
        }
    }

    /// The first of the requests under way has come back.
    pub fn returned(&mut self) {
        let returned = self.queue.returned();
        self.settle(returned);
    }

    fn settle(&mut self, request: Option<Waiting>) {
        if let Some(request) = request {
            self.repay(request.connection(), request.len());
        }
    }

    /// Requests that have not come back by now count for nobody: all of them are to be sent again. Returns the number
    /// of the requests and parts that were under way.
    pub fn send_again(&mut self) -> u64 {
        (self.queue.send_again() + self.large.send_again()) as u64
    }

    /// All requests handed to the engine up to this counter of the engine have their places, where this daemon does not
    /// get any more. Clients wait for them no longer, unless they are to be sent again: see
    /// [`exclusion`](crate::groups::exclusion). Returns the number of requests that are over, and the clients whose end
    /// was among them.
    pub fn ordered_elsewhere(&mut self, own: u64) -> (u64, Vec<Member>) {
        let (over, ended) = self.queue.ordered_elsewhere(own);
        let mut count = over.len() as u64;
        for request in over {
            if !mutants::on(Mutant::G26) {
                self.settle(Some(request));
            }
        }
        while let Some(large) = self.large.ordered_elsewhere(own) {
            count += 1;
            self.placed(Some(large));
        }
        (count, ended)
    }

    /// Its invariants.
    pub fn check(&self) {
        self.queue.check();
        assert!(
            self.busy <= self.connected.len(),
            "a client that is busy is connected"
        );
        let follow = self.connected.values().filter_map(|client| client.follows);
        assert!(
            self.connected.len() > FEW || follow.count() == self.followed,
            "connections that are followed are counted"
        );
        self.memberships.check();
        self.gone.check();
        let wants = self.connected.values().map(|client| client.wants.len());
        assert!(
            self.connected.len() > FEW || wants.sum::<usize>() == self.memberships.all(),
            "memberships are counted"
        );
    }
}
