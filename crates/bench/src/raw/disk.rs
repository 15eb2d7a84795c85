//! Groups of records that each node appends to a file of its own and makes durable: the rate that a disk allows
//! acceptors that share it.
//!
//! A node writes a group in one piece, syncs, and goes on with the next one, for as long as it is measured. Its file was
//! written before, as the segments of an acceptor's log are, so that a sync has only data to make durable; where it ends,
//! the next group begins it anew. Records have no checksums, and nobody waits for them.

use std::fmt;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use serde::Serialize;

use super::node::{Measured, Task};
use crate::child::Coordinator;
use crate::clock::{now_ns, sleep_until, thread_cpu_ns};
use crate::error::BenchError;
use crate::hist::{Latencies, Summary};

/// Bytes of a node's file: as many as a segment of an acceptor's log has.
pub(super) const FILE_BYTES: usize = 64 << 20;
/// Written at once before the measurement.
const STEP_BYTES: usize = 1 << 20;

/// Writes groups until the time is over.
pub(super) fn run(task: &Task, coordinator: &Coordinator) -> Result<Measured, BenchError> {
    let directory = task.directory.as_deref();
    let directory = directory.ok_or_else(|| BenchError::Usage("a task without a place".into()))?;
    let path = directory.join(format!("node-{}.raw", task.node));
    let file = written(&path).map_err(BenchError::io("cannot prepare a file"))?;
    let group = vec![0x5A; task.size * task.burst];
    let start = coordinator.ready()?;
    let from = start + task.warm_up_ns;
    let until = from + task.duration_ns;
    let (mut syncs, mut groups) = (Latencies::new(), Latencies::new());
    let (mut measured, mut at, mut first) = (Measured::default(), 0, None);
    sleep_until(start);
    loop {
        let began = now_ns();
        if began >= until {
            break;
        }
        if at + group.len() > FILE_BYTES {
            at = 0;
        }
        let before_write = first.is_none().then(thread_cpu_ns);
        file.write_all_at(&group, at as u64)
            .map_err(BenchError::io("cannot write a group"))?;
        let handed_over = now_ns();
        file.sync_data()
            .map_err(BenchError::io("cannot make a group durable"))?;
        let durable = now_ns();
        at += group.len();
        if began >= from {
            let (since, cpu) = *first.get_or_insert((began, before_write.unwrap_or_default()));
            measured.received += task.burst as u64;
            measured.elapsed_ns = durable - since;
            measured.cpu_ns = thread_cpu_ns().saturating_sub(cpu);
            syncs.record(durable - handed_over);
            groups.record(durable - began);
        }
    }
    measured.latencies = groups.to_counts();
    measured.syncs = syncs.to_counts();
    Ok(measured)
}

/// A file whose bytes are all on disk.
fn written(path: &Path) -> io::Result<File> {
    let mut file = File::create_new(path)?;
    let step = vec![0; STEP_BYTES];
    for _ in 0..FILE_BYTES / STEP_BYTES {
        file.write_all(&step)?;
    }
    file.sync_all()?;
    Ok(file)
}

/// The results of writers that share a disk.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DiskTimes {
    /// Records that a writer made durable in a second, mean over the writers.
    pub records_per_second: f64,
    /// The same of each writer.
    pub records_per_second_of_each: Vec<f64>,
    /// Bytes of records that a writer made durable in a second, mean over the writers.
    pub bytes_per_second: f64,
    /// A sync alone, in microseconds.
    pub sync_us: Summary,
}

impl DiskTimes {
    /// From what the writers measured; `None` if there were none.
    pub(super) fn new(size: usize, measured: &[Measured]) -> Option<Self> {
        let mut syncs = Latencies::new();
        measured.iter().for_each(|m| syncs.merge(&m.syncs));
        let sync_us = syncs.summary()?;
        let rate = |m: &Measured| m.received as f64 * 1e9 / m.elapsed_ns.max(1) as f64;
        let each: Vec<f64> = measured.iter().map(rate).collect();
        let records_per_second = each.iter().sum::<f64>() / each.len() as f64;
        Some(Self {
            records_per_second,
            records_per_second_of_each: each,
            bytes_per_second: records_per_second * size as f64,
            sync_us,
        })
    }
}

impl fmt::Display for DiskTimes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let each = self.records_per_second_of_each.iter();
        let each: Vec<String> = each.map(|rate| format!("{rate:.0}")).collect();
        writeln!(
            f,
            "  records     {:10.0} a second a writer (mean of {})",
            self.records_per_second,
            each.join(" ")
        )?;
        writeln!(
            f,
            "  bytes       {:10.1} MB/s a writer",
            self.bytes_per_second / 1e6
        )?;
        let us = self.sync_us;
        writeln!(
            f,
            "  sync, us    {:10.1} p50, {:.1} p90, {:.1} p99, {:.1} mean",
            us.p50, us.p90, us.p99, us.mean
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn writer(records: u64, elapsed_ns: u64, sync_ns: u64) -> Measured {
        let mut syncs = Latencies::new();
        syncs.record(sync_ns);
        Measured {
            received: records,
            elapsed_ns,
            syncs: syncs.to_counts(),
            ..Measured::default()
        }
    }

    #[test]
    fn rates_are_those_of_one_writer() {
        let second = 1_000_000_000;
        let writers = [
            writer(1000, second, 100_000),
            writer(3000, 2 * second, 300_000),
        ];
        let times = DiskTimes::new(500, &writers).expect("both have synced");
        assert_eq!(times.records_per_second_of_each, [1000.0, 1500.0]);
        assert_eq!(times.records_per_second, 1250.0);
        assert_eq!(times.bytes_per_second, 625_000.0);
        assert!((times.sync_us.p50 - 100.0).abs() < 0.2 && times.sync_us.p90 > 299.0);
        assert_eq!(DiskTimes::new(500, &[Measured::default()]), None);
    }

    #[test]
    fn a_file_is_written_before_it_is_measured() {
        use std::os::unix::fs::MetadataExt as _;
        let folder = tempfile::tempdir().expect("a folder");
        let file = written(&folder.path().join("a")).expect("written");
        let data = file.metadata().expect("known");
        assert_eq!(data.len(), FILE_BYTES as u64);
        assert!(data.blocks() * 512 >= data.len(), "it has holes");
    }
}
