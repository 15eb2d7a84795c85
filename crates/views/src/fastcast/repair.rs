//! Requests for missing packets, and retransmissions: fig. 2 l. 34 to 37, and the cases that the paper leaves to TCP or
//! to chance.

use alloc::vec::Vec;

use super::FastCounters;
use super::gap::Gap;
use super::in_view::{InView, LEADER};
use super::patience::RoundTrip;
use super::tell::send;
use crate::fastcast::FastRequest;
use rota_core::burst::BurstBuilder;
use rota_core::contract::{Class, Target, Time};
use rota_core::mutants::{self, Mutant};
use rota_core::wire::RequestRange;

/// Packets of its own that a member sends again when nothing is heard of them: enough to show the members what they
/// lack. The other packets are requested.
const REPEATED: u64 = 8;

/// Packets that are sent again at once because others ask.
const RESENT: usize = 256;

/// Ranges that are asked for at once, of one sender.
const RANGES: usize = 8;

/// Requests to the member that made a packet, or to the leader, before others are asked.
const TRIES_AT_SOURCE: u32 = 2;

/// A packet to send again, and its receiver: one member, or all.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Resend {
    to: Option<u16>,
    sender: u16,
    number: u64,
}

impl InView {
    /// Sends all that is due: requests, answers, packets again.
    pub fn repair(&mut self, now: Time, counters: &mut FastCounters) {
        if self.members() == 1 {
            return;
        }
        self.answer(now, counters);
        self.update_watches(now);
        self.ask_for_packets(now, counters);
        self.ask_for_places(now, counters);
        self.repeat_own(now, counters);
        self.repeat_control(now, counters);
    }

    /// The time at which `repair` has something to do, if nothing else happens.
    pub fn repair_due_at(&self) -> Option<Time> {
        let patience = &self.patience;
        let gaps = self.streams.iter().filter_map(|stream| {
            let hole = stream.packets.high() > stream.packets.aru();
            stream.gap.due_at(patience, hole)
        });
        let hole = self.order.high() > self.order.aru();
        gaps.chain(self.order_gap.due_at(patience, hole))
            .chain(self.own_watch.due_at(patience))
            .chain(self.watch.due_at(patience))
            .min()
    }

    fn update_watches(&mut self, now: Time) {
        let me = self.me();
        for (of, stream) in self.streams.iter_mut().enumerate() {
            if of != me {
                stream.gap.update(now, stream.packets.aru(), stream.heard);
            }
        }
        self.order_gap.update(now, self.order.aru(), self.top);
        let (ready, in_flight) = (self.acks.ready(), self.is_in_flight());
        self.own_watch.update(now, in_flight, self.own.acked);
        let waiting = ready < self.top || self.unplaced > 0 || self.is_blocked();
        let open = waiting || self.applied_by.is_some();
        let applied = self.applied_by.unwrap_or(0) as u64;
        let progress = ready + self.acks.released() + applied;
        self.watch.update(now, open, progress);
    }

    /// Asks for packets of others that are missing.
    fn ask_for_packets(&mut self, now: Time, counters: &mut FastCounters) {
        if mutants::on(Mutant::F05) {
            return;
        }
        for of in 0..self.members() {
            let packets = &self.streams[of].packets;
            let (gap, hole) = (&self.streams[of].gap, packets.high() > packets.aru());
            if !is_due(gap, &self.patience, hole, now) {
                continue;
            }
            let mut ranges = Vec::new();
            let heard = self.streams[of].heard;
            counters.fast_packets_requested += packets.missing(heard, &mut ranges, RANGES);
            let first = packets.aru() + 1;
            let lacking = self.acks.lacking(of, first);
            let to = self.whom_to_ask(of, gap.tries(), lacking);
            self.request(to, Some(of as u16), &ranges);
            self.streams[of].gap.on_asked(now, heard, &self.patience);
        }
    }

    /// Asks for places that are missing.
    fn ask_for_places(&mut self, now: Time, counters: &mut FastCounters) {
        let hole = self.order.high() > self.order.aru();
        if !is_due(&self.order_gap, &self.patience, hole, now) {
            return;
        }
        let mut ranges = Vec::new();
        counters.fast_places_requested += self.order.missing(self.top, &mut ranges, RANGES);
        let behind = self.acks.behind(self.order.aru() + 1);
        let to = self.whom_to_ask(LEADER, self.order_gap.tries(), behind);
        self.request(to, None, &ranges);
        self.order_gap.on_asked(now, self.top, &self.patience);
    }

    /// The member to ask: the source first; when it does not answer, the members that are known to have the packet, in
    /// turn.
    fn whom_to_ask(&self, source: usize, tries: u32, lacking: u128) -> usize {
        let members = self.members();
        let has = |member: &usize| *member != self.me() && lacking & (1 << member) == 0;
        if tries < TRIES_AT_SOURCE || source == self.me() {
            return source;
        }
        let start = source + tries as usize;
        (0..members)
            .map(|step| (start + step) % members)
            .find(has)
            .unwrap_or(source)
    }

