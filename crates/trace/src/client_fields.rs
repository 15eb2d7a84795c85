//! The form of events of clients in a line.

use std::fmt::Write as _;

use serde::Serialize;

use crate::event::{ClientEvent, ClientSaw, GroupView, Post};
use crate::name::Name;

impl ClientEvent {
    /// The event's name in a line.
    pub const fn name(&self) -> &'static str {
        match self.saw {
            ClientSaw::Join(_) => "join",
            ClientSaw::Leave(_) => "leave",
            ClientSaw::Disconnect => "disconnect",
            ClientSaw::Send { .. } => "send",
            ClientSaw::Deliver(_) => "deliver",
            ClientSaw::View(_) => "view",
            ClientSaw::Transition { .. } => "trans",
            ClientSaw::SelfLeave(_) => "self_leave",
            ClientSaw::Excluded => "excluded",
            ClientSaw::Included { .. } => "included",
        }
    }

    /// The fields of its line that follow the event's name, each after a comma.
    pub fn fields(&self) -> String {
        let mut text = String::new();
        field(&mut text, "client", &self.client);
        match &self.saw {
            ClientSaw::Join(group) | ClientSaw::Leave(group) | ClientSaw::SelfLeave(group) => {
                field(&mut text, "group", group);
            }
            ClientSaw::Disconnect | ClientSaw::Excluded => {}
            ClientSaw::Included { missed } => field(&mut text, "missed", missed),
            ClientSaw::Send { post, discard } => {
                write_post(&mut text, post);
                if *discard {
                    field(&mut text, "discard", discard);
                }
            }
            ClientSaw::Deliver(post) => write_post(&mut text, post),
            ClientSaw::View(view) => write_view(&mut text, view),
            ClientSaw::Transition { group, gid } => {
                field(&mut text, "group", group);
                field(&mut text, "gid", &Name(*gid).to_string());
            }
        }
        text
    }
}

fn write_post(text: &mut String, post: &Post) {
    match post.groups.as_slice() {
        [group] => field(text, "group", group),
        groups => field(text, "group", groups),
    }
    field(text, "msg", &post.message.to_string());
    field(text, "service", post.service.name());
    field(text, "hash", &format!("{:016x}", post.hash));
}

fn write_view(text: &mut String, view: &GroupView) {
    field(text, "group", &view.group);
    field(text, "gid", &Name(view.gid).to_string());
    field(text, "cause", view.cause.name());
    field(text, "members", &view.members);
    field(text, "vs_sets", &view.vs_sets);
}

/// Appends a field: strings and lists of them can be written always, and to a string.
fn field<T: Serialize + ?Sized>(text: &mut String, key: &str, value: &T) {
    let value = serde_json::to_string(value).unwrap_or_default();
    let _ = write!(text, r#","{key}":{value}"#);
}
