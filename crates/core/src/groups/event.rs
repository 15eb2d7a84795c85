//! The events of clients.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;
use core::fmt;

use super::name::{ClientName, Destination, GroupName};
use crate::contract::{Process, RingId, Service};

/// A connection of a client to its daemon; never used twice by one process.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Connection(pub u64);

/// A client as all daemons know it. Ordered by daemon, then by name: the order of member lists.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Member {
    /// The daemon it is connected to.
    pub daemon: Process,
    /// The name under which it is connected there.
    pub name: ClientName,
    /// Tells it from earlier and later clients of that name.
    pub connection: Connection,
}

impl Member {
    /// Before all clients of a daemon.
    pub(super) const fn before_all(daemon: Process) -> Self {
        Self {
            daemon,
            name: ClientName::NONE,
            connection: Connection(0),
        }
    }
}

/// Names a view of a group: the same at all members that get it, and different for each two views. A client's views
/// ascend.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ViewId {
    /// The regular configuration of the daemons.
    pub ring: RingId,
    /// The one that followed, for a view between the two.
    pub next: Option<RingId>,
    /// Counts the changes of all groups from there on.
    pub index: u64,
}

impl fmt::Display for ViewId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.ring.fmt(f)?;
        if let Some(next) = self.next {
            write!(f, ">{next}")?;
        }
        write!(f, "/{}", self.index)
    }
}

/// The cause of a new view.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Cause {
    /// This client joined.
    Join(Member),
    /// This client left.
    Leave(Member),
    /// This client is not connected any more.
    Disconnect(Member),
    /// Daemons have come or gone.
    Network,
}

/// The members of a group from here on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct View {
    /// The group.
    pub group: GroupName,
    /// Names the view.
    pub id: ViewId,
    /// The cause of the view.
    pub cause: Cause,
    /// The members, ascending.
    pub members: Vec<Member>,
    /// With [`Cause::Network`]: the members, by the daemons that came together. Two members of one set had the same
    /// view before this one and have got the same messages in it. Otherwise one set with the client that the view is
    /// about.
    pub vs_sets: Vec<Vec<Member>>,
}

impl View {
    /// The members that came with this member, itself included; for a network view.
    pub fn came_with(&self, member: &Member) -> &[Member] {
        let mut sets = self.vs_sets.iter();
        sets.find(|set| set.contains(member))
            .map_or(&[], Vec::as_slice)
    }
}

/// A message for clients.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Received {
    /// The sender; not necessarily a member of any group.
    pub sender: Member,
    /// All the destinations that it was sent to.
    pub to: Arc<[Destination]>,
    /// The guarantee it was sent with.
    pub service: Service,
    /// The sender did not want the message back.
    pub self_discard: bool,
    /// The application's number for this kind of message.
    pub kind: u16,
    /// The sender writes numbers with the most significant byte first. For applications that care.
    pub big_endian: bool,
    /// Its number among the messages of its daemon's clients, if that daemon keeps count of them.
    pub number: Option<u64>,
    /// The application's bytes.
    pub payload: Bytes,
}

/// The next thing in a client's stream.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// A message, once, however many of its destinations the client matches.
    Message(Received),
    /// A new view of a group that the client is in.
    View(Box<View>),
    /// Until the next view of the group, delivery is only with respect to the members that stay with this daemon.
    Transitional {
        /// The group.
        group: GroupName,
        /// The view that ends.
        view: ViewId,
    },
    /// The client has left the group: it gets nothing more of it.
    SelfLeave {
        /// The group.
        group: GroupName,
    },
    /// The client's daemon is in no view of the daemons: until [`Event::Included`] there is nothing else. Only over
    /// engines with primary views alone.
    Excluded,
    /// The daemon is in a view again.
    Included {
        /// Messages were missed meanwhile, and a view follows for each group that the client is in. If false,
        /// everything goes on where it stopped.
        missed: bool,
    },
}

/// An event, and the clients of this daemon that get it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClientEvent {
    /// The clients that get the event, unless disconnected since; ascending, never empty.
    pub to: Arc<[Connection]>,
    /// The event.
    pub event: Event,
}
