//! The events of clients, in the terms of the properties of groups.
//!
//! A client's *stay* is its time in one view of a group: from the view to the next one, to its leave, or to its last
//! event. A stay is *failed* when the client disconnected in it, or its process is not known to be alive at the end:
//! then nothing is known about what it would have seen.

mod build;
pub(crate) mod sets;

use rota_core::contract::Service;
use rustc_hash::FxHashMap;

use crate::event::Gid;
use crate::name::Name;
use crate::trace::Trace;
use crate::trace::clients::{Clients, Connection, GroupView, Post};

/// The end of a stay.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ends {
    /// The next view of the group.
    Next(u32),
    /// The client's leave.
    SelfLeave,
    /// The last event of the client.
    Open,
}

/// A message that was delivered in a stay.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Got {
    pub message: u32,
    pub service: Service,
    /// Whether it was behind the transition.
    pub reduced: bool,
}

/// A client's time in a view.
#[derive(Clone, Debug)]
pub(crate) struct Stay {
    pub connection: u32,
    pub view: u32,
    pub ends: Ends,
    pub failed: bool,
    pub reduced: bool,
    /// The client missed the rest, as its process was in no view.
    pub missed: bool,
    pub got: Vec<Got>,
}

/// A message that a client sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub connection: u32,
    pub post: Post,
    pub discard: bool,
}

/// All clients of a trace, in the terms of the module.
#[derive(Clone, Debug)]
pub(crate) struct Groups<'a> {
    trace: &'a Trace,
    pub clients: &'a Clients,
    pub stays: Vec<Stay>,
    /// By view: the stays in it.
    pub stays_in: Vec<Vec<u32>>,
    /// The origin of each message, if a client sent it.
    pub sent: Vec<Option<Sent>>,
    /// By connection: not disconnected, and its process is alive at the end, and not excluded.
    pub live: Vec<bool>,
    /// By name: the live connection.
    pub live_of: FxHashMap<u32, u32>,
}

impl Groups<'_> {
    pub fn connection(&self, connection: u32) -> &Connection {
        &self.clients.connections[connection as usize]
    }

    pub fn connections(&self) -> impl Iterator<Item = (u32, &Connection)> {
        (0..).zip(&self.clients.connections)
    }

    pub fn view_of(&self, view: u32) -> &GroupView {
        &self.clients.views()[view as usize]
    }

    /// The stays in a view.
    pub fn stays_in(&self, view: u32) -> impl Iterator<Item = &Stay> {
        let stays = self.stays_in[view as usize].iter();
        stays.map(|stay| &self.stays[*stay as usize])
    }

    /// The live clients that are in a view at the end.
    pub fn resting_in(&self, view: u32) -> impl Iterator<Item = &Stay> {
        let stays = self.stays_in(view);
        stays.filter(|stay| stay.ends == Ends::Open && !stay.failed)
    }

    /// Whether a client wants no copy of this message, which is its own.
    pub fn discards(&self, connection: u32, message: u32) -> bool {
        let sent = self.sent[message as usize];
        sent.is_some_and(|sent| sent.discard && sent.connection == connection)
    }

    /// `client #a#n1 of process 1.7`.
    pub fn who(&self, connection: u32) -> String {
        let connection = self.connection(connection);
        let process = Name(self.trace.processes()[connection.process as usize]);
        format!("client {} of process {process}", self.name(connection.name))
    }

    pub fn name(&self, name: u32) -> &str {
        &self.clients.names()[name as usize]
    }

    /// `message 1.7.42 (safe)`.
    pub fn what(&self, message: u32) -> String {
        let id = self.clients.messages()[message as usize];
        match self.sent[message as usize] {
            Some(sent) => format!("message {id} ({})", sent.post.service.name()),
            None => format!("message {id}"),
        }
    }

    /// `view 12.1.7/3 of g`.
    pub fn named(&self, group: u32, gid: Gid) -> String {
        format!("view {} of {}", Name(gid), self.name(group))
    }

    /// `view 12.1.7/3 of g {#a#n1, #b#n2} by network {#a#n1} {#b#n2}`.
    pub fn shown(&self, view: u32) -> String {
        let view = self.view_of(view);
        let list = |names: &[u32]| {
            let names: Vec<&str> = names.iter().map(|name| self.name(*name)).collect();
            format!("{{{}}}", names.join(", "))
        };
        let sets: Vec<String> = view.sets.iter().map(|set| list(set)).collect();
        format!(
            "{} {} by {} {}",
            self.named(view.group, view.gid),
            list(&view.members),
            view.cause.name(),
            sets.join(" ")
        )
    }

    /// ` at t=140`.
    pub fn at(&self, connection: u32, at: usize) -> String {
        let time = self.connection(connection).times.get(at);
        time.map_or_else(String::new, |time| format!(" at t={}", time.0))
    }
}
