//! The status of a daemon, as Prometheus reads it.

mod help;

use std::cmp::Reverse;
use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::exemplar::Exemplar;
use prometheus_client::registry::Registry;
use rota_core::contract::Histogram;

use crate::status::{ClientStatus, DaemonStatus, HistogramStatus};
use help::{GAUGES, help};

/// Clients that are told apart: those for whom most waits.
const CLIENTS: usize = 100;

/// The text for a scrape, in the format of OpenMetrics.
pub(crate) fn text(status: Arc<DaemonStatus>) -> String {
    let mut registry = Registry::with_prefix("rota");
    registry.register_collector(Box::new(Snapshot(status)));
    let mut text = String::new();
    // A string takes everything.
    let _ = encode(&mut text, &registry);
    text
}

#[derive(Debug)]
struct Snapshot(Arc<DaemonStatus>);

type Encoded = Result<(), fmt::Error>;

impl Collector for Snapshot {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> Encoded {
        let mut out = Out(encoder);
        out.daemon(&self.0)?;
        out.gauges(&self.0)?;
        out.queues(&self.0)?;
        out.counters(&self.0)?;
        out.token(&self.0)?;
        out.peers(&self.0)?;
        out.clients(&self.0.clients)
    }
}

struct Out<'a>(DescriptorEncoder<'a>);

const NO_EXEMPLAR: Option<&Exemplar<NoLabelSet, f64>> = None;

fn seconds(micros: u64) -> f64 {
    micros as f64 / 1e6
}

