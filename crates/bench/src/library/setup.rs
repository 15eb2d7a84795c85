//! What the nodes of a benchmark are configured with.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;
use std::path::Path;

use rota_net::{FaultConfig, KeyRing};
use rota_node::{EngineName, NodeConfig, PaxosConfig, VoteStorage};
use tempfile::{TempDir, TempPath};

use crate::error::BenchError;
use crate::options::{
    BenchOptions, LinkShares, Load, Mode, Offload, StorageName, TestbedKind, share,
};
use crate::scratch;
use crate::testbed::Testbed;

/// Personal windows of messages that wait at a sender under full load.
const BACKLOG_WINDOWS: usize = 2;
/// Bytes that a message takes of a backlog beside its payload, at most.
const MESSAGE_COST: usize = 256;
/// UDP ports of a cluster in namespaces, from here on.
const NETNS_PORT: u16 = 7800;

/// The directory of the acceptors' votes, which is gone after the run.
pub(super) fn keep_votes(
    options: &BenchOptions,
    config: &mut NodeConfig,
) -> Result<Option<TempDir>, BenchError> {
    if !config.engine.has_votes() {
        return Ok(None);
    }
    let storage = match options.votes.storage {
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
    let listed = !options.votes.acceptors.is_empty();
    PaxosConfig {
        acceptors: listed.then(|| options.votes.acceptors.clone()),
        storage,
        instance_per_message: options.votes.instance_per_message,
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
    match options.traffic.load {
        Load::Max if options.mode == Mode::Library => {
            let windows = BACKLOG_WINDOWS * ring.windows.personal as usize * ring.frame_bytes();
            let backlog = windows.max(2 * options.traffic.size);
            config.backlog_bytes = Some(backlog);
            config.message_bytes = Some(backlog.min(ring.message_bytes));
        }
        Load::Outstanding(count) => {
            let senders = options.traffic.load.senders(options.traffic.senders, nodes);
            let most = share(count, 0, senders) as usize * (options.traffic.size + MESSAGE_COST);
            config.backlog_bytes = Some(most.max(ring.backlog_bytes));
        }
        Load::Max | Load::Fixed(_) => {}
    }
}

/// A key for this run, in a file that is gone after it.
pub(super) fn key() -> Result<TempPath, BenchError> {
    let wrong = |error: &dyn fmt::Display| BenchError::Usage(format!("no key: {error}"));
    let file = tempfile::NamedTempFile::new().map_err(|error| wrong(&error))?;
    let ring = KeyRing::generate().map_err(|error| wrong(&error))?;
    ring.replace(file.path()).map_err(|error| wrong(&error))?;
    Ok(file.into_temp_path())
}

/// Settings of a ring that override the engine's.
fn limit_ring(options: &BenchOptions, config: &mut NodeConfig) {
    let ring = options.ring;
    config.personal_window = ring.personal_window;
    config.accelerated_window = ring.accelerated_window;
    config.global_window = ring.global_window;
    config.priority_method = ring.priority_method;
    config.datagram_bytes = ring.datagram_bytes;
}

/// The faults that nodes inject on receipt.
fn faults(options: &BenchOptions) -> Option<FaultConfig> {
    let trouble = &options.trouble;
    let delay_us = (trouble.delay.as_micros() as u64).saturating_mul(u64::from(options.slow));
    (trouble.loss > 0.0 || delay_us > 0).then(|| FaultConfig {
        seed: 1,
        loss: trouble.loss,
        loss_distance: trouble.loss_distance,
        delay_us,
        // A hop takes its time whatever crosses it.
        include_token: delay_us > 0,
        ..FaultConfig::default()
    })
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
    limit_ring(options, &mut config);
    config.time_scale = NonZeroU32::new(options.slow).filter(|slow| slow.get() > 1);
    // In namespaces the device splits; on loopback there is none that could.
    config.offload = in_namespaces || options.place.offload == Offload::Pass;
    config.faults = faults(options);
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
