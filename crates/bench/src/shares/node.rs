//! The process of a node.

use std::collections::BTreeMap;
use std::process::ExitCode;

use rota_node::NodeConfig;
use serde::{Deserialize, Serialize};

use super::app::SharesApp;
use super::{NODES, Phase, SLOT_NS};
use crate::child::{self, Coordinator};
use crate::error::BenchError;
use crate::library::{Above, form, open, turn_until, wait_for_go};

/// After the end, what is on its way may still arrive.
const DRAIN_NS: u64 = 300_000_000;

/// The task of a node.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Task {
    pub node: u16,
    pub config: NodeConfig,
    pub phases: Vec<Phase>,
    pub slots: usize,
}

/// The measurements of a node.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Measured {
    /// Bytes of payload of each node that were delivered, slot by slot.
    pub slots: Vec<[u64; NODES]>,
    pub counters: BTreeMap<String, u64>,
}

/// The hidden subcommand `shares-node`: one node of `rota bench shares`.
pub fn shares_node_main() -> ExitCode {
    child::run(work)
}

fn work(task: Task, coordinator: &Coordinator) -> Result<Measured, BenchError> {
    let failed = |what: String| BenchError::Node {
        node: usize::from(task.node),
        what,
    };
    let mut driver = open(task.node, &task.config).map_err(failed)?;
    let mut app = SharesApp::new(task.node, task.phases.clone(), task.slots);
    let mut node = Above(&mut driver, &mut app);
    form(&mut node).map_err(failed)?;
    let start = wait_for_go(&mut node, coordinator)?;
    node.1.begin(start);
    let end = start + task.slots as u64 * SLOT_NS;
    turn_until(&mut node, end + DRAIN_NS).map_err(failed)?;
    let counters = driver.status().counters.into_iter();
    Ok(Measured {
        slots: app.slots,
        counters: counters.map(|(name, n)| (name.to_owned(), n)).collect(),
    })
}
