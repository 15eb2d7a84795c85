//! The operations of membership on a ring: to query it, to end it, to install it (membership A8, A9).

use alloc::collections::VecDeque;
use core::hash::Hasher;
use core::ops::RangeInclusive;

use super::ordering::{Context, Ordering};
use super::recovering::Recovering;
use super::slot::Slot;
use crate::wire::{Counts, OldRing, Settings};
use rota_core::buffer::Inserted;
use rota_core::contract::{NodeId, Seq, Service};
use rota_core::fingerprint::Fingerprint;
use rota_core::mutants::{self, Mutant};
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
        let base = recovering.install_seq();
        self.delivery.start_behind(base);
        self.safe_line = self.safe_line.max(base);
        self.buffer.discard_to(base);
    }

    /// The state of this ring as the member tells it to the others, with at most `ranges` ranges of packets above its
    /// aru.
    pub(crate) fn tell(
        &self,
        obligations: u128,
        (next_message, settings, counts): (u64, Settings, Counts),
        ranges: usize,
    ) -> OldRing {
        let (have, more) = self.buffer.have(ranges);
        OldRing {
            ring: self.ring,
            aru: self.buffer.aru(),
            high: self.buffer.high(),
            safe_line: self.safe_line,
            obligations,
            next_message,
            settings,
            counts,
            have,
            more,
        }
    }

    /// The sequence numbers of the packets that the buffer may still hold.
    pub(crate) fn kept(&self) -> RangeInclusive<Seq> {
        self.buffer.discarded() + 1..=self.buffer.high()
    }

    /// A packet of this ring, if the buffer still holds it, and it does not wrap a packet of an older ring.
    pub(crate) fn old_packet(&self, seq: Seq) -> Option<OldPacket> {
        let slot = self.buffer.get(seq).filter(|slot| !slot.encapsulated)?;
        Some(OldPacket {
            seq,
            sender: self.members[usize::from(slot.member)].node,
            service: slot.service,
            frame: slot.frame.clone(),
        })
    }

    /// Takes a packet of this ring that came wrapped in a packet of another. Returns false if the buffer has no room
    /// for it: then the member must not acknowledge it, as all members of the transitional configuration deliver the
    /// same.
    pub(crate) fn adopt(&mut self, ctx: &mut Context<'_>, packet: OldPacket) -> bool {
        let Some(member) = self.member_index(packet.sender) else {
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
        let inserted = self.buffer.insert(seq, slot);
        if inserted == Inserted::New {
            ctx.counters.packets_recovered += 1;
            self.delivery.on_packet(&mut self.buffer, seq, service);
        }
        ctx.counters.packets_beyond_window += u64::from(inserted == Inserted::BeyondWindow);
        inserted != Inserted::BeyondWindow
    }

    /// Ends the ring: the messages that are due in its regular configuration can be polled (R1).
    pub(crate) fn end_regular(&mut self, ended: &Ended) {
        self.ended = true;
        self.safe_line = self.safe_line.max(ended.line);
        if mutants::on(Mutant::M17) {
            self.safe_line = ended.high;
        }
    }

    /// Lets the messages that are due in the transitional configuration be polled from now on (R3).
    pub(crate) const fn end_transitional(&mut self, ended: &Ended) {
        self.delivery.end(ended.high, ended.obliged);
    }

    /// Feeds `print` with all state that decides the further steps of this member.
    pub(crate) fn fingerprint(&self, print: &mut Fingerprint<'_, impl Hasher>) {
        let Self {
            config: _,
            told: _,
            ring,
            me,
            my_index: _,
            successor: _,
            predecessor: _,
            members,
            buffer,
            delivery,
            inbox,
            unpacking,
            flow,
            priority,
            resend,
            idle,
            token_seq,
            seq_received,
            aru_sent,
            safe_line,
            recovering,
            ended,
            deaf,
            patience,
            asked_up_to: _,
            // A search over states has too few packets for a verdict of `lossy`.
            lossy: _,
        } = self;
        print.add((ring, me, members));
        print.add((buffer, delivery, inbox, unpacking, flow, priority));
        print.add((token_seq, seq_received, aru_sent, safe_line));
        print.add((recovering, ended));
        resend.fingerprint(print);
        idle.fingerprint(print);
        deaf.fingerprint(print);
        patience.fingerprint(print);
    }

    /// The `token_seq` of the token that this member keeps while the ring is idle.
    pub(crate) fn holds(&self) -> Option<u64> {
        self.idle.held()
    }

    /// Whether this member has, or had, a packet.
    pub fn has_received(&self, seq: Seq) -> bool {
        seq <= self.buffer.aru() || self.buffer.get(seq).is_some()
    }
}
