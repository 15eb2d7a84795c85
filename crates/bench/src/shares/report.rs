//! The results of the experiment.

use std::fmt;

use serde::Serialize;

use super::node::Measured;
use super::{LOADS, NODES, SLOT_NS, best};
use crate::testbed::{Testbed, Values};

/// One phase of the experiment. Rates are of clean payload, in Mbit/s.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct PhaseReport {
    /// The rate that each node wants to send.
    pub wanted: [f64; NODES],
    /// The max-min share of each.
    pub shares: [f64; NODES],
    /// The delivered rate of each, mean over receivers.
    pub delivered: [f64; NODES],
    /// The difference of the delivered rate of all from the sum of the shares, in percent.
    pub off_percent: f64,
}

/// The figures of a run.
#[derive(Clone, Debug, Serialize)]
pub struct SharesReport {
    /// Always `fastcast`.
    pub engine: &'static str,
    /// The testbed.
    pub testbed: Values,
    /// The clean payload that a link takes in, in Mbit/s.
    pub link_payload_mbps: f64,
    /// The phases.
    pub phases: Vec<PhaseReport>,
    /// Increases of bandwidth that came into force, of all nodes.
    pub increases: u64,
    /// The time that they took on average, in milliseconds.
    pub increase_ms: f64,
    /// The number of increases that took longer than 10 ms.
    pub slow_increases: u64,
    /// Share of packets that were sent again, in percent.
    pub resent_percent: f64,
    /// The delivered rate of each node in each tenth of a second, in Mbit/s, mean over receivers.
    pub slots: Vec<[f64; NODES]>,
    /// The reason why the run does not count: the throughput of a phase is not within 10 % of the sum of the shares.
    #[serde(skip)]
    pub failure: Option<String>,
}

impl SharesReport {
    pub(super) fn new(testbed: &Testbed, clean: u64, phase_ns: u64, results: &[Measured]) -> Self {
        let count = |name: &str| -> u64 {
            let counters = results
                .iter()
                .filter_map(|result| result.counters.get(name));
            counters.sum()
        };
        let (increases, sent) = (count("fast_increases"), count("fast_packets_sent"));
        let resent = count("fast_packets_resent") + count("fast_packets_repeated");
        let slots = slots(results);
        let per_phase = (phase_ns / SLOT_NS) as usize;
        let phases = LOADS.iter().zip(slots.chunks(per_phase));
        let phases: Vec<PhaseReport> = phases
            .map(|(loads, slots)| phase(loads, clean, slots))
            .collect();
        Self {
            failure: failure(&phases),
            engine: "fastcast",
            testbed: testbed.values().clone(),
            link_payload_mbps: clean as f64 / 1e6,
            phases,
            increases,
            increase_ms: count("fast_increases_micros") as f64 / 1e3 / increases.max(1) as f64,
            slow_increases: count("fast_increases_slow"),
            resent_percent: 100.0 * resent as f64 / sent.max(1) as f64,
            slots,
        }
    }
}

fn failure(phases: &[PhaseReport]) -> Option<String> {
    let off = |phase: &&PhaseReport| phase.off_percent.abs() > 10.0;
    let off = phases.iter().find(off)?.off_percent;
    Some(format!(
        "throughput differs from the sum of the shares by {off:.1} %"
    ))
}

/// The delivered rate of each node in each slot: Mbit/s, mean over receivers.
fn slots(results: &[Measured]) -> Vec<[f64; NODES]> {
    let count = results.iter().map(|result| result.slots.len()).min();
    let mbps = |bytes: u64| bytes as f64 * 8e3 / SLOT_NS as f64 / results.len() as f64;
    let sum = |slot: usize, of: usize| results.iter().map(|result| result.slots[slot][of]).sum();
    (0..count.unwrap_or(0))
        .map(|slot| std::array::from_fn(|of| mbps(sum(slot, of))))
        .collect()
}

fn phase(loads: &[u64; NODES], clean: u64, slots: &[[f64; NODES]]) -> PhaseReport {
    let shares = best(loads, clean).map(|bits| bits as f64 / 1e6);
    let mean = |of: usize| slots.iter().map(|slot| slot[of]).sum::<f64>() / slots.len() as f64;
    let delivered: [f64; NODES] = std::array::from_fn(mean);
    let (all, optimum) = (delivered.iter().sum::<f64>(), shares.iter().sum::<f64>());
    PhaseReport {
        wanted: loads.map(|thousandths| (clean / 1000 * thousandths) as f64 / 1e6),
        shares,
        delivered,
        off_percent: 100.0 * (all - optimum) / optimum,
    }
}

impl fmt::Display for SharesReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "fastcast: {NODES} nodes share links, messages of 1 to 6 kB (FastCast §4.2)"
        )?;
        writeln!(f, "  {}", self.testbed)?;
        let link = self.link_payload_mbps;
        writeln!(f, "  a link takes in {link:.0} Mbit/s of payload")?;
        writeln!(
            f,
            "  phase  Mbit/s wanted             shares                    delivered                  all"
        )?;
        for (index, phase) in self.phases.iter().enumerate() {
            let rates = |rates: &[f64; NODES]| rates.map(|rate| format!("{rate:5.0}")).join(" ");
            let (wanted, shares) = (rates(&phase.wanted), rates(&phase.shares));
            let (delivered, all) = (rates(&phase.delivered), phase.delivered.iter().sum::<f64>());
            let (number, off) = (index + 1, phase.off_percent);
            writeln!(
                f,
                "  {number:5}  {wanted}   {shares}   {delivered}   {all:5.0} ({off:+.1} %)"
            )?;
        }
        writeln!(
            f,
            "  increases   {:6}, {:.2} ms on average, {} took more than 10 ms",
            self.increases, self.increase_ms, self.slow_increases
        )?;
        writeln!(f, "  sent again  {:6.3} % of packets", self.resent_percent)
    }
}
