//! The knowledge of a member in one view, and the packets that may be delivered.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use bytes::Bytes;

use super::acks::Acks;
use super::gap::Gap;
use super::patience::{RoundTrip, Watch};
use super::{FastConfig, FastCounters};
use crate::fastcast::FastRequest;
use crate::{Frozen, Held, Load, Packet, PacketId, View};
use rota_core::buffer::Buffer;
use rota_core::contract::{Class, Output, Seq, Time};
use rota_core::mutants::{self, Mutant};

/// The leader: the first of the view (fig. 2 l. 6).
pub(super) const LEADER: usize = 0;

/// The entry of a packet until it is delivered: fig. 2's `pendings`.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    pub load: Load,
    pub bytes: Bytes,
    /// The time at which this member sent it again last, and the receiver: one member, or all.
    pub resent: Option<(Time, Option<u16>)>,
}

/// The packets of one sender.
#[derive(Clone, Debug)]
pub(super) struct Stream {
    pub packets: Buffer<Slot>,
    /// The highest that is known to exist.
    pub heard: u64,
    /// Packets up to here have a known place.
    pub placed: u64,
    /// Packets up to here are acknowledged by this member.
    pub acked: u64,
    pub gap: Gap,
}

/// The packets of this member.
#[derive(Clone, Debug, Default)]
pub(super) struct Own {
    /// The last that was sent.
    pub sent: u64,
    /// All members have acknowledged the packets up to here.
    pub acked: u64,
    /// All members have delivered the packets up to here.
    pub released: u64,
    /// The known places of the packets above `released`.
    pub places: VecDeque<Seq>,
    /// Whether the window kept packets back.
    pub blocked: bool,
    /// Whether the rate kept packets back: a burst will leave, and take control with it.
    pub held: bool,
}

/// One view, as one member knows it.
#[derive(Debug)]
pub(super) struct InView {
    pub config: FastConfig,
    pub view: View,
    pub streams: Vec<Stream>,
    /// The sender of the packet in each place: fig. 2's `seqnos`. The numbers follow, as each sender's packets have
    /// places in the order of their numbers.
    pub order: Buffer<u16>,
    pub order_gap: Gap,
    /// The highest sequence number that is known to be given out.
    pub top: Seq,
    /// Places up to here are known without a gap and counted in the streams.
    pub placed: Seq,
    /// This member has every packet up to here, with its place.
    pub acked: Seq,
    /// Packets that are known to exist and have no place that is known.
    pub unplaced: u64,
    pub acks: Acks,
    pub own: Own,
    pub telling: super::tell::ControlState,
    pub patience: RoundTrip,
    /// The watch over own packets that not all have acknowledged.
    pub own_watch: Watch,
    /// The watch over everything that is not ready to be delivered.
    pub watch: Watch,
    /// The number of others that have applied the increase of bandwidth that this member waits for, if it waits for
    /// one.
    pub applied_by: Option<usize>,
    /// The requests of others, each with its sender.
    pub wanted: Vec<(u16, FastRequest)>,
    pub outputs: VecDeque<Output>,
}

impl InView {
    /// A view in which nothing is known yet (fig. 2 l. 1 to 7).
    pub fn new(config: FastConfig, now: Time, view: View) -> Self {
        let members = view.members.len();
        let window = config.window as usize;
        let stream = || Stream {
            packets: Buffer::new(0, window),
            heard: 0,
            placed: 0,
            acked: 0,
            gap: Gap::default(),
        };
        Self {
            streams: (0..members).map(|_| stream()).collect(),
            // No member has more than its window under way.
            order: Buffer::new(0, members * window.next_power_of_two()),
            order_gap: Gap::default(),
            top: 0,
            placed: 0,
            acked: 0,
            unplaced: 0,
            acks: Acks::new(members),
            own: Own::default(),
            telling: super::tell::ControlState::new(now),
            patience: RoundTrip::new(),
            own_watch: Watch::default(),
            watch: Watch::default(),
            applied_by: None,
            wanted: Vec::new(),
            outputs: VecDeque::new(),
            config,
            view,
        }
    }

    pub const fn me(&self) -> usize {
        self.view.me
    }

    pub const fn members(&self) -> usize {
        self.view.members.len()
    }

    /// The progress of all packets on their way; `None` if there are none. To send packets, which some members have, is
    /// no progress: the window may have room for minutes of that.
    pub fn progress(&self) -> Option<u64> {
        let released = self.acks.released();
        // Others need not tell of their deliveries while there is room.
        let waits = self.top > self.acks.ready() || self.unplaced > 0 || self.own_watch.is_on();
        waits.then_some(self.acks.ready() + released)
    }

