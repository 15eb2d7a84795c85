//! What native clients are told of an event, the same bytes for all.

use rota_client::protocol::{self, EncodeError, Reply, View};
use rota_core::groups::{self, Member};

use crate::names::Names;

/// Appends the bytes of an event: whole, but for a view, which lacks the receiver's own index.
pub(super) fn encode(event: &groups::Event, names: &mut Names, out: &mut Vec<u8>) {
    let encoded = match event {
        groups::Event::Message(message) => encode_message(message, names, out),
        groups::Event::View(view) => {
            let shared = view_of(view, names).encode_shared();
            shared.map(|bytes| out.extend_from_slice(&bytes))
        }
        groups::Event::Transitional { group, view } => {
            let (group, view) = (*group, *view);
            Reply::Transitional { group, view }.encode(out)
        }
        groups::Event::SelfLeave { group } => Reply::SelfLeave { group: *group }.encode(out),
    };
    if let Err(error) = encoded {
        tracing::warn!(%error, "clients cannot be told something");
    }
}

fn encode_message(
    message: &groups::Received,
    names: &mut Names,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    Reply::Message(protocol::Message {
        sender: names.member(&message.sender),
        service: message.service,
        self_discard: message.self_discard,
        kind: message.kind,
        to: message.to.iter().map(|to| names.told(to)).collect(),
        payload: message.payload.clone(),
    })
    .encode(out)
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
