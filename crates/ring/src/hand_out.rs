//! The conversion of ordered packets into the application's messages, and the ring of one.

use super::ordering::{Context, Ordering, Unpacking};
use super::slot::Slot;
use rota_core::contract::{Message, MessageId, Service};
use rota_core::mutants::{self, Mutant};
use rota_core::pack::Unpacked;

impl Ordering {
    /// The next message to deliver, if one is due.
    #[inline(always)]
    pub fn poll_message(&mut self, ctx: &mut Context<'_>) -> Option<Message> {
        loop {
            if let Some(unpacking) = self.unpacking {
                match self.inbox.next_message() {
                    Some(Ok(unpacked)) => return Some(self.message(unpacking, unpacked)),
                    Some(Err(_)) => {
                        // Behind a gap a message may lack its beginning, through no fault of its sender.
                        ctx.counters.messages_broken += u64::from(!self.ended);
                        continue;
                    }
                    None => self.unpacking = None,
                }
            }
            let Some(due) = self.delivery.next(&mut self.buffer, self.safe_line) else {
                self.discard();
                return None;
            };
            let (seq, member, service) = (due.seq, due.member, due.service);
            let packet = Unpacking {
                seq,
                member,
                service,
            };
            match due.frame.into_single_message() {
                Ok((counter, payload)) => {
                    let unpacked = Unpacked {
                        counter,
                        index: 0,
                        reliable: false,
                        payload,
                    };
                    return Some(self.message(packet, unpacked));
                }
                Err(frame) => {
                    self.unpacking = Some(packet);
                    let sender = self.members[usize::from(member)].node;
                    self.inbox.take(sender, frame);
                }
            }
        }
    }

    #[inline(always)]
    fn message(&self, packet: Unpacking, unpacked: Unpacked) -> Message {
        let service = if unpacked.reliable {
            Service::Reliable
        } else {
            packet.service
        };
        Message {
            id: MessageId {
                process: self.members[usize::from(packet.member)],
                counter: unpacked.counter,
            },
            service,
            seq: packet.seq,
            index: unpacked.index,
            payload: unpacked.payload,
        }
    }

    /// Forgets the packets that all members have and this member has delivered (thesis §3.1.2.4).
    pub(super) fn discard(&mut self) {
        let done_with = if self.recovering.is_some() {
            // The packets of old rings in these packets were taken out on receipt.
            self.safe_line
        } else {
            self.safe_line.min(self.delivery.delivered())
        };
        let done_with = if mutants::on(Mutant::M08) {
            self.delivery.delivered()
        } else {
            done_with
        };
        self.buffer.discard_to(done_with);
    }

    /// Orders the waiting messages on a ring of one, which needs no token: they are ordered, and safe, at once.
    pub(super) fn order_alone(&mut self, ctx: &mut Context<'_>) {
        self.discard();
        let window = u64::from(self.config.outstanding_window);
        while self.aru() < self.delivery.delivered().saturating_add(window) {
            if ctx.waiting() == 0 {
                break;
            }
            let Some(out) = ctx.outbox.take() else { break };
            let seq = self.aru() + 1;
            self.trace(ctx, seq, &out.frame);
            let round = 0;
            let slot = Slot {
                member: self.my_index,
                service: out.service,
                round,
                frame: out.frame,
                encapsulated: false,
                delivered: false,
            };
            self.buffer.insert(seq, slot);
            self.safe_line = seq;
            ctx.counters.packets_sent += 1;
            self.delivery.on_packet(&mut self.buffer, seq, out.service);
        }
    }
}
