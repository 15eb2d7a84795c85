//! The sending of this member's packets, in bursts (fig. 2 l. 8 to 12, §3.5).

use alloc::vec::Vec;
use bytes::Bytes;

use super::super::FastCounters;
use super::super::gate::Gate;
use super::super::known::Slot;
use super::super::repair::Resend;
use super::super::tell::send;
use super::{InView, LEADER, facts};
use crate::fastcast::{FastHead, FastPlaces};
use crate::{Backlog, Load};
use rota_core::burst::BurstBuilder;
use rota_core::contract::{Burst, Class, Output, Seq, Target, Time};
use rota_core::mutants::{self, Mutant};
use rota_core::pack::OutFrame;

/// The most packets of one burst: as many as one offloaded send may take, with room for a control datagram.
const BURST_PACKETS: usize = 44;

/// The bytes that are gathered while own packets are under way (§3.5).
const GATHER_BYTES: usize = 4096;

impl InView {
    /// The number of the `waiting` packets that leave now. Small ones wait while others are under way, until there is
    /// enough of them for larger packets (§3.5).
    fn allowed(&mut self, waiting: usize, counters: &mut FastCounters) -> usize {
        let full = self.config.frame_bytes();
        let gathered = waiting.saturating_sub(1) * full;
        let was_blocked = self.own.block(false);
        if waiting == 0 || (self.own.is_in_flight() && gathered < GATHER_BYTES) {
            return 0;
        }
        let room = self.own.room();
        if room < self.own.step().min(waiting as u64) && !mutants::on(Mutant::F07) {
            self.own.block(true);
            counters.fast_sends_throttled += u64::from(!was_blocked);
            return 0;
        }
        let room = if mutants::on(Mutant::F07) {
            u64::MAX
        } else {
            room
        };
        let fits = (Burst::MAX_BYTES / self.config.datagram_bytes).max(1);
        let most = waiting.min(BURST_PACKETS).min(fits);
        most.min(usize::try_from(room).unwrap_or(usize::MAX))
    }

    /// Sends the next burst, if packets may leave (fig. 2 l. 10), and answers whether any did.
    pub fn send_packets(
        &mut self,
        now: Time,
        backlog: &mut Backlog,
        gate: &mut Gate,
        counters: &mut FastCounters,
    ) -> bool {
        let wanted = self.allowed(backlog.len(), counters);
        let beside = self.telling.bytes_to_ride(&facts!(self));
        let count = gate.let_through(now, wanted, self.config.datagram_bytes, beside);
        self.own.hold(wanted > 0 && count == 0);
        if count == 0 {
            // Only now it is known whether packets wait for the rate.
            gate.observe(now, backlog.len() * self.config.frame_bytes());
            self.send_word(now, gate);
            return false;
        }
        let mut burst = BurstBuilder::new();
        let first = self.known.order().high() + 1;
        let mut told = None;
        for following in (0..count).rev() {
            let Some(OutFrame { service, frame }) = backlog.take() else {
                break;
            };
            let (load, bytes) = (Load::Messages(service), frame.into_bytes());
            if following == 0 {
                told = self.places_beside(first, count, bytes.len());
            }
            self.push_own(&mut burst, (load, bytes), following, told);
            counters.fast_packets_sent += 1;
        }
        self.take_off(now);
        if let Some(places) = told {
            self.telling.told_places(self.known.acked(), places);
            self.patience.begin(now, places.last());
        }
        let patience = &mut self.patience;
        self.telling
            .ride(now, &facts!(self), (&mut burst, patience), counters);
        for burst in self.bursts(burst) {
            gate.sent(now, burst.bytes.len());
            self.outputs
                .push_back(send(Class::Data, Target::Others, burst));
        }
        true
    }

    /// The bytes that are about to leave.
    pub fn output_bytes(&self) -> usize {
        let bytes = |output: &Output| match output {
            Output::Send { burst, .. } => burst.bytes.len(),
            _ => 0,
        };
        self.outputs.iter().map(bytes).sum()
    }

