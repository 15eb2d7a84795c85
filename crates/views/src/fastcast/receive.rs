//! Datagrams that come in (fig. 2 l. 13 to 28).

use super::FastCounters;
use super::gate::Gate;
use super::in_view::{InView, LEADER, Slot};
use crate::fastcast::{FastControl, FastData, FastPacket, FastPlaces};
use rota_core::buffer::Inserted;
use rota_core::contract::{Seq, Time};
use rota_core::mutants::{self, Mutant};

/// Requests of others that wait to be answered.
const MOST_WANTED: usize = 256;

impl InView {
    /// Takes a datagram of this cluster.
    pub fn on_packet(
        &mut self,
        now: Time,
        packet: FastPacket,
        gate: &mut Gate,
        counters: &mut FastCounters,
    ) {
        let ring = packet.ring();
        let sender = match &packet {
            FastPacket::Data(data) => data.head.sender,
            FastPacket::Control(control) => control.sender,
        };
        let from = self.view.index_of(sender);
        let Some(from) = from.filter(|_| ring == self.view.ring) else {
            counters.fast_datagrams_foreign_view += 1;
            return;
        };
        if from == self.me() {
            // Another member sent it again, and took this one for a member that lacks it.
            return;
        }
        match packet {
            FastPacket::Data(data) => {
                let head = self.config.datagram_bytes - self.config.frame_bytes();
                let bytes = head + data.bytes.len();
                let which = (from, data.head.number);
                let came = self.on_data(now, from, data, counters);
                gate.on_packet(now, bytes, which, came);
            }
            FastPacket::Control(control) => {
                if !self.is_possible(&control) {
                    counters.fast_controls_invalid += 1;
                    return;
                }
                if let Some(&number) = control.applied.get(self.me()) {
                    gate.on_applied(now, from, number);
                }
                self.on_control(now, from, control, counters);
            }
        }
    }

    /// Fig. 2 l. 13 to 21. Only the leader acknowledges a packet at once; the others when they know its
    /// place (l. 23, 24).
    ///
    /// Returns whether the packet came for the first time, and whether it had been requested.
    fn on_data(
        &mut self,
        now: Time,
        from: usize,
        data: FastData,
        counters: &mut FastCounters,
    ) -> (bool, bool) {
        let FastData { head, bytes } = data;
        let number = head.number;
        if let Some(places) = head.places {
            self.on_leaders_places(now, from, places, counters);
        }
        let slot = Slot {
            load: head.load,
            bytes,
            resent: None,
        };
        let stream = &mut self.streams[from];
        let asked_for = stream.gap.asked_for(number);
        let inserted = stream.packets.insert(number, slot);
        let is_new = matches!(inserted, Inserted::New);
        match inserted {
            Inserted::New => {
                counters.fast_packets_received += 1;
                counters.fast_packets_repaired += u64::from(asked_for);
                if stream.gap.first_to_come(number) {
                    self.patience.on_repaired();
                }
                self.telling.flight_over = head.following == 0;
                self.hear(from, number);
                self.acks.on_have(from, from, number);
                if self.is_leader() {
                    self.assign(from);
                }
                self.advance(now);
            }
            Inserted::Duplicate => {
                counters.fast_packets_duplicate += 1;
                if stream.gap.first_to_come_twice(number) {
                    self.patience.on_asked_too_early();
                }
            }
            Inserted::BeyondWindow => counters.fast_packets_beyond_window += 1,
        }
        (is_new, asked_for)
    }

    /// Fig. 2 l. 22 to 28. The datagram is one that a member can have sent.
    fn on_control(
        &mut self,
        now: Time,
        from: usize,
        control: FastControl,
        counters: &mut FastCounters,
    ) {
        counters.fast_controls_received += 1;
        self.top = self.top.max(control.acked);
        for (of, &number) in control.have.iter().enumerate() {
            self.acks.on_have(from, of, number);
            if of != self.me() {
                self.hear(of, number);
            }
        }
        self.on_places(&control, counters);
        self.acks.on_acked(from, control.acked);
        self.acks.on_delivered(from, control.delivered);
        self.advance(now);
        if control.ask & (1 << self.me()) != 0 && !mutants::on(Mutant::F02) {
            self.telling.answer |= 1 << from;
        }
        let me = self.me() as u16;
        let mine = control.requests.iter().filter(|request| request.to == me);
        for request in mine {
            if self.wanted.len() < MOST_WANTED {
                self.wanted.push((from as u16, *request));
            }
        }
    }

    /// Whether a member of this view can have said this: no member is further than the windows allow.
    fn is_possible(&self, control: &FastControl) -> bool {
        let furthest = self.order.discarded() + self.order.capacity();
        let last = control.last().unwrap_or(0);
        let bound = |of: usize| {
            let packets = &self.streams[of].packets;
            if of == self.me() {
                self.own.sent
            } else {
                packets.discarded() + packets.capacity()
            }
        };
        control.have.len() == self.members()
            && control.acked <= furthest
            && last <= furthest
            && (0..)
                .zip(&control.have)
                .all(|(of, &number)| number <= bound(of))
    }

    /// Fig. 2 l. 26. Places come from the leader; a member that lacks some may get them from any that knows them.
    fn on_places(&mut self, control: &FastControl, counters: &mut FastCounters) {
        if self.me() == LEADER {
            return;
        }
        let mut seq = control.first;
        if mutants::on(Mutant::F06) {
            // As if nothing the leader said before had been lost.
            seq = seq.min(self.order.aru() + 1);
        }
        let old = self.order.discarded();
        for run in &control.runs {
            let end = seq + u64::from(run.count);
            // Settled places are passed over at once, however many of them a peer tells.
            for seq in seq.max(old + 1)..end {
                self.on_place(seq, run.sender, counters);
            }
            seq = end;
        }
        self.top = self.top.max(self.order.high());
    }

    fn on_place(&mut self, seq: Seq, sender: u16, counters: &mut FastCounters) {
        let known = self.order.get(seq).copied();
        if known.is_some_and(|known| known != sender) {
            counters.fast_places_contradicted += 1;
        }
        self.order.insert(seq, sender);
    }

    /// Takes places that came with packets of the leader (fig. 2 l. 19), which has all packets that it has given places
    /// to.
    fn on_leaders_places(
        &mut self,
        now: Time,
        from: usize,
        places: FastPlaces,
        counters: &mut FastCounters,
    ) {
        let furthest = self.order.discarded() + self.order.capacity();
        if from != LEADER || places.last() > furthest {
            counters.fast_controls_invalid += 1;
            return;
        }
        for seq in places.first..=places.last() {
            self.on_place(seq, LEADER as u16, counters);
        }
        self.top = self.top.max(self.order.high());
        self.acks.on_acked(LEADER, places.last());
        self.advance(now);
    }
}
