//! The visit of the token at a member, one function for each step (report §III-B, thesis §3.1.2).
//!
//! 1. [`accept`](Ordering::accept) it, or count why not;
//! 2. [`answer_requests`](Ordering::answer_requests): packets sent again all leave before the token;
//! 3. [`number_packets`](Ordering::number_packets): decide how many new packets to send, give them
//!    their numbers, and part them into those before and those after the token;
//! 4. [`update_token`](Ordering::update_token): `seq`, `aru`, `fcc`, `rtr`;
//! 5. [`send`](Ordering::send): first part, token, second part;
//! 6. [`settle`](Ordering::settle): forget the packets that all have and this member has delivered.

use alloc::vec::Vec;

use super::deaf::Next;
use super::flow::Demand;
use super::ordering::{Context, Ordering};
use super::recovering::Recovering;
use super::requests::union;
use super::slot::Slot;
use super::{Counters, Protocol, aru};
use crate::wire::{Data, Token};
use rota_core::burst::BurstBuilder;
use rota_core::contract::{Burst, Channel, Class, Output, Seq, Target, Time};
use rota_core::mutants::{self, Mutant};
use rota_core::pack::OutFrame;
use rota_core::wire::RequestRange;
use rota_core::wire::push_merged;

/// The state and the results of one visit of the token.
#[derive(Debug)]
struct Visit {
    /// The token, being updated.
    token: Token,
    /// Its `seq` as received.
    seq_received: Seq,
    /// The aru that this member reported before it numbered packets of its own.
    local_aru: Seq,
    resent: u32,
    fresh: u32,
    before: BurstBuilder,
    after: BurstBuilder,
}

impl Visit {
    fn new(token: Token, local_aru: Seq) -> Self {
        let seq_received = token.seq;
        Self {
            token,
            seq_received,
            local_aru,
            resent: 0,
            fresh: 0,
            before: BurstBuilder::new(),
            after: BurstBuilder::new(),
        }
    }
}

impl Ordering {
    /// Takes a token of this ring: holds it, or begins its visit.
    pub fn on_token(&mut self, ctx: &mut Context<'_>, token: Token) {
        if !self.accept(ctx, &token) {
            return;
        }
        let took = self.resend.on_token(ctx.now, token.idle);
        self.count_rotation(ctx.counters, took);
        let next = self.next_behind(token.aru);
        self.deaf.on_token(ctx.now, &token, (self.me, next));
        if self.recovering.is_some() {
            self.visit(ctx, token);
        } else if let Some(token) = self.idle.on_token(ctx.now, token, ctx.waiting() > 0) {
            self.visit(ctx, token);
        }
    }

    /// The state of the packet behind the token's aru at this member.
    fn next_behind(&self, aru: Seq) -> Next {
        match self.buffer.get(aru.saturating_add(1)) {
            Some(slot) if slot.member == self.my_index => Next::HasOwn,
            Some(_) => Next::Has,
            // The packet may have been forgotten here.
            None if self.buffer.aru() > aru => Next::Has,
            None => Next::Lacks,
        }
    }

    fn count_rotation(&self, counters: &mut Counters, nanos: Option<u64>) {
        let Some(nanos) = nanos else { return };
        counters.rotation.record(nanos);
        counters.rotation_longest_us = counters.rotation_longest_us.max(nanos / 1000);
        counters.rotations_slow += u64::from(nanos > self.config.timers.token_loss / 4);
    }

    /// The visit itself; also entered with a token that was held.
    pub(super) fn visit(&mut self, ctx: &mut Context<'_>, token: Token) {
        self.priority.begin_visit(token.token_seq);
        let mut visit = Visit::new(token, self.reported_aru());
        self.answer_requests(ctx, &mut visit);
        self.number_packets(ctx, &mut visit);
        self.update_token(ctx, &mut visit);
        self.send(ctx, visit);
        self.settle();
    }

    /// A repeated token is dropped (membership A10); so is one that contradicts what this member
    /// knows, or comes from another than its predecessor: no member of this ring can have sent it.
    fn accept(&mut self, ctx: &mut Context<'_>, token: &Token) -> bool {
        if token.token_seq <= self.token_seq && !mutants::on(Mutant::M09) {
            ctx.counters.token_duplicates += 1;
            if mutants::on(Mutant::M11) {
                self.resend.on_token(ctx.now, false);
            }
            return false;
        }
        if !self.can_be(token) {
            ctx.counters.token_invalid += 1;
            return false;
        }
        if mutants::on(Mutant::M01) {
            self.safe_line = self.safe_line.max(token.aru);
        }
        self.token_seq = token.token_seq;
        ctx.counters.token_rotations += 1;
        true
    }

