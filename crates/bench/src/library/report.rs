//! The report of `rota bench`.

mod setting;
mod text;

pub use setting::Setting;
use setting::{has_clients, senders};

use std::collections::BTreeMap;
use std::time::Duration;

use rota_ring::RingConfig;
use serde::Serialize;

use super::load::{Delivered, Slot, merged_slots};
use super::node::Measured;
use super::verdict::Verdict;
use crate::hist::{Counts, Latencies, Summary};
use crate::host::Host;
use crate::options::BenchOptions;
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
    /// What was run.
    #[serde(flatten)]
    pub setting: Setting,
    /// Clean payload that the ring took from the senders in the measured time.
    pub submitted_mbps: f64,
    /// How late the senders themselves were with messages that had times of their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generator_late_us: Option<Summary>,
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
    /// Everything the nodes counted in the measured time, summed.
    pub counters: BTreeMap<String, u64>,
    /// What was delivered over time, from the start of the load on, if that was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<Point>,
    /// The host, and what else it did.
    pub host: Host,
    /// The testbed.
    pub testbed: Values,
    /// All of `latency_us`.
    #[serde(skip)]
    pub latencies: Latencies,
    /// All of `latency_sender_us`.
    #[serde(skip)]
    pub latencies_at_sender: Latencies,
}

/// What was delivered in a slot of time, mean over the nodes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Point {
    /// When the slot begins, after the start of the load.
    pub at_s: f64,
    /// Clean payload delivered.
    pub mbps: f64,
    /// Mean latency of the messages that were delivered; 0 if none was.
    pub mean_us: f64,
    /// The longest of these latencies.
    pub max_us: f64,
}

/// Everything about a run that its nodes did not measure.
pub(super) struct Context<'a> {
    /// The options as they were given.
    pub options: &'a BenchOptions,
    pub warm_up: Duration,
    pub testbed: &'a Testbed,
    pub ring: &'a RingConfig,
    pub host: Host,
    pub tcp_mbps: Option<f64>,
}

impl BenchReport {
    pub(super) fn new(context: &Context<'_>, results: &[Measured]) -> Self {
        let options = context.options;
        let traffic = &options.traffic;
        let nodes = results.len() as f64;
        let mean = |of: fn(&Measured) -> f64| results.iter().map(of).sum::<f64>() / nodes;
        let sum = |of: fn(&Measured) -> u64| results.iter().map(of).sum::<u64>();
        let counters = summed(results);
        let verdict = Verdict::new(results);
        let counter = |name: &str| counters.get(name).copied().unwrap_or(0);
        let deliveries = sum(|r| r.delivered.messages);
        let mbps = |bytes| results.iter().map(|r| mbps_of(r, bytes)).sum::<f64>() / nodes;
        let reconfigurations = results.iter().map(|r| r.reconfigurations);
        let at_sender = all(results, |r| &r.own_latencies);
        let at_others = all(results, |r| &r.latencies);
        let seconds = mean(|r| r.elapsed_ns as f64 / 1e9);
        Self {
            setting: Setting::new(context),
            submitted_mbps: sum(|r| r.submitted) as f64 * traffic.size as f64 * 8e-6 / seconds,
            generator_late_us: merged(results, |r| &r.lateness),
            messages: deliveries / results.len().max(1) as u64,
            complete: verdict.complete,
            identical: verdict.identical,
            // Nodes that are killed or cut off may deliver less, and each side of a cut goes on.
            failure: verdict
                .failure
                .filter(|_| options.trouble.events.is_empty() || sum(|r| r.garbled) > 0),
            goodput_mbps: mbps(|delivered| delivered.bytes),
            received_mbps: mbps(|delivered| delivered.bytes - delivered.own_bytes),
            goodput_mbps_of_each: own_rates(results, senders(options)),
            latency_us: at_others.summary(),
            latency_sender_us: at_sender.summary(),
            latency_slowest_us: slowest(results),
            first_message_us: first_messages(results),
            tcp_mbps: context.tcp_mbps,
            retransmissions: SENT_AGAIN.into_iter().map(counter).sum(),
            // Each node counts the tokens it accepts: one in a rotation.
            token_rotations: counter("token_rotations") / results.len().max(1) as u64,
            reconfigurations: reconfigurations.max().unwrap_or(0),
            cpu_ns_per_delivery: sum(|r| r.cpu_ns) as f64 / deliveries.max(1) as f64,
            cpu_us_per_message: sum(|r| r.cpu_ns) as f64 * nodes / 1e3 / deliveries.max(1) as f64,
            client_cpu_ns_per_delivery: has_clients(options)
                .then(|| sum(|r| r.client_cpu_ns) as f64 / deliveries.max(1) as f64),
            // Processors are not slowed down.
            cpu_percent_per_node: mean(cpu_percent) / f64::from(options.slow),
            cpu_percent_coordinator: results.iter().find(|r| r.coordinates).map(cpu_percent),
            seconds,
            counters,
            series: points(options, results),
            host: context.host.clone(),
            testbed: context.testbed.values().clone(),
            latencies: at_others,
            latencies_at_sender: at_sender,
        }
    }
}

fn points(options: &BenchOptions, results: &[Measured]) -> Vec<Point> {
    let slot_s = options.times.series.map_or(0.0, |slot| slot.as_secs_f64());
    let nodes = results.len().max(1) as f64;
    let point = |(at, slot): (usize, Slot)| Point {
        at_s: at as f64 * slot_s,
        mbps: slot.bytes as f64 * 8e-6 / slot_s / nodes,
        mean_us: slot.latency_ns as f64 / 1e3 / slot.messages.max(1) as f64,
        max_us: slot.longest_ns as f64 / 1e3,
    };
    let slots = merged_slots(results.iter().map(|result| &result.slots));
    slots.into_iter().enumerate().map(point).collect()
}

fn mbps_of(r: &Measured, bytes: fn(&Delivered) -> u64) -> f64 {
    bytes(&r.delivered) as f64 * 8e3 / r.elapsed_ns.max(1) as f64
}

fn own_rates(results: &[Measured], senders: usize) -> Vec<f64> {
    let senders = results.iter().take(senders);
    senders.map(|r| mbps_of(r, |of| of.own_bytes)).collect()
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
