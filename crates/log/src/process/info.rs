//! `INFO`, as Redis' clients read it, with a section of the logs' own.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use bytes::Bytes;

use super::server::Server;
use crate::machine::Logs;

const SECTIONS: [&str; 6] = [
    "server",
    "clients",
    "memory",
    "stats",
    "replication",
    "rota",
];

/// The text of these sections, or all.
pub(super) fn info(server: &Server, wanted: &[Bytes]) -> String {
    let is = |section: &str| {
        let like = |word: &Bytes| {
            [section, "default", "all", "everything"]
                .iter()
                .any(|name| word.eq_ignore_ascii_case(name.as_bytes()))
        };
        wanted.is_empty() || wanted.iter().any(like)
    };
    let mut text = String::new();
    for section in SECTIONS.into_iter().filter(|section| is(section)) {
        if !text.is_empty() {
            text.push_str("\r\n");
        }
        let mut letters = section.chars();
        let first = letters.next().map(|first| first.to_ascii_uppercase());
        let _ = write!(text, "# {}{}\r\n", first.unwrap_or(' '), letters.as_str());
        for (name, value) in of(server, section) {
            let _ = write!(text, "{name}:{value}\r\n");
        }
    }
    text
}

fn count(count: &AtomicU64) -> String {
    count.load(SeqCst).to_string()
}

fn of(server: &Server, section: &str) -> Vec<(&'static str, String)> {
    let (guests, counted) = (&server.guests, &server.guests.counted);
    let status = || server.store.status();
    match section {
        "server" => vec![
            ("redis_version", "7.2.0".to_owned()),
            ("redis_mode", "standalone".to_owned()),
            (
                "uptime_in_seconds",
                guests.began.elapsed().as_secs().to_string(),
            ),
        ],
        "clients" => vec![
            ("connected_clients", count(&counted.clients)),
            ("maxclients", guests.most_clients.to_string()),
            ("blocked_clients", server.waiters.count().to_string()),
        ],
        "memory" => vec![
            ("mem_clients_normal", guests.held.bytes().to_string()),
            ("used_memory", status().cached_bytes.to_string()),
        ],
        "stats" => vec![
            ("total_connections_received", count(&counted.connections)),
            ("total_commands_processed", count(&counted.commands)),
            ("rejected_connections", count(&counted.refused)),
        ],
        "replication" => vec![
            ("role", "master".to_owned()),
            ("connected_slaves", server.others.to_string()),
        ],
        _ => rota(server),
    }
}

fn rota(server: &Server) -> Vec<(&'static str, String)> {
    let status = server.store.status();
    let logs = server.view.look(Logs::len);
    let flag = |flag: bool| u8::from(flag).to_string();
    vec![
        ("open", flag(server.way.ready.is_open())),
        ("full", flag(server.way.is_full.load(SeqCst))),
        ("logs", logs.to_string()),
        ("disk_bytes", status.disk_bytes.to_string()),
        ("segments", status.segments.to_string()),
        ("missing", status.missing_records.to_string()),
        ("unwritten_bytes", status.unwritten_bytes.to_string()),
        ("gaps", status.gaps.to_string()),
        ("damaged", status.damaged.to_string()),
        ("repaired", status.repaired.to_string()),
        ("outcomes_unknown", count(&server.unknown)),
        ("unreadable", count(&server.unreadable)),
    ]
}
