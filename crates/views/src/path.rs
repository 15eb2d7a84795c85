//! The contract of a protocol that orders within one primary view: [`DataPath`].

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use bytes::Bytes;

use super::Backlog;
use rota_core::contract::{
    Class, NodeId, Output, Process, RingId, Service, Session, Time, TimerReason,
};

/// A primary configuration in which messages are ordered (FastCast §3.4).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct View {
    /// The membership ring that it runs beside: names the view.
    pub ring: RingId,
    /// Its members, by ascending node id. The first is the leader.
    pub members: Vec<Process>,
    /// The index of this process among them.
    pub me: usize,
}

impl View {
    /// The index of a node among the members.
    pub fn index_of(&self, node: NodeId) -> Option<usize> {
        self.members
            .binary_search_by_key(&node, |process| process.node)
            .ok()
    }
}

/// Names a packet within a view.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PacketId {
    /// The index of the member of the view that made it.
    pub sender: u16,
    /// Its place among that member's packets of the view: dense, from 1.
    pub number: u64,
}

/// The unit that is ordered: a frame of whole messages and parts of messages, or a word of the protocol itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Packet {
    /// Its name.
    pub id: PacketId,
    /// The kind of its contents.
    pub load: Load,
    /// The bytes: of a frame those that [`rota_core::wire::Frame::parse`] has accepted.
    pub bytes: Bytes,
}

/// The kind of a packet's contents.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Load {
    /// A frame of messages, which all asked for this guarantee. All of them get the strongest.
    Messages(Service),
    /// A word of the protocol itself, in the one order: it takes no position, and ends with its view.
    Own,
}

/// A packet that a process holds and has not delivered, when a view ends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Held {
    /// The packet.
    pub packet: Packet,
    /// The known part of its place in the order, whose meaning only the data path knows. FastCast: the sequence number,
    /// or nothing. LCR: the vector clock.
    pub place: Vec<u64>,
}

/// The knowledge of a process of a view that has ended for it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Frozen {
    /// For each member of the view, the number of its last packet that was delivered here.
    pub delivered: Vec<u64>,
    /// The packets that are here and were not delivered, in any order.
    pub held: Vec<Held>,
}

/// An event on reliable links (`contract::Input`, without the uses of other engines).
#[derive(Clone, Debug)]
pub enum Link {
    /// A link is up.
    Up {
        /// The process at its other end.
        peer: Process,
        /// Larger than every earlier session with this node.
        session: Session,
    },
    /// A link is gone.
    Down {
        /// The node at its other end.
        peer: NodeId,
        /// The session that ended.
        session: Session,
    },
    /// A whole message arrived.
    Message {
        /// The node that sent it.
        peer: NodeId,
        /// The session in which it came.
        session: Session,
        /// The message.
        bytes: Bytes,
    },
    /// A link takes up to `bytes` more.
    Writable {
        /// The node at its other end.
        peer: NodeId,
        /// The session this credit belongs to.
        session: Session,
        /// Total room, in bytes.
        bytes: usize,
    },
}

/// A protocol that orders packets within one view, uniformly: every member holds each packet that one member delivers,
/// with its place. A data path knows nothing of other views; the engine around it drives it.
///
/// Packets of one sender are delivered in the order of their numbers, without gaps.
pub trait DataPath {
    /// Starts the data path, by the first call: with this process, and a seed for everything random.
    fn start(&mut self, me: Process, seed: u64);

    /// Begins a view, and forgets all of an earlier one. `notes` has the [`Self::note`] of each member, by index.
    fn install(&mut self, now: Time, view: &View, notes: &[Bytes]);

    /// Ends the view: until the next `install` nothing is sent, taken in or delivered. Links stay, and their events are
    /// still told.
    fn freeze(&mut self, now: Time) -> Frozen;

    /// The note of this process to the other members of the next view, which they get before it begins.
    fn note(&self) -> Vec<u8> {
        Vec::new()
    }

    /// Puts the packets that survivors hold of a view into the order in which all deliver them. The list has each
    /// packet once, with the longest `place` that any survivor knew, and is the same at all of them.
    fn arrange(held: &mut Vec<Held>);

    /// Takes a datagram that is for the data path ([`rota_core::wire::is_for_data_path`]).
    fn on_datagram(&mut self, now: Time, class: Class, datagram: Bytes);

    /// Takes an event of a link.
    fn on_link(&mut self, now: Time, link: Link);

    /// Acts on the time that `next_timer` named.
    fn on_timer(&mut self, now: Time);

    /// The time of the next call of `on_timer`, and its reason.
    fn next_timer(&self) -> Option<(Time, TimerReason)>;

    /// The next output. The messages of this process are taken from `backlog`.
    fn poll_output(&mut self, now: Time, backlog: &mut Backlog) -> Option<Output>;

    /// The next packet in the order. The engine asks only while the application has room: packets that are not taken
    /// throttle the senders, of all members.
    fn poll_packet(&mut self) -> Option<Packet>;

    /// The progress of all packets on their way, as a number that grows; `None` if there are none.
    fn progress(&self) -> Option<u64> {
        None
    }

    /// The class of datagrams to read first now.
    fn reading(&self) -> Class;

    /// Adds its counters, by their metric names.
    fn count(&self, counters: &mut BTreeMap<&'static str, u64>);

    /// Whether it sends over reliable links.
    fn uses_links(&self) -> bool {
        false
    }

    /// Whether this process holds, or has held, a packet of the current view together with its place in
    /// the order; `None` if `view` is not the current one. For the simulator's white-box checks.
    fn holds(&self, view: RingId, id: PacketId) -> Option<bool>;

    /// Asserts its invariants: called after each input in builds with debug assertions.
    fn check(&self) {}
}
