//! What a protocol has to be that orders within one primary view: [`DataPath`].

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
    /// Which of them this process is.
    pub me: usize,
}

impl View {
    /// Which member a node is.
    pub fn index_of(&self, node: NodeId) -> Option<usize> {
        self.members
            .binary_search_by_key(&node, |process| process.node)
            .ok()
    }
}

/// Names a packet within a view.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PacketId {
    /// Which member of the view made it.
    pub sender: u16,
    /// Its place among that member's packets of the view: dense, from 1.
    pub number: u64,
}

/// What is ordered: a frame of whole messages and parts of messages, or a word of the protocol itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Packet {
    /// Its name.
    pub id: PacketId,
    /// What it carries.
    pub load: Load,
    /// The bytes: of a frame those that [`rota_core::wire::Frame::parse`] has accepted.
    pub bytes: Bytes,
}

/// What a packet carries.
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
    /// What is known of its place in the order; what it means is the data path's affair. FastCast: the
    /// sequence number, or nothing. LCR: the vector clock.
    pub place: Vec<u64>,
}

/// What a process knows of a view that has ended for it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Frozen {
    /// For each member of the view, the number of its last packet that was delivered here.
    pub delivered: Vec<u64>,
    /// What was not delivered, in any order.
    pub held: Vec<Held>,
}

/// What happens on reliable links (`contract::Input`, without what other engines use them for).
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
        /// Who sent it.
        peer: NodeId,
        /// In which session.
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

/// A protocol that orders packets within one view, uniformly: what one member delivers, every member
/// holds, with its place. It knows nothing of other views; the engine around it drives it.
///
/// Packets of one sender are delivered in the order of their numbers, without gaps.
pub trait DataPath {
    /// The first call: who this process is, and a seed for everything random.
    fn start(&mut self, me: Process, seed: u64);

    /// A view begins; all of an earlier one is forgotten. `notes` has what each member said in
    /// [`Self::note`], by index.
    fn install(&mut self, now: Time, view: &View, notes: &[Bytes]);

    /// The view ends: until the next `install` nothing is sent, taken in or delivered. Links stay, and
    /// what happens to them is still told.
    fn freeze(&mut self, now: Time) -> Frozen;

    /// What the other members of the next view are to know of this process before it begins.
    fn note(&self) -> Vec<u8> {
        Vec::new()
    }

    /// Puts what survivors hold of a view into the order in which all deliver it. The list names each
    /// packet once, with the longest `place` that anybody knew, and is the same at all of them.
    fn arrange(held: &mut Vec<Held>);

    /// A datagram arrived that is for the data path ([`rota_core::wire::is_for_data_path`]).
    fn on_datagram(&mut self, now: Time, class: Class, datagram: Bytes);

    /// Something happened on a link.
    fn on_link(&mut self, now: Time, link: Link);

    /// The time that `next_timer` named has come.
    fn on_timer(&mut self, now: Time);

    /// When to call `on_timer` next.
    fn next_timer(&self) -> Option<(Time, TimerReason)>;

    /// What to do next in the world. What this process has to send is taken from `backlog`.
    fn poll_output(&mut self, now: Time, backlog: &mut Backlog) -> Option<Output>;

    /// The next packet in the order. Asked only while the application has room: what is not taken
    /// throttles the senders, of all members.
    fn poll_packet(&mut self) -> Option<Packet>;

    /// How far everything is that is on its way, as a number that grows; `None` if nothing is.
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

    /// Its invariants hold: asked for after each input in builds with debug assertions.
    fn check(&self) {}
}
