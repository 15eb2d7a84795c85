//! What was run: the part of a report that was known before.

use rota_ring::RingConfig;
use serde::Serialize;

use super::Context;
use crate::options::{BenchOptions, BitRate, Load, Mode};

/// The engine of a cluster that the benchmark has not started.
const RUNNING: &str = "a running cluster";

/// What was run.
#[derive(Clone, Debug, Serialize)]
pub struct Setting {
    /// The engine.
    pub engine: &'static str,
    /// The way that the load took.
    pub mode: &'static str,
    /// The daemons of a running cluster that were loaded; processor time is the nodes', and none of it is known then.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub connect: Vec<String>,
    /// The number of nodes.
    pub nodes: usize,
    /// The number of nodes that sent.
    pub senders: usize,
    /// Clean payload of a message.
    pub size_bytes: usize,
    /// The guarantee asked for.
    pub service: &'static str,
    /// The step that votes waited for, with engines that have any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage: Option<&'static str>,
    /// The nodes that vote, if not the default.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub acceptors: Vec<u16>,
    /// Whether every message had an instance of its own.
    pub instance_per_message: bool,
    /// Everything outside the processors ran so many times slower; all times and rates here are as if it had not.
    pub slow: u32,
    /// What happened to the nodes, as it was given: order and completeness are reported then, and not judged.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<String>,
    /// Datagrams between nodes were sealed.
    pub sealed: bool,
    /// The load, as it was given.
    pub load: Load,
    /// Its messages came at random times, and not evenly.
    pub random: bool,
    /// Clean payload that was to be sent, where the load has a rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offered_mbps: Option<f64>,
    /// How long the load ran before it was measured.
    pub warm_up_s: f64,
    /// Windows of the ring: personal, accelerated, global.
    pub windows: Option<[u32; 3]>,
}

impl Setting {
    pub(super) fn new(context: &Context<'_>) -> Self {
        let options = context.options;
        let (traffic, votes) = (&options.traffic, &options.votes);
        let is_running = !options.connect.is_empty();
        let events = options.trouble.events.iter();
        Self {
            engine: if is_running {
                RUNNING
            } else {
                options.engine.name()
            },
            mode: if has_clients(options) {
                Mode::Daemon.name()
            } else {
                options.mode.name()
            },
            connect: options.connect.clone(),
            nodes: context.testbed.nodes(),
            senders: senders(options),
            size_bytes: traffic.size,
            service: traffic.service.name(),
            storage: options.engine.has_votes().then(|| votes.storage.name()),
            acceptors: votes.acceptors.clone(),
            instance_per_message: votes.instance_per_message,
            slow: options.slow,
            events: events.map(ToString::to_string).collect(),
            sealed: options.sealed,
            load: traffic.load,
            random: traffic.is_random,
            offered_mbps: offered(traffic.load),
            warm_up_s: context.warm_up.as_secs_f64(),
            windows: options.engine.is_ring().then(|| windows(context.ring)),
        }
    }
}

/// Whether clients of daemons have the load.
pub(super) fn has_clients(options: &BenchOptions) -> bool {
    options.mode == Mode::Daemon || !options.connect.is_empty()
}

/// The number of nodes, or of clients, that send.
pub(super) fn senders(options: &BenchOptions) -> usize {
    let nodes = match options.connect.len() {
        0 => options.place.nodes,
        clients => clients,
    };
    options.traffic.load.senders(options.traffic.senders, nodes)
}

/// The rate that a load has, in Mbit/s.
fn offered(load: Load) -> Option<f64> {
    match load {
        Load::Fixed(BitRate(rate)) => Some(rate as f64 / 1e6),
        Load::Max | Load::Outstanding(_) => None,
    }
}

/// Personal, accelerated, global.
const fn windows(ring: &RingConfig) -> [u32; 3] {
    [
        ring.windows.personal,
        ring.windows.accelerated,
        ring.windows.global,
    ]
}
