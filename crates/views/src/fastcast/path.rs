//! [`FastCast`]: the data path that hands the calls of a view engine to the view that is on.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use bytes::Bytes;

use super::gate::Gate;
use super::in_view::InView;
use super::{FastConfig, FastCounters};
use crate::fastcast::FastPacket;
use crate::{Backlog, DataPath, Frozen, Held, Link, Load, Packet, PacketId, View};
use rota_core::contract::{Class, Output, Process, RingId, Time, TimerReason};
use rota_core::mutants::{self, Mutant};
use rota_core::shares::Shares;

/// Datagrams that are kept of a view that others have installed already.
const MOST_EARLY: usize = 64;

/// FastCast's order within one view.
#[derive(Debug)]
pub struct FastCast {
    config: FastConfig,
    view: Option<InView>,
    /// The view before, while there is none.
    last: Option<RingId>,
    /// The datagrams that have come meanwhile, and may be of the next view.
    early: Vec<Bytes>,
    gate: Gate,
    counters: FastCounters,
    /// The time of the last call that said it.
    now: Time,
}

impl FastCast {
    /// A data path that is in no view yet.
    pub fn new(config: FastConfig) -> Self {
        Self {
            gate: Gate::new(config.capacity, config.yields),
            config,
            view: None,
            last: None,
            early: Vec::new(),
            counters: FastCounters::default(),
            now: Time(0),
        }
    }

    /// The shares of the members in this view, if a capacity is configured.
    pub fn shares(&self) -> Option<&Shares> {
        self.gate.shares()
    }

    /// The counters of the data path.
    pub const fn counters(&self) -> &FastCounters {
        &self.counters
    }
}

impl DataPath for FastCast {
    fn start(&mut self, _me: Process, _seed: u64) {}

    fn install(&mut self, now: Time, view: &View, notes: &[Bytes]) {
        self.now = now;
        self.gate.install(now, view.me, notes);
        self.view = Some(InView::new(self.config.clone(), now, view.clone()));
        for datagram in core::mem::take(&mut self.early) {
            self.on_datagram(now, Class::Data, datagram);
        }
    }

    fn freeze(&mut self, now: Time) -> Frozen {
        self.now = now;
        self.gate.freeze(now);
        self.last = self.view.as_ref().map(InView::ring);
        self.view.take().map(InView::freeze).unwrap_or_default()
    }

    fn note(&self) -> Vec<u8> {
        self.gate.note()
    }

    /// Fig. 3 l. 19 to 26: packets with a place by their places, then the others by name.
    fn arrange(held: &mut Vec<Held>) {
        let key = |held: &Held| {
            let place = held.place.first().copied();
            (place.is_none(), place, held.packet.id)
        };
        held.sort_unstable_by_key(key);
        if mutants::on(Mutant::F10) {
            held.sort_unstable_by_key(|held| held.packet.id);
        }
    }

    fn on_datagram(&mut self, now: Time, _class: Class, datagram: Bytes) {
        self.now = now;
        if self.view.is_none() {
            // The datagram is kept as it came, for the next view.
            let packet = FastPacket::decode(datagram.clone(), self.config.seal_bytes);
            let old = packet.is_ok_and(|packet| Some(packet.ring()) == self.last);
            if old || self.early.len() == MOST_EARLY {
                self.counters.fast_datagrams_foreign_view += 1;
            } else {
                self.early.push(datagram);
            }
            return;
        }
        match FastPacket::decode(datagram, self.config.seal_bytes) {
            Err(_) => self.counters.fast_datagrams_malformed += 1,
            Ok(packet) if packet.cluster() != self.config.cluster => {
                self.counters.fast_datagrams_foreign_cluster += 1;
            }
            Ok(packet) => {
                if let Some(view) = &mut self.view {
                    view.on_packet(now, packet, &mut self.gate, &mut self.counters);
                }
            }
        }
    }

    fn on_link(&mut self, now: Time, _link: Link) {
        self.now = now;
    }

    fn on_timer(&mut self, now: Time) {
        // The outputs look for the work that is due.
        self.now = now;
    }

    fn progress(&self) -> Option<u64> {
        self.view.as_ref()?.progress()
    }

    fn next_timer(&self) -> Option<(Time, TimerReason)> {
        let view = self.view.as_ref()?;
        let unblocked = view.is_unblocked().then_some(self.now);
        let control = view.control_due_at().map(|due| due.max(self.now));
        [
            (unblocked, TimerReason::Other("packets that may leave")),
            (control, TimerReason::Other("acknowledgements")),
            (
                view.repair_due_at(),
                TimerReason::Other("something is missing"),
            ),
            (self.gate.next_time(), TimerReason::Other("bandwidth")),
        ]
        .into_iter()
        .filter_map(|(due, reason)| Some((due?, reason)))
        .min_by_key(|(due, _)| *due)
    }

    fn poll_output(&mut self, now: Time, backlog: &mut Backlog) -> Option<Output> {
        self.now = now;
        let view = self.view.as_mut()?;
        if !view.has_output() {
            if let Some(applied) = self.gate.news() {
                view.on_applied(applied);
            }
            let applied_by = self.gate.waits_for_others();
            view.repair(now, applied_by, &mut self.counters);
            self.gate.repaired(now, view.output_bytes());
            // Alone in a view, packets leave without an output.
            while view.send_packets(now, backlog, &mut self.gate, &mut self.counters)
                && !view.has_output()
            {}
            view.send_control(now, &mut self.gate, &mut self.counters);
        }
        view.next_output()
    }

    fn poll_packet(&mut self) -> Option<Packet> {
        let view = self.view.as_mut()?;
        loop {
            let packet = view.deliver(self.now)?;
            if packet.load != Load::Own {
                return Some(packet);
            }
            let sender = packet.id.sender;
            if !self.gate.on_word(self.now, sender, &packet.bytes) {
                self.counters.fast_words_malformed += 1;
            }
        }
    }

    fn reading(&self) -> Class {
        self.view.as_ref().map_or(Class::Token, InView::reading)
    }

    fn count(&self, counters: &mut BTreeMap<&'static str, u64>) {
        let increases = self.gate.increases();
        let losses = self.gate.losses();
        let all = FastCounters {
            fast_increases: increases.count,
            fast_increases_micros: increases.micros,
            fast_increases_slow: increases.slow,
            fast_packets_lost: losses.packets,
            fast_link_lowered: losses.lowered,
            fast_link_words: self.gate.shares().map_or(0, Shares::link_words),
            ..self.counters.clone()
        };
        all.add_to(counters);
        counters.extend(self.gate.levels().into_iter().flatten());
    }

    fn check(&self) {
        if let Some(view) = &self.view {
            view.check();
        }
        self.gate.check();
    }

    fn holds(&self, view: RingId, id: PacketId) -> Option<bool> {
        let now = self.view.as_ref().filter(|now| now.ring() == view)?;
        Some(now.holds(id))
    }
}
