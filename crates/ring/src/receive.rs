//! The receipt of packets (thesis §3.1.3).

use super::ordering::{Context, Ordering};
use super::slot::Slot;
use crate::wire::Data;
use rota_core::buffer::Inserted;
use rota_core::contract::NodeId;
use rota_core::mutants::{self, Mutant};
use rota_core::wire::Frame;

impl Ordering {
    /// Takes a packet of this ring (thesis §3.1.3). If it is new and wraps a packet of an old ring, returns the frame
    /// that wraps it.
    #[inline(always)]
    pub fn on_data(&mut self, ctx: &mut Context<'_>, data: Data) -> Option<Frame> {
        let Some(member) = self.member_index(data.sender) else {
            ctx.counters.datagrams_foreign_ring += 1;
            return None;
        };
        if data.encapsulated && self.recovering.is_none() {
            // An installed ring has all wrapped packets, and no more are sent.
            ctx.counters.packets_duplicate += 1;
            return None;
        }
        // A packet that was numbered before this member's last visit is sent again with its old stamp, which looks
        // newer once the stamps have gone half way round: it says nothing of the token.
        let is_new = data.seq > self.seq_received || mutants::on(Mutant::M57);
        if is_new && self.priority.on_data(data.sender, data.round) {
            self.resend.on_evidence();
        }
        self.keep(ctx, member, data)
    }

    #[inline(always)]
    fn keep(&mut self, ctx: &mut Context<'_>, member: u16, data: Data) -> Option<Frame> {
        let Data {
            seq,
            service,
            round,
            frame,
            encapsulated,
            ..
        } = data;
        let wrapped = encapsulated.then(|| frame.clone());
        let slot = Slot {
            member,
            service,
            round,
            frame,
            encapsulated,
            delivered: false,
        };
        match self.buffer.insert(seq, slot) {
            Inserted::New => {
                ctx.counters.packets_received += 1;
                let asked_for = seq <= self.asked_up_to;
                self.lossy.on_new(member, asked_for);
                if asked_for {
                    ctx.counters
                        .peer(self.members[usize::from(member)].node)
                        .repaired += 1;
                }
                if !encapsulated {
                    self.delivery.on_packet(&mut self.buffer, seq, service);
                }
                return wrapped;
            }
            Inserted::Duplicate => {
                ctx.counters.packets_duplicate += 1;
                self.patience.on_duplicate(seq);
                if member != self.my_index {
                    self.lossy.on_again();
                }
            }
            Inserted::BeyondWindow => ctx.counters.packets_beyond_window += 1,
        }
        None
    }

    #[inline(always)]
    pub(super) fn member_index(&self, node: NodeId) -> Option<u16> {
        let found = self
            .members
            .binary_search_by_key(&node, |member| member.node);
        // At most 128 members.
        found.ok().map(|index| index as u16)
    }
}
