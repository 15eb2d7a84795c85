//! The visit of the token at a member, one function for each step (report §III-B, thesis §3.1.2).
//!
//! 1. [`accept`](Ordering::accept) it, or count why not;
//! 2. [`answer_requests`](Ordering::answer_requests): packets sent again all leave before the token;
//! 3. [`number_packets`](Ordering::number_packets): decide how many new packets to send, give them
//!    their numbers, and part them into those before and those after the token;
//! 4. [`update_token`](Ordering::update_token): `seq`, `aru`, `fcc`, `rtr`;
//! 5. [`send`](Ordering::send): first part, token, second part;
//! 6. [`discard`](super::packets::Packets::discard) the packets that all have and this member has delivered.

use alloc::vec::Vec;

use super::flow::Demand;
use super::ordering::{Context, Ordering};
use super::recovering::Recovering;
use super::slot::Slot;
use super::{Counters, Protocol, aru};
use crate::wire::{Data, Token};
use rota_core::burst::BurstBuilder;
use rota_core::contract::{Burst, Channel, Class, Output, Seq, Target, Time};
use rota_core::mutants::{self, Mutant};
use rota_core::pack::OutFrame;

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
    pub(crate) fn on_token(&mut self, ctx: &mut Context<'_>, token: Token) {
        if !self.accept(ctx, &token) {
            return;
        }
        let took = self.rotation.on_token(ctx.now, &token);
        self.count_rotation(ctx.counters, took);
        let (me, my_index) = (self.roster.me(), self.roster.my_index());
        let next = self.packets.next_behind(token.aru, my_index);
        self.deaf.on_token(ctx.now, &token, (me, next));
        if self.recovering.is_some() {
            self.visit(ctx, token);
        } else if let Some(token) = self
            .rotation
            .hold_if_idle(ctx.now, token, ctx.waiting() > 0)
        {
            self.visit(ctx, token);
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
        self.rotation.begin_visit(&token);
        let mut visit = Visit::new(token, self.packets.reported_aru());
        self.answer_requests(ctx, &mut visit);
        self.number_packets(ctx, &mut visit);
        self.update_token(ctx, &mut visit);
        self.send(ctx, visit);
        self.packets.discard();
    }

    /// A repeated token is dropped (membership A10); so is one that contradicts what this member
    /// knows, or comes from another than its predecessor: no member of this ring can have sent it.
    fn accept(&mut self, ctx: &mut Context<'_>, token: &Token) -> bool {
        if !self.rotation.is_new(token) && !mutants::on(Mutant::M09) {
            ctx.counters.token_duplicates += 1;
            self.rotation.on_repeated(ctx.now);
            return false;
        }
        if !self.can_be(token) {
            ctx.counters.token_invalid += 1;
            return false;
        }
        if mutants::on(Mutant::M01) {
            self.packets.on_safe(token.aru);
        }
        ctx.counters.token_rotations += 1;
        true
    }

    /// Whether this member would take a token now.
    pub(crate) fn takes(&self, token: &Token) -> bool {
        self.rotation.is_new(token) && self.can_be(token)
    }

    fn can_be(&self, token: &Token) -> bool {
        token.sender == self.roster.predecessor()
            && token.aru >= self.packets.safe_line()
            && token.seq <= self.packets.reach()
            && self.rotation.may_follow(token)
            // When the first member installs a ring, no member has packets of an old one to send.
            && (self.recovering.is_some() || !token.recovering)
    }

    /// Sends the requested packets again that are here (§III-B1); the others stay requested. Requests for packets that
    /// all members are known to have are stale.
    fn answer_requests(&mut self, ctx: &mut Context<'_>, visit: &mut Visit) {
        let (mut open, mut left) = (Vec::new(), Vec::new());
        let limit = self.flow.retransmission_limit();
        for range in core::mem::take(&mut visit.token.rtr) {
            let first = range.first.max(self.packets.discarded() + 1);
            for seq in first..=range.last() {
                match self.packets.get(seq) {
                    Some(slot) if self.leaves_to_others(ctx.now, (seq, slot.member), visit) => {
                        self.requests.add(seq, &mut left);
                        self.requests.add(seq, &mut open);
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
                            self.requests.add(seq, &mut open);
                        }
                    }
                    _ => self.requests.add(seq, &mut open),
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
        let has_others = self.members().len() > 2;
        member == self.roster.my_index() && has_others && !is_first && self.deaf.leaves(now, seq)
    }

    /// Decides how many packets this visit sends and numbers them (§III-B1). The last
    /// `accelerated_window` of them leave after the token; if there are fewer, all of them do.
    fn number_packets(&mut self, ctx: &mut Context<'_>, visit: &mut Visit) {
        let demand = Demand {
            backlog: self.waiting(ctx),
            fcc: visit.token.fcc,
            wanted: visit.token.backlog,
            seq: visit.token.seq,
            safe_line: self.packets.safe_line(),
            resent: visit.resent,
        };
        let allowed = self.flow.allowed(&demand);
        visit.token.backlog = self.flow.pass_on_wanted(&demand);
        ctx.counters.visits_throttled += u64::from(self.flow.throttled(&demand, allowed));
        let before_token = match self.protocol() {
            Protocol::Accelerated => {
                allowed.saturating_sub(u64::from(self.config.windows.accelerated))
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
        let round = self.rotation.stamp(before_token);
        let OutFrame { service, frame } = out;
        let slot = Slot {
            member: self.roster.my_index(),
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
        self.packets.put_own(seq, slot);
    }

    /// Updates the token's fields (§III-B2).
    fn update_token(&mut self, ctx: &mut Context<'_>, visit: &mut Visit) {
        self.request_missing(ctx, visit);
        let local_aru = self.packets.reported_aru();
        let token = &mut visit.token;
        let aru_received = token.aru;
        aru::update(
            token,
            self.roster.me(),
            visit.local_aru,
            u64::from(visit.fresh),
        );
        token.seq = visit.seq_received + u64::from(visit.fresh);
        if mutants::on(Mutant::M05) {
            token.seq -= u64::from(visit.fresh.min(self.config.windows.accelerated));
            token.aru = token.aru.min(token.seq);
        }
        if let Some(recovering) = &mut self.recovering {
            recovering.on_token(token, aru_received, local_aru);
        }
        let sent = visit.fresh + visit.resent;
        token.fcc = self.flow.pass_on(token.fcc, sent);
        token.sender = self.roster.me();
        self.rotation.pass_on(token, sent > 0);
    }

    /// Requests the packets that are missing and should have come by now.
    fn request_missing(&mut self, ctx: &mut Context<'_>, visit: &mut Visit) {
        let protocol = if mutants::on(Mutant::M07) {
            Protocol::Original
        } else {
            self.protocol()
        };
        let seq = visit.seq_received;
        ctx.counters.packets_requested +=
            self.requests
                .ask(&self.packets, (protocol, seq), &mut visit.token.rtr);
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
        self.rotation.on_sent(ctx.now, &token);
        self.packets.on_aru_sent(token.aru);
        self.send_token(ctx, token);
        ctx.outputs
            .extend(after.finish().into_iter().map(multicast));
    }

    fn packet(&self, seq: Seq, slot: &Slot, round: u16) -> Data {
        Data {
            cluster: self.config.cluster,
            ring: self.ring(),
            seq,
            sender: self.roster.process(slot.member).node,
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
    }
}
