//! How a daemon is: what it answers whoever asks at its admin socket.
//!
//! Whoever reads it, of this version or another, takes what is missing as nothing.

use std::borrow::Cow;
use std::collections::BTreeMap;

use rota_core::contract::{Histogram, PeerCounters};
use rota_net::KeysInUse;
use serde::{Deserialize, Serialize};

/// What somebody is answered who may not know how the daemon is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct StatusRefused {
    /// Why, for people.
    pub refused: &'static str,
}

/// A daemon, its ring and its clients, as of now.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct DaemonStatus {
    /// Its number.
    pub node: u16,
    /// What clients call it.
    pub name: String,
    /// Its version.
    pub version: Cow<'static, str>,
    /// Its process.
    pub pid: u32,
    /// Since it was started, in microseconds.
    pub uptime_us: u64,
    /// All nodes of its configuration.
    pub nodes: Vec<u16>,
    /// The nodes that are on its ring, as far as its clients were told.
    pub members: Vec<u16>,
    /// What its engine does: a state, and with whom.
    pub ring: String,
    /// What an operator should know of it beside, a sentence each: settings in which other nodes differ.
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
    /// Where the time of the token goes.
    pub token: TokenStatus,
    /// What it has seen of the packets of each other node.
    pub peers: BTreeMap<u16, PeerStatus>,
    /// How long messages of its clients take from the ring's outbox to their own delivery. One message at a
    /// time is timed.
    pub latency: HistogramStatus,
    /// What waits.
    pub queues: QueueStatus,
    /// Its own clients.
    pub clients: Vec<ClientStatus>,
    /// What is held for clients, of all daemons, that read too slowly: messages there wait.
    pub holds: Vec<HoldStatus>,
    /// What became of the last reload; none if there was none.
    pub reload: Option<ReloadStatus>,
}

/// How often something took how long.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct HistogramStatus {
    /// How often.
    pub count: u64,
    /// How long all of it took, in microseconds.
    pub sum_us: u64,
    /// How many took up to 1, 2, 4, 8 … µs, and not up to the bound before; the last is all that took longer.
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

/// Where the time of the token goes.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TokenStatus {
    /// How long it was away each time, unless it may have been held for want of anything to do.
    pub rotation: HistogramStatus,
    /// How long this node had it each time, from its arrival at the host until it was passed on.
    pub held: HistogramStatus,
    /// Of that, until the daemon read it, in microseconds: it did not run, or was busy.
    pub waited_us: u64,
    /// Of that, for what clients asked for just before, in microseconds.
    pub clients_us: u64,
    /// Of that, while a socket was full, in microseconds.
    pub blocked_us: u64,
}

/// What a node has seen of another's packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PeerStatus {
    /// Came only after this node had asked for them.
    pub repaired: u64,
    /// This node sent them again because somebody asked.
    pub resent: u64,
}

impl From<PeerCounters> for PeerStatus {
    fn from(peer: PeerCounters) -> Self {
        let PeerCounters { repaired, resent } = peer;
        Self { repaired, resent }
    }
}

/// What waits in a daemon.
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
    /// Its private name.
    pub name: String,
    /// Which protocol it speaks: `native` or `spread`.
    pub protocol: Cow<'static, str>,
    /// Who it is: `uid 1000`, or an address and the names of its certificate.
    pub peer: String,
    /// Bytes that wait because it does not read.
    pub waiting_bytes: usize,
    /// For how long its socket has taken nothing of them, in milliseconds.
    pub unread_ms: u64,
    /// A request of its own waits: the daemon reads nothing more of it until there is room.
    pub held_back: bool,
    /// The client for which a message of its own waits, if one does: the daemon reads nothing more of it.
    pub held_for: Option<String>,
    /// For how long, in milliseconds.
    pub held_ms: u64,
    /// The groups, or its own name, whose senders wait because this client reads too slowly.
    pub throttles: Vec<String>,
    /// For how long, in milliseconds.
    pub throttling_ms: u64,
    /// Messages that it has been told.
    pub messages: u64,
}

/// What is held for a client that reads too slowly.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct HoldStatus {
    /// A group, or a private name.
    pub to: String,
    /// The client, by its private name.
    pub client: String,
}

/// What became of a reload.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ReloadStatus {
    /// Reloads so far.
    pub count: u64,
    /// It was done.
    pub done: bool,
    /// In words.
    pub text: String,
}
