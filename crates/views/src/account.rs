//! From packets in their order to the application's messages: what was delivered, and what comes next.

use bytes::Bytes;

use super::path::{Load, Packet};
use super::watermarks::Watermarks;
use rota_core::contract::{Delivery, Message, MessageId, Process, Seq, Service};
use rota_core::mutants::{self, Mutant};
use rota_core::pack::{Inbox, MOST_MESSAGE_BYTES, Unpacked};
use rota_core::wire::Frame;

/// What a process has delivered.
#[derive(Clone, Debug)]
pub(super) struct Account {
    inbox: Inbox,
    pub watermarks: Watermarks,
    /// The position that the next packet with messages gets.
    pub position: Seq,
    pub counters: Counters,
}

/// What it counts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counters {
    /// Messages that had been delivered before.
    pub duplicates: u64,
    /// Packets or messages whose sender breaks the rules.
    pub malformed: u64,
}

impl Account {
    /// Of a process that has delivered nothing.
    pub fn new() -> Self {
        Self {
            inbox: Inbox::new(MOST_MESSAGE_BYTES),
            watermarks: Watermarks::default(),
            position: 1,
            counters: Counters::default(),
        }
    }

    /// A view ends: nobody will get the rest of the messages of which there are parts.
    pub fn forget_parts(&mut self) {
        if !mutants::on(Mutant::V05) {
            self.inbox = Inbox::new(MOST_MESSAGE_BYTES);
        }
    }

    /// The next packet in the order: hands its messages out.
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
