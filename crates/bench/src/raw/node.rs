//! A node of the raw benchmark.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::PathBuf;
use std::process::ExitCode;

use serde::{Deserialize, Serialize};

use super::{all_ack, disk, hop, multicast, tcp, token};
use crate::child::{self, Coordinator};
use crate::error::BenchError;
use crate::hist::Counts;
use crate::options::Pattern;

/// The group of the raw benchmark.
const GROUP: Ipv4Addr = Ipv4Addr::new(239, 77, 0, 1);

/// The task of a node.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Task {
    /// The number of the node, from 1.
    pub node: usize,
    /// Addresses of all nodes.
    pub addresses: Vec<Ipv4Addr>,
    /// Port of the group; node i listens for unicast at this plus i.
    pub port: u16,
    /// The work to do.
    pub work: Work,
    /// Nodes 1 to this send.
    pub senders: usize,
    /// Bytes of a packet; where all acknowledge, of a message; of a record.
    pub size: usize,
    /// Packets of a burst, or of such a message; records of a group.
    pub burst: usize,
    /// The directory of files.
    pub directory: Option<PathBuf>,
    /// Whether sockets use segmentation and receive offload.
    pub offload: bool,
    /// Pace of each sender, in packets; none: as fast as the receivers follow.
    pub packets_per_second: Option<f64>,
    /// Time before the measurement.
    pub warm_up_ns: u64,
    /// Time of the measurement.
    pub duration_ns: u64,
}

/// The work of a node.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) enum Work {
    /// One of the datagram patterns.
    Pattern(Pattern),
    /// One end of a TCP stream.
    Tcp,
}

/// The measurements of a node.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Measured {
    /// Packets sent in the measured time.
    pub sent: u64,
    /// Packets received, or records made durable, in the measured time.
    pub received: u64,
    /// Packets sent in the whole run.
    pub sent_ever: u64,
    /// Packets received in the whole run.
    pub received_ever: u64,
    /// Bytes received in the measured time.
    pub bytes: u64,
    /// Time on a CPU in the measured time.
    pub cpu_ns: u64,
    /// Length of the measured time.
    pub elapsed_ns: u64,
    /// Times that something did not come in time.
    pub stalls: u64,
    /// Rotations, or messages acknowledged by all, or until the last of a ring knows that all have a message, or until a group
    /// of records is durable.
    pub latencies: Counts,
    /// On a ring of links: until the sender of a message knows that.
    #[serde(default)]
    pub own_latencies: Counts,
    /// On a ring of links: until the end of the ring has a message.
    #[serde(default)]
    pub arrivals: Counts,
    /// With files: syncs alone.
    #[serde(default)]
    pub syncs: Counts,
}

impl Task {
    pub(super) fn sends(&self) -> bool {
        self.node <= self.senders
    }

    pub(super) fn group(&self) -> SocketAddrV4 {
        SocketAddrV4::new(GROUP, self.port)
    }

    /// The address at which a node, from 1, is reached alone.
    pub(super) fn unicast(&self, node: usize) -> SocketAddrV4 {
        SocketAddrV4::new(self.addresses[node - 1], self.port + node as u16)
    }
}

/// The hidden subcommand `raw-node`: one node of `rota bench raw`.
pub fn raw_node_main() -> ExitCode {
    child::run(work)
}

fn work(task: Task, coordinator: &Coordinator) -> Result<Measured, BenchError> {
    let known = 1..=task.addresses.len();
    if !known.contains(&task.node) || task.size == 0 || task.burst == 0 {
        return Err(BenchError::Usage("a task that cannot be done".into()));
    }
    match task.work {
        Work::Pattern(Pattern::Token) => token::run(&task, coordinator),
        Work::Pattern(Pattern::AllAck) => all_ack::run(&task, coordinator),
        Work::Pattern(Pattern::Hop) => hop::run(&task, coordinator),
        Work::Pattern(Pattern::Disk) => disk::run(&task, coordinator),
        Work::Pattern(Pattern::Multicast) => multicast::run(&task, coordinator),
        Work::Tcp => tcp::run(&task, coordinator),
    }
}
