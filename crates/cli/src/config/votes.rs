//! The voters, and the storage of votes.

use rota_core::contract::NodeId;
use rota_node::{NodeConfig, VoteStorage};
use rota_paxos::uring::Timeouts;
use rota_ring::RingConfig;

use super::Table;
use crate::say::complain;

/// The meaning of `[paxos]`, with engines that vote.
pub fn describe(config: &NodeConfig, ring: &RingConfig, me: Option<NodeId>, table: &mut Table) {
    let Some(storage) = config.vote_storage() else {
        return;
    };
    table.section("paxos");
    let acceptors = config.acceptors();
    let names: Vec<String> = acceptors.iter().map(NodeId::to_string).collect();
    let set = config
        .paxos
        .as_ref()
        .and_then(|paxos| paxos.acceptors.as_ref());
    let from = match set {
        Some(_) => "set",
        None if acceptors.len() == ring.members.len() => "all that are listed",
        None => "those with the smallest ids",
    };
    table.row("acceptors", format!("{} ({from})", names.join(", ")));
    let majority = acceptors.len() / 2 + 1;
    table.row(
        "majority",
        format!(
            "{majority}: so many have to be there, and all of them when the cluster is founded"
        ),
    );
    let waits = match storage {
        VoteStorage::Memory => "memory (a node that has ended has forgotten its votes)",
        VoteStorage::Async => {
            "async (a vote waits for the system; a loss of power takes the last moments)"
        }
        VoteStorage::Sync => "sync (a vote waits for the disk)",
    };
    table.row("storage", waits);
    if let Some(directory) = me.and_then(|me| config.votes_directory(me)) {
        table.row("votes_directory", directory.display());
    }
    table.row("coordination", coordination(config, me));
    let engine = config.uring_config(ring);
    table.row("value_bytes", engine.proposer.frame_bytes);
    table.row("window_bytes", engine.proposer.window_bytes);
    table.row("kept_instances", engine.acceptor.kept_instances);
    if storage != VoteStorage::Memory {
        table.row("memory_bytes", engine.acceptor.memory_bytes);
    }
    describe_times(&engine.patience, table);
    let warnings = [
        config.votes_warning(),
        config.coordination_warning(),
        config.login_warning(),
    ];
    for warning in warnings.into_iter().flatten() {
        complain(&warning);
    }
}

fn describe_times(patience: &Timeouts, table: &mut Table) {
    for (name, nanos) in [
        ("silence_ms", patience.silence),
        ("link_ms", patience.link),
        ("heartbeat_ms", patience.heartbeat),
        ("retry_ms", patience.retry),
    ] {
        table.row(name, nanos as f64 / 1e6);
    }
}

/// The authority that chooses the next configuration.
fn coordination(config: &NodeConfig, me: Option<NodeId>) -> String {
    let Some((members, prefix)) = config.etcd() else {
        return "embedded (the acceptors agree on the next configuration)".to_owned();
    };
    let user = config.etcd_user(me);
    let user = user.map_or_else(String::new, |user| format!(" as {user}"));
    format!("etcd at {}{user}, keys below {prefix}", members.join(", "))
}
