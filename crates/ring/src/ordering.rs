//! One member's part of the ordering protocol on one installed ring.

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;

use super::deaf::Deaf;
use super::flow::Flow;
use super::packets::Packets;
use super::recovering::Recovering;
use super::requests::Requests;
use super::roster::Roster;
use super::rotation::Rotation;
use super::slot::Slot;
use super::{Counters, Protocol, RingConfig};
use crate::wire::{Data, Hurry, Packet, Settings, Token};
use rota_core::buffer::Inserted;
use rota_core::contract::{
    Burst, Channel, Class, Message, NodeId, Output, Process, RingId, Seq, Target, Time, TimerReason,
};
use rota_core::pack::Outbox;
use rota_core::wire::Frame;

/// The state that outlives a ring and is lent to it for one call.
#[derive(Debug)]
pub(crate) struct Context<'a> {
    /// The time of the call.
    pub now: Time,
    /// Messages waiting to be numbered.
    pub outbox: &'a mut Outbox,
    /// Whether the messages must wait, as the application has not seen the configuration yet in which they would be
    /// sent.
    pub hold_messages: bool,
    /// The queue of outputs.
    pub outputs: &'a mut VecDeque<Output>,
    /// The counters of the ring.
    pub counters: &'a mut Counters,
}

impl Context<'_> {
    /// Packets that may be numbered now.
    pub(super) fn waiting(&self) -> usize {
        if self.hold_messages {
            0
        } else {
            self.outbox.len()
        }
    }
}

/// The ordering protocol on one ring.
#[derive(Clone, Debug)]
pub struct Ordering {
    /// This member's configuration, with the settings in force on the ring.
    pub(super) config: RingConfig,
    pub(super) roster: Roster,
    pub(super) packets: Packets,
    pub(super) requests: Requests,
    pub(super) flow: Flow,
    pub(super) rotation: Rotation,
    pub(super) deaf: Deaf,
    /// The recovery, until the ring is installed.
    pub(super) recovering: Option<Recovering>,
}

impl Ordering {
    /// Member `me` of `ring`, whose `members` are listed by ascending id and contain it. `starts` has the counter of
    /// the first message of each of them, `told` its settings.
    pub(crate) fn new(
        own: &RingConfig,
        ring: RingId,
        members: Vec<Process>,
        (starts, told): (&[u64], Vec<Settings>),
        me: NodeId,
        now: Time,
    ) -> Self {
        let config = own.agreed(&told);
        let most = most_packets(&config, &told);
        let window = u64::from(config.windows.outstanding);
        let requests = Requests::new(members.len(), config.request_ranges());
        let roster = Roster::new(ring, members, told, me);
        Self {
            packets: Packets::new(most, starts, config.most_message(), window),
            requests,
            flow: Flow::new(&config),
            rotation: Rotation::new(now, &config, &roster),
            deaf: Deaf::default(),
            recovering: None,
            roster,
            config,
        }
    }

    /// One sentence for each member and each setting that differs from `own`.
    pub(crate) fn differences(&self, own: &RingConfig) -> Vec<String> {
        self.roster.differences(own)
    }

    /// The ring's identity.
    pub const fn ring(&self) -> RingId {
        self.roster.ring()
    }

    /// Its members, by ascending id.
    pub fn members(&self) -> &[Process] {
        self.roster.members()
    }

    /// The protocol in force: nothing is accelerated before the ring is installed (membership §0.6).
    pub(super) const fn protocol(&self) -> Protocol {
        if self.recovering.is_some() {
            Protocol::Original
        } else {
            self.config.protocol
        }
    }

    /// The class to read first.
    pub(crate) fn reading(&self) -> Class {
        self.rotation.reading(self.protocol())
    }

    /// The time of the next call of `on_timer`, and its reason.
    pub(crate) fn next_timer(&self) -> Option<(Time, TimerReason)> {
        (!self.roster.is_alone()).then(|| self.rotation.next_timer())
    }

