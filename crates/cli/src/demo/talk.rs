//! What the coordinator and its nodes tell each other, in lines of JSON over pipes: the network
//! under test carries nothing of it.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::source::Input;
use super::witness::Seen;

/// The line that lets the nodes submit.
pub const GO: &str = "go";
/// The line that ends the nodes.
pub const STOP: &str = "stop";

/// What a node is told first.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Task {
    /// Which node, from 1.
    pub node: u16,
    /// The configuration file of its daemon.
    pub config: PathBuf,
    /// It has several rings, and no daemon.
    pub has_rings: bool,
    /// Where its daemon listens for clients.
    pub socket: PathBuf,
    /// Where its daemon says how it is.
    pub admin: PathBuf,
    /// How many nodes there are.
    pub nodes: u16,
    /// The delivery guarantee, by name.
    pub service: String,
    /// Where the messages of all nodes come from.
    pub input: Input,
    /// How many messages there are in all.
    pub messages: u64,
    /// Where to write what is delivered.
    pub output: Option<PathBuf>,
    /// The node that will be killed.
    pub victim: Option<u16>,
}

/// What a node says.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Said {
    /// Its client is in the group, with all others.
    Ready,
    /// How far it is.
    Progress {
        /// Messages delivered.
        received: u64,
    },
    /// It is the one to be killed, and now is the time.
    Midway,
    /// Its daemon is gone, as it had to be.
    Lost {
        /// How its connection ended.
        how: String,
    },
    /// It has everything.
    Done(Done),
    /// It cannot go on.
    Failed {
        /// Why.
        what: String,
    },
}

/// What a node has received and measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Done {
    /// Which node, from 1.
    pub node: u16,
    /// Messages delivered.
    pub messages: u64,
    /// Their payload bytes.
    pub bytes: u64,
    /// SHA-256 of the payloads in their order, each followed by a newline.
    pub digest: String,
    /// See [`super::tally::Census::sum`].
    pub sum: String,
    /// When it submitted its first message, on the host's monotonic clock in nanoseconds.
    pub started: Option<u64>,
    /// When it had its last message.
    pub finished: u64,
    /// Histogram of the time from submit to delivery of its own messages.
    pub latencies: serde_json::Value,
    /// Packets its daemon sent again.
    pub retransmissions: Option<u64>,
    /// Where a node is killed: what came from whom, and when nothing came.
    pub seen: Option<Seen>,
}
