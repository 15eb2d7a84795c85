//! The packets of a ring at one member, from receipt until all members have them and this one has delivered them; and
//! the conversion of ordered packets into the application's messages.

use alloc::vec::Vec;
use core::hash::Hasher;
use core::ops::RangeInclusive;

use super::deaf::Next;
use super::delivery::Delivery;
use super::roster::Roster;
use super::slot::Slot;
use super::stability::Stability;
use super::{Counters, Ended};
use rota_core::buffer::{Buffer, Inserted};
use rota_core::contract::{Message, MessageId, Seq, Service};
use rota_core::fingerprint::Fingerprint;
use rota_core::mutants::{self, Mutant};
use rota_core::pack::{Inbox, Unpacked};
use rota_core::wire::RequestRange;

/// The packets of a ring that this member keeps.
#[derive(Clone, Debug)]
pub(super) struct Packets {
    buffer: Buffer<Slot>,
    stability: Stability,
    delivery: Delivery,
    inbox: Inbox,
    unpacking: Option<Unpacking>,
    stage: Stage,
    /// The packets that the application may be behind before it holds back the aru of this member.
    window: u64,
}

/// The use that is made of new packets.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Stage {
    /// They wrap packets of old rings, taken out on receipt: they are not delivered.
    Recovery,
    /// They are delivered, on a ring that is installed.
    Installed,
    /// The ring has broken and another follows: nothing new is ordered on it.
    Ended,
}

/// The packet whose messages are being handed out.
#[derive(Clone, Copy, Hash, Debug)]
struct Unpacking {
    seq: Seq,
    member: u16,
    service: Service,
}

impl Packets {
    /// Room for `most` packets at once. `starts` has the counter of the first message of each member; messages have
    /// `message_bytes` bytes at most.
    pub fn new(most: usize, starts: &[u64], message_bytes: usize, window: u64) -> Self {
        Self {
            buffer: Buffer::new(0, most),
            stability: Stability::default(),
            delivery: Delivery::new(0, starts),
            inbox: Inbox::new(message_bytes),
            unpacking: None,
            stage: Stage::Installed,
            window,
        }
    }

    /// Keeps a packet of another member.
    #[inline(always)]
    pub fn put(&mut self, seq: Seq, slot: Slot) -> Inserted {
        let (service, encapsulated) = (slot.service, slot.encapsulated);
        let inserted = self.buffer.insert(seq, slot);
        if inserted == Inserted::New && !encapsulated {
            self.delivery.on_packet(&mut self.buffer, seq, service);
        }
        inserted
    }

    /// Keeps a packet that this member has just numbered: nothing is read back from the network (thesis §5.1.5).
    pub fn put_own(&mut self, seq: Seq, slot: Slot) {
        let (service, encapsulated) = (slot.service, slot.encapsulated);
        self.buffer.insert(seq, slot);
        if !encapsulated {
            self.delivery.on_packet(&mut self.buffer, seq, service);
        }
    }

    /// The local aru: the sequence number up to which this member has every packet.
    pub const fn aru(&self) -> Seq {
        self.buffer.aru()
    }

    /// The aru that this member reports in the token. An application that does not take its deliveries holds it back,
    /// and so, through the safe line, the sending of all members: the buffer is bounded.
    pub fn reported_aru(&self) -> Seq {
        match self.stage {
            Stage::Recovery => self.aru(),
            Stage::Installed | Stage::Ended => self.aru().min(self.application_limit()),
        }
    }

    /// Whether the application has room for more packets than this member has.
    pub const fn application_has_room(&self) -> bool {
        self.aru() < self.application_limit()
    }

    const fn application_limit(&self) -> Seq {
        self.delivery.delivered().saturating_add(self.window)
    }

    /// The sequence number up to which all members are known to have every packet.
    pub const fn safe_line(&self) -> Seq {
        self.stability.line()
    }

    /// Notes the aru of a token that is passed on.
    pub fn on_aru_sent(&mut self, aru: Seq) {
        self.stability.on_sent(aru);
    }

    /// Notes that all members have every packet up to `line`, known by other means than two arus.
    pub fn on_safe(&mut self, line: Seq) {
        self.stability.raise(line);
    }

    /// The highest sequence number for which there is room.
    pub const fn reach(&self) -> Seq {
        self.discarded().saturating_add(self.buffer.capacity())
    }

    /// The sequence number up to which packets have been forgotten.
    pub const fn discarded(&self) -> Seq {
        self.buffer.discarded()
    }

    /// The sequence numbers of the packets that may still be here.
    pub const fn kept(&self) -> RangeInclusive<Seq> {
        self.discarded() + 1..=self.buffer.high()
    }

    /// A packet, if it is here.
    pub fn get(&self, seq: Seq) -> Option<&Slot> {
        self.buffer.get(seq)
    }

    /// Whether this member has, or had, a packet.
    pub fn has_received(&self, seq: Seq) -> bool {
        seq <= self.aru() || self.get(seq).is_some()
    }

