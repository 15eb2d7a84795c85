//! The desk of a process: the connected clients, the groups that they want to be in, and their next requests.

use std::collections::{BTreeMap, BTreeSet};

use rota_core::contract::{NodeId, Process};
use rota_core::groups::{ClientName, Connection, Destination, GroupName, HoldFor, Member};

use super::saw::group_name;
use crate::plan::GroupsPlan;
use crate::rng::Rng;

/// A client that is connected.
#[derive(Debug)]
struct Client {
    name: ClientName,
    wants: BTreeSet<GroupName>,
    /// It reads nothing until then.
    asleep_until: u64,
    /// Events that wait for it.
    waiting: u32,
}

/// The next request of a client.
#[derive(Debug)]
pub enum Ask {
    Connect(ClientName),
    Join(Connection, Vec<GroupName>),
    Leave(Connection, GroupName),
    Disconnect(Connection),
    /// To read nothing for a while.
    Sleep(Connection),
    Send {
        from: Connection,
        to: Vec<Destination>,
        discard: bool,
    },
}

/// Whether a client can be given something.
#[derive(Debug)]
pub enum Given {
    To(ClientName),
    /// Too much waits for it.
    Slow,
    /// It is not connected any more.
    Nobody,
}

/// See the module.
#[derive(Debug)]
pub struct SimulatedClients {
    plan: GroupsPlan,
    me: Process,
    nodes: Vec<NodeId>,
    clients: BTreeMap<Connection, Client>,
    /// Messages of all its clients.
    pub sent: u64,
    /// All have their last say, one after the other.
    last_words: Option<usize>,
    /// The destinations that others were told to wait for, each with the client.
    holds: HoldFor,
}

/// The name of a client.
fn client_name(number: usize) -> ClientName {
    const NAMES: [&str; 6] = ["ann", "bob", "cy", "dee", "eve", "a-long-one"];
    let name = NAMES[number % NAMES.len()];
    ClientName::new(name).unwrap_or_else(|error| unreachable!("{name}: {error}"))
}

impl SimulatedClients {
    pub fn new(plan: GroupsPlan, me: Process, nodes: &[NodeId]) -> Self {
        Self {
            plan,
            me,
            nodes: nodes.to_vec(),
            clients: BTreeMap::new(),
            sent: 0,
            last_words: None,
            holds: HoldFor::new(),
        }
    }

    /// The destinations that others are to wait for now, for clients that sleep while much waits for them; `None` if
    /// others were told the same last.
    pub fn hold(&mut self, now: u64) -> Option<HoldFor> {
        let mut holds = HoldFor::new();
        for (connection, client) in &self.clients {
            let slow = client.asleep_until > now && 2 * client.waiting > self.plan.queue;
            // Nobody waits for some of the clients.
            if !slow || connection.0.is_multiple_of(3) {
                continue;
            }
            let own = Destination::Client(client.name, self.me.node);
            let groups = client.wants.iter().copied().map(Destination::Group);
            for to in groups.chain([own]) {
                holds.entry(to).or_insert(client.name);
            }
        }
        if holds == self.holds {
            return None;
        }
        self.holds.clone_from(&holds);
        Some(holds)
    }

    /// Nothing goes wrong any more: all clients read again. Returns the number of requests that they may still make.
    pub fn heal(&mut self) -> u32 {
        self.clients
            .values_mut()
            .for_each(|client| client.asleep_until = 0);
        if !self.plan.last_words {
            return 0;
        }
        self.last_words = Some(0);
        3 * self.plan.clients as u32
    }

    /// Draws the next request of a client.
    pub fn draw(&mut self, rng: &mut Rng) -> Ask {
        let number = match &mut self.last_words {
            Some(next) => {
                *next += 1;
                *next % self.plan.clients
            }
            None => rng.index(self.plan.clients),
        };
        let name = client_name(number);
        let mut connected = self.clients.iter();
        let Some((&from, client)) = connected.find(|(_, client)| client.name == name) else {
            return Ask::Connect(name);
        };
        let nowhere = client.wants.is_empty();
        if self.last_words.is_some() {
            return self.last_word(rng, from, client);
        }
        if nowhere && rng.percent(60) {
            return self.join(rng, from);
        }
        if !rng.percent(self.plan.churn) {
            return self.send(rng, from, client);
        }
        match rng.below(20) {
            0..10 => self.join(rng, from),
            10..16 if !nowhere => {
                let at = rng.index(client.wants.len());
                let group = client.wants.iter().nth(at).copied();
                group.map_or(Ask::Sleep(from), |group| Ask::Leave(from, group))
            }
            16..18 => Ask::Disconnect(from),
            18 => Ask::Sleep(from),
            // Nobody minds a leave of a group that the client is not in.
            _ => Ask::Leave(from, self.group(rng)),
        }
    }

