//! The operations of membership on a ring: to query it, its ill members too, to end it, to install it (membership A8 to
//! A10).

use alloc::collections::VecDeque;
use core::hash::Hasher;
use core::ops::RangeInclusive;

use super::ordering::{Context, Ordering};
use super::recovering::Recovering;
use super::slot::Slot;
use crate::wire::{Counts, OldRing, Settings};
use rota_core::buffer::Inserted;
use rota_core::contract::{NodeId, Seq, Service, Time};
use rota_core::fingerprint::Fingerprint;
use rota_core::wire::Frame;

/// A packet of a ring that has broken.
#[derive(Clone, Debug)]
pub(crate) struct OldPacket {
    pub seq: Seq,
    pub sender: NodeId,
    pub service: Service,
    pub frame: Frame,
}

/// The values that the members of a transitional configuration agree on when their ring ends.
#[derive(Clone, Hash, Debug)]
pub(crate) struct Ended {
    /// The highest packet that any of them has.
    pub high: Seq,
    /// The highest of their safe lines.
    pub line: Seq,
    /// The members whose messages are delivered even behind a gap: bit `i` is member `i` of the old ring.
    pub obliged: u128,
}

impl Ordering {
    /// Begins the recovery, in which the members exchange the packets of their old rings. This member sends `queue`:
    /// wrapped packets by their old sequence numbers.
    pub(crate) fn begin_recovery(&mut self, queue: VecDeque<(Seq, Frame)>) {
        self.recovering = Some(Recovering::new(queue));
        self.packets.begin_recovery();
    }

    /// Whether this member has said that it has everything of its old ring.
    pub(crate) fn recovery_acknowledged(&self) -> bool {
        self.recovering
            .as_ref()
            .is_some_and(Recovering::acknowledged)
    }

    /// Whether all members are known to have said so.
    pub(crate) fn recovery_complete(&self) -> bool {
        self.recovering
            .as_ref()
            .is_some_and(Recovering::is_complete)
    }

    /// Whether the recovery goes round without coming to an end.
    pub(crate) fn recovery_stuck(&self) -> bool {
        self.recovering.as_ref().is_some_and(Recovering::is_stuck)
    }

    /// Notes that another member has sent packet `seq` of the old ring, so that this one need not.
    pub(crate) fn recovered_by_another(&mut self, seq: Seq) {
        if let Some(recovering) = &mut self.recovering {
            recovering.sent_by_another(seq);
        }
    }

    /// Installs the ring (R6): forgets the wrapped packets at once; the application's messages follow.
    pub(crate) fn install(&mut self) {
        let Some(recovering) = self.recovering.take() else {
            return;
        };
        self.packets.install(recovering.install_seq());
    }

    /// The state of this ring as the member tells it to the others, with at most `ranges` ranges of packets above its
    /// aru.
    pub(crate) fn tell(
        &self,
        obligations: u128,
        (next_message, settings, counts): (u64, Settings, Counts),
        ranges: usize,
    ) -> OldRing {
        let (have, more, high) = self.packets.have(ranges);
        OldRing {
            ring: self.ring(),
            aru: self.aru(),
            high,
            safe_line: self.safe_line(),
            obligations,
            next_message,
            settings,
            counts,
            have,
            more,
        }
    }

    /// The sequence numbers of the packets that the buffer may still hold.
    pub(crate) const fn kept(&self) -> RangeInclusive<Seq> {
        self.packets.kept()
    }

    /// A packet of this ring, if the buffer still holds it, and it does not wrap a packet of an older ring.
    pub(crate) fn old_packet(&self, seq: Seq) -> Option<OldPacket> {
        let slot = self.packets.get(seq).filter(|slot| !slot.encapsulated)?;
        Some(OldPacket {
            seq,
            sender: self.roster.process(slot.member).node,
            service: slot.service,
            frame: slot.frame.clone(),
        })
    }

    /// Takes a packet of this ring that came wrapped in a packet of another. Returns false if the buffer has no room
    /// for it: then the member must not acknowledge it, as all members of the transitional configuration deliver the
    /// same.
    pub(crate) fn adopt(&mut self, ctx: &mut Context<'_>, packet: OldPacket) -> bool {
        let Some(member) = self.roster.index_of(packet.sender) else {
            ctx.counters.datagrams_foreign_ring += 1;
            return true;
        };
        let OldPacket {
            seq,
            service,
            frame,
            ..
        } = packet;
        let slot = Slot {
            member,
            service,
            round: 0,
            frame,
            encapsulated: false,
            delivered: false,
        };
        let inserted = self.packets.put(seq, slot);
        ctx.counters.packets_recovered += u64::from(inserted == Inserted::New);
        ctx.counters.packets_beyond_window += u64::from(inserted == Inserted::BeyondWindow);
        inserted != Inserted::BeyondWindow
    }

    /// Ends the ring: the messages that are due in its regular configuration can be polled (R1).
    pub(crate) fn end_regular(&mut self, ended: &Ended) {
        self.packets.end_regular(ended);
    }

    /// Lets the messages that are due in the transitional configuration be polled from now on (R3).
    pub(crate) const fn end_transitional(&mut self, ended: &Ended) {
        self.packets.end_transitional(ended);
    }

    /// A member that has to be given up because it cannot receive what the others can.
    pub(crate) fn deaf_member(&self, now: Time) -> Option<NodeId> {
        self.deaf.member(now, 3 * self.config.timers.token_loss)
    }

    /// Whether no member receives what this one sends. The verdict comes sooner if this member has fallen silent before
    /// (`again`): else each attempt to come back would stop the others for as long.
    pub(crate) fn is_mute(&self, now: Time, again: bool) -> bool {
        let losses = if again { 1 } else { 5 };
        self.deaf
            .is_mute(now, losses * self.config.timers.token_loss)
    }

    /// Counts the losses of this member on the ring `before` on this one, too, if both have the same nodes.
    pub(crate) fn go_on_judging(&mut self, before: &Self) {
        if self.roster.has_nodes_of(&before.roster) {
            self.requests.go_on_from(&before.requests);
        }
    }

    /// Whether this member loses much that the others get. On a ring of two it is no use to know which of the two is
    /// ill.
    pub(crate) fn loses_much(&mut self, now: Time, found_out: bool) -> bool {
        let nanos = self.config.timers.token_loss;
        self.members().len() > 2 && self.requests.loses_much(now, nanos, found_out)
    }

    /// A member that another member may just have given up as deaf.
    pub(crate) fn suspected_member(&self, now: Time) -> Option<NodeId> {
        self.deaf.behind(now, 2 * self.config.timers.token_loss)
    }

    /// Feeds `print` with all state that decides the further steps of this member.
    pub(crate) fn fingerprint(&self, print: &mut Fingerprint<'_, impl Hasher>) {
        let Self {
            config: _,
            roster,
            packets,
            requests,
            flow,
            rotation,
            deaf,
            recovering,
        } = self;
        print.add((roster.ring(), roster.me(), roster.members()));
        print.add((flow, recovering));
        packets.fingerprint(print);
        requests.fingerprint(print);
        rotation.fingerprint(print);
        deaf.fingerprint(print);
    }

    /// The `token_seq` of the token that this member keeps while the ring is idle.
    pub(crate) fn holds(&self) -> Option<u64> {
        self.rotation.held()
    }
}
