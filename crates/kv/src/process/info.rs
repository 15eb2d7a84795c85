//! `INFO`, as Redis' clients read it, with a section of the store's own.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use bytes::Bytes;

use super::facts::Facts;
use super::listen::Server;

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

/// The text of these sections, or all. `is_cluster`: for a listener of clients that know a cluster.
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
    let facts = Facts::of(&server.gateway);
    let mut text = String::new();
    for section in SECTIONS.into_iter().filter(|section| is(section)) {
        if !text.is_empty() {
            text.push_str("\r\n");
        }
        let mut name = section.to_owned();
        name[..1].make_ascii_uppercase();
        let _ = write!(text, "# {name}\r\n");
        for (key, value) in lines(server, &facts, (section, is_cluster)) {
            let _ = write!(text, "{key}:{value}\r\n");
        }
    }
    text
}

fn lines(
    server: &Server,
    facts: &Facts,
    (section, is_cluster): (&str, bool),
) -> Vec<(&'static str, String)> {
    let (guests, counted) = (&server.guests, &server.guests.counted);
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
                guests.began.elapsed().as_secs().to_string(),
            ),
        ],
        "clients" => vec![
            ("connected_clients", count(&counted.clients)),
            ("maxclients", guests.most_clients.to_string()),
            ("blocked_clients", waiting_clients(server)),
        ],
        "memory" => vec![
            ("used_memory", facts.bytes.to_string()),
            ("mem_clients_normal", guests.held.bytes().to_string()),
            ("maxmemory", server.most_bytes.to_string()),
            ("maxmemory_policy", "noeviction".to_owned()),
        ],
        "persistence" => vec![("loading", flag(false)), ("aof_enabled", flag(true))],
        "stats" => vec![
            ("total_connections_received", count(&counted.connections)),
            ("total_commands_processed", count(&counted.commands)),
            ("rejected_connections", count(&counted.refused)),
        ],
        "replication" => {
            let view = server.view();
            vec![
                ("role", "master".to_owned()),
                ("connected_slaves", view.others().to_string()),
            ]
        }
        "cluster" => vec![("cluster_enabled", flag(is_cluster))],
        "keyspace" if facts.keys == 0 => Vec::new(),
        "keyspace" => {
            let (keys, ending) = (facts.keys, facts.ending);
            vec![("db0", format!("keys={keys},expires={ending},avg_ttl=0"))]
        }
        _ => own(server, facts),
    }
}

/// The number of clients that wait for changes.
fn waiting_clients(server: &Server) -> String {
    server.recent.lock().figures().waiting.to_string()
}

/// The section that Redis does not have.
fn own(server: &Server, facts: &Facts) -> Vec<(&'static str, String)> {
    let flag = |flag: bool| u8::from(flag).to_string();
    let of = facts.waits_for.iter();
    let of: Vec<String> = of.map(|partition| partition.0.to_string()).collect();
    let mut lines = vec![
        ("partition", server.gateway.own.0.to_string()),
        ("keys", facts.keys.to_string()),
        ("open", flag(facts.is_open)),
        ("full", flag(facts.is_full)),
        ("processes_connected", facts.connected.to_string()),
        ("processes_configured", facts.configured.to_string()),
        ("settled", flag(facts.is_settled)),
        ("unreadable", server.unreadable.load(SeqCst).to_string()),
        ("answers_waiting", facts.waiting.to_string()),
        ("answers_waiting_for_partitions", of.join(",")),
    ];
    let counted = [
        ("commands", &server.guests.counted.commands),
        ("batches", &server.batches),
        ("outcomes_unknown", &server.unknown),
        ("refused", &server.guests.counted.refused),
        ("protocol_errors", &server.guests.counted.protocol_errors),
        ("not_let_in", &server.guests.counted.not_let_in),
    ];
    lines.extend(counted.map(|(name, count)| (name, count.load(SeqCst).to_string())));
    lines
}
