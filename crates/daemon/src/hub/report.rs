//! The status of the daemon and of its clients.

use std::borrow::Cow;
use std::collections::BTreeMap;

use rota_core::contract::{Status, Time};
use rota_core::groups::{Hold, Member, Phase};

use super::Hub;
use crate::names::Names;
use crate::session::Session;
use crate::status::{ClientStatus, DaemonStatus, HoldStatus, QueueStatus, TokenStatus};

impl Hub {
    /// Whether a session asked for the status.
    pub const fn is_asked(&self) -> bool {
        !self.asked.is_empty()
    }

    /// Tells all who have asked.
    pub fn answer(&mut self, line: &str) {
        for asked in std::mem::take(&mut self.asked) {
            self.clientele.answer(asked, line);
        }
    }

    /// The status of the groups and the clients, beside that of the ring.
    pub fn status(&mut self, ring: Status) -> DaemonStatus {
        let clients = self.clientele.clients();
        let holds = self.clientele.holds();
        let groups = self.clientele.groups();
        DaemonStatus {
            node: groups.me().node.get(),
            name: self.clientele.name(),
            version: env!("CARGO_PKG_VERSION").into(),
            pid: std::process::id(),
            members: self.members.clone(),
            ring: ring.state,
            notes: ring.notes,
            groups_ready: matches!(groups.phase(), Phase::Operational | Phase::Transitional(_)),
            excluded: groups.is_excluded(),
            groups: groups.count_groups(),
            queues: QueueStatus {
                requests: groups.waiting_requests(),
                packets: ring.waiting,
                client_bytes: clients.iter().map(|client| client.waiting_bytes).sum(),
                clients_held_back: clients.iter().filter(|client| client.held_back).count(),
                clients_held: clients.iter().filter(|one| one.held_for.is_some()).count(),
            },
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
            clients,
            holds,
            ..DaemonStatus::default()
        }
    }

    fn all_counters(
        &mut self,
        counters: BTreeMap<&'static str, u64>,
    ) -> BTreeMap<Cow<'static, str>, u64> {
        let all = self.clientele.groups();
        let groups = all.counters();
        let own = [
            ("groups_malformed", groups.malformed),
            ("groups_late", groups.late),
            ("groups_exchanges", groups.exchanges),
            ("groups_refused", groups.refused),
            ("groups_parts", groups.parts),
            ("groups_unfinished_bytes", all.unfinished_bytes() as u64),
            ("clients_now", self.clientele.connections() as u64),
            ("groups_holds_expired", groups.expired),
            ("groups_missed", groups.missed),
            ("groups_elsewhere", groups.elsewhere),
            ("clients_turned_away", self.door.turned_away()),
            ("clients_crowded", self.door.crowded()),
        ];
        let all = counters.into_iter().chain(own);
        let all = all.chain(self.clientele.journal().counts());
        let all = all.chain(self.door.tls_counters());
        all.map(|(name, count)| (name.into(), count)).collect()
    }
}

/// The status of a client, which is this member.
pub(super) fn client_status(
    session: &Session,
    member: &Member,
    names: &mut Names,
    now: Time,
) -> ClientStatus {
    let throttling = session.lag().throttling();
    let held_for = session.held_for();
    let millis = |since: Time| now.since(since) / 1_000_000;
    ClientStatus {
        name: names.member(member).to_string(),
        protocol: session.speech().protocol().into(),
        peer: session.guest().peer.to_string(),
        waiting_bytes: session.speech().backlog(),
        unread_ms: session.unread_nanos(now) / 1_000_000,
        held_back: session.is_stalled(),
        held_for: held_for.map(|held| slow(names, held.hold)),
        held_ms: held_for.map_or(0, |held| millis(held.since)),
        throttles: throttling.map_or_else(Vec::new, |throttling| {
            let to = throttling.to.iter();
            to.map(|to| names.told(to).to_string()).collect()
        }),
        throttling_ms: throttling.map_or(0, |one| millis(one.since)),
        messages: session.messages(),
    }
}

/// The status of a destination whose senders wait.
pub(super) fn hold_status(hold: Hold, names: &mut Names) -> HoldStatus {
    HoldStatus {
        to: names.told(&hold.to).to_string(),
        client: slow(names, hold),
    }
}

/// The client for which something is held.
fn slow(names: &mut Names, hold: Hold) -> String {
    names.client(hold.client, hold.daemon.node).to_string()
}
