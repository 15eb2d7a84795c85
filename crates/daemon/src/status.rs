//! How a daemon is: what it answers whoever asks at its admin socket.

use std::collections::BTreeMap;

use rota_net::KeysInUse;
use serde::Serialize;

/// What somebody is answered who may not know how the daemon is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct StatusRefused {
    /// Why, for people.
    pub refused: &'static str,
}

/// A daemon, its ring and its clients, as of now.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct DaemonStatus {
    /// Its number.
    pub node: u16,
    /// What clients call it.
    pub name: String,
    /// Its version.
    pub version: &'static str,
    /// What its engine does: a state, and with whom.
    pub ring: String,
    /// The keys that datagrams between nodes are sealed with; none if they are not sealed.
    pub keys: Option<KeysInUse>,
    /// Whether all daemons of the configuration know of the same groups; clients' requests wait while not.
    pub groups_ready: bool,
    /// Groups that it knows of.
    pub groups: usize,
    /// Counters since its start, by name: of the engine, the sockets, the groups and the clients.
    pub counters: BTreeMap<&'static str, u64>,
    /// Its own clients.
    pub clients: Vec<ClientStatus>,
}

/// A client of this daemon.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ClientStatus {
    /// Its private name.
    pub name: String,
    /// Which protocol it speaks: `native` or `spread`.
    pub protocol: &'static str,
    /// Who it is: `uid 1000`, or an address and the names of its certificate.
    pub peer: String,
    /// Bytes that wait because it does not read.
    pub waiting_bytes: usize,
    /// A request of its own waits: the daemon reads nothing more of it until there is room.
    pub held_back: bool,
    /// Messages that it has been told.
    pub messages: u64,
}