    /// Sends a word about shares as soon as there is one: the word does not wait for the rate that it is to change.
    fn send_word(&mut self, now: Time, gate: &mut Gate) {
        if self.own.room() == 0 {
            return;
        }
        let Some(word) = gate.poll_word(now) else {
            return;
        };
        let mut burst = BurstBuilder::new();
        let word = Bytes::copy_from_slice(&word.encode());
        self.push_own(&mut burst, (Load::Own, word), 0, None);
        self.take_off(now);
        for burst in self.bursts(burst) {
            gate.owe(now, burst.bytes.len());
            self.outputs
                .push_back(send(Class::Data, Target::Others, burst));
        }
    }

    /// Numbers a packet, keeps it and appends it to a burst (fig. 2 l. 9 to 11).
    fn push_own(
        &mut self,
        burst: &mut BurstBuilder,
        (load, bytes): (Load, Bytes),
        following: usize,
        places: Option<FastPlaces>,
    ) {
        let slot = Slot {
            load,
            bytes,
            resent: None,
        };
        let (me, number) = (self.me(), self.own.send());
        let head = FastHead {
            places,
            ..self.head_of(me, number, load, following)
        };
        self.push_head(burst, &head, &slot.bytes);
        self.known.put_own(number, slot);
    }

    /// Advances with new packets of this member, which have arrived here.
    fn take_off(&mut self, now: Time) {
        if self.is_leader() {
            self.assign(LEADER);
        } else {
            self.patience.begin(now, self.own.sent());
        }
        self.telling.on_flight(true);
        self.advance(now);
    }

    /// The bursts that leave: none from a member that is alone.
    fn bursts(&self, burst: BurstBuilder) -> Vec<Burst> {
        if self.members() == 1 {
            return Vec::new();
        }
        burst.finish()
    }

    /// The places of all packets of a burst, which its last packet tells, if this member gives places and that packet,
    /// with `bytes` of messages, has room for them: then no control datagram has to tell them.
    fn places_beside(&self, first: Seq, count: usize, bytes: usize) -> Option<FastPlaces> {
        let fits = bytes + FastPlaces::BYTES <= self.config.frame_bytes();
        let count = u16::try_from(count).ok()?;
        // If places before these were not told yet, one control datagram tells all, so that no member sees a gap.
        let next = self.is_leader() && self.telling.has_told(first - 1);
        (fits && next).then_some(FastPlaces { first, count })
    }

    /// Lays packets out for sending them again; returns their number. Packets for one member go where its control
    /// datagrams go: it has waited for them.
    pub(super) fn resend(&mut self, now: Time, mut resends: Vec<Resend>) -> u64 {
        if mutants::on(Mutant::F09) {
            return 0;
        }
        resends.sort_unstable();
        for same in resends.chunk_by(|one, next| one.to == next.to) {
            let (class, to) = match same[0].to {
                None => (Class::Data, Target::Others),
                Some(one) => {
                    let node = self.view.members[usize::from(one)].node;
                    (Class::Token, Target::Node(node))
                }
            };
            let mut burst = BurstBuilder::new();
            for (index, resend) in same.iter().enumerate() {
                let (sender, number) = (usize::from(resend.sender), resend.number);
                let following = same.len() - 1 - index;
                if let Some(slot) = self.known.packets(sender).get(number) {
                    let head = self.head_of(sender, number, slot.load, following);
                    self.push_head(&mut burst, &head, &slot.bytes);
                }
                if let Some(slot) = self.known.slot_mut(sender, number) {
                    slot.resent = Some((now, resend.to));
                }
            }
            let bursts = burst.finish().into_iter();
            self.outputs
                .extend(bursts.map(|burst| send(class, to, burst)));
        }
        resends.len() as u64
    }

    fn head_of(&self, sender: usize, number: u64, load: Load, following: usize) -> FastHead {
        FastHead {
            cluster: self.config.cluster,
            ring: self.view.ring,
            sender: self.view.members[sender].node,
            number,
            following: u16::try_from(following).unwrap_or(u16::MAX),
            load,
            places: None,
        }
    }

    fn push_head(&self, burst: &mut BurstBuilder, head: &FastHead, bytes: &Bytes) {
        let seal_bytes = self.config.seal_bytes;
        let len = head.encoded_len(bytes.len(), seal_bytes);
        burst.push_with(len, usize::from(head.following) + 2, |out| {
            head.encode_into(bytes, out, seal_bytes);
        });
    }
}
