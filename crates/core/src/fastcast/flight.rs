//! Packets of this member: when they leave, and how many at once (fig. 2 l. 8 to 12, §3.5).

use super::gate::Gate;
use super::in_view::{InView, Slot};
use super::tell::send;
use super::{FastCounters, in_view};
use crate::contract::{Class, Target, Time};
use crate::mutants::{self, Mutant};
use crate::pack::OutFrame;
use crate::ring::BurstBuilder;
use crate::views::{Backlog, Load};
use crate::wire::FastHead;

/// Packets of one burst: what one offloaded send may take, with room for a control datagram.
const BURST_PACKETS: usize = 44;

/// What is gathered while own packets are under way, in bytes (§3.5).
const GATHER_BYTES: usize = 4096;

/// Packets that the window has to let through before a burst is worth it.
const WINDOW_STEP: u64 = 16;

impl InView {
    /// How many packets more the window lets through.
    const fn room(&self) -> u64 {
        let window = self.config.window as u64;
        window.saturating_sub(self.own.sent - self.own.released)
    }

    fn window_step(&self) -> u64 {
        WINDOW_STEP.min(u64::from(self.config.window / 4)).max(1)
    }

    /// Whether what the window kept back may leave now.
    pub fn is_unblocked(&self) -> bool {
        self.own.blocked && self.room() >= self.window_step()
    }

    /// Whether the window keeps packets of this member back.
    pub const fn is_blocked(&self) -> bool {
        self.own.blocked
    }

    /// Whether packets of this member are under way.
    pub const fn is_in_flight(&self) -> bool {
        self.own.sent > self.own.acked
    }

    /// How many of `waiting` packets leave now. Small ones wait while others are under way, until there
    /// is enough of them for larger packets (§3.5).
    fn allowed(&mut self, waiting: usize, allowance: usize, counters: &mut FastCounters) -> usize {
        let full = self.config.frame_bytes();
        let gathered = waiting.saturating_sub(1) * full;
        self.own.blocked = false;
        if waiting == 0 || (self.is_in_flight() && gathered < GATHER_BYTES) {
            return 0;
        }
        let room = self.room();
        if room < self.window_step().min(waiting as u64) && !mutants::on(Mutant::F07) {
            self.own.blocked = true;
            counters.fast_sends_throttled += 1;
            return 0;
        }
        let room = if mutants::on(Mutant::F07) {
            u64::MAX
        } else {
            room
        };
        let fits = (crate::contract::Burst::MAX_BYTES / self.config.datagram_bytes).max(1);
        let most = waiting.min(BURST_PACKETS).min(fits);
        most.min(usize::try_from(room).unwrap_or(usize::MAX))
            .min(allowance / self.config.datagram_bytes)
    }

    /// Sends the next burst, if packets may leave (fig. 2 l. 10).
    pub fn send_packets(
        &mut self,
        now: Time,
        backlog: &mut Backlog,
        gate: &mut Gate,
        counters: &mut FastCounters,
    ) {
        let count = self.allowed(backlog.len(), gate.allowance(now), counters);
        if count == 0 {
            return;
        }
        let mut burst = BurstBuilder::new(self.config.seal_bytes);
        for following in (0..count).rev() {
            let Some(OutFrame { service, frame }) = backlog.take() else {
                break;
            };
            let slot = Slot {
                load: Load::Messages(service),
                bytes: frame.into_bytes(),
                resent: None,
            };
            self.own.sent += 1;
            self.push_packet(&mut burst, self.me(), self.own.sent, &slot, following);
            let (me, number) = (self.me(), self.own.sent);
            self.hear(me, number);
            self.streams[me].packets.insert(number, slot);
            counters.fast_packets_sent += 1;
        }
        if self.is_leader() {
            self.assign(in_view::LEADER);
        } else {
            self.patience.begin(now, self.own.sent);
        }
        self.telling.flight_over = true;
        self.advance(now);
        self.ride(now, &mut burst, counters);
        self.multicast(now, burst, gate);
    }

    fn multicast(&mut self, now: Time, burst: BurstBuilder, gate: &mut Gate) {
        if self.members() == 1 {
            return;
        }
        for burst in burst.finish() {
            gate.spend(now, burst.bytes.len());
            self.outputs
                .push_back(send(Class::Data, Target::Others, burst));
        }
    }

    /// Appends a packet to a burst.
    pub fn push_packet(
        &self,
        burst: &mut BurstBuilder,
        sender: usize,
        number: u64,
        slot: &Slot,
        following: usize,
    ) {
        let head = FastHead {
            cluster: self.config.cluster,
            ring: self.view.ring,
            sender: self.view.members[sender].node,
            number,
            following: u16::try_from(following).unwrap_or(u16::MAX),
            load: slot.load,
        };
        let seal_bytes = self.config.seal_bytes;
        let len = FastHead::encoded_len(slot.bytes.len(), seal_bytes);
        burst.push_with(len, following + 2, |out| {
            head.encode_into(&slot.bytes, out, seal_bytes);
        });
    }
}
