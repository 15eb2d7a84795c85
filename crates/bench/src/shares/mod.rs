//! `rota bench shares`: the experiment of FastCast §4.2 on real links. Four nodes send messages of 1 to 6 kB; the rates
//! that they want change four times; the rates that they get are compared with the max-min shares of each moment.

mod app;
mod node;
mod report;

use std::time::Duration;

use rota_core::shares::max_min;
use rota_views::fastcast::FastConfig;
use serde::{Deserialize, Serialize};

pub use node::shares_node_main;
pub use report::SharesReport;

use crate::clock::now_ns;
use crate::cluster::Cluster;
use crate::error::BenchError;
use crate::library::{FORM_PATIENCE, HEAD_START_NS, node_config};
use rota_core::EngineName;

use crate::options::{BenchOptions, BitRate, Place, ServiceName, Subject, Traffic};
use crate::testbed::Testbed;
use node::{Measured, Task};

/// The number of nodes that take part.
pub(crate) const NODES: usize = 4;
/// The rate that each node wants in each phase, in thousandths of what a link takes in: a third of a link each, which
/// is a quarter of what all four links take in; then node 1 less, node 2 less, node 3 more than there is, node 1 more
/// and node 3 less.
const LOADS: [[u64; NODES]; 5] = [
    [326, 326, 326, 326],
    [106, 326, 326, 326],
    [106, 106, 326, 326],
    [106, 106, 743, 326],
    [431, 106, 212, 326],
];
/// The length of the slots in which deliveries are added up, in nanoseconds.
pub(crate) const SLOT_NS: u64 = 100_000_000;
/// Bytes that may wait at a sender: messages that do not fit are not sent later.
const BACKLOG_BYTES: usize = 1_000_000;

/// Options of `rota bench shares`.
#[derive(Clone, Debug)]
pub struct SharesOptions {
    /// The place where the nodes run. Links have a rate; the nodes are four.
    pub place: Place,
    /// The time for which the rates that nodes want stay as they are.
    pub phase: Duration,
    /// Whether the caller wants JSON on the last line.
    pub json: bool,
}

/// The rate that a node wants to send, from a time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Phase {
    /// Since the start, in nanoseconds.
    from_ns: u64,
    /// Clean payload.
    bits_per_second: u64,
}

/// Runs the experiment.
///
/// # Errors
/// [`BenchError`] where there is nothing to report.
pub fn run_shares(options: &SharesOptions) -> Result<SharesReport, BenchError> {
    let usage = |what: &str| Err(BenchError::Usage(what.to_owned()));
    let Some(BitRate(link)) = options.place.link_rate else {
        return usage("shares are shares of links: --link-rate says what these take");
    };
    if options.phase < Duration::from_secs(1) {
        return usage("--phase must be at least 1s");
    }
    let bench = BenchOptions {
        place: options.place.clone(),
        engine: Subject::Engine(EngineName::FastCast),
        traffic: Traffic {
            service: ServiceName::Safe,
            ..BenchOptions::default().traffic
        },
        ..BenchOptions::default()
    };
    let testbed = Testbed::new(&bench.place)?;
    let mut config = node_config(&bench, &testbed, None)?;
    config.backlog_bytes = Some(BACKLOG_BYTES);
    let fast = FastConfig::beside(&config.ring_config());
    let clean = clean_of(link, fast.datagram_bytes, fast.frame_bytes());
    let phase_ns = options.phase.as_nanos() as u64;
    let tasks: Vec<Task> = (0..NODES)
        .map(|at| Task {
            node: at as u16 + 1,
            config: config.clone(),
            phases: phases(at, clean, phase_ns),
            slots: slots(phase_ns),
        })
        .collect();
    let mut cluster = Cluster::start(&testbed, "shares-node", &tasks)?;
    cluster.wait_ready(FORM_PATIENCE)?;
    cluster.tell_all(&format!("go {}", now_ns() + HEAD_START_NS))?;
    let length = options.phase * LOADS.len() as u32;
    let results: Vec<Measured> = cluster.results(length + Duration::from_secs(15))?;
    Ok(SharesReport::new(&testbed, clean, phase_ns, &results))
}

const fn slots(phase_ns: u64) -> usize {
    (LOADS.len() as u64 * phase_ns / SLOT_NS) as usize
}

/// The part of a link that is left for payload of messages: a datagram has headers of Ethernet, IP and UDP, and Rota's
/// own.
const fn clean_of(link: u64, datagram_bytes: usize, frame_bytes: usize) -> u64 {
    link / (datagram_bytes as u64 + 42) * frame_bytes as u64
}

fn phases(at: usize, clean: u64, phase_ns: u64) -> Vec<Phase> {
    let phase = |(index, loads): (u64, &[u64; NODES])| Phase {
        from_ns: index * phase_ns,
        bits_per_second: clean / 1000 * loads[at],
    };
    (0..).zip(&LOADS).map(phase).collect()
}

/// The rate that each node is to get, in bits per second of payload, while the loads are these.
fn best(loads: &[u64; NODES], clean: u64) -> [u64; NODES] {
    let wanted = loads.map(|thousandths| clean / 1000 * thousandths);
    std::array::from_fn(|at| max_min(&wanted, at, clean))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_fourth_phase_wants_more_than_there_is() {
        let clean = 1_000_000_000;
        for (index, loads) in LOADS.iter().enumerate() {
            let wanted = loads.map(|thousandths| thousandths * 1_000_000);
            assert_eq!(best(loads, clean) == wanted, index != 3, "phase {index}");
        }
        // Node 1 takes in what the three others send: 106 and 326 of 1000 leave 568.
        assert_eq!(best(&LOADS[3], clean)[2], 568_000_000);
    }

    #[test]
    fn a_link_of_1_gbit_carries_most_of_it_as_payload() {
        let clean = clean_of(1_000_000_000, 1472, 1432);
        assert!((940_000_000..950_000_000).contains(&clean), "{clean}");
        assert_eq!(slots(10_000_000_000), 500);
    }
}
