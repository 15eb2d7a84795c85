//! A member in one view: what it knows, what the others have acknowledged, and the packets that may be delivered.
//!
//! It is put together from machines with a state of their own: what is [known](super::known), the members' [`Acks`],
//! the [own](super::own) packets, what it [tells](super::tell) and what it [repairs](super::repair). Here, in `receive`
//! and in `flight` are the steps of fig. 2 that concern more than one of them.

mod flight;
mod receive;

use alloc::collections::VecDeque;

use super::acks::Acks;
use super::known::Known;
use super::own::Own;
use super::patience::RoundTrip;
use super::repair::Repair;
use super::tell::ControlState;
use super::{FastConfig, FastCounters};
use crate::{Frozen, Packet, PacketId, View};
use rota_core::contract::{Class, Output, RingId, Time};

/// The leader: the first of the view (fig. 2 l. 6).
pub(super) const LEADER: usize = 0;

/// What a member goes by when it tells something, or asks for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts<'a> {
    pub config: &'a FastConfig,
    pub view: &'a View,
    pub known: &'a Known,
    pub acks: &'a Acks,
    pub own: &'a Own,
}

impl Facts<'_> {
    pub const fn me(&self) -> usize {
        self.view.me
    }

    pub const fn members(&self) -> usize {
        self.view.members.len()
    }

    pub const fn is_leader(&self) -> bool {
        self.view.me == LEADER
    }
}

/// The facts of a view, beside the machines that go by them.
macro_rules! facts {
    ($view:expr) => {
        $crate::fastcast::in_view::Facts {
            config: &$view.config,
            view: &$view.view,
            known: &$view.known,
            acks: &$view.acks,
            own: &$view.own,
        }
    };
}
pub(super) use facts;

/// One view, as one member knows it.
#[derive(Debug)]
pub(super) struct InView {
    config: FastConfig,
    view: View,
    known: Known,
    acks: Acks,
    own: Own,
    telling: ControlState,
    patience: RoundTrip,
    repair: Repair,
    outputs: VecDeque<Output>,
}

impl InView {
    /// A view in which nothing is known yet (fig. 2 l. 1 to 7).
    pub fn new(config: FastConfig, now: Time, view: View) -> Self {
        let members = view.members.len();
        Self {
            known: Known::new(view.me, members, config.window as usize),
            acks: Acks::new(members),
            own: Own::new(&config),
            telling: ControlState::new(now),
            patience: RoundTrip::new(),
            repair: Repair::new(members),
            outputs: VecDeque::new(),
            config,
            view,
        }
    }

    pub const fn ring(&self) -> RingId {
        self.view.ring
    }

    const fn me(&self) -> usize {
        self.view.me
    }

    const fn members(&self) -> usize {
        self.view.members.len()
    }

    const fn is_leader(&self) -> bool {
        self.view.me == LEADER
    }

    /// The progress of all packets on their way; `None` if there are none. To send packets, which some members have, is
    /// no progress: the window may have room for minutes of that.
    pub fn progress(&self) -> Option<u64> {
        let (ready, released) = (self.acks.ready(), self.acks.released());
        // Others need not tell of their deliveries while there is room.
        let lacks = self.known.top() > ready || self.known.lacks_places();
        let waits = lacks || self.repair.waits_for_own();
        waits.then_some(ready + released)
    }

    /// Whether packets that the window kept back may leave now.
    pub fn is_unblocked(&self) -> bool {
        self.own.is_unblocked()
    }

    /// The others are to hear which of their requests for bandwidth were applied here, by member.
    pub fn on_applied(&mut self, applied: &[u64]) {
        self.telling.on_applied(applied);
    }

    /// The next output.
    pub fn next_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Whether there is an output.
    pub fn has_output(&self) -> bool {
        !self.outputs.is_empty()
    }

    /// The time of the next control datagram, if one is due.
    pub fn control_due_at(&self) -> Option<Time> {
        self.telling.control_due_at(&facts!(self))
    }

    /// Sends the control datagram that leaves alone, if it is time.
    pub fn send_control(
        &mut self,
        now: Time,
        gate: &mut super::gate::Gate,
        counters: &mut FastCounters,
    ) {
        let patience = &mut self.patience;
        let output = self
            .telling
            .send_control(now, &facts!(self), patience, counters);
        if let Some((output, bytes)) = output {
            gate.owe(now, bytes);
            self.outputs.push_back(output);
        }
    }

