//! The events of a daemon's groups for its clients, in the form of traces.

use rota_core::contract::{ConfigurationKind, MessageId, NodeId, Service};
use rota_core::groups::{self, ClientName, Destination, Member, View, ViewId};

use super::{Cause, Gid, GroupView, Post};

/// Gives the name of a client in a trace: its private group, which needs the name of its daemon.
pub type Naming<'a> = &'a mut dyn FnMut(ClientName, NodeId) -> String;

impl From<ViewId> for Gid {
    fn from(id: ViewId) -> Self {
        let conf = id.next.map_or(ConfigurationKind::Regular(id.ring), |next| {
            ConfigurationKind::Transitional {
                old: id.ring,
                new: next,
            }
        });
        let index = id.index;
        Self { conf, index }
    }
}

impl From<&groups::Cause> for Cause {
    fn from(cause: &groups::Cause) -> Self {
        match cause {
            groups::Cause::Join(_) => Self::Join,
            groups::Cause::Leave(_) => Self::Leave,
            groups::Cause::Disconnect(_) => Self::Disconnect,
            groups::Cause::Network => Self::Network,
        }
    }
}

impl Post {
    /// A message to these destinations.
    pub fn new(
        message: MessageId,
        to: &[Destination],
        service: Service,
        hash: u64,
        name: Naming<'_>,
    ) -> Self {
        let groups = to.iter().map(|to| match to {
            Destination::Group(group) => group.to_string(),
            Destination::Client(client, node) => name(*client, *node),
        });
        Self {
            message,
            groups: groups.collect(),
            service,
            hash,
        }
    }
}

impl GroupView {
    /// A view that clients are given.
    pub fn new(view: &View, name: Naming<'_>) -> Self {
        let mut names = |members: &[Member]| -> Vec<String> {
            let members = members.iter();
            members
                .map(|member| name(member.name, member.daemon.node))
                .collect()
        };
        Self {
            group: view.group.to_string(),
            gid: view.id.into(),
            cause: (&view.cause).into(),
            members: names(&view.members),
            vs_sets: view.vs_sets.iter().map(|set| names(set)).collect(),
        }
    }
}
