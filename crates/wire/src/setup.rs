//! What is simulated. All times are nanoseconds, all rates bits per second.

use rota_core::contract::Service;
use rota_ring::{PriorityMethod, Protocol};

/// A run: everything that its figures depend on.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Setup {
    /// The number of nodes.
    pub nodes: usize,
    /// The network between them.
    pub wire: WirePlan,
    /// The time that a node's work takes.
    pub costs: Costs,
    /// The engine that orders the messages.
    pub engine: EnginePlan,
    /// The times at which messages are submitted.
    pub load: Load,
    /// The number of nodes that submit: evenly spread, the first among them.
    pub senders: usize,
    /// Bytes of a message: payload, at least 8.
    pub message_bytes: usize,
    /// The guarantee that messages ask for.
    pub service: Service,
    /// Packets that are dropped on purpose.
    pub loss: Option<LossPlan>,
    /// The reliable links, for engines that use them.
    pub links: LinkPlan,
    /// The disk of each node.
    pub disk: DiskPlan,
    /// What is measured.
    pub span: Span,
    /// Decides the phases of the senders, and the packets that are dropped.
    pub seed: u64,
}

/// A switched network: each node has one network card, and the switch one port for it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct WirePlan {
    /// The rate of each card and each port.
    pub rate: u64,
    /// The time from the last bit at the switch's port to the socket: cable, card, interrupt, kernel.
    pub path: u64,
    /// The time that the switch takes to forward a frame.
    pub switch: u64,
    /// Whether the switch begins to forward a frame before it has all of it.
    pub cut_through: bool,
    /// Bytes that wait for a port of the switch at most; a frame beyond is lost.
    pub port_bytes: u64,
    /// Bytes that wait for all ports together at most.
    pub pool_bytes: Option<u64>,
    /// Bytes that wait for a network card at most; a sender beyond waits.
    pub card_bytes: u64,
    /// Bytes of the largest IP packet.
    pub mtu: usize,
    /// Bytes of datagrams that wait in a socket at most; datagrams beyond are lost.
    pub socket_bytes: usize,
    /// By node and node, the time that is added to a way; empty if all are equally near.
    pub far: Vec<Vec<u64>>,
}

/// The time of the work of a node's one thread.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Costs {
    /// One datagram for each call, as the papers' prototypes have it, or a burst.
    pub interface: Interface,
    /// Sending a datagram.
    pub send: u64,
    /// Receiving and handling a datagram with packets.
    pub receive: u64,
    /// The part of sending or receiving that a burst pays only once.
    pub call: u64,
    /// Picoseconds for each byte that is sent.
    pub send_byte: u64,
    /// Picoseconds for each byte that is received.
    pub receive_byte: u64,
    /// Receiving, handling and passing on a token.
    pub token: u64,
    /// Taking a message from the application, or from a client.
    pub submit: u64,
    /// Handing a message to the application, or to a client.
    pub deliver: u64,
    /// Picoseconds for each byte that is handed to the application, or to a client.
    pub deliver_byte: u64,
    /// Waking up.
    pub wake: u64,
    /// The way between a client and its daemon, each way. 0 for a library.
    pub client: u64,
}

/// How datagrams pass between a process and its kernel.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Interface {
    /// One for each call.
    Single,
    /// Many for each call, where they go out together or wait together.
    Bursts,
}

/// The engine, with its settings.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum EnginePlan {
    /// The accelerated or the original ring.
    Ring(RingPlan),
    /// FastCast.
    FastCast {
        /// Bytes of the largest datagram.
        datagram_bytes: usize,
        /// Whether senders share the links by computed rates.
        shares: bool,
    },
    /// LCR.
    Lcr,
    /// U-Ring Paxos, or Ring Paxos, with votes in memory if the disk takes no time.
    Paxos {
        /// The number of acceptors: the first nodes.
        acceptors: usize,
        /// Bytes of the largest datagram if values are multicast (Ring Paxos).
        multicast: Option<usize>,
    },
}

/// The settings of a ring.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct RingPlan {
    /// Accelerated or original.
    pub protocol: Protocol,
    /// Packets of a visit at most.
    pub personal_window: u32,
    /// So many of them may leave behind the token.
    pub accelerated_window: u32,
    /// What raises the token's priority.
    pub method: PriorityMethod,
    /// Bytes of the largest datagram.
    pub datagram_bytes: usize,
}

/// The times at which messages are submitted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Load {
    /// At this rate of payload, all senders together, evenly.
    Rate(u64),
    /// The same on average, at random times.
    Poisson(u64),
    /// A full window for each visit of the token, made then or just after the visit before (thesis §5.1.2). Rings only.
    Visit(Generated),
    /// As many as the engine takes.
    Full,
    /// So many of each sender are under way, always.
    UnderWay(u32),
}

/// The moment at which messages of a full load are made (thesis §5.1.2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Generated {
    /// When the token is received that orders them.
    AtReceipt,
    /// When the token before was released.
    AfterRelease,
}

/// Packets that nodes drop after receipt; tokens are not dropped.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LossPlan {
    /// The share of packets, in millionths.
    pub ppm: u32,
    /// Only those from the node so many places before; all if none.
    pub distance: Option<usize>,
}

/// Reliable links.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LinkPlan {
    /// Bytes under way and unread on a link at most.
    pub queue_bytes: usize,
    /// The cost of a call.
    pub call: u64,
    /// Picoseconds for each byte that is sent, and for each that is received.
    pub byte: u64,
}

/// The disk of a node.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct DiskPlan {
    /// The time of one write.
    pub write: u64,
    /// Picoseconds for each byte.
    pub byte: u64,
    /// Whether what waits is written together.
    pub groups: bool,
    /// Whether votes are written at all.
    pub votes: bool,
}

/// The times of a run, from the moment at which all nodes are together.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Span {
    /// What is not measured.
    pub warm_up: u64,
    /// What is.
    pub measured: u64,
}

impl Default for LinkPlan {
    /// Two megabytes, and work that costs nothing.
    fn default() -> Self {
        Self {
            queue_bytes: 2 << 20,
            call: 0,
            byte: 0,
        }
    }
}

impl DiskPlan {
    /// Votes are in memory; what else is written takes a tenth of a millisecond.
    pub const MEMORY: Self = Self {
        write: 100_000,
        byte: 0,
        groups: true,
        votes: false,
    };
}

impl Setup {
    /// Whether a node submits: senders are evenly spread, and the first node is among them.
    pub const fn sends(&self, node: usize) -> bool {
        node * self.senders % self.nodes < self.senders
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn senders_are_evenly_spread() {
        let senders = |nodes: usize, senders: usize| {
            let setup = crate::world::tests::setup(nodes, senders);
            (0..nodes)
                .filter(|node| setup.sends(*node))
                .collect::<Vec<_>>()
        };
        assert_eq!(senders(8, 8).len(), 8);
        assert_eq!(senders(8, 4), [0, 2, 4, 6]);
        assert_eq!(senders(8, 3), [0, 3, 6]);
        assert_eq!(senders(5, 1), [0]);
        assert_eq!(senders(3, 0), [0; 0]);
    }
}
