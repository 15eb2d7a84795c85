//! The report of `rota bench`.

use std::collections::BTreeMap;
use std::fmt;

use rota_ring::RingConfig;
use serde::Serialize;

use super::load::Delivered;
use super::node::Measured;
use super::verdict::Verdict;
use crate::hist::{Counts, Latencies, Summary};
use crate::options::{BenchOptions, Load, Mode};
use crate::testbed::{Testbed, Values};

/// Counters of packets and values that engines sent again.
const SENT_AGAIN: [&str; 5] = [
    "retransmissions",
    "fast_packets_resent",
    "fast_packets_repeated",
    "uring_values_asked_for",
    "uring_values_sent_again",
];

/// The result of a run; serialized it is the JSON object of `--json`.
#[derive(Clone, Debug, Serialize)]
pub struct BenchReport {
    /// The engine.
    pub engine: &'static str,
    /// The way that the load took.
    pub mode: &'static str,
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
    /// Datagrams between nodes were sealed.
    pub sealed: bool,
    /// The load, as it was given.
    pub load: Load,
    /// Messages delivered in the measured time, mean over the nodes.
    pub messages: u64,
    /// All nodes delivered everything that was submitted, drain included.
    pub complete: bool,
    /// All nodes delivered the same order.
    pub identical: bool,
    /// The reason why the run does not count, if it is not complete or not identical: a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Clean payload delivered, own included, mean over the nodes.
    pub goodput_mbps: f64,
    /// The same without each node's own messages.
    pub received_mbps: f64,
    /// Each sender's part of the goodput, as it was delivered to itself.
    pub goodput_mbps_of_each: Vec<f64>,
    /// The time from when a message was due until another node delivered it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_us: Option<Summary>,
    /// The time from when a message was due until its sender delivered it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_sender_us: Option<Summary>,
    /// The same as `latency_us`, at the node where it is longest on average.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_slowest_us: Option<Summary>,
    /// After silence: the time from when a message was due until the last node delivered it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_message_us: Option<Summary>,
    /// The rate of a TCP stream over the same links, in Mbit/s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tcp_mbps: Option<f64>,
    /// Packets sent again, by all nodes together.
    pub retransmissions: u64,
    /// Rotations of the token.
    pub token_rotations: u64,
    /// Configurations after the first, at the node that saw most.
    pub reconfigurations: u64,
    /// CPU time of all nodes for each delivery, own deliveries included.
    pub cpu_ns_per_delivery: f64,
    /// CPU time of all nodes for each message of the order; without the clients'.
    pub cpu_us_per_message: f64,
    /// CPU time of all clients for each delivery, where there are clients.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_cpu_ns_per_delivery: Option<f64>,
    /// Share of a CPU that a node used, mean.
    pub cpu_percent_per_node: f64,
    /// The same of the node that coordinates, with engines in which one does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_percent_coordinator: Option<f64>,
    /// Length of the measured time.
    pub seconds: f64,
    /// Windows of the ring: personal, accelerated, global.
    pub windows: Option<[u32; 3]>,
    /// Everything the nodes counted in the measured time, summed.
    pub counters: BTreeMap<String, u64>,
    /// The testbed.
    pub testbed: Values,
    /// All of `latency_sender_us`.
    #[serde(skip)]
    pub latencies_at_sender: Latencies,
}

