//! The report of `rota bench raw`.

use std::fmt;

use serde::Serialize;

use super::disk::DiskTimes;
use super::node::Measured;
use crate::hist::{Counts, Latencies, Summary};
use crate::options::{Pattern, RawOptions};
use crate::testbed::{Testbed, Values};

/// The times of hops over a ring of links, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct HopTimes {
    /// A hop, mean over all 2(N − 1) on the way of a message and of the word that all have it.
    pub hop_us: f64,
    /// A hop of the message, mean over the first N − 1.
    pub message_hop_us: f64,
    /// A hop of the word, mean over the others.
    pub word_hop_us: f64,
    /// The time until the message's sender has the word, after N hops.
    pub at_sender_us: Summary,
}

impl HopTimes {
    /// From what the nodes of a ring have measured; `None` if no message went all the way.
    fn new(measured: &[Measured]) -> Option<Self> {
        let all = |of: fn(&Measured) -> &Counts| {
            let mut latencies = Latencies::new();
            measured.iter().for_each(|m| latencies.merge(of(m)));
            latencies.summary()
        };
        let message = all(|m| &m.arrivals)?;
        let (sender, last) = (all(|m| &m.own_latencies)?, all(|m| &m.latencies)?);
        let round = measured.len().saturating_sub(1).max(1) as f64;
        Some(Self {
            hop_us: last.mean / (2.0 * round),
            message_hop_us: message.mean / round,
            word_hop_us: (last.mean - message.mean) / round,
            at_sender_us: sender,
        })
    }
}

/// The result of a raw run; serialized it is the JSON object of `--json`.
#[derive(Clone, Debug, Serialize)]
pub struct RawReport {
    /// `multicast`, `token`, `all-ack`, `hop`, `disk` or `tcp`.
    pub pattern: &'static str,
    /// The number of nodes.
    pub nodes: usize,
    /// The number of nodes that sent, or wrote.
    pub senders: usize,
    /// Bytes of a packet; where all acknowledge, of a message; of a record.
    pub size_bytes: usize,
    /// Packets of a burst, or of such a message; records of a group.
    pub burst_packets: usize,
    /// Packets that left all senders in a second.
    pub sent_pps: f64,
    /// Payload received, mean over the receivers.
    pub received_mbps: f64,
    /// Packets received by all receivers together, or records made durable by all writers.
    pub deliveries: u64,
    /// Share of the deliveries due that did not come.
    pub loss: f64,
    /// Times a sender waited in vain.
    pub stalls: u64,
    /// CPU time of all nodes for each delivery (for each hop of a token).
    pub cpu_ns_per_delivery: f64,
    /// CPU time of the kernel's soft-interrupt threads for each delivery, not in the figure above. Other work on this
    /// host is in it, too.
    pub softirqd_ns_per_delivery: f64,
    /// Rotation time of the token, time until all have acknowledged a message, or until the last node of a ring of
    /// links knows that all have it, or until a group of records is durable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_us: Option<Summary>,
    /// Rotations of the token, messages that all acknowledged, or groups of records.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rounds: Option<u64>,
    /// Hops over a ring of links.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hops: Option<HopTimes>,
    /// The results of writers that share a disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk: Option<DiskTimes>,
    /// Length of the measured time.
    pub seconds: f64,
    /// The testbed.
    pub testbed: Values,
}

impl RawReport {
    pub(super) fn new(
        options: &RawOptions,
        testbed: &Testbed,
        burst: usize,
        measured: &[Measured],
        softirq_ns: u64,
    ) -> Self {
        let token = options.pattern == Pattern::Token && !options.tcp;
        let sum = |of: fn(&Measured) -> u64| measured.iter().map(of).sum::<u64>();
        let deliveries = sum(|m| m.received);
        let per_delivery = |ns: u64, count: u64| ns as f64 / count.max(1) as f64;
        let received_ever = if token || options.tcp {
            deliveries
        } else {
            sum(|m| m.received_ever)
        };
        // Everybody but the sender should receive what it sent.
        let due = sum(|m| m.sent_ever) * (measured.len() as u64 - 1);
        let mut latencies = Latencies::new();
        measured.iter().for_each(|m| latencies.merge(&m.latencies));
        let receivers: Vec<_> = measured.iter().filter(|m| m.bytes > 0).collect();
        let mbps = |m: &&Measured| m.bytes as f64 * 8e3 / m.elapsed_ns.max(1) as f64;
        let seconds = options.duration.as_secs_f64();
        Self {
            pattern: if options.tcp {
                "tcp"
            } else {
                options.pattern.name()
            },
            nodes: testbed.nodes(),
            senders: senders(options, testbed.nodes()),
            size_bytes: if token { 64 } else { options.size },
            burst_packets: if token || options.tcp { 1 } else { burst },
            sent_pps: sum(|m| m.sent) as f64 / seconds,
            received_mbps: receivers.iter().map(mbps).sum::<f64>() / receivers.len().max(1) as f64,
            deliveries,
            loss: if due == 0 {
                0.0
            } else {
                1.0 - received_ever.min(due) as f64 / due as f64
            },
            stalls: sum(|m| m.stalls),
            cpu_ns_per_delivery: per_delivery(sum(|m| m.cpu_ns), deliveries),
            softirqd_ns_per_delivery: per_delivery(softirq_ns, received_ever),
            latency_us: latencies.summary(),
            rounds: (!latencies.is_empty()).then_some(latencies.len()),
            hops: HopTimes::new(measured),
            disk: DiskTimes::new(options.size, measured),
            seconds,
            testbed: testbed.values().clone(),
        }
    }
}