    /// Creates the ring's first token. Called on the representative, once.
    pub(crate) fn start(&mut self, ctx: &mut Context<'_>) {
        if self.roster.is_alone() {
            return;
        }
        let token = Token {
            cluster: self.config.cluster,
            ring: self.ring(),
            // As if the last member had passed it on.
            sender: self.roster.predecessor(),
            token_seq: 1,
            seq: 0,
            aru: 0,
            aru_id: None,
            fcc: 0,
            backlog: 0,
            idle: false,
            recovering: false,
            rtr: Vec::new(),
        };
        self.on_token(ctx, token);
    }

    /// The local aru: the sequence number up to which this member has every packet.
    pub const fn aru(&self) -> Seq {
        self.packets.aru()
    }

    /// The sequence number up to which all members are known to have every packet.
    pub const fn safe_line(&self) -> Seq {
        self.packets.safe_line()
    }

    /// Whether the application holds back the aru that this member reports.
    pub(crate) fn waits_for_application(&self) -> bool {
        self.packets.reported_aru() < self.packets.aru()
    }

    /// Whether this member has, or had, a packet.
    pub fn has_received(&self, seq: Seq) -> bool {
        self.packets.has_received(seq)
    }

    /// The next message to deliver, if one is due.
    #[inline(always)]
    pub(crate) fn poll_message(&mut self, ctx: &mut Context<'_>) -> Option<Message> {
        self.packets.next_message(&self.roster, ctx.counters)
    }

    /// Takes a packet of this ring (thesis §3.1.3). If it is new and wraps a packet of an old ring, returns the frame
    /// that wraps it.
    #[inline(always)]
    pub(crate) fn on_data(&mut self, ctx: &mut Context<'_>, data: Data) -> Option<Frame> {
        let Some(member) = self.roster.index_of(data.sender) else {
            ctx.counters.datagrams_foreign_ring += 1;
            return None;
        };
        if data.encapsulated && self.recovering.is_none() {
            // An installed ring has all wrapped packets, and no more are sent.
            ctx.counters.packets_duplicate += 1;
            return None;
        }
        self.rotation.on_data(&data);
        self.keep(ctx, member, data)
    }

    #[inline(always)]
    fn keep(&mut self, ctx: &mut Context<'_>, member: u16, data: Data) -> Option<Frame> {
        let Data {
            seq,
            service,
            round,
            frame,
            encapsulated,
            ..
        } = data;
        let wrapped = encapsulated.then(|| frame.clone());
        let slot = Slot {
            member,
            service,
            round,
            frame,
            encapsulated,
            delivered: false,
        };
        match self.packets.put(seq, slot) {
            Inserted::New => {
                ctx.counters.packets_received += 1;
                if self.requests.on_new(seq, member) {
                    let sender = self.roster.process(member).node;
                    ctx.counters.peer(sender).repaired += 1;
                }
                return wrapped;
            }
            Inserted::Duplicate => {
                ctx.counters.packets_duplicate += 1;
                let is_own = member == self.roster.my_index();
                self.requests.on_duplicate(seq, is_own);
            }
            Inserted::BeyondWindow => ctx.counters.packets_beyond_window += 1,
        }
        None
    }

    /// Orders the messages that wait in the outbox, or sees that a token comes for them.
    pub(crate) fn on_submit(&mut self, ctx: &mut Context<'_>) {
        if self.roster.is_alone() {
            self.order_alone(ctx);
        } else if let Some(token) = self.rotation.take_held() {
            self.visit(ctx, token);
        } else if self.rotation.has_to_hurry(ctx.now) {
            self.send_hurry(ctx);
        }
    }

    /// Orders the waiting messages on a ring of one, which needs no token: they are ordered, and safe, at once.
    fn order_alone(&mut self, ctx: &mut Context<'_>) {
        self.packets.discard();
        while self.packets.application_has_room() {
            if ctx.waiting() == 0 {
                break;
            }
            let Some(out) = ctx.outbox.take() else { break };
            let seq = self.aru() + 1;
            self.trace(ctx, seq, &out.frame);
            let slot = Slot {
                member: self.roster.my_index(),
                service: out.service,
                round: 0,
                frame: out.frame,
                encapsulated: false,
                delivered: false,
            };
            self.packets.put_own(seq, slot);
            self.packets.on_safe(seq);
            ctx.counters.packets_sent += 1;
        }
    }