impl BenchReport {
    pub(super) fn new(
        options: &BenchOptions,
        testbed: &Testbed,
        ring: &RingConfig,
        results: &[Measured],
    ) -> Self {
        let nodes = results.len() as f64;
        let mean = |of: fn(&Measured) -> f64| results.iter().map(of).sum::<f64>() / nodes;
        let sum = |of: fn(&Measured) -> u64| results.iter().map(of).sum::<u64>();
        let counters = summed(results);
        let verdict = Verdict::new(results);
        let counter = |name: &str| counters.get(name).copied().unwrap_or(0);
        let deliveries = sum(|r| r.delivered.messages);
        let mbps = |bytes| results.iter().map(|r| mbps_of(r, bytes)).sum::<f64>() / nodes;
        let reconfigurations = results.iter().map(|r| r.reconfigurations);
        let senders = options.load.senders(options.senders, results.len());
        let at_sender = all(results, |r| &r.own_latencies);
        Self {
            engine: options.engine.name(),
            mode: options.mode.name(),
            nodes: results.len(),
            senders,
            size_bytes: options.size,
            service: options.service.name(),
            storage: options.engine.has_votes().then(|| options.storage.name()),
            acceptors: options.acceptors.clone(),
            instance_per_message: options.instance_per_message,
            sealed: options.sealed,
            load: options.load,
            messages: deliveries / results.len().max(1) as u64,
            complete: verdict.complete,
            identical: verdict.identical,
            failure: verdict.failure,
            goodput_mbps: mbps(|delivered| delivered.bytes),
            received_mbps: mbps(|delivered| delivered.bytes - delivered.own_bytes),
            goodput_mbps_of_each: own_rates(results, senders),
            latency_us: merged(results, |r| &r.latencies),
            latency_sender_us: at_sender.summary(),
            latency_slowest_us: slowest(results),
            first_message_us: first_messages(results),
            tcp_mbps: None,
            retransmissions: SENT_AGAIN.into_iter().map(counter).sum(),
            // Each node counts the tokens it accepts: one in a rotation.
            token_rotations: counter("token_rotations") / results.len().max(1) as u64,
            reconfigurations: reconfigurations.max().unwrap_or(0),
            cpu_ns_per_delivery: sum(|r| r.cpu_ns) as f64 / deliveries.max(1) as f64,
            cpu_us_per_message: sum(|r| r.cpu_ns) as f64 * nodes / 1e3 / deliveries.max(1) as f64,
            client_cpu_ns_per_delivery: (options.mode == Mode::Daemon)
                .then(|| sum(|r| r.client_cpu_ns) as f64 / deliveries.max(1) as f64),
            cpu_percent_per_node: mean(cpu_percent),
            cpu_percent_coordinator: results.iter().find(|r| r.coordinates).map(cpu_percent),
            seconds: mean(|r| r.elapsed_ns as f64 / 1e9),
            windows: options.engine.is_ring().then(|| windows(ring)),
            counters,
            testbed: testbed.values().clone(),
            latencies_at_sender: at_sender,
        }
    }
}

fn mbps_of(r: &Measured, bytes: fn(&Delivered) -> u64) -> f64 {
    bytes(&r.delivered) as f64 * 8e3 / r.elapsed_ns.max(1) as f64
}

fn own_rates(results: &[Measured], senders: usize) -> Vec<f64> {
    let senders = results.iter().take(senders);
    senders.map(|r| mbps_of(r, |of| of.own_bytes)).collect()
}

/// Personal, accelerated, global.
const fn windows(ring: &RingConfig) -> [u32; 3] {
    [
        ring.personal_window,
        ring.accelerated_window,
        ring.global_window,
    ]
}

fn summed(results: &[Measured]) -> BTreeMap<String, u64> {
    let mut counters = BTreeMap::new();
    for (name, count) in results.iter().flat_map(|r| &r.counters) {
        *counters.entry(name.clone()).or_insert(0) += count;
    }
    counters
}

fn all(results: &[Measured], of: fn(&Measured) -> &Counts) -> Latencies {
    let mut latencies = Latencies::new();
    results.iter().for_each(|r| latencies.merge(of(r)));
    latencies
}

fn merged(results: &[Measured], of: fn(&Measured) -> &Counts) -> Option<Summary> {
    all(results, of).summary()
}

/// Share of a CPU that a node used.
fn cpu_percent(result: &Measured) -> f64 {
    100.0 * result.cpu_ns as f64 / result.elapsed_ns.max(1) as f64
}

/// Latencies at the node that waits longest for others' messages: the last that delivers, where one node sends and
/// messages go round a ring.
fn slowest(results: &[Measured]) -> Option<Summary> {
    let of_one = |result: &Measured| merged(std::slice::from_ref(result), |r| &r.latencies);
    let all = results.iter().filter_map(of_one);
    all.max_by(|a, b| a.mean.total_cmp(&b.mean))
}

/// For each trial the node that came last counts. Trials that did not reach every node are left
/// out; `complete` says so.
fn first_messages(results: &[Measured]) -> Option<Summary> {
    let mut trials: BTreeMap<(usize, u32), (usize, u64)> = BTreeMap::new();
    for result in results {
        for (occurrence, (number, latency)) in result.trials.iter().enumerate() {
            // The order is the same everywhere, so the place in it names the trial.
            let (reached, last) = trials.entry((occurrence, *number)).or_default();
            *reached += 1;
            *last = (*last).max(*latency);
        }
    }
    let mut latencies = Latencies::new();
    let everywhere = trials
        .values()
        .filter(|(reached, _)| *reached == results.len());
    everywhere.for_each(|(_, last)| latencies.record(*last));
    latencies.summary()
}

