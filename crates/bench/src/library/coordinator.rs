//! The parent process: deals the tasks, gives the start, merges the figures.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;
use std::path::Path;
use std::time::Duration;

use rota_net::{FaultConfig, KeyRing};
use rota_node::rings::{LevelingName, RingSection, RingsConfig};
use rota_node::{EngineName, NodeConfig, PaxosConfig, VoteStorage};
use tempfile::{TempDir, TempPath};

use super::load::{MIN_PAYLOAD, Plan};
use super::node::{Measured, Task};
use super::report::BenchReport;
use super::rings::RingsTask;
use crate::clock::now_ns;
use crate::cluster::Cluster;
use crate::error::BenchError;
use crate::options::{
    BenchOptions, BitRate, Leveling, LinkShares, Load, ManyRings, Mode, Offload, StorageName,
    Subject, Subscribe, TestbedKind, share,
};
use crate::raw::TcpBeside;
use crate::scratch;
use crate::testbed::Testbed;

/// The time that the nodes may take to start and to form a ring.
pub(crate) const FORM_PATIENCE: Duration = Duration::from_secs(30);
/// The time between `go` and the start: every node has read `go` by then.
pub(crate) const HEAD_START_NS: u64 = 100_000_000;
/// Personal windows of messages that wait at a sender under full load.
const BACKLOG_WINDOWS: usize = 2;
/// Bytes that a message takes of a backlog beside its payload, at most.
const MESSAGE_COST: usize = 256;
/// Silence before each trial of a first message: the ring has long gone idle.
pub(super) const TRIAL_GAP_NS: u64 = 600_000_000;
/// UDP ports of a cluster in namespaces, from here on.
const NETNS_PORT: u16 = 7800;

/// Loads a cluster as the options say, and measures it.
///
/// # Errors
/// [`BenchError`] where there is nothing to report. A run in which nodes disagree or lack messages is
/// reported: see [`BenchReport::failure`].
pub fn run_bench(options: &BenchOptions) -> Result<BenchReport, BenchError> {
    check(options)?;
    let testbed = Testbed::new(&options.place)?;
    let key = if options.sealed { Some(key()?) } else { None };
    let mut config = node_config(options, &testbed, key.as_deref())?;
    let _votes = keep_votes(options, &mut config)?;
    let tasks: Vec<Task> = (1..=testbed.nodes())
        .map(|node| task(options, &config, node, testbed.nodes()))
        .collect();
    let length = Duration::from_nanos(tasks[0].warm_up_ns + tasks[0].duration_ns);
    let mut cluster = Cluster::start(&testbed, "bench-node", &tasks)?;
    cluster.wait_ready(FORM_PATIENCE)?;
    let mut beside = if options.beside_tcp {
        let times = [tasks[0].warm_up_ns, tasks[0].duration_ns];
        let [warm_up, measured] = times.map(Duration::from_nanos);
        Some(TcpBeside::start(&testbed, warm_up, measured)?)
    } else {
        None
    };
    let go = format!("go {}", now_ns() + HEAD_START_NS);
    cluster.tell_all(&go)?;
    if let Some(tcp) = &mut beside {
        tcp.go(&go)?;
    }
    let results: Vec<Measured> = cluster.results(length + Duration::from_secs(15))?;
    let report = BenchReport::new(options, &testbed, &config.ring_config(), &results);
    Ok(BenchReport {
        tcp_mbps: beside.map(TcpBeside::mbps).transpose()?,
        ..report
    })
}

fn check(options: &BenchOptions) -> Result<(), BenchError> {
    let usage = |what: String| Err(BenchError::Usage(what));
    if options.size < MIN_PAYLOAD {
        return usage(format!(
            "--size must be at least {MIN_PAYLOAD}: a message carries its time"
        ));
    }
    if !(0.0..=1.0).contains(&options.loss) {
        return usage("--loss is a probability from 0 to 1".into());
    }
    if options.first_message == Some(0) {
        return usage("--first-message needs at least one trial".into());
    }
    if let Load::Outstanding(count) = options.load {
        if count == 0 {
            return usage("--outstanding needs at least one message under way".into());
        }
        if options.first_message.is_some() {
            return usage(
                "--outstanding keeps messages under way, and --first-message waits for silence"
                    .into(),
            );
        }
    }
    if options.beside_tcp && options.place.nodes < 2 {
        return usage("--beside-tcp needs two nodes".into());
    }
    if !options.acceptors.is_empty() && !options.engine.has_votes() {
        return usage("--acceptors is for engines in which some nodes vote".into());
    }
    if options.instance_per_message && !options.engine.has_votes() {
        return usage("--instance-per-message is for engines with instances of Paxos".into());
    }
    if options.engine == Subject::MultiRing {
        let ManyRings { rings, busy, .. } = options.many;
        if options.mode == Mode::Daemon || options.first_message.is_some() {
            return usage(
                "--engine multi-ring is for --mode library, and not for --first-message".into(),
            );
        }
        if rings == 0 || rings > 64 || busy.is_some_and(|busy| busy == 0 || busy > rings) {
            return usage("--rings is 1 to 64, and --busy at most that".into());
        }
    }
    if options.duration.is_zero() {
        return usage("--duration must not be 0".into());
    }
    Ok(())
}