/// The number of nodes that send or write.
fn senders(options: &RawOptions, nodes: usize) -> usize {
    match options.pattern {
        _ if options.tcp => 1,
        Pattern::Token => 1,
        Pattern::Disk => nodes,
        _ => options.senders.of(nodes),
    }
}

impl RawReport {
    /// Writes the times of rounds and hops.
    fn times(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(us) = self.latency_us {
            let rounds = self.rounds.unwrap_or_default();
            writeln!(
                f,
                "  round, us   {:10.1} p50, {:.1} p90, {:.1} p99, {:.1} mean, {rounds} rounds",
                us.p50, us.p90, us.p99, us.mean
            )?;
        }
        if let Some(times) = self.hops {
            let (hop, message, word) = (times.hop_us, times.message_hop_us, times.word_hop_us);
            writeln!(
                f,
                "  hop, us     {hop:10.1} mean, {message:.1} of the message, {word:.1} of the word"
            )?;
            let (mean, p50) = (times.at_sender_us.mean, times.at_sender_us.p50);
            writeln!(
                f,
                "  at sender   {mean:10.1} mean, {p50:.1} p50, after as many hops as nodes"
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for RawReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            pattern,
            nodes,
            senders,
            size_bytes,
            burst_packets,
            ..
        } = self;
        let does = if self.disk.is_some() {
            "writing groups of"
        } else {
            "sending,"
        };
        write!(f, "raw {pattern}: {nodes} nodes, {senders} {does} ")?;
        if *pattern == Pattern::AllAck.name() {
            writeln!(f, "{size_bytes} bytes in {burst_packets} packets")?;
        } else {
            writeln!(f, "{burst_packets} x {size_bytes} bytes")?;
        }
        writeln!(f, "  {}", self.testbed)?;
        if self.received_mbps > 0.0 {
            writeln!(
                f,
                "  received    {:10.1} Mbit/s at each receiver (mean)",
                self.received_mbps
            )?;
            writeln!(f, "  sent        {:10.0} packets/s", self.sent_pps)?;
            writeln!(
                f,
                "  loss        {:10.3} %   stalls {}",
                self.loss * 100.0,
                self.stalls
            )?;
        }
        let what = match &self.disk {
            Some(disk) => {
                disk.fmt(f)?;
                "record"
            }
            None => {
                writeln!(f, "  deliveries  {:10}", self.deliveries)?;
                "delivery"
            }
        };
        writeln!(
            f,
            "  CPU         {:10.0} ns a {what}",
            self.cpu_ns_per_delivery
        )?;
        self.times(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn took(us: &[u64]) -> Counts {
        let mut latencies = Latencies::new();
        us.iter().for_each(|us| latencies.record(us * 1000));
        latencies.to_counts()
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= b * 0.002
    }

    /// Four nodes: the message is at node 4 after three hops of 100 us, the word at node 1 after one of 40 and at
    /// node 3 after two more.
    #[test]
    fn hops_of_messages_and_words_are_told_apart() {
        let mut measured = vec![Measured::default(); 4];
        measured[3].arrivals = took(&[300, 200, 400]);
        measured[0].own_latencies = took(&[340, 340]);
        measured[2].latencies = took(&[420, 420]);
        let times = HopTimes::new(&measured).expect("all three were measured");
        assert!(close(times.hop_us, 70.0), "{times:?}");
        assert!(close(times.message_hop_us, 100.0), "{times:?}");
        assert!(close(times.word_hop_us, 40.0), "{times:?}");
        assert!(close(times.at_sender_us.mean, 340.0), "{times:?}");
    }

    #[test]
    fn where_no_message_went_all_the_way_there_are_no_hops() {
        let mut measured = vec![Measured::default(); 4];
        measured[3].arrivals = took(&[300]);
        assert_eq!(HopTimes::new(&measured), None);
    }
}