    pub const fn is_leader(&self) -> bool {
        self.view.me == LEADER
    }

    /// Notes that all packets of a member up to `number` exist.
    pub fn hear(&mut self, of: usize, number: u64) {
        let stream = &mut self.streams[of];
        self.unplaced += number.saturating_sub(stream.heard);
        stream.heard = stream.heard.max(number);
    }

    /// Gives places, at the leader, to the packets that it has of a member, in the order of their numbers (fig. 2 l. 14
    /// to 17).
    pub fn assign(&mut self, of: usize) {
        let stream = &self.streams[of];
        let waiting = stream.packets.aru() - stream.placed;
        for _ in 0..waiting {
            self.order.insert(self.order.high() + 1, of as u16);
        }
        self.top = self.order.high();
        self.count_places();
    }

    /// Advances with new packets and places: this member acknowledges more (fig. 2 l. 18, 25), and more may be
    /// delivered (l. 21, 28).
    pub fn advance(&mut self, now: Time) {
        self.count_places();
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
        if self.acked > before {
            self.telling.on_news(now);
            let (me, acked) = (self.me(), self.acked);
            self.acks.on_acked(me, acked);
        }
        self.settle(now);
    }

    /// Counts the places that are known without a gap.
    fn count_places(&mut self) {
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
            if sender == self.view.me {
                self.own.places.push_back(self.placed);
            }
        }
    }

    /// Advances the own packets, with the acknowledgements and deliveries of all.
    pub fn settle(&mut self, now: Time) {
        let (ready, released) = (self.acks.ready(), self.acks.released());
        let own = &mut self.own;
        while let Some(&seq) = own.places.get((own.acked - own.released) as usize)
            && seq <= ready
        {
            own.acked += 1;
        }
        while own.acked > own.released
            && let Some(&seq) = own.places.front()
            && seq <= released
        {
            own.places.pop_front();
            own.released += 1;
        }
        // The leader times its announcements, the others their own packets.
        let answered = if self.view.me == LEADER {
            ready
        } else {
            own.acked
        };
        self.patience.answered(now, answered);
    }

    /// The next packet in the order, if all have it and its place (fig. 2 l. 29 to 33). All members hold a packet that
    /// one member delivers: no member needs it from here any more.
    pub fn deliver(&mut self, now: Time) -> Option<Packet> {
        let seq = self.order.discarded() + 1;
        if seq > self.acks.ready() {
            return None;
        }
        let sender = *self.order.get(seq)?;
        let stream = &mut self.streams[usize::from(sender)];
        let slot = stream.packets.take_first()?;
        let number = stream.packets.discarded();
        self.order.take_first();
        let me = self.me();
        self.acks.on_delivered(me, seq);
        self.settle(now);
        Some(Packet {
            id: PacketId { sender, number },
            load: slot.load,
            bytes: slot.bytes,
        })
    }

    /// The class to read first. Acknowledgements and places come in alone when there is little to do; packets that
    /// others have and this member lacks are probably in the other socket already.
    pub fn reading(&self) -> Class {
        let waits_for_packets = self.placed > self.acked;
        if waits_for_packets && !self.is_blocked() {
            Class::Data
        } else {
            Class::Token
        }
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

    /// Ends the view; returns the knowledge of it.
    pub fn freeze(self) -> Frozen {
        let delivered: Vec<u64> = self
            .streams
            .iter()
            .map(|stream| stream.packets.discarded())
            .collect();
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

    /// Counts a control datagram that goes out.
    pub const fn count_control(counters: &mut FastCounters, riding: bool) {
        if riding {
            counters.fast_controls_riding += 1;
        } else {
            counters.fast_controls_alone += 1;
        }
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

impl InView {
    /// Its invariants.
    pub fn check(&self) {
        assert!(
            self.view.me < self.view.members.len(),
            "this process is in the view"
        );
        assert_eq!(
            self.streams.len(),
            self.view.members.len(),
            "each member has a stream"
        );
        assert!(
            self.placed <= self.top,
            "no place is known that was not given out"
        );
        assert!(
            self.acked <= self.placed,
            "what is acknowledged has a place"
        );
        assert!(
            self.own.acked <= self.own.sent,
            "what was acknowledged was sent"
        );
        assert!(
            self.own.released <= self.own.acked,
            "what was delivered by all was acknowledged by all"
        );
        assert!(
            self.own.places.len() as u64 <= self.own.sent - self.own.released,
            "places are of what is on its way"
        );
        for stream in &self.streams {
            stream.packets.check();
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
        self.acks.check();
    }
}
