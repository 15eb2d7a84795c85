//! One member's part of the ordering protocol on one installed ring.

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;

use super::deaf::Deaf;
use super::delivery::Delivery;
use super::flow::Flow;
use super::idle::Idle;
use super::lossy::Lossy;
use super::patience::RequestDelay;
use super::priority::Priority;
use super::recovering::Recovering;
use super::resend::Resend;
use super::slot::Slot;
use super::{Counters, Protocol, RingConfig};
use crate::wire::{Hurry, Packet, Settings, Token};
use rota_core::buffer::Buffer;
use rota_core::contract::{
    Burst, Channel, Class, Incarnation, NodeId, Output, Process, RingId, Seq, Service, Target,
    Time, TimerReason,
};
use rota_core::pack::{Inbox, Outbox};
use rota_core::wire::Frame;

/// The state that outlives a ring and is lent to it for one call.
#[derive(Debug)]
pub struct Context<'a> {
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
    /// The settings of the members, in their order; empty on a ring of one.
    pub(super) told: Vec<Settings>,
    pub(super) ring: RingId,
    pub(super) me: NodeId,
    /// Place of this member among the members.
    pub(super) my_index: u16,
    pub(super) successor: NodeId,
    pub(super) predecessor: NodeId,
    pub(super) members: Vec<Process>,
    pub(super) buffer: Buffer<Slot>,
    pub(super) delivery: Delivery,
    pub(super) inbox: Inbox,
    pub(super) unpacking: Option<Unpacking>,
    pub(super) flow: Flow,
    pub(super) priority: Priority,
    pub(super) resend: Resend,
    pub(super) idle: Idle,
    /// `token_seq` of the newest token accepted or sent.
    pub(super) token_seq: u64,
    /// `seq` of the token received in the last visit.
    pub(super) seq_received: Seq,
    pub(super) patience: RequestDelay,
    /// Missing packets up to this sequence number have been requested.
    pub(super) asked_up_to: Seq,
    /// `aru` of the token sent in the last visit.
    pub(super) aru_sent: Seq,
    /// The sequence number up to which all members are known to have every packet.
    pub(super) safe_line: Seq,
    /// The recovery, until the ring is installed.
    pub(super) recovering: Option<Recovering>,
    /// The ring has broken and another follows: nothing new is ordered on it.
    pub(super) ended: bool,
    pub(super) deaf: Deaf,
    pub(super) lossy: Lossy,
}

/// The packet whose messages are being handed out.
#[derive(Clone, Copy, Hash, Debug)]
pub(super) struct Unpacking {
    pub seq: Seq,
    pub member: u16,
    pub service: Service,
}

impl Ordering {
    /// Member `me` of `ring`, whose `members` are listed by ascending id and contain it. `starts` has the counter of
    /// the first message of each of them, `told` its settings.
    pub fn new(
        own: &RingConfig,
        ring: RingId,
        members: Vec<Process>,
        (starts, told): (&[u64], Vec<Settings>),
        me: NodeId,
        now: Time,
    ) -> Self {
        let config = own.agreed(&told);
        let count = members.len();
        let my_index = members
            .iter()
            .position(|member| member.node == me)
            .unwrap_or(0);
        let neighbour = |step: usize| members[(my_index + step) % count].node;
        let my_index = my_index as u16;
        let (successor, predecessor) = (neighbour(1), neighbour(count - 1));
        // Twice the window: another member's safe line may be one window ahead of the deliveries here. All keep as many
        // packets, so that in recovery each can take every packet that another has.
        let personal = told.iter().map(|settings| settings.personal_window).max();
        let personal = personal.unwrap_or(0).max(config.personal_window);
        let packets = 2 * config.outstanding_window as usize + personal as usize;
        Self {
            ring,
            me,
            my_index,
            successor,
            predecessor,
            buffer: Buffer::new(0, packets),
            delivery: Delivery::new(0, starts),
            inbox: Inbox::new(config.most_message()),
            unpacking: None,
            flow: Flow::new(&config),
            priority: Priority::new(&config, predecessor),
            resend: Resend::new(now, config.timers),
            idle: Idle::new(ring.rep == me, config.timers),
            token_seq: 0,
            seq_received: 0,
            patience: RequestDelay::new(),
            asked_up_to: 0,
            aru_sent: 0,
            safe_line: 0,
            recovering: None,
            ended: false,
            deaf: Deaf::default(),
            lossy: Lossy::new(members.len()),
            members,
            config,
            told,
        }
    }

    /// One sentence for each member and each setting that differs from `own`.
    pub(crate) fn differences(&self, own: &RingConfig) -> Vec<String> {
        own.differences(&self.members, &self.told)
    }

    /// The ring's identity.
    pub const fn ring(&self) -> RingId {
        self.ring
    }

