//! The metrics of a process, for Prometheus.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use rota_front::metrics::Text;
use rota_front::replica;
use rota_replica::Replica;

use super::facts::Facts;
use super::listen::Server;
use crate::store::Store;

/// The process that the metrics are of.
pub(super) struct Of {
    pub(super) server: Arc<Server>,
    pub(super) replica: Arc<Replica<Store>>,
}

impl Of {
    /// Writes all metrics.
    pub(super) fn tell(&self, text: &mut Text) {
        self.store(text);
        self.clients(text);
        self.answers(text);
        self.changes(text);
        self.replica(text);
    }

    fn store(&self, text: &mut Text) {
        let (server, gateway) = (&self.server, &self.server.gateway);
        let guests = &server.guests;
        let facts = Facts::of(gateway);
        let flag = |flag: bool| u64::from(flag);
        let gauges = [
            (
                "partition",
                u64::from(gateway.own.0),
                "Which partition this process has.",
            ),
            (
                "open",
                flag(facts.is_open),
                "Its replica has caught up: 0 while it is behind, or gets a state of another one.",
            ),
            ("keys", facts.keys as u64, "Keys of its partition."),
            (
                "keys_ending",
                facts.ending as u64,
                "Of those, how many have an end.",
            ),
            ("bytes", facts.bytes as u64, "What they take, about."),
            (
                "bytes_limit",
                server.most_bytes,
                "With so many it takes no writes.",
            ),
            ("full", flag(facts.is_full), "It has so many."),
            (
                "processes_connected",
                facts.connected as u64,
                "Other processes that it is connected to.",
            ),
            (
                "processes_configured",
                facts.configured as u64,
                "Other processes that there should be.",
            ),
            (
                "answers_waiting",
                facts.waiting as u64,
                "Answers that wait for other partitions.",
            ),
            (
                "clients",
                guests.counted.clients.load(SeqCst),
                "Clients that are connected.",
            ),
            ("clients_limit", guests.most_clients, "So many may be."),
            (
                "clients_bytes",
                guests.held.bytes(),
                "What is kept for clients.",
            ),
        ];
        text.gauges(&gauges);
        Self::slots(&facts, text);
        self.waits(&facts, text);
    }

    fn slots(facts: &Facts, text: &mut Text) {
        let gauges = [
            ("slots", facts.slots as u64, "Slots of its partition."),
            (
                "slots_frozen",
                facts.frozen as u64,
                "Slots, of any partition, that nobody writes to, since they move.",
            ),
            (
                "settled",
                u64::from(facts.is_settled),
                "The keys of slots that have come or gone are where they belong: 0 for a while after a move.",
            ),
            (
                "map_epoch",
                facts.epoch,
                "Grows with each move of slots; one that stays behind is of a process that catches up.",
            ),
        ];
        text.gauges(&gauges);
    }

    fn waits(&self, facts: &Facts, text: &mut Text) {
        text.one(
            ("unreadable", "counter"),
            "Messages and batches that were ordered and that this version cannot read: other processes have another one.",
            self.server.unreadable.load(SeqCst),
        );
        text.head(
            ("answers_wait_for", "gauge"),
            "The partitions that they wait for.",
        );
        for partition in self.server.gateway.maps.now().partitions() {
            let waits = u8::from(facts.waits_for.contains(&partition));
            text.value(
                "answers_wait_for",
                &format!("partition=\"{}\"", partition.0),
                waits,
            );
        }
    }

    fn clients(&self, text: &mut Text) {
        let (server, guests) = (&self.server, &self.server.guests.counted);
        let links = &server.counts;
        let counted = [
            (
                "connections",
                &guests.connections,
                "Clients that have connected.",
            ),
            ("commands", &guests.commands, "Commands that were read."),
            (
                "batches",
                &server.batches,
                "What clients had ordered, or looked at, together.",
            ),
            (
                "outcomes_unknown",
                &server.unknown,
                "Of those, how many were told that nobody knows.",
            ),
            (
                "clients_refused",
                &guests.refused,
                "Clients that were too many.",
            ),
            (
                "protocol_errors",
                &guests.protocol_errors,
                "What could not be read.",
            ),
            (
                "not_let_in",
                &guests.not_let_in,
                "Wrong passwords and handshakes, and clients that said nothing of themselves.",
            ),
            (
                "questions_refused",
                &links.refused,
                "What was not asked of another process, as that takes too little of what waits for it.",
            ),
            (
                "links_ended",
                &links.ended,
                "Connections of other processes that ended, as those took too little of what they had asked for.",
            ),
            (
                "maps_refused",
                &links.maps_refused,
                "Maps of slots of other processes that this version cannot read, or that began with other slots than the file here has.",
            ),
        ];
        for (name, count, help) in counted {
            text.one((name, "counter"), help, count.load(SeqCst));
        }
    }

    fn answers(&self, text: &mut Text) {
        let help = "How long clients waited for what is only looked at, and for what is ordered.";
        text.head(("answer_seconds", "histogram"), help);
        let gateway = &self.server.gateway;
        for (kind, times) in [("look", &gateway.looked), ("order", &gateway.ordered)] {
            text.histogram("answer_seconds", &format!("kind=\"{kind}\""), times);
        }
    }

    fn changes(&self, text: &mut Text) {
        let recent = &self.server.recent;
        let kept = recent.lock().figures();
        let gauges = [
            (
                "changes_bytes",
                kept.bytes as u64,
                "Recent changes of keys that are kept for watchers, in bytes.",
            ),
            (
                "changes_bytes_limit",
                recent.most_bytes,
                "So many are kept at most.",
            ),
            (
                "changes_places",
                kept.places as u64,
                "The places of the order that these changes are of.",
            ),
            (
                "watchers_waiting",
                kept.waiting as u64,
                "Clients that wait for changes.",
            ),
        ];
        text.gauges(&gauges);
        let counted = [
            (
                "changes_told",
                &recent.told,
                "Changes that watchers were told.",
            ),
            (
                "changes_trimmed",
                &recent.trimmed,
                "How often a watcher asked for changes that are not kept any more.",
            ),
        ];
        for (name, count, help) in counted {
            text.one((name, "counter"), help, count.load(SeqCst));
        }
    }

    fn replica(&self, text: &mut Text) {
        if !self.server.gateway.orders.is_open() {
            // The replica takes in a state: metrics do not wait for that.
            return;
        }
        let status = self.replica.status();
        replica::tell(text, &status);
        let waits = status
            .rings
            .map(|rings| rings.waits_for)
            .unwrap_or_default();
        text.head(
            ("waits_for_ring", "gauge"),
            "What has come waits for this ring.",
        );
        for ring in [self.server.gateway.ring, self.server.gateway.global] {
            let is = u8::from(waits.iter().any(|need| need.rank == ring));
            text.value("waits_for_ring", &format!("ring=\"{}\"", ring.0), is);
        }
    }
}