    fn group(&self, rng: &mut Rng) -> GroupName {
        group_name(rng.index(self.plan.groups), self.plan.crowded())
    }

    fn join(&self, rng: &mut Rng, from: Connection) -> Ask {
        let count = rng.range(1, self.plan.joins);
        Ask::Join(from, (0..count).map(|_| self.group(rng)).collect())
    }

    fn send(&self, rng: &mut Rng, from: Connection, client: &Client) -> Ask {
        let mut to = Vec::new();
        if rng.percent(95) {
            let at = rng.index(client.wants.len().max(1));
            let mine = client.wants.iter().nth(at).copied();
            let mine = mine.filter(|_| rng.percent(80));
            to.push(Destination::Group(mine.unwrap_or_else(|| self.group(rng))));
        }
        while to.len() < 5 && rng.percent(30) {
            to.push(Destination::Group(self.group(rng)));
        }
        if to.is_empty() || rng.percent(20) {
            let name = client_name(rng.index(self.plan.clients));
            to.push(Destination::Client(name, rng.pick(&self.nodes)));
        }
        let discard = rng.percent(15);
        Ask::Send { from, to, discard }
    }

    /// A message to all groups of the client, and to the client itself, which gets it for certain.
    fn last_word(&self, rng: &mut Rng, from: Connection, client: &Client) -> Ask {
        if client.wants.is_empty() {
            return self.join(rng, from);
        }
        let groups = client.wants.iter().take(50).copied();
        let mut to: Vec<Destination> = groups.map(Destination::Group).collect();
        to.push(Destination::Client(client.name, self.me.node));
        let discard = false;
        Ask::Send { from, to, discard }
    }

    pub fn connected(&mut self, connection: Connection, name: ClientName) {
        let client = Client {
            name,
            wants: BTreeSet::new(),
            asleep_until: 0,
            waiting: 0,
        };
        self.clients.insert(connection, client);
    }

    /// A client was made to skip, and is another one from here on.
    pub fn restarted(&mut self, connection: Connection, next: Connection) -> Vec<GroupName> {
        let Some(mut client) = self.clients.remove(&connection) else {
            return Vec::new();
        };
        client.waiting = 0;
        let wants = client.wants.iter().copied().collect();
        self.clients.insert(next, client);
        wants
    }

    pub fn disconnected(&mut self, connection: Connection) {
        self.clients.remove(&connection);
    }

    pub fn name(&self, connection: Connection) -> Option<ClientName> {
        self.clients.get(&connection).map(|client| client.name)
    }

    pub fn joins(&mut self, connection: Connection, group: GroupName) {
        if let Some(client) = self.clients.get_mut(&connection) {
            client.wants.insert(group);
        }
    }

    pub fn leaves(&mut self, connection: Connection, group: GroupName) {
        if let Some(client) = self.clients.get_mut(&connection) {
            client.wants.remove(&group);
        }
    }

    pub fn sleeps(&mut self, connection: Connection, until: u64) {
        if let Some(client) = self.clients.get_mut(&connection) {
            client.asleep_until = until;
        }
    }

    /// A client is given something.
    pub fn give(&mut self, connection: Connection, now: u64) -> Given {
        let Some(client) = self.clients.get_mut(&connection) else {
            return Given::Nobody;
        };
        if client.asleep_until <= now {
            client.waiting = 0;
            return Given::To(client.name);
        }
        client.waiting += 1;
        if client.waiting > self.plan.queue {
            return Given::Slow;
        }
        Given::To(client.name)
    }

    /// Adds the clients to the groups that they want to be in.
    pub fn wanted(&self, into: &mut BTreeMap<GroupName, Vec<Member>>) {
        for (&connection, client) in &self.clients {
            let member = Member {
                daemon: self.me,
                name: client.name,
                connection,
            };
            for group in &client.wants {
                into.entry(*group).or_default().push(member);
            }
        }
    }
}
