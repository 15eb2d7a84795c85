//! What clients are told, as events of a trace.

use rota_check::event::{self, ClientSaw, Gid, GroupView, Post};
use rota_core::contract::{ConfigurationKind, MessageId, Service};
use rota_core::groups::{
    Cause, ClientName, Destination, Event, GroupName, Member, Received, View, ViewId,
};

use crate::world::Payloads;

/// The name of a group: a few short ones, many as long as they may be.
pub fn group_name(number: usize, many: bool) -> GroupName {
    let text = if many {
        format!("{number:$>width$}", width = GroupName::MOST)
    } else {
        format!("g{number}")
    };
    GroupName::new(&text).unwrap_or_else(|error| unreachable!("{text}: {error}"))
}

/// `#a#1`, by the number of the daemon.
pub fn private(client: ClientName, node: rota_core::contract::NodeId) -> String {
    format!("#{client}#{node}")
}

fn name_of(member: &Member) -> String {
    private(member.name, member.daemon.node)
}

fn gid(id: ViewId) -> Gid {
    let conf = id.next.map_or(ConfigurationKind::Regular(id.ring), |next| {
        ConfigurationKind::Transitional {
            old: id.ring,
            new: next,
        }
    });
    let index = id.index;
    Gid { conf, index }
}

/// A message of a client, as traces name it.
pub fn post(message: MessageId, to: &[Destination], service: Service, hash: u64) -> Post {
    let groups = to.iter().map(|to| match to {
        Destination::Group(name) => name.to_string(),
        Destination::Client(name, node) => private(*name, *node),
    });
    Post {
        message,
        groups: groups.collect(),
        service,
        hash,
    }
}

fn view(view: &View) -> GroupView {
    let names = |members: &[Member]| members.iter().map(name_of).collect();
    GroupView {
        group: view.group.to_string(),
        gid: gid(view.id),
        cause: match view.cause {
            Cause::Join(_) => event::Cause::Join,
            Cause::Leave(_) => event::Cause::Leave,
            Cause::Disconnect(_) => event::Cause::Disconnect,
            Cause::Network => event::Cause::Network,
        },
        members: names(&view.members),
        vs_sets: view.vs_sets.iter().map(|set| names(set)).collect(),
    }
}

fn received(message: &Received, posts: &Payloads) -> Post {
    // Each begins with its number among the messages of its daemon's clients.
    let counter = message.payload.first_chunk();
    let id = MessageId {
        process: message.sender.daemon,
        counter: counter.map_or(0, |counter| u64::from_le_bytes(*counter)),
    };
    let hash = posts.hash_of(id, &message.payload);
    post(id, &message.to, message.service, hash)
}

/// An event as the client sees it.
pub fn saw(event: &Event, posts: &Payloads) -> ClientSaw {
    match event {
        Event::Message(message) => ClientSaw::Deliver(received(message, posts)),
        Event::View(new) => ClientSaw::View(view(new)),
        Event::Transitional { group, view } => ClientSaw::Transition {
            group: group.to_string(),
            gid: gid(*view),
        },
        Event::SelfLeave { group } => ClientSaw::SelfLeave(group.to_string()),
    }
}
