//! The messages that a client has missed because it was made to skip.

use std::collections::BTreeSet;

use rota_client::protocol::{Reply, Skimmed, groups_in};
use rota_core::groups::{Destination, GroupName, Received};

/// The count goes from the start of the skip until the client is back in its groups.
#[derive(Debug, Default)]
pub(super) struct Missed {
    messages: u64,
    bytes: u64,
    groups: BTreeSet<GroupName>,
    /// The destinations of the last message: most messages have those of the one before.
    last: Vec<u8>,
}

impl Missed {
    /// A frame that waited for the client.
    pub fn frame(&mut self, frame: &Skimmed<'_>) {
        let Skimmed::Message { to, payload } = *frame else {
            return;
        };
        self.messages += 1;
        self.bytes += payload as u64;
        if self.last != to {
            self.groups.extend(groups_in(to));
            self.last.clear();
            self.last.extend_from_slice(to);
        }
    }

    /// A message that came later. Of its groups only those count that the client is in.
    pub fn message(&mut self, message: &Received, is_in: impl Fn(&GroupName) -> bool) {
        self.messages += 1;
        self.bytes += message.payload.len() as u64;
        let groups = message.to.iter().filter_map(|to| match to {
            Destination::Group(name) => Some(*name),
            Destination::Client(..) => None,
        });
        self.groups.extend(groups.filter(is_in));
    }

    /// The number of missed messages, and the bytes of their payloads.
    pub const fn size(&self) -> (u64, u64) {
        (self.messages, self.bytes)
    }

    /// The frame for the client, with those of the groups that it is in.
    pub fn reply(self, is_in: impl Fn(&GroupName) -> bool) -> Reply {
        Reply::Skipped {
            messages: self.messages,
            bytes: self.bytes,
            groups: self.groups.into_iter().filter(is_in).collect(),
        }
    }
}
