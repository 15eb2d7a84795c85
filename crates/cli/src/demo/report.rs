//! The report of a demo.

use std::fmt;

use rota_bench::{Latencies, Summary};
use serde::Serialize;

use super::kill::Outcome;
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
    /// The node that was killed.
    #[serde(skip_serializing_if = "Option::is_none")]
    killed: Option<u16>,
    /// The number of its messages that all others have.
    #[serde(skip_serializing_if = "Option::is_none")]
    killed_delivered: Option<u64>,
    /// The longest time that one of the others got nothing in.
    #[serde(skip_serializing_if = "Option::is_none")]
    gap_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reconfigurations: Option<u64>,
    /// The way in which the killed one's client lost its daemon.
    #[serde(skip_serializing_if = "Option::is_none")]
    lost: Option<String>,
    /// Views that the clients of the others were told of, by node.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    views: Vec<(u16, Vec<String>)>,
    #[serde(skip)]
    killed_share: u64,
    /// Node, messages and digest.
    #[serde(skip)]
    received: Vec<(u16, u64, String)>,
}

fn all_latencies(done: &[Done]) -> Result<Latencies, DemoError> {
    let mut latencies = Latencies::new();
    for node in done {
        let counts = serde_json::from_value(node.latencies.clone());
        let wrong = |error| DemoError::Failed(format!("a node measured nonsense: {error}"));
        latencies.merge(&counts.map_err(wrong)?);
    }
    Ok(latencies)
}

impl Report {
    /// Judges the deliveries of the nodes against the input. Where a node was killed, the input is what the others
    /// have, and `outcome` says whether the others have what they must have.
    pub fn new(
        setting: &Setting,
        input: &Census,
        done: Vec<Done>,
        outcome: Option<Outcome>,
    ) -> Result<Self, DemoError> {
        let latencies = all_latencies(&done)?;
        let same = |a: &Done, b: &Done| a.digest == b.digest && a.messages == b.messages;
        let identical = done.windows(2).all(|pair| same(&pair[0], &pair[1]));
        let whole = |node: &Done| {
            (node.messages, node.bytes, &node.sum) == (input.messages, input.bytes, &input.sum())
        };
        let all = done.len() == usize::from(setting.nodes);
        let (messages, bytes, complete) = match (&outcome, done.first()) {
            (Some(outcome), Some(first)) => (first.messages, first.bytes, outcome.complete),
            _ => (input.messages, input.bytes, all && done.iter().all(whole)),
        };
        let (per_second, seconds) = rates(&done);
        let goodput_mbps = per_second(bytes as f64 * 8.0 / 1e6);
        let killed_delivered = outcome.as_ref().map(|outcome| outcome.delivered);
        // The part that is a receiver's own, in the mean.
        let own = messages.saturating_sub(killed_delivered.unwrap_or(0)) as f64
            / (done.len().max(1) as f64 * messages.max(1) as f64);
        let retransmissions: Option<Vec<u64>> = done.iter().map(|n| n.retransmissions).collect();
        let received: Vec<_> = done
            .into_iter()
            .map(|node| (node.node, node.messages, node.digest))
            .collect();
        let digests = || received.iter().map(|(.., digest)| digest.clone());
        Ok(Self {
            engine: setting.engine.clone(),
            mode: setting.mode(),
            nodes: setting.nodes,
            transport: setting.group.map_or("unicast", |_| "multicast"),
            size_bytes: setting.size,
            service: setting.service().to_owned(),
            messages,
            complete,
            identical,
            digest: digests().next().filter(|_| identical),
            digests: (!identical).then(|| digests().collect()),
            messages_per_second: per_second(messages as f64),
            goodput_mbps,
            received_mbps: goodput_mbps * (1.0 - own),
            latency_us: latencies.summary(),
            retransmissions: retransmissions.map(|counts| counts.iter().sum()),
            seconds,
            killed: outcome.as_ref().map(|outcome| outcome.node),
            killed_delivered,
            gap_ms: outcome
                .as_ref()
                .and_then(|outcome| outcome.gap_nanos)
                .map(|nanos| nanos as f64 / 1e6),
            reconfigurations: outcome.as_ref().map(|outcome| outcome.reconfigurations),
            killed_share: outcome.as_ref().map_or(0, |outcome| outcome.share),
            lost: outcome.as_ref().map(|outcome| outcome.lost.clone()),
            views: outcome.map_or_else(Vec::new, |outcome| outcome.views),
            received,
        })
    }

    /// Nodes that were told of the same views share a line.
    fn write_views(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut told: Vec<(&[String], Vec<String>)> = Vec::new();
        for (node, views) in &self.views {
            let name = format!("#demo#{node}");
            match told.iter_mut().find(|(same, _)| same == views) {
                Some((_, names)) => names.push(name),
                None => told.push((views, vec![name])),
            }
        }
        for (views, names) in told {
            let views = views.join("; then ");
            writeln!(f, "view     {views} (told to {})", names.join(" "))?;
        }
        Ok(())
    }

    /// Whether everything is as it has to be.
    pub const fn is_good(&self) -> bool {
        self.complete && self.identical
    }
}

/// The function from an amount to its rate per second of the run, and the length of the run in seconds.
fn rates(done: &[Done]) -> (impl Fn(f64) -> f64 + use<>, f64) {
    let start = done.iter().filter_map(|node| node.started).min();
    let end = done.iter().map(|node| node.finished).max();
    let nanos = start
        .zip(end)
        .map_or(0, |(start, end)| end.saturating_sub(start));
    let seconds = nanos as f64 / 1e9;
    let per_second = move |amount: f64| if nanos == 0 { 0.0 } else { amount / seconds };
    (per_second, seconds)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (node, messages, digest) in &self.received {
            writeln!(f, "node {node:<3} {messages:>9} messages  sha256 {digest}")?;
        }
        if let (Some(node), Some(delivered)) = (self.killed, self.killed_delivered) {
            let share = self.killed_share;
            writeln!(
                f,
                "node {node:<3} killed midway; the others have the first {delivered} of its {share} messages"
            )?;
            let lost = self.lost.as_deref().unwrap_or_default();
            writeln!(f, "client   #demo#{node} lost its daemon: {lost}")?;
            self.write_views(f)?;
            let count = self.reconfigurations.unwrap_or(0);
            let gap = self.gap_ms.map_or_else(
                || "with nothing left to deliver".to_owned(),
                |ms| format!("nothing delivered for {}", time(ms * 1000.0)),
            );
            writeln!(f, "reconfigurations {count}, {gap}")?;
        }
        let who = if self.killed.is_some() {
            "survivors "
        } else {
            ""
        };
        writeln!(
            f,
            "{who}identical and complete: {}",
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