    /// Sends all that is due: requests, answers, packets again. `applied_by`: the number of others that have applied the
    /// increase of bandwidth that this member waits for, if it waits for one.
    pub fn repair(&mut self, now: Time, applied_by: Option<usize>, counters: &mut FastCounters) {
        if self.members() == 1 {
            return;
        }
        let (telling, patience) = (&mut self.telling, &mut self.patience);
        let facts = facts!(self);
        let wanted = self
            .repair
            .answer(now, &facts, (telling, patience.round_trip()));
        counters.fast_packets_resent += self.resend(now, wanted);
        let facts = facts!(self);
        let (telling, patience) = (&mut self.telling, &mut self.patience);
        self.repair.update_watches(now, &facts, applied_by);
        self.repair
            .ask_for_packets(now, &facts, (&mut *telling, patience), counters);
        self.repair
            .ask_for_places(now, &facts, (&mut *telling, patience), counters);
        let again = self.repair.repeat_own(now, &facts, (telling, patience));
        counters.fast_packets_repeated += self.resend(now, again);
        let facts = facts!(self);
        let (telling, patience) = (&mut self.telling, &mut self.patience);
        self.repair
            .repeat_control(now, &facts, (telling, patience), counters);
    }

    /// The time at which [`Self::repair`] has something to do, if nothing else happens.
    pub fn repair_due_at(&self) -> Option<Time> {
        self.repair.due_at(&self.known, &self.patience)
    }

    /// Gives places, at the leader, to the packets that it has of a member, in the order of their numbers (fig. 2 l. 14
    /// to 17).
    fn assign(&mut self, of: usize) {
        let own = &mut self.own;
        self.known.assign(of, |seq| own.on_place(seq));
    }

    /// Advances with new packets and places: this member acknowledges more (fig. 2 l. 18, 25), and more may be
    /// delivered (l. 21, 28).
    fn advance(&mut self, now: Time) {
        let own = &mut self.own;
        self.known.count_places(|seq| own.on_place(seq));
        if self.known.acknowledge() {
            self.telling.on_news(now);
            let (me, acked) = (self.me(), self.known.acked());
            self.acks.on_acked(me, acked);
        }
        self.settle(now);
    }

    /// Advances the own packets, with the acknowledgements and deliveries of all.
    fn settle(&mut self, now: Time) {
        let ready = self.acks.ready();
        self.own.settle(ready, self.acks.released());
        // The leader times its announcements, the others their own packets.
        let answered = if self.view.me == LEADER {
            ready
        } else {
            self.own.acked()
        };
        self.patience.answered(now, answered);
    }

    /// The next packet in the order, if all have it and its place (fig. 2 l. 29 to 33).
    pub fn deliver(&mut self, now: Time) -> Option<Packet> {
        let (seq, packet) = self.known.deliver(self.acks.ready())?;
        let me = self.me();
        self.acks.on_delivered(me, seq);
        self.settle(now);
        Some(packet)
    }

    /// The class to read first. Acknowledgements and places come in alone when there is little to do; packets that
    /// others have and this member lacks are probably in the other socket already.
    pub const fn reading(&self) -> Class {
        if self.known.lacks_packets() && !self.own.is_blocked() {
            Class::Data
        } else {
            Class::Token
        }
    }

    /// Whether this member holds or has held a packet with its place.
    pub fn holds(&self, id: PacketId) -> bool {
        self.known.holds(id)
    }

    /// Ends the view; returns the knowledge of it.
    pub fn freeze(self) -> Frozen {
        self.known.freeze()
    }

    /// Its invariants.
    pub fn check(&self) {
        assert!(self.me() < self.members(), "this process is in the view");
        self.known.check(self.members());
        self.own.check();
        self.acks.check();
        self.repair.check(self.members());
        self.patience.check();
        let said = (self.known.acked(), self.known.order().discarded());
        assert_eq!(
            self.acks.of(self.me()),
            said,
            "this member acknowledges and has delivered as much as it knows"
        );
        self.telling.check(said);
    }
}