    fn request(&mut self, to: usize, of: Option<u16>, ranges: &[RequestRange]) {
        self.telling
            .requests
            .extend(ranges.iter().map(|range| FastRequest {
                to: to as u16,
                of,
                first: range.first,
                count: range.count,
            }));
    }

    /// Sends own packets again of which nothing is heard, to members that lack them (fig. 2 l. 34 to 37), and asks
    /// those for an answer.
    fn repeat_own(&mut self, now: Time, counters: &mut FastCounters) {
        let due = self.own_watch.due_at(&self.patience);
        if due.is_none_or(|due| now < due) {
            return;
        }
        self.own_watch.again(now);
        self.patience.spoil();
        let me = self.me();
        let lacking = self.acks.lacking(me, self.own.sent) & !(1 << me);
        self.telling.ask |= lacking;
        let others = (0..self.members()).filter(|member| *member != me);
        let held = others.map(|member| self.acks.have(member, me)).min();
        let first = held.unwrap_or(0) + 1;
        let mut resends = Vec::new();
        for number in first..=self.own.sent.min(first + REPEATED - 1) {
            let lacking = self.acks.lacking(me, number) & !(1 << me);
            let one = (lacking.count_ones() == 1).then(|| lacking.trailing_zeros() as u16);
            resends.push(Resend {
                to: one,
                sender: me as u16,
                number,
            });
        }
        counters.fast_packets_repeated += self.resend(now, resends);
    }

    /// Repeats the control datagram of this member, and asks the members whose word is missing.
    fn repeat_control(&mut self, now: Time, counters: &mut FastCounters) {
        let due = self.watch.due_at(&self.patience);
        if due.is_none_or(|due| now < due) {
            return;
        }
        self.watch.again(now);
        self.patience.spoil();
        let mut ask = self.acks.behind(self.top);
        if self.unplaced > 0 {
            ask |= 1 << LEADER;
        }
        if self.is_blocked() {
            ask |= self.acks.slowest();
        }
        if self.applied_by.is_some() {
            ask |= self.everybody();
        }
        let ask = ask & !(1 << self.me());
        if ask != 0 {
            self.telling.ask |= ask;
            counters.fast_controls_repeated += 1;
        }
    }

    const fn everybody(&self) -> u128 {
        u128::MAX >> (u128::BITS as usize - self.members())
    }

    /// Sends the packets again that others have requested.
    fn answer(&mut self, now: Time, counters: &mut FastCounters) {
        if self.wanted.is_empty() {
            return;
        }
        let mut resends = Vec::new();
        for (from, request) in core::mem::take(&mut self.wanted) {
            match request.of {
                None => self.on_places_wanted(from, request),
                Some(of) => self.look_up(now, from, of, request, &mut resends),
            }
        }
        // One packet that several want goes to all.
        resends.sort_unstable_by_key(|resend| (resend.sender, resend.number));
        resends.dedup_by(|next, first| {
            let same = (next.sender, next.number) == (first.sender, first.number);
            if same && next.to != first.to {
                first.to = None;
            }
            same
        });
        counters.fast_packets_resent += self.resend(now, resends);
    }

    fn on_places_wanted(&mut self, from: u16, request: FastRequest) {
        self.telling.answer |= 1 << from;
        let first = self.telling.places_from.unwrap_or(request.first);
        self.telling.places_from = Some(first.min(request.first));
    }

    /// Looks up the packets of a request that are here, and were not sent to the asking member just now.
    fn look_up(
        &mut self,
        now: Time,
        from: u16,
        of: u16,
        request: FastRequest,
        resends: &mut Vec<Resend>,
    ) {
        let quiet = self.patience.round_trip() / 2;
        let packets = &self.streams[usize::from(of)].packets;
        let first = request.first.max(packets.discarded() + 1);
        for number in first..=request.last().min(packets.high()) {
            if resends.len() == RESENT {
                return;
            }
            let Some(slot) = packets.get(number) else {
                continue;
            };
            let lately = slot.resent.filter(|(when, _)| now < when.after(quiet));
            let to = match lately {
                Some((_, None)) => continue,
                Some((_, Some(to))) if to == from => continue,
                Some((_, Some(_))) => None,
                None => Some(from),
            };
            resends.push(Resend {
                to,
                sender: of,
                number,
            });
        }
    }

    /// Lays packets out for sending them again; returns their number. Packets for one member go where its control
    /// datagrams go: it has waited for them.
    fn resend(&mut self, now: Time, mut resends: Vec<Resend>) -> u64 {
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
                let sender = usize::from(resend.sender);
                let following = same.len() - 1 - index;
                if let Some(slot) = self.streams[sender].packets.get(resend.number) {
                    self.push_packet(&mut burst, sender, resend.number, slot, following);
                }
                if let Some(slot) = self.streams[sender].packets.get_mut(resend.number) {
                    slot.resent = Some((now, resend.to));
                }
            }
            let bursts = burst.finish().into_iter();
            self.outputs
                .extend(bursts.map(|burst| send(class, to, burst)));
        }
        resends.len() as u64
    }
}

fn is_due(gap: &Gap, patience: &RoundTrip, hole: bool, now: Time) -> bool {
    gap.due_at(patience, hole).is_some_and(|due| now >= due)
}
