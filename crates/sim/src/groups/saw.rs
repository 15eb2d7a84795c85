//! The events that clients are told, as events of a trace.

use rota_check::event::{ClientSaw, GroupView, Post};
use rota_core::contract::{MessageId, NodeId};
use rota_core::groups::{ClientName, Event, GroupName, Received};

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
pub fn private(client: ClientName, node: NodeId) -> String {
    format!("#{client}#{node}")
}

fn received(message: &Received, posts: &Payloads) -> Post {
    // Each begins with its number among the messages of its daemon's clients, and was sent with that number.
    let counter = message.payload.first_chunk().copied();
    let counter = counter.map(u64::from_le_bytes);
    let id = MessageId {
        process: message.sender.daemon,
        counter: counter.filter(|_| counter == message.number).unwrap_or(0),
    };
    let hash = posts.hash_of(id, &message.payload);
    Post::new(id, &message.to, message.service, hash, &mut private)
}

/// An event as the client sees it.
pub fn saw(event: &Event, posts: &Payloads) -> ClientSaw {
    match event {
        Event::Message(message) => ClientSaw::Deliver(received(message, posts)),
        Event::View(new) => ClientSaw::View(GroupView::new(new, &mut private)),
        Event::Transitional { group, view } => ClientSaw::Transition {
            group: group.to_string(),
            gid: (*view).into(),
        },
        Event::SelfLeave { group } => ClientSaw::SelfLeave(group.to_string()),
        Event::Excluded => ClientSaw::Excluded,
        Event::Included { missed } => ClientSaw::Included { missed: *missed },
    }
}
