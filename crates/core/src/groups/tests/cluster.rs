//! Daemons whose deliveries a test hands out one by one, and the events of their clients, as text.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use bytes::Bytes;

use super::{process, ring};
use crate::contract::{Configuration, ConfigurationKind, Delivery, Message, MessageId, Service};
use crate::groups::{
    Cause, ClientName, Connection, Destination, Event, GroupName, Groups, Limits, Member, Phase,
    Send, View,
};

/// Daemons 1, 2, 3 and so on.
pub struct Cluster {
    daemons: Vec<Groups>,
    clients: BTreeMap<(usize, ClientName), Connection>,
    placed: u64,
}

pub fn group(name: &str) -> GroupName {
    GroupName::new(name).expect("a name")
}

fn shown(member: &Member) -> String {
    format!("{}{}", member.daemon.node, member.name)
}

fn list(members: &[Member]) -> String {
    let names: Vec<String> = members.iter().map(shown).collect();
    names.join(" ")
}

fn show_view(view: &View) -> String {
    let id = view.id;
    let next = id
        .next
        .map_or_else(String::new, |next| format!(">{}", next.ring_seq));
    let cause = match view.cause {
        Cause::Join(member) => format!("+{}", shown(&member)),
        Cause::Leave(member) => format!("-{}", shown(&member)),
        Cause::Disconnect(member) => format!("~{}", shown(&member)),
        Cause::Network => {
            let sets: Vec<String> = view.vs_sets.iter().map(|set| list(set)).collect();
            format!("sets {}", sets.join(" | "))
        }
    };
    let (seq, index, group) = (id.ring.ring_seq, id.index, view.group);
    format!(
        "{group}@{seq}{next}/{index} {} {cause}",
        list(&view.members)
    )
}

fn show(event: &Event) -> String {
    match event {
        Event::View(view) => show_view(view),
        Event::Transitional { group, view } => {
            let next = view
                .next
                .map_or_else(String::new, |next| format!(">{}", next.ring_seq));
            format!("{group}!{}{next}/{}", view.ring.ring_seq, view.index)
        }
        Event::SelfLeave { group } => format!("{group} left"),
        Event::Excluded => "excluded".to_string(),
        Event::Included { missed: true } => "included, missed".to_string(),
        Event::Included { missed: false } => "included".to_string(),
        Event::Message(message) => String::from_utf8_lossy(&message.payload).to_string(),
    }
}

impl Cluster {
    /// So many daemons, each in a configuration of its own: ring 1 of daemon 1 and so on.
    pub fn alone(count: usize) -> Self {
        Self::alone_with(count, Limits::default())
    }

    fn alone_with(count: usize, limits: Limits) -> Self {
        let mut cluster = Self {
            daemons: Vec::new(),
            clients: BTreeMap::new(),
            placed: 0,
        };
        for at in 1..=count {
            cluster
                .daemons
                .push(Groups::new(process(at as u16), limits));
            cluster.regular(&[at], at as u64);
        }
        cluster
    }

    /// So many daemons in ring 9, of which all know the same.
    pub fn together(count: usize) -> Self {
        Self::limited(count, Limits::default())
    }

    /// The same, with these limits.
    pub fn limited(count: usize, limits: Limits) -> Self {
        let mut cluster = Self::alone_with(count, limits);
        let all: Vec<usize> = (1..=count).collect();
        for at in 1..=count {
            cluster.transitional(&[at], at as u64, 9);
        }
        cluster.regular(&all, 9);
        cluster.exchange(&all);
        cluster
    }

    pub fn daemon(&mut self, at: usize) -> &mut Groups {
        &mut self.daemons[at - 1]
    }

    fn configure(&mut self, to: &[usize], kind: ConfigurationKind) {
        let members: Vec<_> = to.iter().map(|at| process(*at as u16)).collect();
        for at in to {
            let members = members.clone();
            let configuration = Configuration { kind, members };
            self.daemon(*at)
                .deliver(Delivery::Configuration(configuration));
        }
    }

    pub fn regular(&mut self, to: &[usize], seq: u64) {
        self.configure(to, ConfigurationKind::Regular(ring(seq)));
    }

    /// These are in no view any more.
    pub fn excluded(&mut self, to: &[usize]) {
        for at in to {
            self.daemon(*at).deliver(Delivery::Excluded(ring(1)));
        }
    }