    /// Its members, by ascending id.
    pub fn members(&self) -> &[Process] {
        &self.members
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
    pub fn reading(&self) -> Class {
        match self.protocol() {
            Protocol::Accelerated => self.priority.reading(),
            Protocol::Original => Class::Data,
        }
    }

    /// The time of the next call of `on_timer`, and its reason.
    pub fn next_timer(&self) -> Option<(Time, TimerReason)> {
        if self.is_alone() {
            return None;
        }
        let resend = self.resend.next_timer();
        Some(
            self.idle
                .next_timer()
                .map_or(resend, |idle| idle.min(resend)),
        )
    }

    /// Creates the ring's first token. Called on the representative, once.
    pub fn start(&mut self, ctx: &mut Context<'_>) {
        if self.is_alone() {
            return;
        }
        let token = Token {
            cluster: self.config.cluster,
            ring: self.ring,
            // As if the last member had passed it on.
            sender: self.predecessor,
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
        self.buffer.aru()
    }

    /// The sequence number up to which all members are known to have every packet.
    pub const fn safe_line(&self) -> Seq {
        self.safe_line
    }

    /// Whether this member has had the token, or anything ordered by it.
    pub const fn has_seen_token(&self) -> bool {
        self.token_seq > 0
    }

    /// The aru that this member reports in the token. An application that does not take its deliveries holds it back,
    /// and so, through the safe line, the sending of all members: the buffer is bounded.
    pub(super) fn reported_aru(&self) -> Seq {
        if self.recovering.is_some() {
            return self.buffer.aru();
        }
        let window = u64::from(self.config.outstanding_window);
        self.buffer
            .aru()
            .min(self.delivery.delivered().saturating_add(window))
    }

    /// Whether the application holds back the aru that this member reports.
    pub fn waits_for_application(&self) -> bool {
        self.reported_aru() < self.buffer.aru()
    }

    /// Orders the messages that wait in the outbox, or sees that a token comes for them.
    pub fn on_submit(&mut self, ctx: &mut Context<'_>) {
        if self.is_alone() {
            self.order_alone(ctx);
        } else if let Some(token) = self.take_held() {
            self.visit(ctx, token);
        } else if self.idle.ask(ctx.now) {
            self.send_hurry(ctx);
        }
    }

    /// The held token, if this member holds one.
    fn take_held(&mut self) -> Option<Token> {
        if self.idle.is_holding() {
            self.idle.hurry()
        } else {
            None
        }
    }

    /// Lets the held token go on the representative, as another member has something to send.
    pub fn on_hurry(&mut self, ctx: &mut Context<'_>, hurry: &Hurry) {
        if self.member_index(hurry.sender).is_none() {
            ctx.counters.datagrams_foreign_ring += 1;
            return;
        }
        if self.ring.rep != self.me {
            return;
        }
        if let Some(token) = self.idle.hurry() {
            self.visit(ctx, token);
        }
    }

    /// Acts on a time that `next_timer` named.
    pub fn on_timer(&mut self, ctx: &mut Context<'_>) {
        if self.is_alone() {
            return;
        }
        if let Some(token) = self.idle.due(ctx.now) {
            ctx.counters.token_holds += 1;
            self.visit(ctx, token);
        }
        if self.idle.ask_again(ctx.now) {
            self.send_hurry(ctx);
        }
        if let Some(token) = self.resend.due(ctx.now) {
            ctx.counters.token_retransmissions += 1;
            self.send_token(ctx, token);
        }
    }

    /// Whether the token has been away for so long that the ring counts as broken.
    pub fn has_lost_token(&mut self, now: Time) -> bool {
        !self.is_alone() && self.resend.lost(now)
    }

    /// The same as [`Self::has_lost_token`], callable at any time. A holder of an idle ring's token that is this late
    /// has slept through the end of the hold: the others have given the ring up.
    pub const fn is_overdue(&self, now: Time) -> bool {
        !self.is_alone() && self.resend.is_overdue(now)
    }

    /// Sends a hurry to all members. Only the representative has to know, but so the others wake up while the token is
    /// on its way, and not one after the other as it comes.
    fn send_hurry(&self, ctx: &mut Context<'_>) {
        ctx.counters.hurries += 1;
        let hurry = Hurry {
            cluster: self.config.cluster,
            ring: self.ring,
            sender: self.me,
        };
        ctx.outputs.push_back(Output::Send {
            class: Class::Data,
            channel: Channel::default(),
            to: Target::Others,
            burst: Burst::single(Packet::Hurry(hurry).encode_sealed(self.config.seal_bytes)),
            after: None,
            pace: None,
        });
    }

    pub(super) fn send_token(&self, ctx: &mut Context<'_>, token: Token) {
        ctx.outputs.push_back(send_to(
            self.successor,
            &Packet::Token(token),
            self.config.seal_bytes,
        ));
    }

    pub(super) const fn is_alone(&self) -> bool {
        self.members.len() == 1
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

    /// Whether `incarnation` is the one of member `node`.
    pub fn is_member(&self, node: NodeId, incarnation: Incarnation) -> bool {
        self.members.contains(&Process { node, incarnation })
    }
}

/// A control message to one node, with `seal_bytes` left at its end.
pub(crate) fn send_to(node: NodeId, packet: &Packet, seal_bytes: usize) -> Output {
    Output::Send {
        class: Class::Token,
        channel: Channel::default(),
        to: Target::Node(node),
        burst: Burst::single(packet.encode_sealed(seal_bytes)),
        after: None,
        pace: None,
    }
}
