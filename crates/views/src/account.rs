//! Deliveries: the way from packets in their order to the application's messages, each of which is delivered once.

use bytes::Bytes;

use super::path::{Load, Packet};
use super::watermarks::Watermarks;
use rota_core::contract::{Delivery, Message, MessageId, Process, Seq, Service};
use rota_core::mutants::{self, Mutant};
use rota_core::pack::{Inbox, MOST_MESSAGE_BYTES, Unpacked};
use rota_core::wire::Frame;

/// The deliveries of a process so far.
#[derive(Clone, Debug)]
pub(super) struct DeliveryState {
    inbox: Inbox,
    /// The messages that the members of its view have delivered, or know as delivered: the same at all of them.
    pub watermarks: Watermarks,
    /// The messages that this process has delivered in an order that has ended, beyond those that its present order
    /// knows. No member is told of them: the others still deliver those messages.
    delivered_before: Watermarks,
    /// The position that the next packet with messages gets.
    pub position: Seq,
    pub counters: Counters,
}

/// The counters of deliveries.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counters {
    /// Messages that had been delivered before.
    pub duplicates: u64,
    /// Packets or messages whose sender breaks the rules.
    pub malformed: u64,
}

impl DeliveryState {
    /// The state of a process that has delivered nothing.
    pub fn new() -> Self {
        Self {
            inbox: Inbox::new(MOST_MESSAGE_BYTES),
            watermarks: Watermarks::default(),
            delivered_before: Watermarks::default(),
            position: 1,
            counters: Counters::default(),
        }
    }

    /// Forgets the parts of messages, as a view ends: no process will get the rest of them.
    pub fn forget_parts(&mut self) {
        if !mutants::on(Mutant::V05) {
            self.inbox = Inbox::new(MOST_MESSAGE_BYTES);
        }
    }

    /// Joins an order whose members agree on these watermarks: messages beyond them that this process has delivered
    /// itself it delivers no second time.
    pub fn joins(&mut self, watermarks: &Watermarks) {
        for (process, counter) in self.watermarks.iter() {
            if counter > watermarks.of(process) {
                self.delivered_before.raise(process, counter);
            }
        }
        self.watermarks = watermarks.clone();
    }

    /// Forgets the watermarks of earlier lives of these members.
    pub fn retain_lives(&mut self, members: &[Process]) {
        self.watermarks.retain_lives(members);
        self.delivered_before.retain_lives(members);
    }

    /// Delivers the next packet in the order: hands its messages out.
    pub fn deliver(&mut self, sender: Process, packet: Packet, out: &mut impl Extend<Delivery>) {
        let Load::Messages(service) = packet.load else {
            return;
        };
        let seq = self.position;
        self.position = seq.saturating_add(1);
        let Ok(frame) = Frame::parse(packet.bytes) else {
            self.counters.malformed += 1;
            return;
        };
        match frame.into_single_message() {
            Ok((counter, payload)) => {
                out.extend(self.message(sender, service, seq, whole(counter, payload)))
            }
            Err(frame) => self.unpack(sender, service, seq, frame, out),
        }
    }

    fn unpack(
        &mut self,
        sender: Process,
        service: Service,
        seq: Seq,
        frame: Frame,
        out: &mut impl Extend<Delivery>,
    ) {
        self.inbox.take(sender.node, frame);
        while let Some(unpacked) = self.inbox.next_message() {
            match unpacked {
                Ok(unpacked) => out.extend(self.message(sender, service, seq, unpacked)),
                Err(_) => self.counters.malformed += 1,
            }
        }
    }

    /// A message, if it has not been delivered before.
    fn message(
        &mut self,
        process: Process,
        service: Service,
        seq: Seq,
        unpacked: Unpacked,
    ) -> Option<Delivery> {
        let Unpacked {
            counter,
            index,
            reliable,
            payload,
        } = unpacked;
        if counter <= self.watermarks.of(process) {
            self.counters.duplicates += 1;
            return None;
        }
        self.watermarks.raise(process, counter);
        if counter <= self.delivered_before.of(process) {
            self.counters.duplicates += 1;
            return None;
        }
        Some(Delivery::Message(Message {
            id: MessageId { process, counter },
            service: if reliable { Service::Reliable } else { service },
            seq,
            index,
            payload,
        }))
    }
}

const fn whole(counter: u64, payload: Bytes) -> Unpacked {
    Unpacked {
        counter,
        index: 0,
        reliable: false,
        payload,
    }
}

impl DeliveryState {
    /// Its invariants.
    pub fn check(&self) {
        assert!(self.position > 0, "positions begin with one");
        self.watermarks.check();
        self.delivered_before.check();
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::path::PacketId;
    use rota_core::contract::{Incarnation, NodeId};
    use rota_core::wire::{push_whole, start_frame};

    fn process(id: u16) -> Process {
        Process {
            node: NodeId::new(id).expect("not 0"),
            incarnation: Incarnation(3),
        }
    }

    /// The messages of process 4 that an account hands out of a packet with message `counter`, with their positions.
    fn deliver(account: &mut DeliveryState, counter: u64) -> Vec<(u64, Seq)> {
        let mut bytes = Vec::new();
        start_frame(&mut bytes, counter);
        push_whole(&mut bytes, b"x");
        let packet = Packet {
            id: PacketId {
                sender: 0,
                number: counter,
            },
            load: Load::Messages(Service::Safe),
            bytes: bytes.into(),
        };
        let mut out = Vec::new();
        account.deliver(process(4), packet, &mut out);
        let seen = |delivery| match delivery {
            Delivery::Message(message) => (message.id.counter, message.seq),
            other => panic!("{other:?}"),
        };
        out.into_iter().map(seen).collect()
    }

    #[test]
    fn what_was_delivered_in_an_order_that_has_ended_is_not_delivered_again_in_a_new_one() {
        let mut left = DeliveryState::new();
        for counter in 1..=3 {
            assert_eq!(deliver(&mut left, counter), [(counter, counter)]);
        }
        // All other processes with that order have ended. The new order knows of process 4 only that it has delivered
        // 1; it sends 2 again.
        let mut agreed = Watermarks::default();
        agreed.raise(process(4), 1);
        let mut fresh = DeliveryState::new();
        for account in [&mut left, &mut fresh] {
            account.joins(&agreed);
            account.retain_lives(&[process(4)]);
            account.position = 9;
            assert_eq!(account.watermarks, agreed, "all tell the same");
        }
        let both = |left: &mut DeliveryState, fresh: &mut DeliveryState, counter| {
            let seen = (deliver(left, counter), deliver(fresh, counter));
            assert_eq!(left.watermarks, fresh.watermarks, "and go on to");
            seen
        };
        let none = Vec::new();
        assert_eq!(
            both(&mut left, &mut fresh, 2),
            (none.clone(), [(2, 9)].into())
        );
        assert_eq!(both(&mut left, &mut fresh, 3), (none, [(3, 10)].into()));
        let next = Vec::from([(4, 11)]);
        assert_eq!(both(&mut left, &mut fresh, 4), (next.clone(), next));
    }
}
