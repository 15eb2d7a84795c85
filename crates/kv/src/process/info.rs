//! `INFO`, as Redis' clients read it, with a section of the store's own.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use bytes::Bytes;

use super::listen::Server;
use crate::store::Store;

const SECTIONS: [&str; 9] = [
    "server",
    "clients",
    "memory",
    "persistence",
    "stats",
    "replication",
    "cluster",
    "keyspace",
    "rota",
];

/// These sections, or all. `is_cluster`: of a listener for clients that know a cluster.
pub(super) fn info(server: &Server, wanted: &[Bytes], is_cluster: bool) -> String {
    let is = |section: &str| {
        let like = |word: &Bytes| word.eq_ignore_ascii_case(section.as_bytes());
        let all = ["default", "all", "everything"];
        wanted.is_empty()
            || wanted.iter().any(like)
            || all.into_iter().any(|all| {
                wanted
                    .iter()
                    .any(|word| word.eq_ignore_ascii_case(all.as_bytes()))
            })
    };
    let mut text = String::new();
    for section in SECTIONS.into_iter().filter(|section| is(section)) {
        if !text.is_empty() {
            text.push_str("\r\n");
        }
        let mut name = section.to_owned();
        name[..1].make_ascii_uppercase();
        let _ = write!(text, "# {name}\r\n");
        for (key, value) in lines(server, section, is_cluster) {
            let _ = write!(text, "{key}:{value}\r\n");
        }
    }
    text
}

fn lines(server: &Server, section: &str, is_cluster: bool) -> Vec<(&'static str, String)> {
    let gateway = &server.gateway;
    let look = |store: &Store| (store.len(), store.ending(), store.bytes());
    let (keys, ending, bytes) = gateway.orders.read(look).unwrap_or_default();
    let count = |count: &AtomicU64| count.load(SeqCst).to_string();
    let flag = |flag: bool| u8::from(flag).to_string();
    match section {
        "server" => vec![
            ("redis_version", "7.2.0".to_owned()),
            ("rota_version", env!("CARGO_PKG_VERSION").to_owned()),
            (
                "redis_mode",
                if is_cluster { "cluster" } else { "standalone" }.to_owned(),
            ),
            ("os", std::env::consts::OS.to_owned()),
            ("arch_bits", usize::BITS.to_string()),
            ("process_id", std::process::id().to_string()),
            (
                "uptime_in_seconds",
                server.began.elapsed().as_secs().to_string(),
            ),
        ],
        "clients" => vec![
            ("connected_clients", count(&server.clients)),
            ("maxclients", server.most_clients.to_string()),
        ],
        "memory" => vec![
            ("used_memory", bytes.to_string()),
            ("mem_clients_normal", server.held.bytes().to_string()),
            ("maxmemory", server.most_bytes.to_string()),
            ("maxmemory_policy", "noeviction".to_owned()),
        ],
        "persistence" => vec![("loading", flag(false)), ("aof_enabled", flag(true))],
        "stats" => vec![
            ("total_connections_received", count(&server.connections)),
            ("total_commands_processed", count(&server.commands)),
            ("rejected_connections", count(&server.refused)),
        ],
        "replication" => {
            let view = server.view();
            vec![
                ("role", "master".to_owned()),
                ("connected_slaves", view.others().to_string()),
            ]
        }
        "cluster" => vec![("cluster_enabled", flag(is_cluster))],
        "keyspace" if keys == 0 => Vec::new(),
        "keyspace" => vec![("db0", format!("keys={keys},expires={ending},avg_ttl=0"))],
        _ => own(server, keys),
    }
}

/// What Redis does not have.
fn own(server: &Server, keys: usize) -> Vec<(&'static str, String)> {
    let gateway = &server.gateway;
    let (waiting, of) = gateway.desk.waits();
    let of: Vec<String> = of.iter().map(|partition| partition.0.to_string()).collect();
    let up = gateway.links.values().filter(|link| link.is_up()).count();
    let is_full = u8::from(gateway.is_full.load(SeqCst));
    let mut lines = vec![
        ("partition", gateway.own.0.to_string()),
        ("keys", keys.to_string()),
        ("open", u8::from(gateway.orders.is_open()).to_string()),
        ("full", is_full.to_string()),
        ("processes_connected", up.to_string()),
        ("processes_configured", gateway.links.len().to_string()),
        ("answers_waiting", waiting.to_string()),
        ("answers_waiting_for_partitions", of.join(",")),
    ];
    let counted = [
        ("commands", &server.commands),
        ("batches", &server.batches),
        ("outcomes_unknown", &server.unknown),
        ("refused", &server.refused),
        ("protocol_errors", &server.protocol_errors),
        ("not_let_in", &server.not_let_in),
    ];
    lines.extend(counted.map(|(name, count)| (name, count.load(SeqCst).to_string())));
    lines
}