    /// The state of the packet behind an aru at the member of this index, which is this one.
    pub fn next_behind(&self, aru: Seq, my_index: u16) -> Next {
        match self.get(aru.saturating_add(1)) {
            Some(slot) if slot.member == my_index => Next::HasOwn,
            Some(_) => Next::Has,
            // The packet may have been forgotten here.
            None if self.aru() > aru => Next::Has,
            None => Next::Lacks,
        }
    }

    /// The missing packets up to `bound`, `most` ranges at most, and their number.
    pub fn missing(&self, bound: Seq, most: usize) -> (Vec<RequestRange>, u64) {
        let mut missing = Vec::new();
        let count = self.buffer.missing(bound, &mut missing, most);
        (missing, count)
    }

    /// The ranges of packets above the aru that are here, `most` at most, and whether there are more; and the highest
    /// packet.
    pub fn have(&self, most: usize) -> (Vec<RequestRange>, bool, Seq) {
        let (have, more) = self.buffer.have(most);
        (have, more, self.buffer.high())
    }

    /// The next message to deliver, if one is due.
    #[inline(always)]
    pub fn next_message(&mut self, roster: &Roster, counters: &mut Counters) -> Option<Message> {
        loop {
            if let Some(unpacking) = self.unpacking {
                match self.inbox.next_message() {
                    Some(Ok(unpacked)) => return Some(message(roster, unpacking, unpacked)),
                    Some(Err(_)) => {
                        // Behind a gap a message may lack its beginning, through no fault of its sender.
                        counters.messages_broken += u64::from(self.stage != Stage::Ended);
                        continue;
                    }
                    None => self.unpacking = None,
                }
            }
            let line = self.stability.line();
            let Some(due) = self.delivery.next(&mut self.buffer, line) else {
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
                    return Some(message(roster, packet, unpacked));
                }
                Err(frame) => {
                    self.unpacking = Some(packet);
                    self.inbox.take(roster.process(member).node, frame);
                }
            }
        }
    }

    /// Forgets the packets that all members have and this member has delivered (thesis §3.1.2.4).
    pub fn discard(&mut self) {
        let done_with = match self.stage {
            // The packets of old rings in these packets were taken out on receipt.
            Stage::Recovery => self.safe_line(),
            Stage::Installed | Stage::Ended => self.safe_line().min(self.delivery.delivered()),
        };
        let done_with = if mutants::on(Mutant::M08) {
            self.delivery.delivered()
        } else {
            done_with
        };
        self.buffer.discard_to(done_with);
    }

    /// Begins the recovery: from now on packets wrap those of old rings.
    pub const fn begin_recovery(&mut self) {
        self.stage = Stage::Recovery;
    }

    /// Ends the recovery: forgets the packets up to `base`, which belonged to it; the application's follow.
    pub fn install(&mut self, base: Seq) {
        self.stage = Stage::Installed;
        self.delivery.start_behind(base);
        self.stability.raise(base);
        self.buffer.discard_to(base);
    }

    /// Ends the ring: the messages that are due in its regular configuration are next (R1).
    pub fn end_regular(&mut self, ended: &Ended) {
        self.stage = Stage::Ended;
        self.stability.raise(ended.line);
        if mutants::on(Mutant::M17) {
            self.stability.raise(ended.high);
        }
    }

    /// Makes the messages next that are due in the transitional configuration (R3).
    pub const fn end_transitional(&mut self, ended: &Ended) {
        self.delivery.end(ended.high, ended.obliged);
    }

    /// Feeds `print` with all that decides what becomes of packets.
    pub fn fingerprint(&self, print: &mut Fingerprint<'_, impl Hasher>) {
        let Self {
            buffer,
            stability,
            delivery,
            inbox,
            unpacking,
            stage,
            window: _,
        } = self;
        print.add((buffer, stability, delivery, inbox, unpacking, stage));
    }

    /// Its invariants; `recovers` says whether the ring is one that is not installed yet.
    pub fn check(&self, recovers: bool) {
        assert_eq!(
            self.stage == Stage::Recovery,
            recovers,
            "packets of a recovery are not delivered"
        );
        let (aru, high) = (self.buffer.aru(), self.buffer.high());
        self.stability.check(aru, high);
        assert!(
            self.discarded() <= self.safe_line(),
            "only what all have is discarded"
        );
        assert!(
            self.unpacking.is_none_or(|open| open.seq <= high),
            "what is handed out is there"
        );
        self.buffer.check();
        // Packets that are exchanged before the ring is installed are delivered as packets of the old one.
        if !recovers {
            self.delivery.check(&self.buffer);
        }
    }
}

#[inline(always)]
fn message(roster: &Roster, packet: Unpacking, unpacked: Unpacked) -> Message {
    let service = if unpacked.reliable {
        Service::Reliable
    } else {
        packet.service
    };
    Message {
        id: MessageId {
            process: roster.process(packet.member),
            counter: unpacked.counter,
        },
        service,
        seq: packet.seq,
        index: unpacked.index,
        payload: unpacked.payload,
    }
}
