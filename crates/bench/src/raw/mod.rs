//! `rota bench raw`: the same sockets and offloads, and the same disk, with no protocol. The results are the limits of
//! the machine, and so the yardstick for Rota.

mod all_ack;
mod beside;
mod disk;
mod hop;
mod multicast;
mod node;
mod report;
mod tcp;
mod token;

use std::path::Path;
use std::time::Duration;

pub(crate) use beside::TcpBeside;
pub use disk::DiskTimes;
pub use node::raw_node_main;
pub use report::{HopTimes, RawReport};

use crate::clock;
use crate::cluster::Cluster;
use crate::error::BenchError;
use crate::options::{BitRate, Offload, Pattern, RawOptions, TestbedKind};
use crate::scratch;
use crate::socket::{MAX_BURST_BYTES, MAX_BURST_PACKETS};
use crate::testbed::Testbed;
use node::{Task, Work};
use tempfile::TempDir;

/// Bytes that Ethernet, IPv4 and UDP put before a payload, as the shaper counts them.
const WIRE_HEADERS: f64 = 42.0;
/// UDP payload that fits a packet between namespaces.
pub(crate) const NETNS_PAYLOAD: usize = 1472;
/// Share of a shaped link that paced senders fill.
const LINK_SHARE: f64 = 0.97;
/// The time that a node may take to come up.
const START_PATIENCE: Duration = Duration::from_secs(20);
/// The time between `go` and the start: every node has read `go` by then.
const HEAD_START_NS: u64 = 50_000_000;

/// Measures what the options ask for.
pub fn run_raw(options: &RawOptions) -> Result<RawReport, BenchError> {
    let burst = burst_packets(options)?;
    let testbed = Testbed::new(&options.place)?;
    let files = match options.pattern {
        Pattern::Disk => Some(scratch::directory()?),
        _ => None,
    };
    let directory = files.as_ref().map(TempDir::path);
    let tasks: Vec<Task> = (1..=testbed.nodes())
        .map(|node| task(options, &testbed, node, burst, directory))
        .collect();
    let mut cluster = Cluster::start(&testbed, "raw-node", &tasks)?;
    cluster.wait_ready(START_PATIENCE)?;
    let softirq = clock::softirq_threads_ns();
    cluster.tell_all(&format!("go {}", clock::now_ns() + HEAD_START_NS))?;
    let patience = options.warm_up + options.duration + Duration::from_secs(10);
    let results = cluster.results(patience)?;
    let softirq = clock::softirq_threads_ns().saturating_sub(softirq);
    Ok(RawReport::new(options, &testbed, burst, &results, softirq))
}

fn burst_packets(options: &RawOptions) -> Result<usize, BenchError> {
    let usage = |what: String| Err(BenchError::Usage(what));
    if options.rate.is_some() && !one_at_a_time(options) {
        return usage("--rate is for --pattern all-ack and hop".to_owned());
    }
    if options.pattern == Pattern::Disk {
        return group_records(options).map_err(BenchError::Usage);
    }
    if options.outstanding.is_some() {
        return usage("--outstanding is for --pattern disk".to_owned());
    }
    if !(multicast::HEADER_BYTES..=MAX_BURST_BYTES).contains(&options.size) {
        return usage(format!(
            "--size must be {} to {MAX_BURST_BYTES} bytes",
            multicast::HEADER_BYTES
        ));
    }
    if one_at_a_time(options) {
        return message_packets(options).map_err(BenchError::Usage);
    }
    let fragments = options.place.testbed == TestbedKind::Netns && options.size > NETNS_PAYLOAD;
    let most = if fragments {
        // Segmentation offload makes no packets that need fragments.
        1
    } else {
        (MAX_BURST_BYTES / options.size).min(MAX_BURST_PACKETS)
    };
    match options.burst {
        None => Ok(most),
        Some(packets) if (1..=most).contains(&packets) => Ok(packets),
        Some(_) => usage(format!("--burst must be 1 to {most} packets of this size")),
    }
}

/// Records of a group that is made durable; or what is wrong with the options.
fn group_records(options: &RawOptions) -> Result<usize, String> {
    if options.burst.is_some() {
        return Err(
            "--burst is not for --pattern disk: --outstanding says how large a group is".to_owned(),
        );
    }
    let records = options.outstanding.unwrap_or(1) as usize;
    match records.checked_mul(options.size) {
        Some(bytes) if (1..=disk::FILE_BYTES).contains(&bytes) => Ok(records),
        _ => Err(format!(
            "a group of --outstanding records of --size has to have 1 to {} bytes",
            disk::FILE_BYTES
        )),
    }
}

/// Whether a message is sent when the one before is done, or when it is due.
fn one_at_a_time(options: &RawOptions) -> bool {
    matches!(options.pattern, Pattern::AllAck | Pattern::Hop) && !options.tcp
}

/// Packets of a message that is sent alone; or what is wrong with the options.
fn message_packets(options: &RawOptions) -> Result<usize, String> {
    let pattern = options.pattern;
    if options.burst.is_some() {
        return Err(format!(
            "--burst is not for --pattern {pattern}: one message at a time"
        ));
    }
    if pattern == Pattern::Hop {
        return match (options.size, options.senders.of(options.place.nodes)) {
            (0..hop::HEADER_BYTES, _) => {
                let least = hop::HEADER_BYTES;
                Err(format!(
                    "--size must be at least {least} with --pattern hop"
                ))
            }
            (_, 1) => Ok(1),
            _ => Err("--pattern hop has one sender".to_owned()),
        };
    }
    // The last datagram, too, has to say whose it is.
    let last = (options.size - 1) % NETNS_PAYLOAD + 1;
    if last < multicast::HEADER_BYTES {
        return Err("--size leaves a last datagram that is too short".to_owned());
    }
    Ok(all_ack::packets(options.size))
}

