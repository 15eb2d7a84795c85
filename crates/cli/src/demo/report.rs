//! What the demo says in the end.

use std::fmt;

use rota_bench::{Latencies, Summary};
use serde::Serialize;

use super::talk::Done;
use super::tally::Census;
use super::{DemoError, Setting};

/// The result of a demo; serialized it is the JSON object of `--json`.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    engine: String,
    mode: &'static str,
    nodes: u16,
    transport: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    size_bytes: Option<usize>,
    service: String,
    messages: u64,
    complete: bool,
    identical: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    /// One a node, where they differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    digests: Option<Vec<String>>,
    messages_per_second: f64,
    goodput_mbps: f64,
    received_mbps: f64,
    /// From submit to delivery at the node that submitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    latency_us: Option<Summary>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retransmissions: Option<u64>,
    seconds: f64,
    #[serde(skip)]
    received: Vec<(u64, String)>,
}

impl Report {
    /// Judges what the nodes have received against the input.
    pub fn new(setting: &Setting, input: &Census, done: Vec<Done>) -> Result<Self, DemoError> {
        let mut latencies = Latencies::new();
        for node in &done {
            let counts = serde_json::from_value(node.latencies.clone());
            let wrong = |error| DemoError::Failed(format!("a node measured nonsense: {error}"));
            latencies.merge(&counts.map_err(wrong)?);
        }
        let same = |a: &Done, b: &Done| a.digest == b.digest && a.messages == b.messages;
        let identical = done.windows(2).all(|pair| same(&pair[0], &pair[1]));
        let whole = |node: &Done| {
            (node.messages, node.bytes, &node.sum) == (input.messages, input.bytes, &input.sum())
        };
        let complete = done.len() == usize::from(setting.nodes) && done.iter().all(whole);
        let start = done.iter().filter_map(|node| node.started).min();
        let end = done.iter().map(|node| node.finished).max();
        let nanos = start
            .zip(end)
            .map_or(0, |(start, end)| end.saturating_sub(start));
        let seconds = nanos as f64 / 1e9;
        let per_second = |amount: f64| if nanos == 0 { 0.0 } else { amount / seconds };
        let goodput_mbps = per_second(input.bytes as f64 * 8.0 / 1e6);
        let nodes = f64::from(setting.nodes);
        let retransmissions: Option<Vec<u64>> = done.iter().map(|n| n.retransmissions).collect();
        let received: Vec<_> = done
            .into_iter()
            .map(|node| (node.messages, node.digest))
            .collect();
        let digests = || received.iter().map(|(_, digest)| digest.clone());
        Ok(Self {
            engine: setting.engine.clone(),
            mode: "library",
            nodes: setting.nodes,
            transport: if setting.group.is_some() {
                "multicast"
            } else {
                "unicast"
            },
            size_bytes: setting.size,
            service: setting.service.clone(),
            messages: input.messages,
            complete,
            identical,
            digest: digests().next().filter(|_| identical),
            digests: (!identical).then(|| digests().collect()),
            messages_per_second: per_second(input.messages as f64),
            goodput_mbps,
            received_mbps: goodput_mbps * (nodes - 1.0) / nodes,
            latency_us: latencies.summary(),
            retransmissions: retransmissions.map(|counts| counts.iter().sum()),
            seconds,
            received,
        })
    }

    /// Whether everything is as it has to be.
    pub const fn is_good(&self) -> bool {
        self.complete && self.identical
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (messages, digest)) in self.received.iter().enumerate() {
            writeln!(
                f,
                "node {:<3} {messages:>9} messages  sha256 {digest}",
                index + 1
            )?;
        }
        writeln!(
            f,
            "identical and complete: {}",
            verdict(self.identical, self.complete)
        )?;
        write!(
            f,
            "throughput {:.0} messages/s, {:.1} Mbit/s, in {:.3} s",
            self.messages_per_second, self.goodput_mbps, self.seconds
        )?;
        if let Some(us) = self.latency_us {
            write!(
                f,
                "\nlatency (submit to own delivery) mean {}, p50 {}, p99 {}",
                time(us.mean),
                time(us.p50),
                time(us.p99)
            )?;
        }
        Ok(())
    }
}

const fn verdict(identical: bool, complete: bool) -> &'static str {
    match (identical, complete) {
        (true, true) => "yes",
        (true, false) => "NO: identical, but not what was sent",
        (false, true) => "NO: complete, but in different orders",
        (false, false) => "NO: neither",
    }
}

fn time(us: f64) -> String {
    if us < 1000.0 {
        format!("{us:.0} us")
    } else {
        format!("{:.2} ms", us / 1000.0)
    }
}
