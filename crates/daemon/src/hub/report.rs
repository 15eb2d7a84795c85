//! The status of the daemon and of its clients.

use std::borrow::Cow;
use std::collections::BTreeMap;

use rota_core::contract::Status;
use rota_core::groups::{Hold, Phase};

use super::Hub;
use crate::names::Names;
use crate::session::Session;
use crate::speech::Speech;
use crate::status::{ClientStatus, DaemonStatus, HoldStatus, QueueStatus, TokenStatus};

impl Hub {
    /// Whether a session asked for the status.
    pub const fn is_asked(&self) -> bool {
        !self.asked.is_empty()
    }

    /// The status of the groups and the clients, beside that of the ring.
    pub fn status(&mut self, ring: Status) -> DaemonStatus {
        let me = self.groups.me();
        let clients = self.client_list();
        DaemonStatus {
            node: me.node.get(),
            name: self.names.directory().daemon(me.node),
            version: env!("CARGO_PKG_VERSION").into(),
            pid: std::process::id(),
            members: self.members.clone(),
            ring: ring.state,
            notes: ring.notes,
            groups_ready: matches!(
                self.groups.phase(),
                Phase::Operational | Phase::Transitional(_)
            ),
            excluded: self.groups.is_excluded(),
            groups: self.groups.count_groups(),
            counters: self.all_counters(ring.counters),
            peers: ring
                .peers
                .into_iter()
                .map(|(node, peer)| (node.get(), peer.into()))
                .collect(),
            token: TokenStatus {
                rotation: (&ring.rotation).into(),
                ..TokenStatus::default()
            },
            queues: QueueStatus {
                requests: self.groups.waiting_requests(),
                packets: ring.waiting,
                client_bytes: clients.iter().map(|client| client.waiting_bytes).sum(),
                clients_held_back: clients.iter().filter(|client| client.held_back).count(),
                clients_held: clients.iter().filter(|one| one.held_for.is_some()).count(),
            },
            clients,
            holds: self.hold_list(),
            ..DaemonStatus::default()
        }
    }

    fn all_counters(
        &self,
        counters: BTreeMap<&'static str, u64>,
    ) -> BTreeMap<Cow<'static, str>, u64> {
        let groups = self.groups.counters();
        let clients = self.counters;
        let own = [
            ("groups_malformed", groups.malformed),
            ("groups_late", groups.late),
            ("groups_exchanges", groups.exchanges),
            ("groups_refused", groups.refused),
            ("groups_parts", groups.parts),
            (
                "groups_unfinished_bytes",
                self.groups.unfinished_bytes() as u64,
            ),
            ("clients_now", self.by_connection.len() as u64),
            ("clients_connected", clients.connected),
            ("clients_with_memory", clients.with_memory),
            ("clients_refused", clients.refused),
            ("clients_silent", clients.silent),
            ("clients_garbled", clients.garbled),
            ("clients_slow", clients.slow),
            ("clients_lagging", clients.lagging),
            ("clients_skipped", clients.skipped),
            ("clients_throttling", clients.throttling),
            ("clients_throttling_us", clients.throttling_us),
            ("clients_throttled_long", clients.throttled_long),
            ("messages_held", clients.held),
            ("messages_held_us", clients.held_us),
            ("groups_holds_expired", groups.expired),
            ("groups_missed", groups.missed),
            ("groups_elsewhere", groups.elsewhere),
            ("clients_turned_away", self.door.turned_away),
            ("clients_crowded", self.door.seats.refused()),
            ("clients_not_allowed", clients.not_allowed),
            ("clients_dismissed", clients.dismissed),
            ("memberships_ended", clients.memberships_ended),
            ("requests_not_allowed", clients.requests_not_allowed),
            ("admins_not_allowed", clients.admins_not_allowed),
        ];
        let all = counters.into_iter().chain(own);
        let all = all.chain(self.door.tls_counters());
        all.map(|(name, count)| (name.into(), count)).collect()
    }

    fn client_list(&mut self) -> Vec<ClientStatus> {
        let Self {
            sessions,
            groups,
            names,
            ..
        } = self;
        let now = rota_net::monotonic();
        let mut client = |session: &Session| {
            let member = groups.member(session.connection?).ok()?;
            let throttling = session.throttling();
            Some(ClientStatus {
                name: names.member(&member).to_string(),
                protocol: session.speech.protocol().into(),
                peer: session.guest.peer.to_string(),
                waiting_bytes: session.speech.backlog(),
                unread_ms: session.unread_nanos(now) / 1_000_000,
                held_back: session.is_stalled(),
                held_for: session.held_for.map(|held| slow(names, held.hold)),
                held_ms: session
                    .held_for
                    .map_or(0, |held| now.since(held.since) / 1_000_000),
                throttles: throttling.map_or_else(Vec::new, |throttling| {
                    let to = throttling.to.iter();
                    to.map(|to| names.told(to).to_string()).collect()
                }),
                throttling_ms: throttling.map_or(0, |one| now.since(one.since) / 1_000_000),
                messages: session.messages,
            })
        };
        let mut clients: Vec<_> = sessions
            .iter()
            .filter_map(|(_, session)| client(session))
            .collect();
        clients.sort_by(|a, b| a.name.cmp(&b.name));
        clients
    }

    fn hold_list(&mut self) -> Vec<HoldStatus> {
        let names = &mut self.names;
        let holds = self.groups.holds().map(|hold| HoldStatus {
            to: names.told(&hold.to).to_string(),
            client: slow(names, hold),
        });
        holds.collect()
    }

    /// Tells all who have asked.
    pub fn answer(&mut self, line: &str) {
        for (key, number) in std::mem::take(&mut self.asked) {
            let Some(session) = self.sessions.get_mut(key) else {
                continue;
            };
            if let Speech::Admin(speech) = &mut session.speech
                && session.number == number
            {
                speech.answer(line);
                self.schedule(key);
            }
        }
    }
}

/// The client for which something is held.
fn slow(names: &mut Names, hold: Hold) -> String {
    names.client(hold.client, hold.daemon.node).to_string()
}
