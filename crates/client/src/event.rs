//! The events of a client.

use std::time::Duration;

use rota_core::groups::{GroupName, ViewId};

use crate::error::{ConnectionLost, RequestError};
use crate::protocol::{Code, Destination, Message, PrivateName, View};

/// The next thing in a client's stream: one order for all members of a group.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// A message, once, however many of its destinations the client matches. Its payload shares memory
    /// with what arrived at the same time: copy one that is kept for long.
    Message(Message),
    /// A new view of a group that the client is in. With membership only, as the next two.
    View(Box<View>),
    /// Until the next view of the group, delivery is only with respect to those who stay with this
    /// client's daemon.
    Transitional {
        /// The group.
        group: GroupName,
        /// The view that ends.
        view: ViewId,
    },
    /// The client has left the group: it gets nothing more of it. Without membership this comes only if it has
    /// not asked to: the daemon's rules do not let it be there any more.
    SelfLeave {
        /// The group.
        group: GroupName,
    },
    /// A warning: the client takes its events more slowly than they come.
    Lagging {
        /// Bytes that waited for it at the daemon.
        waiting: u64,
        /// The limit, in bytes, at which the daemon closes the connection, or skips: [`crate::SlowPolicy`].
        limit: u64,
    },
    /// The daemon sent a message of this client, from before, to no receiver.
    NotSent {
        /// The number that it was given ([`crate::Envelope::kind`]).
        kind: u16,
        /// The first of its destinations that it may not go to.
        to: Destination,
        /// Why: most often [`Code::NotAllowed`], by the daemon's configuration.
        code: Code,
        /// Why, for people.
        text: String,
    },
    /// The client has missed something, because it took its events too slowly. For everybody else it has disconnected
    /// and joined its groups again, here in the order; with membership the views of that follow. The application has to
    /// ask the members for all that they have agreed on meanwhile.
    Skipped {
        /// The number of messages that are missing.
        messages: u64,
        /// Bytes of their payloads.
        bytes: u64,
        /// Those of the client's groups that they went to, ascending.
        groups: Vec<GroupName>,
    },
    /// The client's daemon is in no view of the daemons: until [`Event::Included`] there are no messages and no views,
    /// and what the client sends waits. Only where the daemons order in primary views alone.
    Excluded,
    /// The daemon is in a view again.
    Included {
        /// Deliveries of that time are missing, perhaps own messages too that the client had sent before: others have
        /// got them. With membership a view of each group follows, with its members now; the application has to ask the
        /// members for all that they have agreed on meanwhile. Otherwise nothing is missing, and everything goes on
        /// where it stopped.
        missed: bool,
    },
    /// The connection was lost, and there is a new one. Of [`crate::Reconnecting`] and `AsyncReconnecting` only.
    Reconnected(Gap),
}

/// The events that may be missing between an old connection and a new one.
///
/// All that was ordered between the last event and the joins of the new connection is missing: messages and views. With
/// membership the first view of each group has its members now; the application has to ask the members for all that
/// they have agreed on meanwhile.
#[derive(Clone, Debug)]
pub struct Gap {
    /// The end of the earlier connection.
    pub lost: ConnectionLost,
    /// The time from the discovery of the loss until all joins were done.
    pub duration: Duration,
    /// Bytes of messages, with their frames, that this client had sent and that the daemon had not said
    /// to have taken. Each of these messages was ordered or not, and so was each that the daemon had taken
    /// and that had no place in the order when it died; none is sent again.
    pub unsettled_bytes: u64,
    /// The private name of the client now. A client without a name of its own got a new one.
    pub name: PrivateName,
    /// Groups that the daemon does not let it join again, and why: the next connection will not try, unless the
    /// application joins them meanwhile.
    pub not_joined: Vec<(GroupName, RequestError)>,
}

/// The bytes that an event counts for beside its content.
const EVENT_BYTES: usize = 128;

impl Event {
    /// The memory that the event takes, about, in bytes.
    pub(crate) fn cost(&self) -> usize {
        EVENT_BYTES
            + match self {
                Self::Message(message) => message.payload.len() + message.to.len() * 34,
                Self::View(view) => view.members.len() * 40,
                Self::Skipped { groups, .. } => groups.len() * 32,
                _ => 0,
            }
    }
}