/// The directory of the acceptors' votes, which is gone after the run.
fn keep_votes(
    options: &BenchOptions,
    config: &mut NodeConfig,
) -> Result<Option<TempDir>, BenchError> {
    if !config.engine.has_votes() {
        return Ok(None);
    }
    let storage = match options.storage {
        StorageName::Memory => VoteStorage::Memory,
        StorageName::Async => VoteStorage::Async,
        StorageName::Sync => VoteStorage::Sync,
    };
    config.paxos = Some(votes(options, storage));
    let directory = scratch::directory()?;
    config.state_dir = Some(directory.path().to_owned());
    Ok(Some(directory))
}

fn votes(options: &BenchOptions, storage: VoteStorage) -> PaxosConfig {
    let listed = !options.acceptors.is_empty();
    PaxosConfig {
        acceptors: listed.then(|| options.acceptors.clone()),
        storage,
        instance_per_message: options.instance_per_message,
        ..PaxosConfig::default()
    }
}

/// Sets the capacity that senders go by, with FastCast and Ring Paxos.
fn share_links(options: &BenchOptions, config: &mut NodeConfig) {
    let rate = options.place.link_rate;
    let mbps = rate.and_then(|rate| u32::try_from(rate.0 / 1_000_000).ok());
    let known = matches!(
        options.shares,
        LinkShares::Configured | LinkShares::Yielding
    );
    config.link_mbps = mbps.filter(|_| known).and_then(NonZeroU32::new);
    config.link_yields = matches!(options.shares, LinkShares::Yielding | LinkShares::Estimated);
}

/// Sizes the backlog of a sender: small under full load, and room for the messages under way where their number is
/// said.
fn size_backlog(options: &BenchOptions, nodes: usize, config: &mut NodeConfig) {
    let ring = config.ring_config();
    match options.load {
        Load::Max if options.mode == Mode::Library => {
            let windows = BACKLOG_WINDOWS * ring.personal_window as usize * ring.frame_bytes();
            let backlog = windows.max(2 * options.size);
            config.backlog_bytes = Some(backlog);
            config.message_bytes = Some(backlog.min(ring.message_bytes));
        }
        Load::Outstanding(count) => {
            let senders = options.load.senders(options.senders, nodes);
            let most = share(count, 0, senders) as usize * (options.size + MESSAGE_COST);
            config.backlog_bytes = Some(most.max(ring.backlog_bytes));
        }
        Load::Max | Load::Fixed(_) => {}
    }
}

/// A key for this run, in a file that is gone after it.
fn key() -> Result<TempPath, BenchError> {
    let wrong = |error: &dyn fmt::Display| BenchError::Usage(format!("no key: {error}"));
    let file = tempfile::NamedTempFile::new().map_err(|error| wrong(&error))?;
    let ring = KeyRing::generate().map_err(|error| wrong(&error))?;
    ring.replace(file.path()).map_err(|error| wrong(&error))?;
    Ok(file.into_temp_path())
}

