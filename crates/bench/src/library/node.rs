//! A node of the library benchmark: a driver, the load, and two looks at the counters.

use std::collections::BTreeMap;
use std::process::ExitCode;

use rota_core::contract::{Checked, NodeId};
use rota_net::{Sockets, ask_for_short_slices};
use rota_node::{App, Driver, NodeConfig, NodeEngine};
use serde::{Deserialize, Serialize};

use super::load::{Delivered, LoadApp, Plan, Slot, Span};
use super::order::Order;
use super::rings::{self, RingsTask};
use crate::child::{self, Coordinator};
use crate::clock::{now_ns, process_cpu_ns};
use crate::error::BenchError;
use crate::hist::Counts;
use crate::options::{Mode, ServiceName};

/// The time that the ring may take to form.
pub(super) const FORM_NS: u64 = 15_000_000_000;
/// The time after the measured one in which messages on their way may still arrive.
pub(super) const DRAIN_NS: u64 = 700_000_000;
/// The longest time between two looks for the coordinator's words before the start.
const LISTEN_NS: u64 = 5_000_000;

/// The task of a node.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Task {
    pub node: u16,
    pub config: NodeConfig,
    pub mode: Mode,
    pub service: ServiceName,
    pub size: usize,
    pub plan: Plan,
    pub warm_up_ns: u64,
    pub duration_ns: u64,
    /// The time after the measured one in which messages on their way may still arrive.
    pub drain_ns: u64,
    /// Report every message's latency.
    pub trials: bool,
    /// Report what was delivered over time, in slots of this length.
    #[serde(default)]
    pub series_ns: Option<u64>,
    /// The processor time that each submission wastes.
    #[serde(default)]
    pub waste_ns: u64,
    /// The settings of several rings, if there are several.
    #[serde(default)]
    pub rings: Option<RingsTask>,
    /// The daemon of a running cluster, if the load is a client of one.
    #[serde(default)]
    pub running: Option<Running>,
}

/// A daemon of a cluster that the benchmark has not started.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Running {
    /// As clients write it.
    pub address: String,
    /// The group in which the clients of this benchmark meet.
    pub group: String,
}

/// The measurements of a node.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Measured {
    pub delivered: Delivered,
    pub elapsed_ns: u64,
    pub cpu_ns: u64,
    /// The CPU time of clients, where there are clients.
    #[serde(default)]
    pub client_cpu_ns: u64,
    /// The counts of the engine and the sockets in the measured time.
    pub counters: BTreeMap<String, u64>,
    pub reconfigurations: u64,
    pub latencies: Counts,
    pub own_latencies: Counts,
    pub trials: Vec<(u32, u64)>,
    pub order: Order,
    /// With several rings: the order of each.
    #[serde(default)]
    pub orders: BTreeMap<u16, Order>,
    /// With several rings: the number of messages submitted to each.
    #[serde(default)]
    pub submitted_to: BTreeMap<u16, u64>,
    pub submitted_ever: u64,
    /// Messages submitted in the measured time.
    #[serde(default)]
    pub submitted: u64,
    /// How late the node itself was with messages that had times of their own.
    #[serde(default)]
    pub lateness: Counts,
    /// What was delivered over time, from the start of the load on, if that was asked for.
    #[serde(default)]
    pub slots: Vec<Slot>,
    pub garbled: u64,
    /// It coordinates, with engines in which one node does.
    #[serde(default)]
    pub coordinates: bool,
}

/// A look at everything that grows.
pub(super) struct Look {
    pub at: u64,
    /// The CPU time of the ring's process, in nanoseconds.
    pub cpu: u64,
    /// The CPU time of the client's process, where there is one.
    pub client_cpu: u64,
    pub delivered: Delivered,
    pub submitted: u64,
    pub counters: BTreeMap<String, u64>,
    pub coordinates: bool,
}

/// Whether an engine's state names this node as the one that coordinates.
pub(super) fn coordinates(state: &str, node: u16) -> bool {
    state.ends_with(&format!("coordinator {node})"))
}

/// The hidden subcommand `bench-node`: one node of `rota bench`.
pub fn bench_node_main() -> ExitCode {
    child::run(work)
}

pub(crate) type NodeDriver = Driver<Checked<NodeEngine>>;

/// The application of a node that is measured.
pub(crate) trait Measuring: App {
    /// The configuration with all members has been delivered.
    fn formed(&self) -> bool;

    /// The reason why it cannot go on.
    fn refused(&self) -> Option<String>;
}

pub(crate) fn open(node: u16, config: &NodeConfig) -> Result<NodeDriver, String> {
    let me = NodeId::new(node).ok_or("node ids start at 1")?;
    config.check_for(me).map_err(|e| e.to_string())?;
    let sockets = Sockets::open(&config.network(), me).map_err(|e| e.to_string())?;
    let engine = NodeEngine::new(config, me).map_err(|e| e.to_string())?;
    Driver::new(Checked::new(engine), sockets, me, config).map_err(|e| e.to_string())
}

