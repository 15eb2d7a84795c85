//! The events of the clients of all processes, by numbers.

use rota_core::contract::{MessageId, Service, Time};
use rustc_hash::FxHashMap;

use super::Interner;
use crate::event::{self, Cause, ClientEvent, ClientSaw, Gid};

/// A message to groups.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Post {
    pub message: u32,
    /// The number of a list of groups.
    pub groups: u32,
    pub service: Service,
    pub hash: u64,
}

/// A view of a group. Equal views mean the same: the order of the sets and within them has no meaning.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct GroupView {
    pub group: u32,
    pub gid: Gid,
    pub cause: Cause,
    pub members: Vec<u32>,
    pub sets: Vec<Vec<u32>>,
}

/// An event of a client.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Saw {
    Join { group: u32 },
    Leave { group: u32 },
    Disconnect,
    Send { post: Post, discard: bool },
    Deliver(Post),
    View(u32),
    Transition { group: u32, gid: u32 },
    SelfLeave { group: u32 },
    Excluded,
    Included { missed: bool },
}

/// A client, from its connecting to its end.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    /// The process it is connected to.
    pub process: u32,
    pub name: u32,
    pub disconnected: bool,
    pub saw: Vec<Saw>,
    pub times: Vec<Time>,
}

/// The clients of all processes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clients {
    /// The names of clients and of groups: a client's name is its private group.
    names: Interner<String>,
    lists: Interner<Vec<u32>>,
    messages: Interner<MessageId>,
    gids: Interner<Gid>,
    views: Interner<GroupView>,
    pub connections: Vec<Connection>,
    /// By process and name: the connection that is not over.
    open: FxHashMap<(u32, u32), u32>,
}

impl Connection {
    /// Whether the last event about exclusion told the client that its process is in no view.
    pub fn is_excluded(&self) -> bool {
        let told = self.saw.iter().rev();
        let mut told = told.filter(|saw| matches!(saw, Saw::Excluded | Saw::Included { .. }));
        matches!(told.next(), Some(Saw::Excluded))
    }
}

impl Clients {
    pub fn push(&mut self, process: u32, time: Time, event: &ClientEvent) {
        let name = self.names.number(&event.client);
        let saw = self.saw(&event.saw);
        let next = self.connections.len();
        // No more than there are names, which fit.
        let number = *self.open.entry((process, name)).or_insert(next as u32) as usize;
        if number == next {
            self.connections.push(Connection {
                process,
                name,
                disconnected: false,
                saw: Vec::new(),
                times: Vec::new(),
            });
        }
        let connection = &mut self.connections[number];
        connection.saw.push(saw);
        connection.times.push(time);
        if matches!(saw, Saw::Disconnect) {
            connection.disconnected = true;
            self.open.remove(&(process, name));
        }
    }

    fn saw(&mut self, saw: &ClientSaw) -> Saw {
        match saw {
            ClientSaw::Join(group) => Saw::Join {
                group: self.names.number(group),
            },
            ClientSaw::Leave(group) => Saw::Leave {
                group: self.names.number(group),
            },
            ClientSaw::Disconnect => Saw::Disconnect,
            ClientSaw::Send { post, discard } => Saw::Send {
                post: self.post(post),
                discard: *discard,
            },
            ClientSaw::Deliver(post) => Saw::Deliver(self.post(post)),
            ClientSaw::View(view) => Saw::View(self.view(view)),
            ClientSaw::Transition { group, gid } => Saw::Transition {
                group: self.names.number(group),
                gid: self.gids.number(gid),
            },
            ClientSaw::SelfLeave(group) => Saw::SelfLeave {
                group: self.names.number(group),
            },
            ClientSaw::Excluded => Saw::Excluded,
            ClientSaw::Included { missed } => Saw::Included { missed: *missed },
        }
    }

    fn post(&mut self, post: &event::Post) -> Post {
        let mut groups = self.numbers(&post.groups);
        groups.sort_unstable();
        groups.dedup();
        Post {
            message: self.messages.number(&post.message),
            groups: self.lists.number(&groups),
            service: post.service,
            hash: post.hash,
        }
    }

    fn view(&mut self, view: &event::GroupView) -> u32 {
        let sets = view.vs_sets.iter().map(|set| self.numbers(set));
        let mut sets: Vec<Vec<u32>> = sets.collect();
        sets.iter_mut().for_each(|set| set.sort_unstable());
        sets.sort_unstable();
        let view = GroupView {
            group: self.names.number(&view.group),
            gid: view.gid,
            cause: view.cause,
            members: self.numbers(&view.members),
            sets,
        };
        self.views.number(&view)
    }

    fn numbers(&mut self, names: &[String]) -> Vec<u32> {
        names.iter().map(|name| self.names.number(name)).collect()
    }

    pub fn events(&self) -> usize {
        self.connections.iter().map(|one| one.saw.len()).sum()
    }

    pub fn names(&self) -> &[String] {
        self.names.all()
    }

    pub fn groups(&self, list: u32) -> &[u32] {
        &self.lists.all()[list as usize]
    }

    pub fn messages(&self) -> &[MessageId] {
        self.messages.all()
    }

    pub fn gid(&self, gid: u32) -> Gid {
        self.gids.all()[gid as usize]
    }

    pub fn views(&self) -> &[GroupView] {
        self.views.all()
    }
}
