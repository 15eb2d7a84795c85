//! The memory of a process of the views it was in, and the part of it that the process tells others.

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;
use bytes::Bytes;

use super::account::DeliveryState;
use super::change::MOST_TENTATIVE;
use super::message::{Name, Recover, ViewState};
use super::outcome::Outcome;
use super::path::{DataPath, Frozen, Held, Load, Packet, PacketId};
use rota_core::contract::{Configuration, ConfigurationKind, Delivery, Process, RingId};
use rota_core::mutants::{self, Mutant};

/// The memory of a process.
#[derive(Clone, Debug)]
pub(super) struct ViewHistory {
    /// Whether its node was on rings in an earlier life.
    pub lived_before: bool,
    /// The deliveries so far.
    pub account: DeliveryState,
    /// The last view that it installed, with the packets held when it ended.
    pub installed: Option<Ended>,
    /// Tentative views, which some member may have installed; ascending. None of their deliveries was handed out.
    pub tentative: Vec<Next>,
}

/// A view that has ended here, or will.
#[derive(Clone, Debug)]
pub(super) struct Ended {
    pub ring: RingId,
    pub members: Vec<Process>,
    pub frozen: Frozen,
}

/// The result of an exchange: a new view, and the deliveries up to it and with it.
#[derive(Clone, Debug)]
pub(super) struct Next {
    pub ring: RingId,
    pub members: Vec<Process>,
    pub stretch: PendingDeliveries,
}

/// Deliveries, and the state of the process after them.
#[derive(Clone, Debug)]
pub(super) struct PendingDeliveries {
    pub deliveries: Vec<Delivery>,
    pub account: DeliveryState,
    /// The number of packets of ended views among them.
    pub forced: u64,
}

impl Ended {
    /// A view that has just begun.
    fn begun(ring: RingId, members: &[Process]) -> Self {
        Self {
            ring,
            members: members.to_vec(),
            frozen: Frozen {
                delivered: vec![0; members.len()],
                held: Vec::new(),
            },
        }
    }

    fn standing(&self, account: &DeliveryState) -> ViewState {
        let delivered = self
            .frozen
            .delivered
            .iter()
            .copied()
            .chain(core::iter::repeat(0));
        let mut held: Vec<Name> = self.frozen.held.iter().filter_map(Name::of).collect();
        // In this order the names take few bytes.
        held.sort_unstable_by_key(|name| name.id);
        ViewState {
            view: self.ring,
            members: self.members.clone(),
            delivered: delivered.take(self.members.len()).collect(),
            held,
            watermarks: account.watermarks.clone(),
            position: account.position,
        }
    }
}

impl ViewHistory {
    pub fn new() -> Self {
        Self {
            lived_before: false,
            account: DeliveryState::new(),
            installed: None,
            tentative: Vec::new(),
        }
    }

    /// Whether its node was in views of which it knows nothing. A process that has only kept the outcome of an exchange
    /// has not been in a view.
    const fn has_forgotten(&self) -> bool {
        self.lived_before && self.installed.is_none()
    }

    /// The knowledge that this process tells the members of a primary configuration.
    pub fn recover(&self, note: Bytes) -> Recover {
        let tentative = self.tentative.iter();
        Recover {
            forgot: self.has_forgotten(),
            installed: self
                .installed
                .as_ref()
                .map(|ended| ended.standing(&self.account)),
            tentative: tentative
                .map(|next| Ended::begun(next.ring, &next.members).standing(&next.stretch.account))
                .collect(),
            note,
        }
    }

    /// Forgets tentative views that no member can have installed, as the outcome shows.
    pub fn forget_refuted(&mut self, outcome: &Outcome) {
        let last = outcome.last.as_ref().map(|(ring, _)| *ring);
        self.tentative.retain(|next| Some(next.ring) <= last);
    }

    /// The packets of the last view that it holds, by name.
    pub fn held(&self, last: RingId) -> BTreeMap<PacketId, &Packet> {
        let ended = self.installed.as_ref().filter(|ended| ended.ring == last);
        let held = ended.into_iter().flat_map(|ended| &ended.frozen.held);
        held.map(|held| (held.packet.id, &held.packet)).collect()
    }

    /// The deliveries up to a view of these members, and the state after them. `None` if packets are missing: their
    /// sender breaks the rules.
    pub fn next<P: DataPath>(
        &self,
        (ring, members, me): (RingId, &[Process], Process),
        outcome: &Outcome,
        payloads: &BTreeMap<PacketId, Packet>,
    ) -> Option<Next> {
        let mut stretch = self.base(outcome);
        self.force::<P>(&mut stretch, outcome, payloads)?;
        let account = &mut stretch.account;
        account.forget_parts();
        if !mutants::on(Mutant::V04) || self.stands_in(outcome) {
            account.joins(&outcome.watermarks);
        }
        let missed = core::mem::replace(&mut account.position, outcome.position);
        account.retain_lives(members);
        // If all members with the order have ended, a new one begins, and knows of no delivery. A sender does not send
        // messages again that it has delivered itself.
        account.watermarks.raise(me, self.account.watermarks.of(me));
        if self.installed.is_some() && !self.stands_in(outcome) {
            stretch.deliveries.push(Delivery::Missed {
                seq: missed,
                count: outcome.position.saturating_sub(missed),
                own: account.watermarks.of(me),
            });
        }
        stretch.deliveries.extend([
            Delivery::Configuration(Configuration {
                kind: ConfigurationKind::Regular(ring),
                members: members.to_vec(),
            }),
            Delivery::Primary(ring),
        ]);
        Some(Next {
            ring,
            members: members.to_vec(),
            stretch,
        })
    }

