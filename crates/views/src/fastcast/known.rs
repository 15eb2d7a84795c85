//! The packets and places that a member knows in one view: fig. 2's `pendings` and `seqnos`.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use bytes::Bytes;

use crate::{Frozen, Held, Load, Packet, PacketId};
use rota_core::buffer::{Buffer, Inserted};
use rota_core::contract::{Seq, Time};
use rota_core::mutants::{self, Mutant};

/// The entry of a packet until it is delivered.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    pub load: Load,
    pub bytes: Bytes,
    /// The time at which this member sent it again last, and the receiver: one member, or all.
    pub resent: Option<(Time, Option<u16>)>,
}

/// The packets of one sender.
#[derive(Debug)]
struct Stream {
    packets: Buffer<Slot>,
    /// The highest that is known to exist.
    heard: u64,
    /// Packets up to here have a known place.
    placed: u64,
    /// Packets up to here are acknowledged by this member.
    acked: u64,
}

/// See the module's page.
#[derive(Debug)]
pub(super) struct Known {
    me: usize,
    streams: Vec<Stream>,
    /// The sender of the packet in each place. The numbers follow, as each sender's packets have places in the order of
    /// their numbers.
    order: Buffer<u16>,
    /// The highest sequence number that is known to be given out.
    top: Seq,
    /// Places up to here are known without a gap and counted in the streams.
    placed: Seq,
    /// This member has every packet up to here, with its place.
    acked: Seq,
    /// Packets that are known to exist and have no place that is known.
    unplaced: u64,
}

impl Known {
    /// Nothing, at member `me` of `members`, none of which has more packets than `window` under way.
    pub fn new(me: usize, members: usize, window: usize) -> Self {
        let stream = || Stream {
            packets: Buffer::new(0, window),
            heard: 0,
            placed: 0,
            acked: 0,
        };
        Self {
            me,
            streams: (0..members).map(|_| stream()).collect(),
            order: Buffer::new(0, members * window.next_power_of_two()),
            top: 0,
            placed: 0,
            acked: 0,
            unplaced: 0,
        }
    }

    /// The packets of a member.
    pub fn packets(&self, of: usize) -> &Buffer<Slot> {
        &self.streams[of].packets
    }

    /// The packets of all members, by their senders.
    pub fn all_packets(&self) -> impl Iterator<Item = &Buffer<Slot>> {
        self.streams.iter().map(|stream| &stream.packets)
    }

    /// A packet of a member that is here, and was not delivered.
    pub fn slot_mut(&mut self, of: usize, number: u64) -> Option<&mut Slot> {
        self.streams[of].packets.get_mut(number)
    }

    /// The highest number of a member's packets that is known to exist.
    pub fn heard(&self, of: usize) -> u64 {
        self.streams[of].heard
    }

    /// The sender of the packet in each place.
    pub const fn order(&self) -> &Buffer<u16> {
        &self.order
    }

    /// The highest sequence number that is known to be given out.
    pub const fn top(&self) -> Seq {
        self.top
    }

    /// Sequence numbers up to this one were given out.
    pub fn on_given(&mut self, top: Seq) {
        self.top = self.top.max(top);
    }

    /// This member has every packet up to here, with its place.
    pub const fn acked(&self) -> Seq {
        self.acked
    }

    /// Whether places of packets are known that are not here.
    pub const fn lacks_packets(&self) -> bool {
        self.placed > self.acked
    }

    /// Whether packets are known to exist that have no place that is known.
    pub const fn lacks_places(&self) -> bool {
        self.unplaced > 0
    }

    /// All packets of a member up to `number` exist.
    pub fn hear(&mut self, of: usize, number: u64) {
        let stream = &mut self.streams[of];
        self.unplaced += number.saturating_sub(stream.heard);
        stream.heard = stream.heard.max(number);
    }

    /// A packet of another member has come.
    pub fn take(&mut self, of: usize, number: u64, slot: Slot) -> Inserted {
        self.streams[of].packets.insert(number, slot)
    }

    /// This member sends a packet.
    pub fn put_own(&mut self, number: u64, slot: Slot) {
        self.hear(self.me, number);
        self.streams[self.me].packets.insert(number, slot);
    }

    /// A place is known. Returns whether that contradicts what was known before.
    pub fn on_place(&mut self, seq: Seq, sender: u16) -> bool {
        let known = self.order.get(seq).copied();
        self.order.insert(seq, sender);
        known.is_some_and(|known| known != sender)
    }

    /// All places that are known here were given out.
    pub fn on_places(&mut self) {
        self.top = self.top.max(self.order.high());
    }

    /// Gives places, at the leader, to the packets that it has of a member, in the order of their numbers (fig. 2 l. 14
    /// to 17). `own`: takes the places of this member's packets.
    pub fn assign(&mut self, of: usize, own: impl FnMut(Seq)) {
        let stream = &self.streams[of];
        let waiting = stream.packets.aru() - stream.placed;
        for _ in 0..waiting {
            self.order.insert(self.order.high() + 1, of as u16);
        }
        self.top = self.order.high();
        self.count_places(own);
    }