    /// Whether this member would take a token now.
    pub(crate) fn takes(&self, token: &Token) -> bool {
        token.token_seq > self.token_seq && self.can_be(token)
    }

    fn can_be(&self, token: &Token) -> bool {
        let far = self
            .buffer
            .discarded()
            .saturating_add(self.buffer.capacity());
        token.sender == self.predecessor
            && token.aru >= self.safe_line
            && token.seq >= self.seq_received
            && token.seq <= far
            // When the first member installs a ring, no member has packets of an old one to send.
            && (self.recovering.is_some() || !token.recovering)
            && token.token_seq < u64::MAX / 2
    }

    /// Sends the requested packets again that are here (§III-B1); the others stay requested. Requests for packets that
    /// all members are known to have are stale.
    fn answer_requests(&mut self, ctx: &mut Context<'_>, visit: &mut Visit) {
        let (mut open, mut left) = (Vec::new(), Vec::new());
        let most = self.config.request_ranges();
        let limit = self.flow.retransmission_limit();
        for range in core::mem::take(&mut visit.token.rtr) {
            let first = range.first.max(self.buffer.discarded() + 1);
            for seq in first..=range.last() {
                let one = RequestRange {
                    first: seq,
                    count: 1,
                };
                match self.buffer.get(seq) {
                    Some(slot) if self.leaves_to_others(ctx.now, (seq, slot.member), visit) => {
                        push_merged(&mut left, one, most);
                        push_merged(&mut open, one, most);
                    }
                    Some(slot) if u64::from(visit.resent) < limit => {
                        // The round stays as it was: a repeated packet says nothing about the holder of the token.
                        let data = self.packet(seq, slot, slot.round);
                        data.append_to(&mut visit.before, 1, self.config.seal_bytes);
                        visit.resent += 1;
                        ctx.counters.peer(data.sender).resent += 1;
                        // Others that have the packet may be heard where this member is not.
                        if self.deaf.is_asked_in_vain(seq) {
                            self.deaf.on_unheard(ctx.now, self.config.timers.token_loss);
                            push_merged(&mut open, one, most);
                        }
                    }
                    _ => {
                        push_merged(&mut open, one, most);
                    }
                }
            }
        }
        visit.token.rtr = open;
        self.deaf.on_left(left);
        ctx.counters.retransmissions += u64::from(visit.resent);
    }

    /// Whether others have to answer a request for a packet of this member's own, as one of them does not hear this
    /// member. This member still sends the first missing packet itself.
    fn leaves_to_others(&self, now: Time, (seq, member): (Seq, u16), visit: &Visit) -> bool {
        let is_first = seq == visit.token.aru + 1;
        let has_others = self.members.len() > 2;
        member == self.my_index && has_others && !is_first && self.deaf.leaves(now, seq)
    }

    /// Decides how many packets this visit sends and numbers them (§III-B1). The last
    /// `accelerated_window` of them leave after the token; if there are fewer, all of them do.
    fn number_packets(&mut self, ctx: &mut Context<'_>, visit: &mut Visit) {
        let demand = Demand {
            backlog: self.waiting(ctx),
            fcc: visit.token.fcc,
            wanted: visit.token.backlog,
            seq: visit.token.seq,
            safe_line: self.safe_line,
            resent: visit.resent,
        };
        let allowed = self.flow.allowed(&demand);
        visit.token.backlog = self.flow.pass_on_wanted(&demand);
        ctx.counters.visits_throttled += u64::from(self.flow.throttled(&demand, allowed));
        let before_token = match self.protocol() {
            Protocol::Accelerated => {
                allowed.saturating_sub(u64::from(self.config.accelerated_window))
            }
            Protocol::Original => allowed,
        };
        for index in 0..allowed {
            let Some(out) = self.take_waiting(ctx) else {
                break;
            };
            let left = (allowed - index) as usize;
            self.number_packet(ctx, visit, out, index < before_token, left);
        }
        ctx.counters.packets_sent += u64::from(visit.fresh);
    }

    /// Packets this visit could send, if it were allowed to: before the ring is installed those of the
    /// old ring, then the application's.
    fn waiting(&self, ctx: &Context<'_>) -> usize {
        self.recovering
            .as_ref()
            .map_or_else(|| ctx.waiting(), Recovering::waiting)
    }

    fn take_waiting(&mut self, ctx: &mut Context<'_>) -> Option<OutFrame> {
        match &mut self.recovering {
            Some(recovering) => recovering.take(),
            None => ctx.outbox.take(),
        }
    }