fn task(
    options: &RawOptions,
    testbed: &Testbed,
    node: usize,
    burst: usize,
    directory: Option<&Path>,
) -> Task {
    let nodes = testbed.nodes();
    let senders = options.senders.of(nodes);
    Task {
        node,
        port: port(testbed.values().kind),
        addresses: (1..=nodes).map(|n| testbed.address(n)).collect(),
        work: if options.tcp {
            Work::Tcp
        } else {
            Work::Pattern(options.pattern)
        },
        senders,
        size: options.size,
        burst,
        directory: directory.map(Path::to_owned),
        // In namespaces the device splits; on loopback there is none that could.
        offload: testbed.values().kind == TestbedKind::Netns
            || options.place.offload == Offload::Pass,
        packets_per_second: paced(options, senders, nodes, burst),
        warm_up_ns: options.warm_up.as_nanos() as u64,
        duration_ns: options.duration.as_nanos() as u64,
    }
}

/// From where on a run has its ports.
fn port(kind: TestbedKind) -> u16 {
    match kind {
        TestbedKind::Netns => 7700,
        // Another benchmark may run on this host; two rarely have the same pid.
        TestbedKind::Loopback => 8_000 + (std::process::id() * 130 % 11_000) as u16,
    }
}

/// The number of packets that each sender may send in a second.
fn paced(options: &RawOptions, senders: usize, nodes: usize, burst: usize) -> Option<f64> {
    if one_at_a_time(options) {
        let messages = |rate: BitRate| rate.0 as f64 / 8.0 / options.size as f64;
        return options
            .rate
            .map(|rate| messages(rate) * burst as f64 / senders as f64);
    }
    options.place.link_rate.map(|rate| {
        // A receiver that sends too does not hear itself.
        let heard = if senders == nodes {
            senders - 1
        } else {
            senders
        };
        let packet_bits = (options.size as f64 + WIRE_HEADERS) * 8.0;
        rate.0 as f64 * LINK_SHARE / packet_bits / heard.max(1) as f64
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{Place, Senders};

    fn hop() -> RawOptions {
        RawOptions {
            pattern: Pattern::Hop,
            size: 10_000,
            rate: Some(BitRate(1_000_000)),
            ..RawOptions::default()
        }
    }

    #[test]
    fn a_message_of_ten_kilobytes_goes_round_whole_and_twelve_times_a_second() {
        let options = hop();
        assert_eq!(burst_packets(&options).ok(), Some(1));
        assert_eq!(paced(&options, 1, 4, 1), Some(12.5));
    }

    #[test]
    fn what_does_not_fit_a_ring_of_links_is_refused() {
        let refused = |options: RawOptions| match burst_packets(&options) {
            Err(BenchError::Usage(what)) => what,
            other => panic!("{other:?}"),
        };
        let size = hop::HEADER_BYTES - 1;
        assert!(refused(RawOptions { size, ..hop() }).contains("at least 24"));
        let burst = Some(2);
        assert!(refused(RawOptions { burst, ..hop() }).contains("one message at a time"));
        let senders = Senders::All;
        assert!(refused(RawOptions { senders, ..hop() }).contains("one sender"));
        let place = Place {
            nodes: 2,
            ..Place::default()
        };
        let senders = Senders::Half;
        let half = RawOptions {
            senders,
            place,
            ..hop()
        };
        assert_eq!(burst_packets(&half).ok(), Some(1));
        let pattern = Pattern::Disk;
        assert!(refused(RawOptions { pattern, ..hop() }).contains("--rate is for"));
        let pattern = Pattern::Token;
        assert!(refused(RawOptions { pattern, ..hop() }).contains("--rate is for"));
    }

    #[test]
    fn a_group_of_records_fits_its_file_and_is_for_files_only() {
        let group = |size, outstanding| {
            burst_packets(&RawOptions {
                pattern: Pattern::Disk,
                size,
                outstanding,
                ..RawOptions::default()
            })
        };
        assert_eq!(group(1, None).ok(), Some(1));
        assert_eq!(group(32_768, Some(200)).ok(), Some(200));
        assert_eq!(group(disk::FILE_BYTES, Some(1)).ok(), Some(1));
        for (size, outstanding) in [(0, 1), (100, 0), (disk::FILE_BYTES, 2)] {
            let refused = group(size, Some(outstanding));
            assert!(matches!(refused, Err(BenchError::Usage(_))), "{refused:?}");
        }
        let elsewhere = burst_packets(&RawOptions {
            outstanding: Some(2),
            ..RawOptions::default()
        });
        assert!(matches!(elsewhere, Err(BenchError::Usage(_))));
        let burst = burst_packets(&RawOptions {
            pattern: Pattern::Disk,
            burst: Some(2),
            ..RawOptions::default()
        });
        assert!(matches!(burst, Err(BenchError::Usage(_))));
    }
}
