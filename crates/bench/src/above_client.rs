//! An application made for a ring, above a client of a daemon instead.

use rota_client::{Client, Envelope, PrivateName, SendError, View};
use rota_core::contract::{
    Configuration, ConfigurationKind, Delivery, Incarnation, Message, MessageId, NodeId, Process,
    Service, SubmitError, Time,
};
use rota_node::Submitter;

/// Submits as messages to a group.
#[derive(Debug)]
pub struct ToGroup<'a> {
    /// The client that sends.
    pub client: &'a mut Client,
    /// The group, and the way of sending to it.
    pub group: &'a Envelope,
}

impl Submitter for ToGroup<'_> {
    fn submit(&mut self, _: Time, _: Service, payload: &[u8]) -> Result<u64, SubmitError> {
        match self.client.try_feed(self.group.clone(), payload) {
            Ok(()) => Ok(0),
            Err(SendError::WouldBlock) => Err(SubmitError::Full),
            Err(_) => Err(SubmitError::Stopped),
        }
    }
}

/// The number of a client's daemon, if that has no name.
pub fn node_of(name: &PrivateName) -> Option<NodeId> {
    NodeId::new(name.daemon.as_str().parse().ok()?)
}

/// A message of the client at this node, its `counter`th, as the ring would deliver it.
pub fn message_of(node: NodeId, counter: u64, message: rota_client::Message) -> Delivery {
    Delivery::Message(Message {
        id: MessageId {
            process: process(node),
            counter,
        },
        service: message.service,
        seq: 0,
        index: 0,
        payload: message.payload,
    })
}

/// A view as a configuration of the nodes that its members are at.
pub fn configuration_of(view: &View) -> Delivery {
    configuration_by(view, node_of)
}

/// The same, where members have these numbers.
pub(crate) fn configuration_by(
    view: &View,
    number: impl Fn(&PrivateName) -> Option<NodeId>,
) -> Delivery {
    let members = view.members.iter().filter_map(number);
    Delivery::Configuration(Configuration {
        kind: ConfigurationKind::Regular(view.id.ring),
        members: members.map(process).collect(),
    })
}

/// Clients do not learn which life of a node they hear of.
const fn process(node: NodeId) -> Process {
    Process {
        node,
        incarnation: Incarnation(0),
    }
}