    /// Lets the held token go on the representative, as another member has something to send.
    pub(crate) fn on_hurry(&mut self, ctx: &mut Context<'_>, hurry: &Hurry) {
        if self.roster.index_of(hurry.sender).is_none() {
            ctx.counters.datagrams_foreign_ring += 1;
            return;
        }
        if !self.roster.is_rep() {
            return;
        }
        if let Some(token) = self.rotation.on_hurry() {
            self.visit(ctx, token);
        }
    }

    /// Acts on a time that `next_timer` named.
    pub(crate) fn on_timer(&mut self, ctx: &mut Context<'_>) {
        if self.roster.is_alone() {
            return;
        }
        if let Some(token) = self.rotation.hold_over(ctx.now) {
            ctx.counters.token_holds += 1;
            self.visit(ctx, token);
        }
        if self.rotation.has_to_hurry_again(ctx.now) {
            self.send_hurry(ctx);
        }
        if let Some(token) = self.rotation.repeat(ctx.now) {
            ctx.counters.token_retransmissions += 1;
            self.send_token(ctx, token);
        }
    }

    /// Whether the token has been away for so long that the ring counts as broken.
    pub(crate) fn has_lost_token(&mut self, now: Time) -> bool {
        !self.roster.is_alone() && self.rotation.is_lost(now)
    }

    /// The same as [`Self::has_lost_token`], callable at any time. A holder of an idle ring's token that is this late
    /// has slept through the end of the hold: the others have given the ring up.
    pub(crate) const fn is_overdue(&self, now: Time) -> bool {
        !self.roster.is_alone() && self.rotation.is_overdue(now)
    }

    /// Sends a hurry to all members. Only the representative has to know, but so the others wake up while the token is
    /// on its way, and not one after the other as it comes.
    fn send_hurry(&self, ctx: &mut Context<'_>) {
        ctx.counters.hurries += 1;
        let hurry = Hurry {
            cluster: self.config.cluster,
            ring: self.ring(),
            sender: self.roster.me(),
        };
        ctx.outputs.push_back(Output::Send {
            class: Class::Data,
            channel: Channel::default(),
            to: Target::Others,
            burst: Burst::single(Packet::Hurry(hurry).encode_sealed(self.config.seal_bytes)),
            after: None,
        });
    }

    pub(super) fn send_token(&self, ctx: &mut Context<'_>, token: Token) {
        ctx.outputs.push_back(send_to(
            self.roster.successor(),
            &Packet::Token(token),
            self.config.seal_bytes,
        ));
    }

    /// Tells the trace which messages were numbered with this packet.
    pub(super) fn trace(&self, ctx: &mut Context<'_>, seq: Seq, frame: &Frame) {
        if !self.config.trace {
            return;
        }
        let messages = frame.start().counter..frame.end().counter;
        // Record 0 may be the rest of a cut message: it counts as one of the packet's messages.
        for (index, counter) in (0..=u16::MAX).zip(messages) {
            ctx.outputs.push_back(Output::Originated {
                counter,
                seq,
                index,
            });
        }
    }

    /// Asserts the invariants of the ordering and of its parts.
    pub(crate) fn check(&self) {
        self.roster.check();
        self.packets.check(self.recovering.is_some());
        self.requests.check(self.packets.reach());
        self.flow.check();
        self.rotation.check(&self.roster);
        self.deaf.check(self.roster.me());
        if let Some(recovering) = &self.recovering {
            recovering.check();
        }
    }
}

/// The packets that a member keeps, at most: twice the window, as another member's safe line may be one window ahead of
/// the deliveries here. All keep as many packets, so that in recovery each can take every packet that another has.
fn most_packets(config: &RingConfig, told: &[Settings]) -> usize {
    let personal = told.iter().map(|settings| settings.personal_window).max();
    let personal = personal.unwrap_or(0).max(config.windows.personal);
    2 * config.windows.outstanding as usize + personal as usize
}

/// A control message to one node, with `seal_bytes` left at its end.
pub(crate) fn send_to(node: NodeId, packet: &Packet, seal_bytes: usize) -> Output {
    Output::Send {
        class: Class::Token,
        channel: Channel::default(),
        to: Target::Node(node),
        burst: Burst::single(packet.encode_sealed(seal_bytes)),
        after: None,
    }
}
