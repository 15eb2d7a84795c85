//! What a client is told.

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
        /// At so many the daemon closes the connection, or skips: [`crate::SlowPolicy`].
        limit: u64,
    },
    /// A message of this client, sent before, went to nobody.
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
    /// The client has missed something, because it took its events too slowly. For everybody else it has
    /// disconnected and joined its groups again, here in the order; with membership the views of that
    /// follow. What the members have agreed on meanwhile, the application has to ask them.
    Skipped {
        /// So many messages are missing.
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
        /// What was delivered meanwhile is missing, of the client's own messages perhaps those that it had sent
        /// before: others have got them. With membership a view of each group follows that says who is in it now; what
        /// the members have agreed on meanwhile, the application has to ask them. Otherwise nothing is missing, and
        /// everything goes on where it stopped.
        missed: bool,
    },
    /// The connection was lost, and there is a new one. Of [`crate::Reconnecting`] only.
    Reconnected(Gap),
}

/// What may be missing between the events before and after a new connection.
///
/// All that was ordered between the last event and the joins of the new connection is missing: messages
/// and views. With membership the first view of each group says who is in it now; what the members
/// have agreed on meanwhile, the application has to ask them.
#[derive(Clone, Debug)]
pub struct Gap {
    /// How the earlier connection ended.
    pub lost: ConnectionLost,
    /// From when that was noticed until all joins were done.
    pub duration: Duration,
    /// Bytes of messages, with their frames, that this client had sent and that the daemon had not said
    /// to have taken. Each of these messages was ordered or not, and so was each that the daemon had taken
    /// and that had no place in the order when it died; none is sent again.
    pub unsettled_bytes: u64,
    /// What the client is called now. Without a name of its own it got a new one.
    pub name: PrivateName,
    /// Groups that the daemon does not let it join again, and why: the next connection will not try, unless the
    /// application joins them meanwhile.
    pub not_joined: Vec<(GroupName, RequestError)>,
}

/// What an event counts for beside its bytes.
const EVENT_BYTES: usize = 128;

impl Event {
    /// About how much memory it takes, in bytes.
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
