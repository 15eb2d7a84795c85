//! The metrics of a process, for Prometheus.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use rota_front::metrics::Text;
use rota_front::replica;
use rota_replica::Replica;

use super::around::LogMachine;
use super::server::Server;
use crate::machine::Logs;

/// The process that the metrics are of.
pub(super) struct Of {
    pub(super) server: Arc<Server>,
    pub(super) replica: Arc<Replica<LogMachine>>,
}

fn of(count: &AtomicU64) -> u64 {
    count.load(SeqCst)
}

impl Of {
    /// Writes all metrics.
    pub(super) fn tell(&self, text: &mut Text) {
        self.store(text);
        self.clients(text);
        self.replica(text);
    }

    fn store(&self, text: &mut Text) {
        let (server, status) = (&self.server, self.server.store.status());
        let logs = server.view.look(Logs::len) as u64;
        text.gauges(&[
            (
                "open",
                u64::from(server.way.ready.is_open()),
                "Its replica has caught up: 0 while it is behind, or gets a state of another one.",
            ),
            (
                "full",
                u64::from(server.way.is_full.load(SeqCst)),
                "Its disk has no room: clients append nothing here.",
            ),
            ("logs", logs, "Logs that there are."),
            (
                "disk_bytes",
                status.disk_bytes,
                "Bytes of entries on the disk.",
            ),
            ("segments", status.segments as u64, "Files with entries."),
            (
                "cached_bytes",
                status.cached_bytes as u64,
                "Memory that recent entries take.",
            ),
            (
                "unwritten_bytes",
                status.unwritten_bytes as u64,
                "Of that, what waits to be written: acceptors have it.",
            ),
            (
                "missing_entries",
                status.missing_records,
                "Entries that this process does not have: others are asked for them.",
            ),
            (
                "disk_failing",
                u64::from(status.is_failing),
                "The last write has failed.",
            ),
            (
                "readers_waiting",
                server.waiters.count() as u64,
                "Readers that wait for what is appended.",
            ),
        ]);
        self.events(text);
    }

    fn events(&self, text: &mut Text) {
        let (server, status) = (&self.server, self.server.store.status());
        text.counters(&[
            (
                "gaps",
                status.gaps,
                "How often entries were given up, since the disk failed for long.",
            ),
            ("damaged", status.damaged, "Damaged files that were seen."),
            (
                "repaired",
                status.repaired,
                "Files that were put in order with what others have.",
            ),
            (
                "scrubbed_bytes",
                of(&server.scrubbed.bytes),
                "Bytes that were read to look for damage.",
            ),
            (
                "scrubs",
                of(&server.scrubbed.rounds),
                "Rounds through all files to look for damage; the first begins at any of them.",
            ),
            ("disk_errors", status.errors, "What the disk has refused."),
            (
                "unreadable",
                of(&server.unreadable),
                "Messages and batches that were ordered and that this version cannot read: other processes have another one.",
            ),
            (
                "got_bytes",
                of(&server.source.bytes),
                "Bytes of entries that came from other processes.",
            ),
            ("told", of(&server.told), "Entries that were told."),
            ("told_bytes", of(&server.told_bytes), "Their bytes."),
        ]);
    }

    fn clients(&self, text: &mut Text) {
        let (server, guests) = (&self.server, &self.server.guests);
        let counted = &guests.counted;
        text.gauges(&[
            (
                "clients",
                of(&counted.clients),
                "Clients that are connected.",
            ),
            ("clients_limit", guests.most_clients, "So many may be."),
            (
                "clients_bytes",
                guests.held.bytes(),
                "What is kept for clients.",
            ),
        ]);
        text.counters(&[
            (
                "connections",
                of(&counted.connections),
                "Clients that have connected.",
            ),
            (
                "commands",
                of(&counted.commands),
                "Commands that were read.",
            ),
            (
                "batches",
                of(&server.batches),
                "What clients had ordered together.",
            ),
            (
                "outcomes_unknown",
                of(&server.unknown),
                "Of those, how many were told that nobody knows.",
            ),
            (
                "clients_refused",
                of(&counted.refused),
                "Clients that were too many.",
            ),
            (
                "protocol_errors",
                of(&counted.protocol_errors),
                "What could not be read.",
            ),
            (
                "not_let_in",
                of(&counted.not_let_in),
                "Wrong passwords and handshakes, and clients that said nothing of themselves.",
            ),
        ]);
        let help = "How long clients waited for what was ordered, and to see all that was answered before.";
        text.head(("answer_seconds", "histogram"), help);
        for (kind, times) in [("order", &server.way.ordered), ("look", &server.way.marked)] {
            text.histogram("answer_seconds", &format!("kind=\"{kind}\""), times);
        }
    }

    fn replica(&self, text: &mut Text) {
        if !self.server.way.orders.is_open() {
            // The replica takes in a state: metrics do not wait for that.
            return;
        }
        replica::tell(text, &self.replica.status());
    }
}