    fn stands_in(&self, outcome: &Outcome) -> bool {
        let last = outcome.last.as_ref().map(|(ring, _)| *ring);
        let installed = self.installed.as_ref().map(|ended| ended.ring);
        last.is_some()
            && (installed == last || self.tentative.iter().any(|next| Some(next.ring) == last))
    }

    /// The state of this process in the last view of the group, if it was in that view.
    fn base(&self, outcome: &Outcome) -> PendingDeliveries {
        let last = outcome.last.as_ref().map(|(ring, _)| *ring);
        let mut tentative = self.tentative.iter();
        match tentative.find(|next| Some(next.ring) == last) {
            Some(next) => next.stretch.clone(),
            None => PendingDeliveries {
                deliveries: Vec::new(),
                account: self.account.clone(),
                forced: 0,
            },
        }
    }

    /// Delivers the packets that all survivors together hold and this one has not delivered.
    fn force<P: DataPath>(
        &self,
        stretch: &mut PendingDeliveries,
        outcome: &Outcome,
        payloads: &BTreeMap<PacketId, Packet>,
    ) -> Option<()> {
        let (Some((last, senders)), true) = (&outcome.last, self.stands_in(outcome)) else {
            return Some(());
        };
        let installed = self.installed.as_ref().filter(|ended| ended.ring == *last);
        let delivered = |id: PacketId| {
            let delivered =
                installed.and_then(|ended| ended.frozen.delivered.get(usize::from(id.sender)));
            delivered.is_some_and(|delivered| id.number <= *delivered)
        };
        let here = self.held(*last);
        let mut order = Vec::new();
        for (id, name) in &outcome.forced {
            let packet = if delivered(*id) {
                // A packet that was delivered only has its place in the order.
                Packet {
                    id: *id,
                    load: name.load,
                    bytes: Bytes::new(),
                }
            } else {
                let held = here.get(id).copied().or_else(|| payloads.get(id));
                held.filter(|packet| name.fits(packet))?.clone()
            };
            order.push(Held {
                packet,
                place: name.place.clone(),
            });
        }
        if mutants::on(Mutant::V06) {
            let arrived = |one: &Held| {
                installed.and_then(|ended| ended.frozen.held.iter().position(|held| held == one))
            };
            order.sort_by_key(arrived);
        } else {
            arrange::<P>(&mut order);
        }
        for Held { packet, .. } in order {
            if !delivered(packet.id) {
                let sender = senders[usize::from(packet.id.sender)];
                stretch.forced += u64::from(packet.load != Load::Own);
                stretch
                    .account
                    .deliver(sender, packet, &mut stretch.deliveries);
            }
        }
        Some(())
    }

    /// Begins a view; returns the deliveries up to it and with it.
    pub fn install(&mut self, next: Next) -> Vec<Delivery> {
        self.installed = Some(Ended::begun(next.ring, &next.members));
        self.account = next.stretch.account;
        self.tentative.clear();
        next.stretch.deliveries
    }
}

impl ViewHistory {
    /// Its invariants.
    pub fn check(&self) {
        let installed = self.installed.as_ref();
        let rings = installed.map(|ended| ended.ring).into_iter();
        let rings: Vec<RingId> = rings
            .chain(self.tentative.iter().map(|next| next.ring))
            .collect();
        assert!(
            self.tentative.len() <= MOST_TENTATIVE,
            "few views are tentative"
        );
        assert!(
            rings.windows(2).all(|pair| pair[0] < pair[1]),
            "a view that may have been installed is behind the one that was"
        );
        if let Some(ended) = installed {
            assert!(
                ended.frozen.delivered.len() <= ended.members.len(),
                "only members have delivered"
            );
        }
        self.account.check();
        for next in &self.tentative {
            assert!(!next.members.is_empty(), "a view has members");
            next.stretch.account.check();
        }
    }
}

/// Puts packets into the order of the data path, in which each sender's packets take the places of that sender by
/// ascending number: a place may be known only to a process that does not hold the packet, and then counts as unknown.
fn arrange<P: DataPath>(order: &mut Vec<Held>) {
    P::arrange(order);
    if mutants::on(Mutant::V11) {
        return;
    }
    let senders: Vec<u16> = order.iter().map(|held| held.packet.id.sender).collect();
    let mut of: BTreeMap<u16, BTreeMap<u64, Held>> = BTreeMap::new();
    for held in order.drain(..) {
        let PacketId { sender, number } = held.packet.id;
        of.entry(sender).or_default().insert(number, held);
    }
    let next = senders
        .iter()
        .filter_map(|sender| of.get_mut(sender)?.pop_first());
    order.extend(next.map(|(_, held)| held));
}

#[cfg(test)]
mod tests {
    use super::*;
    use rota_core::contract::{Incarnation, NodeId};

    fn next(ring_seq: u64) -> Next {
        let node = NodeId::new(1).expect("not 0");
        let incarnation = Incarnation(3);
        Next {
            ring: RingId {
                ring_seq,
                rep: node,
                incarnation,
            },
            members: alloc::vec![Process { node, incarnation }],
            stretch: PendingDeliveries {
                deliveries: Vec::new(),
                account: DeliveryState::new(),
                forced: 0,
            },
        }
    }

    #[test]
    fn who_was_restarted_has_forgotten_until_it_is_in_a_view() {
        let mut memory = ViewHistory::new();
        assert!(!memory.recover(Bytes::new()).forgot, "its first life");
        memory.lived_before = true;
        assert!(memory.recover(Bytes::new()).forgot);
        // Some other process may have installed this one.
        memory.tentative.push(next(5));
        let recover = memory.recover(Bytes::new());
        assert!(recover.forgot && recover.installed.is_none() && recover.tentative.len() == 1);
        memory.install(next(9));
        assert!(!memory.recover(Bytes::new()).forgot);
    }
}
