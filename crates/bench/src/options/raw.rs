//! The options of benchmarks without a protocol.

use std::time::Duration;

use super::{BitRate, Pattern, Place, Senders};

/// Options of `rota bench raw`.
#[derive(Clone, Debug)]
pub struct RawOptions {
    /// The place where the nodes run.
    pub place: Place,
    /// The traffic.
    pub pattern: Pattern,
    /// One TCP stream from node 1 to node 2 instead.
    pub tcp: bool,
    /// Payload of a packet, with `all-ack` and `hop` of a message, or a record's size with `disk`, in bytes.
    pub size: usize,
    /// The rate of all senders together with `all-ack` and `hop`; otherwise a message follows when all have the one
    /// before.
    pub rate: Option<BitRate>,
    /// The nodes that send; one node by default.
    pub senders: Senders,
    /// Packets in one burst; by default what fits 64 KB.
    pub burst: Option<usize>,
    /// Records that are made durable together with `disk`; one by default.
    pub outstanding: Option<u32>,
    /// The length of the measured time.
    pub duration: Duration,
    /// The time for which the traffic runs before that.
    pub warm_up: Duration,
    /// Whether the caller wants JSON on the last line.
    pub json: bool,
}

impl Default for RawOptions {
    fn default() -> Self {
        Self {
            place: Place::default(),
            pattern: Pattern::Multicast,
            tcp: false,
            size: 1350,
            rate: None,
            senders: Senders::Count(1),
            burst: None,
            outstanding: None,
            duration: Duration::from_secs(2),
            warm_up: Duration::from_millis(300),
            json: false,
        }
    }
}