/// The configuration that all nodes share.
pub(crate) fn node_config(
    options: &BenchOptions,
    testbed: &Testbed,
    key: Option<&Path>,
) -> Result<NodeConfig, BenchError> {
    let in_namespaces = testbed.values().kind == TestbedKind::Netns;
    // On loopback other clusters may run on this host; two benchmarks rarely have the same pid.
    let port = if in_namespaces {
        NETNS_PORT
    } else {
        20_000 + (std::process::id() * 300 % 12_000) as u16
    };
    let mut config = NodeConfig::loopback(testbed.nodes() as u16, port);
    for (index, node) in config.nodes.iter_mut().enumerate() {
        node.address = IpAddr::V4(testbed.address(index + 1));
    }
    config.transport = rota_net::Transport::Multicast(SocketAddr::from(([239, 77, 0, 2], port)));
    config.insecure = key.is_none();
    config.key_file = key.map(Path::to_owned);
    config.engine = options.engine.engine();
    if matches!(config.engine, EngineName::FastCast | EngineName::RingPaxos) {
        share_links(options, &mut config);
    }
    config.personal_window = options.personal_window;
    config.accelerated_window = options.accelerated_window;
    config.global_window = options.global_window;
    // In namespaces the device splits; on loopback there is none that could.
    config.offload = in_namespaces || options.place.offload == Offload::Pass;
    if options.loss > 0.0 {
        config.faults = Some(FaultConfig {
            seed: 1,
            loss: options.loss,
            loss_distance: options.loss_distance,
            ..FaultConfig::default()
        });
    }
    size_backlog(options, testbed.nodes(), &mut config);
    // The directory of the votes is known when the run begins.
    config.paxos = config
        .engine
        .has_votes()
        .then(|| votes(options, VoteStorage::Memory));
    config
        .check()
        .map_err(|error| BenchError::Usage(error.to_string()))?;
    Ok(config)
}

fn task(options: &BenchOptions, config: &NodeConfig, node: usize, nodes: usize) -> Task {
    let trials = options.first_message;
    let duration_ns = match trials {
        Some(trials) => u64::from(trials) * TRIAL_GAP_NS,
        None => options.duration.as_nanos() as u64,
    };
    let warm_up_ns = options.warm_up.as_nanos() as u64;
    Task {
        node: node as u16,
        config: config.clone(),
        mode: options.mode,
        service: options.service,
        size: options.size,
        plan: match trials {
            // The nodes take turns. The trials start with the measured time.
            Some(_) => Plan::Fixed {
                offset: warm_up_ns as f64 + (node - 1) as f64 * TRIAL_GAP_NS as f64,
                interval: nodes as f64 * TRIAL_GAP_NS as f64,
            },
            None => plan(options, node, options.load.senders(options.senders, nodes)),
        },
        warm_up_ns,
        duration_ns,
        trials: trials.is_some(),
        rings: (options.engine == Subject::MultiRing).then(|| rings(options, config, node)),
    }
}

/// The rings, and those that a node delivers and sends to.
fn rings(options: &BenchOptions, config: &NodeConfig, node: usize) -> RingsTask {
    let ManyRings {
        rings,
        busy,
        engine,
        leveling,
        subscribe,
    } = options.many;
    let ports = 2 * config.nodes.len() as u16 + 1;
    let section = |id: u16| RingSection {
        id,
        engine: Some(engine),
        leveling: match leveling {
            Leveling::Pull => LevelingName::Pull,
            Leveling::Paper => LevelingName::Paper,
            // It is for a ring that seldom speaks.
            Leveling::Horizon if subscribe == Subscribe::OwnAndGlobal && id < rings => {
                LevelingName::Pull
            }
            Leveling::Horizon => LevelingName::Horizon,
        },
        port_offset: Some((id - 1) * ports),
        ..RingSection::default()
    };
    let locals = match subscribe {
        Subscribe::OwnAndGlobal => (rings - 1).max(1),
        Subscribe::All | Subscribe::Own => rings,
    };
    let own = 1 + (node as u16 - 1) % locals;
    let (subscribe, send) = match subscribe {
        Subscribe::All => ((1..=rings).collect(), (1..=busy.unwrap_or(rings)).collect()),
        Subscribe::Own => (vec![own], vec![own]),
        Subscribe::OwnAndGlobal => (vec![own, rings], vec![own]),
    };
    RingsTask {
        config: RingsConfig {
            common: config.clone(),
            rings: (1..=rings).map(section).collect(),
        },
        subscribe,
        send,
        is_one_order: options.many.subscribe == Subscribe::All,
    }
}

fn plan(options: &BenchOptions, node: usize, senders: usize) -> Plan {
    match options.load {
        _ if node > senders => Plan::Silent,
        Load::Max => Plan::Max,
        Load::Fixed(BitRate(0)) => Plan::Silent,
        Load::Outstanding(count) => Plan::UnderWay(share(count, node - 1, senders)),
        Load::Fixed(BitRate(rate)) => {
            let interval = options.size as f64 * 8e9 * senders as f64 / rate as f64;
            // Each sender has its own phase, or all would tick together.
            Plan::Fixed {
                offset: interval * (node - 1) as f64 / senders as f64,
                interval,
            }
        }
    }
}