impl Out<'_> {
    fn gauge(&mut self, name: &str, help: &str, value: f64) -> Encoded {
        let kind = MetricType::Gauge;
        let mut metric = self.0.encode_descriptor(name, help, None, kind)?;
        metric.encode_gauge(&value)
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) -> Encoded {
        let kind = MetricType::Counter;
        let mut metric = self.0.encode_descriptor(name, help, None, kind)?;
        metric.encode_counter(&value, NO_EXEMPLAR)
    }

    fn seconds(&mut self, name: &str, help: &str, micros: u64) -> Encoded {
        let kind = MetricType::Counter;
        let mut metric = self.0.encode_descriptor(name, help, None, kind)?;
        metric.encode_counter(&seconds(micros), NO_EXEMPLAR)
    }

    fn histogram(&mut self, name: &str, help: &str, times: &HistogramStatus) -> Encoded {
        let kind = MetricType::Histogram;
        let mut metric = self.0.encode_descriptor(name, help, None, kind)?;
        let bound = |bucket| Histogram::bound_micros(bucket).map_or(f64::INFINITY, seconds);
        let buckets = times.buckets.iter().enumerate();
        let buckets: Vec<_> = buckets.map(|(at, count)| (bound(at), *count)).collect();
        metric.encode_histogram::<NoLabelSet>(seconds(times.sum_us), times.count, &buckets, None)
    }

    /// A metric of several things, told apart by labels.
    fn family<T, L: EncodeLabelSet>(
        &mut self,
        (name, help, kind): (&str, &str, MetricType),
        of: &[T],
        labels: impl Fn(&T) -> L,
        value: impl Fn(&mut MetricEncoder<'_>, &T) -> Encoded,
    ) -> Encoded {
        let mut metric = self.0.encode_descriptor(name, help, None, kind)?;
        of.iter()
            .try_for_each(|one| value(&mut metric.encode_family(&labels(one))?, one))
    }

    fn daemon(&mut self, status: &DaemonStatus) -> Encoded {
        let about = ("daemon", "The daemon, always 1", MetricType::Gauge);
        self.family(
            about,
            &[status],
            |status| {
                [
                    ("node", status.node.to_string()),
                    ("name", status.name.clone()),
                    ("version", status.version.to_string()),
                ]
            },
            |metric, _| metric.encode_gauge(&1_u32),
        )
    }

    fn gauges(&mut self, status: &DaemonStatus) -> Encoded {
        let operational = status.is_operational();
        let gauges = [
            (
                "uptime_seconds",
                "Time since the daemon was started",
                seconds(status.uptime_us),
            ),
            (
                "ring_operational",
                "1 on a ring that orders messages, 0 while one is looked for",
                f64::from(u8::from(operational)),
            ),
            (
                "ring_members",
                "Nodes that are on the ring; 0 while there is none that orders messages",
                if operational {
                    status.members.len() as f64
                } else {
                    0.0
                },
            ),
            (
                "ring_nodes",
                "Nodes of the configuration",
                status.nodes.len() as f64,
            ),
            (
                "groups",
                "Groups that the daemon knows of",
                status.groups as f64,
            ),
            (
                "groups_ready",
                "1 if all daemons know of the same groups, 0 while requests wait for that",
                f64::from(u8::from(status.groups_ready)),
            ),
            (
                "excluded",
                "1 while the daemon is in no primary view, and its clients are told nothing",
                f64::from(u8::from(status.excluded)),
            ),
        ];
        gauges
            .into_iter()
            .try_for_each(|(name, help, value)| self.gauge(name, help, value))
    }

    fn queues(&mut self, status: &DaemonStatus) -> Encoded {
        let queues = status.queues;
        let gauges = [
            (
                "queue_requests",
                "Requests of clients that have not come back from the ring",
                queues.requests as f64,
            ),
            (
                "queue_packets",
                "Packets that wait for the token",
                queues.packets as f64,
            ),
            (
                "queue_client_bytes",
                "Bytes that wait for clients that do not read",
                queues.client_bytes as f64,
            ),
            (
                "clients_held_back",
                "Clients with requests for which there is no room yet",
                queues.clients_held_back as f64,
            ),
            (
                "clients_held",
                "Clients with a message that waits for a client that reads too slowly",
                queues.clients_held as f64,
            ),
            (
                "holds",
                "Groups and clients whose senders wait, for clients of any daemon that read too slowly",
                status.holds.len() as f64,
            ),
        ];
        gauges
            .into_iter()
            .try_for_each(|(name, help, value)| self.gauge(name, help, value))
    }

    fn counters(&mut self, status: &DaemonStatus) -> Encoded {
        for (name, &count) in &status.counters {
            let gauge = GAUGES.iter().find(|(gauge, _)| gauge == name);
            match gauge {
                Some((_, help)) => self.gauge(name, help.trim_end_matches('.'), count as f64)?,
                None => self.counter(name, help(name).unwrap_or("A counter"), count)?,
            }
        }
        Ok(())
    }

    fn token(&mut self, status: &DaemonStatus) -> Encoded {
        let token = &status.token;
        self.histogram(
            "token_rotation_seconds",
            "How long the token was away each time, unless it may have been held for want of anything to do",
            &token.rotation,
        )?;
        self.histogram(
            "token_held_seconds",
            "How long this node had the token each time, from its arrival at the host until it was passed on",
            &token.held,
        )?;
        let parts = [
            (
                "token_waited_seconds",
                "Time in which the token was here and not read yet: the daemon did not run, or was busy",
                token.waited_us,
            ),
            (
                "token_clients_seconds",
                "Time in which the token waited for what clients asked for",
                token.clients_us,
            ),
            (
                "token_blocked_seconds",
                "Time in which the token waited for room in a socket",
                token.blocked_us,
            ),
        ];
        for (name, help, micros) in parts {
            self.seconds(name, help, micros)?;
        }
        self.histogram(
            "message_latency_seconds",
            "From a message's way out of the daemon to its own delivery; one message at a time is timed",
            &status.latency,
        )
    }

    fn peers(&mut self, status: &DaemonStatus) -> Encoded {
        let peers: Vec<_> = status.peers.iter().collect();
        self.family(
            (
                "peer_repaired_packets",
                "Packets of that node that came only after this node had asked for them",
                MetricType::Counter,
            ),
            &peers,
            |(node, _)| [("peer", node.to_string())],
            |metric, (_, peer)| metric.encode_counter(&peer.repaired, NO_EXEMPLAR),
        )?;
        self.family(
            (
                "peer_resent_packets",
                "Packets of that node that this node sent again because somebody asked",
                MetricType::Counter,
            ),
            &peers,
            |(node, _)| [("peer", node.to_string())],
            |metric, (_, peer)| metric.encode_counter(&peer.resent, NO_EXEMPLAR),
        )
    }

    fn clients(&mut self, clients: &[ClientStatus]) -> Encoded {
        let mut clients: Vec<&ClientStatus> = clients.iter().collect();
        clients.sort_by_key(|client| Reverse(client.waiting_bytes));
        clients.truncate(CLIENTS);
        let labels = |client: &&ClientStatus| {
            [
                ("client", client.name.clone()),
                ("protocol", client.protocol.to_string()),
            ]
        };
        self.family(
            ("client_waiting_bytes", "Bytes that wait because the client does not read; of the 100 clients for whom most waits", MetricType::Gauge),
            &clients,
            labels,
            |metric, client| metric.encode_gauge(&client.waiting_bytes),
        )?;
        self.family(
            (
                "client_unread_seconds",
                "For how long the client's socket has taken nothing of what waits",
                MetricType::Gauge,
            ),
            &clients,
            labels,
            |metric, client| metric.encode_gauge(&(client.unread_ms as f64 / 1e3)),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_clients_cannot_break_the_lines() {
        let client = ClientStatus {
            name: "#a\"b\\c\nd#n1".to_owned(),
            waiting_bytes: 7,
            ..ClientStatus::default()
        };
        let status = DaemonStatus {
            clients: vec![client],
            ..DaemonStatus::default()
        };
        let text = text(Arc::new(status));
        let line = text
            .lines()
            .find(|line| line.starts_with("rota_client_waiting_bytes"));
        let expected = r##"rota_client_waiting_bytes{client="#a\"b\\c\nd#n1",protocol=""} 7"##;
        assert_eq!(line, Some(expected), "{text}");
    }

    #[test]
    fn a_histogram_adds_up_and_ends_with_all() {
        let mut times = Histogram::default();
        for nanos in [1_000, 3_000, 3_500, u64::MAX / 2] {
            times.record(nanos);
        }
        let mut status = DaemonStatus::default();
        status.token.held = (&times).into();
        let text = text(Arc::new(status));
        for line in [
            "rota_token_held_seconds_count 4",
            "rota_token_held_seconds_bucket{le=\"0.000001\"} 1",
            "rota_token_held_seconds_bucket{le=\"0.000004\"} 3",
            "rota_token_held_seconds_bucket{le=\"+Inf\"} 4",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}: {text}");
        }
        assert!(text.ends_with("# EOF\n"));
    }
}