fn work(task: Task, coordinator: &Coordinator) -> Result<Measured, BenchError> {
    if task.mode == Mode::Daemon || task.running.is_some() {
        return super::client::work(&task, coordinator);
    }
    if let Some(rings) = &task.rings {
        return rings::work(&task, rings, coordinator);
    }
    let failed = |what: String| BenchError::Node {
        node: usize::from(task.node),
        what,
    };
    let mut driver = open(task.node, &task.config).map_err(failed)?;
    let mut app = LoadApp::new(&task, task.plan.clone());
    let mut node = Above(&mut driver, &mut app);
    form(&mut node).map_err(failed)?;
    let start = wait_for_go(&mut node, coordinator)?;
    let from = start + task.warm_up_ns;
    let span = Span {
        start,
        from,
        until: from + task.duration_ns,
    };
    node.1.begin(span);
    turn_until(&mut node, span.from).map_err(failed)?;
    let before = look(node.0, node.1, task.node);
    turn_until(&mut node, span.until).map_err(failed)?;
    let after = look(node.0, node.1, task.node);
    turn_until(&mut node, span.until + task.drain_ns).map_err(failed)?;
    if let Some(why) = app.refused() {
        return Err(failed(why));
    }
    Ok(measured(app, &before, &after))
}

/// Something that takes turns until it has measured enough.
pub(crate) trait Turning {
    /// Turns once; rests at most for this number of nanoseconds.
    fn turn(&mut self, nanos: u64) -> Result<(), String>;

    /// All nodes are there.
    fn formed(&self) -> bool;

    /// The reason why it cannot go on.
    fn refused(&self) -> Option<String>;

    /// The state that it is in.
    fn state(&mut self) -> String;
}

/// An application above a driver.
pub(crate) struct Above<'a, A>(pub &'a mut NodeDriver, pub &'a mut A);

impl<A: Measuring> Turning for Above<'_, A> {
    fn turn(&mut self, nanos: u64) -> Result<(), String> {
        let turned = self.0.turn(self.1, Some(nanos));
        turned.map_err(|error| error.to_string())
    }

    fn formed(&self) -> bool {
        self.1.formed()
    }

    fn refused(&self) -> Option<String> {
        self.1.refused()
    }

    fn state(&mut self) -> String {
        self.0.status().state
    }
}

pub(crate) fn form(node: &mut impl Turning) -> Result<(), String> {
    // As a node of the library does.
    ask_for_short_slices();
    let until = now_ns() + FORM_NS;
    while !node.formed() {
        if now_ns() > until {
            return Err(format!("the ring did not form: {}", node.state()));
        }
        node.turn(LISTEN_NS)?;
    }
    Ok(())
}

pub(crate) fn wait_for_go(
    node: &mut impl Turning,
    coordinator: &Coordinator,
) -> Result<u64, BenchError> {
    coordinator.say_ready();
    let until = now_ns() + FORM_NS;
    loop {
        if let Some(start) = coordinator.go()? {
            return Ok(start);
        }
        if now_ns() > until {
            return Err(BenchError::Usage("the coordinator never said go".into()));
        }
        node.turn(LISTEN_NS).map_err(BenchError::Usage)?;
    }
}

pub(crate) fn turn_until(node: &mut impl Turning, until: u64) -> Result<(), String> {
    loop {
        let left = until.saturating_sub(now_ns());
        if left == 0 || node.refused().is_some() {
            return Ok(());
        }
        node.turn(left)?;
    }
}

fn look(driver: &NodeDriver, app: &LoadApp, node: u16) -> Look {
    let status = driver.status();
    let counters = status.counters.into_iter();
    Look {
        at: now_ns(),
        cpu: process_cpu_ns(),
        client_cpu: 0,
        delivered: app.record.delivered,
        submitted: app.submitted,
        counters: counters.map(|(name, n)| (name.to_owned(), n)).collect(),
        coordinates: coordinates(&status.state, node),
    }
}

pub(super) fn measured(app: LoadApp, before: &Look, after: &Look) -> Measured {
    let mut record = app.record;
    Measured {
        reconfigurations: app.reconfigurations,
        latencies: record.latencies.to_counts(),
        own_latencies: record.own_latencies.to_counts(),
        lateness: app.lateness.to_counts(),
        slots: record.take_slots(),
        trials: record.trials.unwrap_or_default(),
        order: record.order,
        submitted_ever: app.submitted,
        garbled: record.garbled,
        coordinates: after.coordinates,
        ..measured_in(before, after)
    }
}

/// The growth between two looks.
pub(super) fn measured_in(before: &Look, after: &Look) -> Measured {
    let earlier = |name: &str| before.counters.get(name).copied().unwrap_or(0);
    let counters = after.counters.iter();
    let counters = counters.map(|(name, n)| (name.clone(), n - earlier(name).min(*n)));
    Measured {
        delivered: Delivered {
            messages: after.delivered.messages - before.delivered.messages,
            bytes: after.delivered.bytes - before.delivered.bytes,
            own_bytes: after.delivered.own_bytes - before.delivered.own_bytes,
        },
        submitted: after.submitted - before.submitted,
        elapsed_ns: after.at - before.at,
        cpu_ns: after.cpu.saturating_sub(before.cpu),
        client_cpu_ns: after.client_cpu.saturating_sub(before.client_cpu),
        counters: counters.collect(),
        ..Measured::default()
    }
}
