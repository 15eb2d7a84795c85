//! The status of a daemon: its answer at the admin socket.
//!
//! Every reader, of this version or another, takes a missing field as 0, empty or absent.

use std::borrow::Cow;
use std::collections::BTreeMap;

use rota_core::contract::{Histogram, PeerCounters};
use rota_net::KeysInUse;
use serde::{Deserialize, Serialize};

/// The answer to a peer that has no right to the status.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct StatusRefused {
    /// The reason, for people.
    pub refused: &'static str,
}

/// A daemon, its ring and its clients, at one time.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct DaemonStatus {
    /// The number of the node.
    pub node: u16,
    /// The name of the daemon, as clients see it.
    pub name: String,
    /// The version of the daemon.
    pub version: Cow<'static, str>,
    /// The id of the process.
    pub pid: u32,
    /// The time since the start, in microseconds.
    pub uptime_us: u64,
    /// All nodes of its configuration.
    pub nodes: Vec<u16>,
    /// The nodes that are on its ring, as far as its clients were told.
    pub members: Vec<u16>,
    /// The state of the engine, with its members.
    pub ring: String,
    /// Notes for an operator, a sentence each: settings in which other nodes differ.
    pub notes: Vec<String>,
    /// The keys that datagrams between nodes are sealed with; none if they are not sealed.
    pub keys: Option<KeysInUse>,
    /// Whether all daemons of the configuration know of the same groups; clients' requests wait while not.
    pub groups_ready: bool,
    /// Whether it is in no view of an engine with primary views alone, and its clients were told so: nothing is delivered,
    /// and their requests wait.
    pub excluded: bool,
    /// Groups that it knows of.
    pub groups: usize,
    /// Counters since its start, by name: of the engine, the sockets, the groups and the clients.
    pub counters: BTreeMap<Cow<'static, str>, u64>,
    /// The times of the token.
    pub token: TokenStatus,
    /// Counts of the packets of each other node.
    pub peers: BTreeMap<u16, PeerStatus>,
    /// The times of messages of its clients from the ring's outbox to their own delivery. One message at a time is
    /// timed.
    pub latency: HistogramStatus,
    /// The queues of the daemon.
    pub queues: QueueStatus,
    /// Its own clients.
    pub clients: Vec<ClientStatus>,
    /// Destinations whose senders wait for clients, of all daemons, that read too slowly.
    pub holds: Vec<HoldStatus>,
    /// The outcome of the last reload; `None` if there was none.
    pub reload: Option<ReloadStatus>,
}

impl DaemonStatus {
    /// Whether the node is on a ring that orders messages.
    pub fn is_operational(&self) -> bool {
        self.ring.starts_with("operational")
    }

    /// Packets of all other nodes that came only after this one had asked for them.
    pub fn repaired(&self) -> u64 {
        sum(self.peers.values().map(|peer| peer.repaired))
    }

    /// Messages that clients that are there were told.
    pub fn told(&self) -> u64 {
        sum(self.clients.iter().map(|client| client.messages))
    }
}

/// The sum of counts. Those that another daemon tells may be any numbers.
pub(crate) fn sum(counts: impl IntoIterator<Item = u64>) -> u64 {
    counts.into_iter().fold(0, u64::saturating_add)
}

/// The times of an event that occurs often.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct HistogramStatus {
    /// The number of times.
    pub count: u64,
    /// The sum of the times, in microseconds.
    pub sum_us: u64,
    /// The number of times up to 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20 … µs, four bounds for each doubling, and above
    /// the bound before; the last counts all longer ones.
    pub buckets: Vec<u64>,
}

impl From<&Histogram> for HistogramStatus {
    fn from(times: &Histogram) -> Self {
        Self {
            count: times.count(),
            sum_us: times.sum_nanos() / 1000,
            buckets: times.buckets().to_vec(),
        }
    }
}

/// The times of the token.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TokenStatus {
    /// The time for which the token was away, for each visit, unless it may have been held for want of anything to do.
    pub rotation: HistogramStatus,
    /// The time for which this node had the token, for each visit, from its arrival at the host until it was passed on.
    pub held: HistogramStatus,
    /// The part of that until the daemon read the token, in microseconds: the daemon did not run, or was busy.
    pub waited_us: u64,
    /// The part of that for requests of clients just before, in microseconds.
    pub clients_us: u64,
    /// The part of that while a socket was full, in microseconds.
    pub blocked_us: u64,
}

/// Counts of the packets of another node.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PeerStatus {
    /// Packets that came only after this node had asked for them.
    pub repaired: u64,
    /// Packets that this node sent again on request.
    pub resent: u64,
}

impl From<PeerCounters> for PeerStatus {
    fn from(peer: PeerCounters) -> Self {
        let PeerCounters { repaired, resent } = peer;
        Self { repaired, resent }
    }
}

/// The queues of a daemon.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct QueueStatus {
    /// Requests of clients that have not come back from the ring.
    pub requests: usize,
    /// Packets that wait for the token.
    pub packets: usize,
    /// Bytes that wait for clients that do not read.
    pub client_bytes: usize,
    /// Clients with requests for which there is no room yet.
    pub clients_held_back: usize,
    /// Clients with a message that waits for another client, which reads too slowly.
    pub clients_held: usize,
}

/// A client of this daemon.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ClientStatus {
    /// The private name of the client.
    pub name: String,
    /// The client's protocol: `native` or `spread`.
    pub protocol: Cow<'static, str>,
    /// The peer: `uid 1000`, or an address and the names of its certificate.
    pub peer: String,
    /// Bytes that wait because the client does not read.
    pub waiting_bytes: usize,
    /// The time for which the client's socket has taken nothing of them, in milliseconds.
    pub unread_ms: u64,
    /// A request of the client waits: the daemon reads nothing more of it until there is room.
    pub held_back: bool,
    /// The client for which a message of this client waits, if one does: the daemon reads nothing more of this one.
    pub held_for: Option<String>,
    /// The time for which that message has waited, in milliseconds.
    pub held_ms: u64,
    /// The groups, or its own name, whose senders wait because this client reads too slowly.
    pub throttles: Vec<String>,
    /// The time for which they have waited, in milliseconds.
    pub throttling_ms: u64,
    /// Messages that it has been told.
    pub messages: u64,
}

/// A destination whose senders wait for a client that reads too slowly.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct HoldStatus {
    /// A group, or a private name.
    pub to: String,
    /// The client, by its private name.
    pub client: String,
}

/// The outcome of a reload.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ReloadStatus {
    /// Reloads so far.
    pub count: u64,
    /// The reload was done.
    pub done: bool,
    /// The outcome in words.
    pub text: String,
}
