//! The messages between the coordinator and its nodes, in lines of JSON over pipes: the network under test carries
//! nothing of them.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::source::Input;
use super::witness::Seen;

/// The line that lets the nodes submit.
pub const GO: &str = "go";
/// The line that ends the nodes.
pub const STOP: &str = "stop";

/// The task of a node, its first message.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Task {
    /// The node, from 1.
    pub node: u16,
    /// The configuration file of its daemon.
    pub config: PathBuf,
    /// It has several rings, and no daemon.
    pub has_rings: bool,
    /// The socket at which its daemon listens for clients.
    pub socket: PathBuf,
    /// The socket at which its daemon says how it is.
    pub admin: PathBuf,
    /// The number of nodes.
    pub nodes: u16,
    /// The delivery guarantee, by name.
    pub service: String,
    /// The source of the messages of all nodes.
    pub input: Input,
    /// The number of messages in all.
    pub messages: u64,
    /// The file to write deliveries to.
    pub output: Option<PathBuf>,
    /// The node that will be killed.
    pub victim: Option<u16>,
}

/// The messages of a node.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Said {
    /// Its client is in the group, with all others.
    Ready,
    /// The progress of the node.
    Progress {
        /// Messages delivered.
        received: u64,
    },
    /// It is the one to be killed, and now is the time.
    Midway,
    /// Its daemon is gone, as it had to be.
    Lost {
        /// The way in which its connection ended.
        how: String,
    },
    /// It has everything.
    Done(Done),
    /// It cannot go on.
    Failed {
        /// The reason.
        what: String,
    },
}

/// The deliveries and measurements of a node.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Done {
    /// The node, from 1.
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
    /// The notes, where a node is killed: the messages of each sender, and the pauses.
    pub seen: Option<Seen>,
}