impl BenchReport {
    fn cpu(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (ns, percent) = (self.cpu_ns_per_delivery, self.cpu_percent_per_node);
        if self.messages > 0 {
            writeln!(
                f,
                "  CPU         {ns:10.0} ns a delivery, {percent:.2} % of a core a node"
            )?;
            if let Some(percent) = self.cpu_percent_coordinator {
                writeln!(f, "  coordinator {percent:10.2} % of a core")?;
            }
            if let Some(client) = self.client_cpu_ns_per_delivery {
                let us = self.cpu_us_per_message;
                writeln!(
                    f,
                    "  CPU         {us:10.2} us an ordered message, all daemons; clients {client:.0} ns a delivery"
                )?;
            }
        } else {
            writeln!(f, "  CPU         {percent:10.3} % of a core a node, idle")?;
        }
        Ok(())
    }
}

impl BenchReport {
    /// Writes the settings of the engine and of the load.
    fn setting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(storage) = self.storage {
            let numbers: Vec<String> = self.acceptors.iter().map(u16::to_string).collect();
            let of = if numbers.is_empty() {
                ""
            } else {
                ", of nodes "
            };
            let each = if self.instance_per_message {
                ", an instance for each message"
            } else {
                ""
            };
            writeln!(f, "  votes: {storage}{of}{}{each}", numbers.join(", "))?;
        }
        if let Load::Outstanding(count) = self.load {
            writeln!(
                f,
                "  load: {count} messages under way in all, a closed loop"
            )?;
        }
        if let Some([personal, accelerated, global]) = self.windows {
            writeln!(
                f,
                "  windows: personal {personal}, accelerated {accelerated}, global {global}"
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for BenchReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            engine,
            mode,
            nodes,
            senders,
            size_bytes,
            service,
            ..
        } = self;
        let sealed = if self.sealed { ", sealed" } else { "" };
        writeln!(
            f,
            "{engine}, {mode}: {nodes} nodes, {senders} sending {size_bytes} bytes, {service}{sealed}"
        )?;
        self.setting(f)?;
        writeln!(f, "  {}", self.testbed)?;
        writeln!(
            f,
            "  goodput     {:10.1} Mbit/s at each node, own included",
            self.goodput_mbps
        )?;
        writeln!(
            f,
            "  received    {:10.1} Mbit/s at each node, without own",
            self.received_mbps
        )?;
        writeln!(
            f,
            "  messages    {:10} in {:.2} s",
            self.messages, self.seconds
        )?;
        if let Some(mbps) = self.tcp_mbps {
            writeln!(
                f,
                "  beside it   {mbps:10.1} Mbit/s by TCP from node 1 to node 2"
            )?;
        }
        latency(f, "latency, us", self.latency_us)?;
        latency(f, "at sender  ", self.latency_sender_us)?;
        latency(f, "slowest    ", self.latency_slowest_us)?;
        latency(f, "first msg  ", self.first_message_us)?;
        writeln!(
            f,
            "  ring        {:10} rotations, {} retransmissions, {} reconfigurations",
            self.token_rotations, self.retransmissions, self.reconfigurations
        )?;
        self.cpu(f)?;
        let no = |is: bool| if is { "" } else { "NOT " };
        let (identical, complete) = (no(self.identical), no(self.complete));
        writeln!(
            f,
            "  order       {identical}identical at all nodes, {complete}complete"
        )
    }
}

fn latency(f: &mut fmt::Formatter<'_>, name: &str, summary: Option<Summary>) -> fmt::Result {
    let Some(us) = summary else { return Ok(()) };
    let Summary {
        mean,
        p50,
        p90,
        p99,
        p999,
        max,
        worst5_mean,
    } = us;
    writeln!(
        f,
        "  {name} {mean:10.1} mean, {p50:.1} p50, {p90:.1} p90, {p99:.1} p99, {p999:.1} p99.9, {max:.1} max, {worst5_mean:.1} worst 5 %"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_node_is_the_one_with_the_longest_mean() {
        let node = |us: &[u64]| {
            let mut latencies = Latencies::new();
            us.iter().for_each(|us| latencies.record(us * 1000));
            Measured {
                latencies: latencies.to_counts(),
                ..Measured::default()
            }
        };
        let results = [node(&[100, 900]), node(&[]), node(&[600, 600])];
        let slowest = slowest(&results).expect("there are latencies");
        assert!((slowest.mean - 600.0).abs() < 1.0, "{slowest:?}");
        assert!(slowest.max < 601.0, "{slowest:?}");
    }
}
