//! The options of a benchmark. Each value is parsed once, here, into a type that cannot be wrong.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use rota_core::contract::Service;
use serde::{Deserialize, Serialize};

mod bench;
mod engine;
mod event;
mod load;
mod rate;
mod raw;

pub use bench::{BenchOptions, RingLimits, Times, Traffic, Trouble, Votes, WarmUp};
pub use engine::Subject;
pub use event::{Event, Happening};
pub use load::Load;
pub(crate) use load::share;
pub use many::{Leveling, ManyRings, Subscribe};
pub use rate::BitRate;
pub use raw::RawOptions;

/// The reason why a value on the command line was not understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError(String);

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ParseError {}

pub(crate) fn wrong<T>(text: &str, hint: &str) -> Result<T, ParseError> {
    Err(ParseError(format!("`{text}` is not {hint}")))
}

/// The nodes that send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Senders {
    /// Every node.
    All,
    /// The first half, rounded up.
    Half,
    /// The first nodes, this number of them.
    Count(usize),
}

impl Senders {
    /// The number of `nodes` that send.
    pub fn of(self, nodes: usize) -> usize {
        match self {
            Self::All => nodes,
            Self::Half => nodes.div_ceil(2),
            Self::Count(k) => k.min(nodes),
        }
    }
}

impl FromStr for Senders {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        match (text, text.parse::<usize>()) {
            ("all", _) => Ok(Self::All),
            ("half", _) => Ok(Self::Half),
            (_, Ok(k)) if k > 0 => Ok(Self::Count(k)),
            _ => wrong(text, "a set of senders: all, half, or a number from 1"),
        }
    }
}

/// Reads a duration: `5s`, `200ms`, `50us`, `2m`.
pub fn parse_duration(text: &str) -> Result<Duration, ParseError> {
    let hint = "a duration; write it like 5s or 200ms";
    let digits = text
        .find(|c: char| c.is_ascii_alphabetic())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let seconds = match unit {
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        _ => return wrong(text, hint),
    };
    match number.parse::<f64>() {
        Ok(n) if n >= 0.0 && n * seconds <= 3600.0 => Ok(Duration::from_secs_f64(n * seconds)),
        Ok(n) if n > 0.0 => wrong(text, "at most an hour"),
        _ => wrong(text, hint),
    }
}

/// Defines an enum whose variants have one name each, on the command line and in reports.
macro_rules! names {
    ($(#[$meta:meta])* $type:ident: $hint:literal { $($(#[$vmeta:meta])* $variant:ident = $name:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        pub enum $type { $($(#[$vmeta])* #[serde(rename = $name)] $variant),+ }

        impl $type {
            /// The name used on the command line and in reports.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }
        }

        impl FromStr for $type {
            type Err = ParseError;

            fn from_str(text: &str) -> Result<Self, ParseError> {
                match text {
                    $($name => Ok(Self::$variant),)+
                    _ => wrong(text, concat!($hint, ": ", $($name, " "),+)).map_err(|ParseError(e)| ParseError(e.trim_end().to_owned())),
                }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

mod many;

names! {
    /// The place where the nodes run.
    TestbedKind: "a testbed" {
        /// Processes on this host's loopback.
        Loopback = "loopback",
        /// A network namespace for each node, joined by a bridge. Needs root.
        Netns = "netns",
    }
}

names! {
    /// Whether segmentation offload carries many packets at once through the links.
    Offload: "an offload mode" {
        /// Super-packets cross the links whole.
        Pass = "pass",
        /// Every packet is carried alone, as on a wire.
        Split = "split",
    }
}

names! {
    /// The step that an acceptor's votes wait for.
    StorageName: "a storage" {
        /// Nothing.
        Memory = "memory",
        /// The system.
        Async = "async",
        /// The disk.
        Sync = "sync",
    }
}

names! {
    /// The capacity that FastCast's senders assume of links.
    LinkShares: "what links take in" {
        /// The rate of `--link-rate`; without it, nobody keeps to a share.
        Configured = "configured",
        /// Less than that while packets get lost.
        Yielding = "yielding",
        /// The capacity is found out by losses.
        Estimated = "estimated",
        /// Nobody keeps to a share.
        Off = "off",
    }
}

names! {
    /// The way that the load takes.
    Mode: "a mode" {
        /// The application lives in the ring's own thread.
        Library = "library",
        /// The application is a client of a daemon.
        Daemon = "daemon",
    }
}

names! {
    /// The delivery guarantee asked for.
    ServiceName: "a service" {
        /// In the one total order.
        Agreed = "agreed",
        /// The same, once every member has it.
        Safe = "safe",
    }
}

impl From<ServiceName> for Service {
    fn from(name: ServiceName) -> Self {
        match name {
            ServiceName::Agreed => Self::Agreed,
            ServiceName::Safe => Self::Safe,
        }
    }
}

names! {
    /// The CPUs that the nodes may use.
    Pin: "a way to pin" {
        /// The scheduler places them.
        None = "none",
        /// All on CPU 0.
        One = "one",
        /// Node i on CPU i modulo their number.
        Spread = "spread",
    }
}

names! {
    /// The traffic of `rota bench raw`.
    Pattern: "a pattern" {
        /// Bursts from the senders to all.
        Multicast = "multicast",
        /// A 64-byte token round the ring.
        Token = "token",
        /// One burst at a time, acknowledged by all.
        AllAck = "all-ack",
        /// One message at a time over a ring of TCP links, and the word that all have it.
        Hop = "hop",
        /// Groups of records into a file of each node's own, made durable.
        Disk = "disk",
    }
}

/// The place where the nodes run, and the way: common to both kinds of benchmark.
#[derive(Clone, Debug)]
pub struct Place {
    /// Kind of testbed.
    pub testbed: TestbedKind,
    /// The number of nodes.
    pub nodes: usize,
    /// Speed of every link; unlimited if not given. Only in namespaces.
    pub link_rate: Option<BitRate>,
    /// Bytes that may pass a shaped link at once, if not the testbed's own number.
    pub link_burst: Option<u32>,
    /// Bytes that the port of a shaped link queues, if not the testbed's own number.
    pub link_queue: Option<u32>,
    /// Whether super-packets cross the links.
    pub offload: Offload,
    /// The CPUs that the nodes may use.
    pub pin: Pin,
}

impl Default for Place {
    fn default() -> Self {
        Self {
            testbed: TestbedKind::Loopback,
            nodes: 4,
            link_rate: None,
            link_burst: None,
            link_queue: None,
            offload: Offload::Pass,
            pin: Pin::None,
        }
    }
}

#[cfg(test)]
mod tests;
