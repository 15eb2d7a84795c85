//! The places where nodes run: on loopback, or in network namespaces joined by a bridge with shaped links.

mod cleanup;
mod links;
mod netns;

use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Command;

use serde::Serialize;

use crate::error::BenchError;
use crate::options::{BitRate, Offload, Pin, Place, TestbedKind};

/// Bytes that may pass a shaped link at once: whole super-packets, or single packets.
const BURST_PASS: u32 = 128 * 1024;
const BURST_SPLIT: u32 = 32 * 1024;
/// Bytes that a shaped port queues: a shallow switch buffer of eight full bursts.
const QUEUE: u32 = 512 * 1024;
/// MTU of every link between namespaces.
const MTU: u32 = 1500;
/// MTU of Linux's loopback.
const LOOPBACK_MTU: u32 = 65_536;

/// The values of a testbed, printed with every result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Values {
    /// Kind of testbed.
    pub kind: TestbedKind,
    /// Bits per second of every link; none if unlimited.
    pub link_rate: Option<BitRate>,
    /// Bytes that may pass a link at once; none if unlimited.
    pub burst: Option<u32>,
    /// Bytes that a port queues; none if unlimited.
    pub queue: Option<u32>,
    /// Bytes of an IP packet.
    pub mtu: u32,
    /// Whether super-packets cross the links.
    pub offload: Offload,
    /// The CPUs that the nodes may use.
    pub pin: Pin,
}

impl Values {
    /// The values of a place that is built as the options ask for.
    pub const fn of(place: &Place) -> Self {
        let is_netns = matches!(place.testbed, TestbedKind::Netns);
        let limited = is_netns && place.link_rate.is_some();
        let burst = match (place.link_burst, place.offload) {
            (Some(burst), _) => burst,
            (None, Offload::Pass) => BURST_PASS,
            (None, Offload::Split) => BURST_SPLIT,
        };
        let queue = match place.link_queue {
            Some(queue) => queue,
            None => QUEUE,
        };
        Self {
            kind: place.testbed,
            link_rate: if limited { place.link_rate } else { None },
            burst: if limited { Some(burst) } else { None },
            queue: if limited { Some(queue) } else { None },
            mtu: if is_netns { MTU } else { LOOPBACK_MTU },
            offload: place.offload,
            pin: place.pin,
        }
    }
}

impl std::fmt::Display for Values {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            kind,
            mtu,
            offload,
            pin,
            ..
        } = self;
        write!(
            f,
            "testbed {kind}: mtu {mtu}, offload {offload}, pin {pin}, "
        )?;
        match (self.link_rate, self.burst, self.queue) {
            (Some(rate), Some(burst), Some(queue)) => {
                write!(f, "links of {rate} (burst {burst} B, queue {queue} B)")
            }
            _ => f.write_str("links not limited"),
        }
    }
}

/// A place for nodes 1 to n. Removed when dropped, on Ctrl-C and on SIGTERM.
#[derive(Debug)]
pub struct Testbed {
    nodes: usize,
    values: Values,
    /// Removes the namespaces when dropped; none on loopback.
    namespaces: Option<netns::Namespaces>,
}

impl Testbed {
    /// Builds what the options ask for.
    pub fn new(place: &Place) -> Result<Self, BenchError> {
        if !(2..=128).contains(&place.nodes) {
            return Err(BenchError::Usage("a testbed has 2 to 128 nodes".into()));
        }
        let mut testbed = match place.testbed {
            TestbedKind::Loopback if place.link_rate.is_some() => {
                let hint = "loopback has no link to shape: use --testbed netns with --link-rate";
                return Err(BenchError::Usage(hint.into()));
            }
            TestbedKind::Loopback => Self::loopback(place.nodes, place.offload),
            TestbedKind::Netns => Self::in_namespaces(place.nodes, Values::of(place))?,
        };
        testbed.values.pin = place.pin;
        Ok(testbed)
    }

    /// `nodes` processes on this host's loopback.
    pub fn loopback(nodes: usize, offload: Offload) -> Self {
        let values = Values::of(&Place {
            offload,
            ..Place::default()
        });
        Self {
            nodes,
            values,
            namespaces: None,
        }
    }

    /// `nodes` network namespaces on a bridge, which has a namespace of its own: the host's network
    /// is not touched.
    pub fn netns(
        nodes: usize,
        link_rate: Option<BitRate>,
        offload: Offload,
    ) -> Result<Self, BenchError> {
        let values = Values::of(&Place {
            testbed: TestbedKind::Netns,
            link_rate,
            offload,
            ..Place::default()
        });
        Self::in_namespaces(nodes, values)
    }

    fn in_namespaces(nodes: usize, values: Values) -> Result<Self, BenchError> {
        let namespaces = netns::Namespaces::create(nodes, &values)?;
        Ok(Self {
            nodes,
            values,
            namespaces: Some(namespaces),
        })
    }

    /// The number of nodes that it has room for.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// Its values, for reports.
    pub fn values(&self) -> &Values {
        &self.values
    }

    /// Address of a node, from 1.
    pub fn address(&self, node: usize) -> Ipv4Addr {
        match self.values.kind {
            TestbedKind::Loopback => Ipv4Addr::LOCALHOST,
            TestbedKind::Netns => netns::address(node),
        }
    }

    /// A command that runs this very program with `subcommand` at the place of `node`.
    pub fn command(&self, node: usize, subcommand: &str) -> Result<Command, BenchError> {
        let program =
            std::env::current_exe().map_err(BenchError::io("cannot find this program's file"))?;
        Ok(self.command_of(node, &program, subcommand))
    }

    /// A command that runs `program` with `subcommand` at the place of `node`.
    pub fn command_of(&self, node: usize, program: &Path, subcommand: &str) -> Command {
        let mut words: Vec<std::ffi::OsString> = Vec::new();
        if let Some(namespaces) = &self.namespaces {
            words.extend(["ip", "netns", "exec"].map(Into::into));
            words.push(namespaces.of_node(node).into());
        }
        if let Some(cpu) = self.cpu(node) {
            words.extend(["taskset", "-c"].map(Into::into));
            words.push(cpu.to_string().into());
        }
        words.extend([program.into(), subcommand.into()]);
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        command
    }

    fn cpu(&self, node: usize) -> Option<usize> {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        match self.values.pin {
            Pin::None => None,
            Pin::One => Some(0),
            Pin::Spread => Some(node % cpus),
        }
    }
}
