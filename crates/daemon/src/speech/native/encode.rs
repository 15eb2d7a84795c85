//! Events as frames.

use bytes::Bytes;
use rota_client::protocol::{self, Reply, View};
use rota_core::groups::{self, Member};

use super::heads::Heads;
use crate::names::Names;

/// Larger payloads are not copied: to copy them costs more than to keep track of them.
const SHARED_BYTES: usize = 512;

/// An event's frame.
#[derive(Debug, Default)]
pub(in crate::speech) struct Encoded {
    /// All of it but the payload.
    pub(super) head: Vec<u8>,
    /// The bytes that all receivers share. Of a view these are all behind the head, but for the receiver's own index.
    pub(super) payload: Bytes,
    heads: Heads,
}

/// Encodes an event, once for all who get it.
pub(in crate::speech) fn encode(event: &groups::Event, names: &mut Names, encoded: &mut Encoded) {
    encoded.head.clear();
    encoded.payload = Bytes::new();
    let out = &mut encoded.head;
    let encoded = match event {
        groups::Event::Message(message) => {
            let head = encoded
                .heads
                .encode(message, || reply_of(message, names), out);
            if message.payload.len() > SHARED_BYTES {
                encoded.payload = message.payload.clone();
            } else if head.is_ok() {
                out.extend_from_slice(&message.payload);
            }
            head
        }
        groups::Event::View(view) => {
            let shared = view_of(view, names).encode_shared();
            shared.map(|mut bytes| {
                let own = match bytes.len() {
                    0..=SHARED_BYTES => bytes.len(),
                    _ => protocol::HEAD_BYTES,
                };
                out.extend_from_slice(&bytes.split_to(own));
                encoded.payload = bytes;
            })
        }
        groups::Event::Transitional { group, view } => {
            let (group, view) = (*group, *view);
            Reply::Transitional { group, view }.encode(out)
        }
        groups::Event::SelfLeave { group } => Reply::SelfLeave { group: *group }.encode(out),
        groups::Event::Excluded => Reply::Excluded.encode(out),
        groups::Event::Included { missed } => Reply::Included { missed: *missed }.encode(out),
    };
    if let Err(error) = encoded {
        tracing::warn!(%error, "clients cannot be told something");
    }
}

fn reply_of(message: &groups::Received, names: &mut Names) -> Reply {
    Reply::Message(protocol::Message {
        sender: names.member(&message.sender),
        service: message.service,
        self_discard: message.self_discard,
        kind: message.kind,
        to: message.to.iter().map(|to| names.told(to)).collect(),
        payload: message.payload.clone(),
    })
}

fn view_of(view: &groups::View, names: &mut Names) -> View {
    let index = |member: &Member| {
        let found = view.members.binary_search(member);
        found.ok().and_then(|index| u32::try_from(index).ok())
    };
    let sets = || {
        let sets = view.vs_sets.iter();
        sets.map(|set| set.iter().filter_map(index).collect())
            .collect()
    };
    let cause = match &view.cause {
        groups::Cause::Join(member) => protocol::Cause::Join(names.member(member)),
        groups::Cause::Leave(member) => protocol::Cause::Leave(names.member(member)),
        groups::Cause::Disconnect(member) => protocol::Cause::Disconnect(names.member(member)),
        groups::Cause::Network => protocol::Cause::Network(sets()),
    };
    View {
        group: view.group,
        id: view.id,
        cause,
        members: view
            .members
            .iter()
            .map(|member| names.member(member))
            .collect(),
        own: 0,
    }
}
