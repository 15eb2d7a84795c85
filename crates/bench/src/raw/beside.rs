//! A TCP stream that uses the links of another benchmark.

use std::time::Duration;

use super::node::{Measured, Task, Work};
use super::{START_PATIENCE, port};
use crate::cluster::Cluster;
use crate::error::BenchError;
use crate::testbed::Testbed;

/// Its two processes.
#[derive(Debug)]
pub(crate) struct TcpBeside {
    cluster: Cluster,
    length: Duration,
}

impl TcpBeside {
    /// From node 1 to node 2 of this testbed, for as long as the other benchmark runs.
    pub(crate) fn start(
        testbed: &Testbed,
        warm_up: Duration,
        measured: Duration,
    ) -> Result<Self, BenchError> {
        let task = |node| Task {
            node,
            addresses: vec![testbed.address(1), testbed.address(2)],
            port: port(testbed.values().kind),
            work: Work::Tcp,
            senders: 1,
            size: 1,
            burst: 1,
            directory: None,
            offload: true,
            packets_per_second: None,
            warm_up_ns: warm_up.as_nanos() as u64,
            duration_ns: measured.as_nanos() as u64,
        };
        let mut cluster = Cluster::start(testbed, "raw-node", &[task(1), task(2)])?;
        cluster.wait_ready(START_PATIENCE)?;
        Ok(Self {
            cluster,
            length: warm_up + measured,
        })
    }

    /// Begins when this line says.
    pub(crate) fn go(&mut self, line: &str) -> Result<(), BenchError> {
        self.cluster.tell_all(line)
    }

    /// The rate of the stream, in Mbit/s.
    pub(crate) fn mbps(mut self) -> Result<f64, BenchError> {
        let patience = self.length + Duration::from_secs(10);
        let results: Vec<Measured> = self.cluster.results(patience)?;
        let bits = |end: &Measured| end.bytes as f64 * 8e3 / end.elapsed_ns.max(1) as f64;
        Ok(results.last().map_or(0.0, bits))
    }
}