    /// Counts the places that are known without a gap. `own`: takes those of this member's packets.
    pub fn count_places(&mut self, mut own: impl FnMut(Seq)) {
        while self.placed < self.order.aru() {
            let Some(&sender) = self.order.get(self.placed + 1) else {
                return;
            };
            self.placed += 1;
            let sender = usize::from(sender);
            let stream = &mut self.streams[sender];
            stream.placed += 1;
            if stream.placed > stream.heard {
                stream.heard = stream.placed;
            } else {
                self.unplaced -= 1;
            }
            if sender == self.me {
                own(self.placed);
            }
        }
    }

    /// Acknowledges what is here with its place (fig. 2 l. 18, 25). Returns whether that is more than before.
    pub fn acknowledge(&mut self) -> bool {
        let before = self.acked;
        while self.acked < self.placed {
            let Some(&sender) = self.order.get(self.acked + 1) else {
                break;
            };
            let stream = &mut self.streams[usize::from(sender)];
            if stream.packets.aru() <= stream.acked && !mutants::on(Mutant::F01) {
                break;
            }
            stream.acked += 1;
            self.acked += 1;
        }
        self.acked > before
    }

    /// Takes out the next packet in the order, if its place is not above `ready` (fig. 2 l. 29 to 33). All members hold
    /// a packet that one member delivers: no member needs it from here any more. Returns its place, too.
    pub fn deliver(&mut self, ready: Seq) -> Option<(Seq, Packet)> {
        let seq = self.order.discarded() + 1;
        if seq > ready {
            return None;
        }
        let sender = *self.order.get(seq)?;
        let stream = &mut self.streams[usize::from(sender)];
        let slot = stream.packets.take_first()?;
        let number = stream.packets.discarded();
        self.order.take_first();
        let packet = Packet {
            id: PacketId { sender, number },
            load: slot.load,
            bytes: slot.bytes,
        };
        Some((seq, packet))
    }

    /// Whether this member holds or has held a packet with its place.
    pub fn holds(&self, id: PacketId) -> bool {
        let Some(stream) = self.streams.get(usize::from(id.sender)) else {
            return false;
        };
        let delivered = stream.packets.discarded();
        let here = id.number <= delivered || stream.packets.get(id.number).is_some();
        here && id.number <= stream.placed
    }

    /// Whether no member can be so far that it has given out a higher place.
    pub const fn is_within(&self, place: Seq) -> bool {
        place <= self.order.discarded() + self.order.capacity()
    }

    /// Ends the view; returns the knowledge of it.
    pub fn freeze(self) -> Frozen {
        let delivered = self.all_packets().map(Buffer::discarded).collect();
        let mut places: Vec<VecDeque<Seq>> = self.streams.iter().map(|_| VecDeque::new()).collect();
        for seq in self.order.discarded() + 1..=self.placed {
            if let Some(&sender) = self.order.get(seq) {
                places[usize::from(sender)].push_back(seq);
            }
        }
        let mut held = Vec::new();
        for (sender, (stream, places)) in (0..).zip(self.streams.into_iter().zip(places)) {
            hold(sender, stream, places, &mut held);
        }
        Frozen { delivered, held }
    }

    /// Its invariants, in a view of so many members.
    pub fn check(&self, members: usize) {
        assert_eq!(self.streams.len(), members, "each member has a stream");
        assert!(
            self.placed <= self.top,
            "no place is known that was not given out"
        );
        assert!(
            self.acked <= self.placed,
            "what is acknowledged has a place"
        );
        let sum = |of: fn(&Stream) -> u64| self.streams.iter().map(of).sum::<u64>();
        assert_eq!(
            self.placed,
            sum(|stream| stream.placed),
            "each place is a packet's"
        );
        assert_eq!(
            self.acked,
            sum(|stream| stream.acked),
            "what is acknowledged is some member's"
        );
        assert_eq!(
            self.unplaced,
            sum(|stream| stream.heard - stream.placed),
            "packets without places are counted"
        );
        for stream in &self.streams {
            stream.packets.check();
            assert!(
                stream.placed <= stream.heard,
                "what has a place is known to exist"
            );
            assert!(
                stream.acked <= stream.placed,
                "what is acknowledged has a place"
            );
            assert!(stream.acked <= stream.packets.aru(), "and is here");
            assert!(
                stream.packets.high() <= stream.heard,
                "what is here is known to exist"
            );
        }
        self.order.check();
    }
}

/// Adds the packets of a sender that are here and were not delivered; the first ones have these places.
fn hold(sender: u16, stream: Stream, mut places: VecDeque<Seq>, held: &mut Vec<Held>) {
    for number in stream.packets.discarded() + 1..=stream.packets.high() {
        let place = places.pop_front();
        let Some(slot) = stream.packets.get(number) else {
            continue;
        };
        let packet = Packet {
            id: PacketId { sender, number },
            load: slot.load,
            bytes: slot.bytes.clone(),
        };
        let place = place.filter(|_| !mutants::on(Mutant::F08));
        held.push(Held {
            packet,
            place: place.into_iter().collect(),
        });
    }
}