    fn number_packet(
        &mut self,
        ctx: &mut Context<'_>,
        visit: &mut Visit,
        out: OutFrame,
        before_token: bool,
        left: usize,
    ) {
        visit.fresh += 1;
        let seq = visit.seq_received + u64::from(visit.fresh);
        let encapsulated = self.recovering.is_some();
        if !encapsulated {
            self.trace(ctx, seq, &out.frame);
        }
        let round = if before_token {
            self.priority.stamp_before_token()
        } else {
            self.priority.stamp_after_token()
        };
        let OutFrame { service, frame } = out;
        let slot = Slot {
            member: self.my_index,
            service,
            round,
            frame,
            encapsulated,
            delivered: false,
        };
        let data = self.packet(seq, &slot, round);
        let bursts = if before_token {
            &mut visit.before
        } else {
            &mut visit.after
        };
        data.append_to(bursts, left, self.config.seal_bytes);
        // Own packets are received here: nothing is read back from the network (thesis §5.1.5).
        self.buffer.insert(seq, slot);
        if !encapsulated {
            self.delivery.on_packet(&mut self.buffer, seq, service);
        }
    }

    /// Updates the token's fields (§III-B2).
    fn update_token(&mut self, ctx: &mut Context<'_>, visit: &mut Visit) {
        self.request_missing(ctx, visit);
        let local_aru = self.reported_aru();
        let token = &mut visit.token;
        let aru_received = token.aru;
        aru::update(token, self.me, visit.local_aru, u64::from(visit.fresh));
        token.seq = visit.seq_received + u64::from(visit.fresh);
        if mutants::on(Mutant::M05) {
            token.seq -= u64::from(visit.fresh.min(self.config.accelerated_window));
            token.aru = token.aru.min(token.seq);
        }
        if let Some(recovering) = &mut self.recovering {
            recovering.on_token(token, aru_received, local_aru);
        }
        token.fcc = self.flow.pass_on(token.fcc, visit.fresh + visit.resent);
        token.sender = self.me;
        token.token_seq += 1;
        self.idle.on_pass(token, visit.fresh + visit.resent > 0);
    }

    /// Requests the packets that are missing and should have come by now.
    fn request_missing(&mut self, ctx: &mut Context<'_>, visit: &mut Visit) {
        let protocol = if mutants::on(Mutant::M07) {
            Protocol::Original
        } else {
            self.protocol()
        };
        let bound = self.patience.bound(protocol, visit.seq_received);
        self.seq_received = visit.seq_received;
        if self.buffer.aru() >= bound {
            return;
        }
        let mut missing = Vec::new();
        let most = self.config.request_ranges();
        let count = self.buffer.missing(bound, &mut missing, most);
        ctx.counters.packets_requested += count;
        self.patience.on_request(&missing, most);
        self.lossy.on_asked(&missing, self.asked_up_to);
        if let Some(last) = missing.last() {
            self.asked_up_to = self.asked_up_to.max(last.last());
        }
        visit.token.rtr = union(&visit.token.rtr, &missing, most);
    }

    /// First part, token, second part: in this order on the wire.
    fn send(&mut self, ctx: &mut Context<'_>, visit: Visit) {
        let Visit {
            token,
            before,
            after,
            ..
        } = visit;
        ctx.outputs
            .extend(before.finish().into_iter().map(multicast));
        self.token_seq = token.token_seq;
        self.resend.on_sent(ctx.now, token.clone());
        self.record_aru(token.aru);
        self.send_token(ctx, token);
        ctx.outputs
            .extend(after.finish().into_iter().map(multicast));
    }

    /// Every member had the chance to lower the aru between the last visit and this one, so all members have every
    /// packet up to the lower of the two (§III-B4).
    fn record_aru(&mut self, aru_sent: Seq) {
        if mutants::on(Mutant::M02) {
            self.safe_line = self.safe_line.max(aru_sent);
        }
        self.safe_line = self.safe_line.max(self.aru_sent.min(aru_sent));
        self.aru_sent = aru_sent;
    }

    fn settle(&mut self) {
        self.discard();
    }

    fn packet(&self, seq: Seq, slot: &Slot, round: u16) -> Data {
        Data {
            cluster: self.config.cluster,
            ring: self.ring,
            seq,
            sender: self.members()[usize::from(slot.member)].node,
            round,
            service: slot.service,
            encapsulated: slot.encapsulated && !(mutants::on(Mutant::R05) && slot.round == 0),
            frame: slot.frame.clone(),
        }
    }
}

const fn multicast(burst: Burst) -> Output {
    let channel = Channel(0);
    let (class, to) = (Class::Data, Target::Others);
    Output::Send {
        class,
        channel,
        to,
        burst,
        after: None,
        pace: None,
    }
}