    /// These have missed views; of what they submitted all up to this has been delivered.
    pub fn missed(&mut self, to: &[usize], own: u64) {
        let (seq, count) = (1, 1);
        for at in to {
            let missed = Delivery::Missed { seq, count, own };
            self.daemon(*at).deliver(missed);
        }
    }

    pub fn transitional(&mut self, to: &[usize], old: u64, new: u64) {
        let (old, new) = (ring(old), ring(new));
        self.configure(to, ConfigurationKind::Transitional { old, new });
    }

    /// What a daemon submits next gets its place.
    pub fn submitted(&mut self, at: usize) -> Option<Message> {
        let (service, payload) = self.daemon(at).to_submit()?;
        let payload = Bytes::copy_from_slice(payload);
        self.placed += 1;
        let counter = self.placed;
        self.daemon(at).submitted(counter);
        Some(Message {
            id: MessageId {
                process: process(at as u16),
                counter,
            },
            service,
            seq: self.placed,
            index: 0,
            payload,
        })
    }

    pub fn deliver(&mut self, to: &[usize], message: &Message) {
        for at in to {
            self.daemon(*at).deliver(Delivery::Message(message.clone()));
        }
    }

    /// All that these daemons submit, daemon by daemon, is delivered to all of them.
    pub fn exchange(&mut self, all: &[usize]) {
        for at in all {
            while let Some(message) = self.submitted(*at) {
                self.deliver(all, &message);
            }
        }
    }

    /// A client of a daemon, which connects if it has not.
    pub fn client(&mut self, at: usize, name: &str) -> Connection {
        let name = ClientName::new(name).expect("a name");
        if let Some(connection) = self.clients.get(&(at, name)) {
            return *connection;
        }
        let connection = self.daemon(at).connect(name).expect("a new name");
        self.clients.insert((at, name), connection);
        connection
    }

    /// A client is made to skip: what it misses from here on is told of `name-`.
    pub fn restart(&mut self, at: usize, name: &str) -> bool {
        let before = self.client(at, name);
        let Some(next) = self.daemon(at).restart(before) else {
            return false;
        };
        let missing = ClientName::new(&format!("{name}-")).expect("a name");
        self.clients.insert((at, missing), before);
        let name = ClientName::new(name).expect("a name");
        self.clients.insert((at, name), next);
        true
    }

    /// The next client of that name is another one.
    pub fn forget(&mut self, at: usize, name: &str) {
        let name = ClientName::new(name).expect("a name");
        self.clients.remove(&(at, name));
    }

    pub fn join(&mut self, at: usize, client: &str, name: &str) {
        let connection = self.client(at, client);
        self.daemon(at).join(connection, group(name)).expect("room");
    }

    pub fn leave(&mut self, at: usize, client: &str, name: &str) {
        let connection = self.client(at, client);
        self.daemon(at)
            .leave(connection, group(name))
            .expect("room");
    }

    pub fn send(&mut self, at: usize, client: &str, name: &str, text: &str) {
        let connection = self.client(at, client);
        let send = Send {
            big_endian: false,
            number: None,
            service: Service::Agreed,
            self_discard: false,
            kind: 0,
            to: Vec::from([Destination::Group(group(name))]),
            payload: Bytes::copy_from_slice(text.as_bytes()),
        };
        self.daemon(at).send(connection, send).expect("room");
    }

    /// What clients of a daemon have been told since the last time: who, and what.
    pub fn told(&mut self, at: usize) -> Vec<String> {
        let mut told = Vec::new();
        while let Some(event) = self.daemon(at).poll_event() {
            let clients = self.clients.iter();
            let clients = clients.filter(|((of, _), by)| *of == at && event.to.contains(by));
            let names: Vec<String> = clients.map(|((_, name), _)| name.to_string()).collect();
            told.push(format!("{}: {}", names.join(","), show(&event.event)));
        }
        told
    }

    /// Everybody forgets what clients have been told so far.
    pub fn hush(&mut self) {
        for at in 1..=self.daemons.len() {
            self.told(at);
        }
    }

    pub fn is_operational(&mut self, at: usize) -> bool {
        *self.daemon(at).phase() == Phase::Operational
    }
}
