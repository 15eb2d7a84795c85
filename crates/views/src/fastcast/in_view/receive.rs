//! Datagrams that come in (fig. 2 l. 13 to 28).

use super::super::FastCounters;
use super::super::gate::Gate;
use super::super::known::Slot;
use super::{InView, LEADER};
use crate::fastcast::{FastControl, FastData, FastPacket, FastPlaces};
use rota_core::buffer::Inserted;
use rota_core::contract::Time;
use rota_core::mutants::{self, Mutant};

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
        let asked_for = self.repair.has_asked(from, number);
        let inserted = self.known.take(from, number, slot);
        let is_new = matches!(inserted, Inserted::New);
        match inserted {
            Inserted::New => {
                counters.fast_packets_received += 1;
                counters.fast_packets_repaired += u64::from(asked_for);
                if self.repair.first_to_come(from, number) {
                    self.patience.on_repaired();
                }
                self.telling.on_flight(head.following == 0);
                self.known.hear(from, number);
                self.acks.on_have(from, from, number);
                if self.is_leader() {
                    self.assign(from);
                }
                self.advance(now);
            }
            Inserted::Duplicate => {
                counters.fast_packets_duplicate += 1;
                if self.repair.first_to_come_twice(from, number) {
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
        self.known.on_given(control.acked);
        for (of, &number) in control.have.iter().enumerate() {
            self.acks.on_have(from, of, number);
            if of != self.me() {
                self.known.hear(of, number);
            }
        }
        self.on_places(&control, counters);
        self.acks.on_acked(from, control.acked);
        self.acks.on_delivered(from, control.delivered);
        self.advance(now);
        if control.ask & (1 << self.me()) != 0 && !mutants::on(Mutant::F02) {
            self.telling.on_asked(from as u16);
        }
        let me = self.me() as u16;
        let mine = control.requests.iter().filter(|request| request.to == me);
        for request in mine {
            self.repair.on_request(from as u16, *request);
        }
    }

    /// Whether a member of this view can have said this: no member is further than the windows allow.
    fn is_possible(&self, control: &FastControl) -> bool {
        let last = control.last().unwrap_or(0);
        let bound = |of: usize| {
            let packets = self.known.packets(of);
            if of == self.me() {
                self.own.sent()
            } else {
                packets.discarded() + packets.capacity()
            }
        };
        control.have.len() == self.members()
            && self.known.is_within(control.acked)
            && self.known.is_within(last)
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
            seq = seq.min(self.known.order().aru() + 1);
        }
        let old = self.known.order().discarded();
        for run in &control.runs {
            let end = seq + u64::from(run.count);
            // Settled places are passed over at once, however many of them a peer tells.
            for seq in seq.max(old + 1)..end {
                let contradicts = self.known.on_place(seq, run.sender);
                counters.fast_places_contradicted += u64::from(contradicts);
            }
            seq = end;
        }
        self.known.on_places();
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
        if from != LEADER || !self.known.is_within(places.last()) {
            counters.fast_controls_invalid += 1;
            return;
        }
        for seq in places.first..=places.last() {
            let contradicts = self.known.on_place(seq, LEADER as u16);
            counters.fast_places_contradicted += u64::from(contradicts);
        }
        self.known.on_places();
        self.acks.on_acked(LEADER, places.last());
        self.advance(now);
    }
}
