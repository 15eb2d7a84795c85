//! The parting of members: a process gives up members that are gone or of no use, or leaves of its own will.

use super::engine::RingEngine;
use super::phase::{Phase, Step};
use crate::Ordering;
use rota_core::contract::{NodeId, Process};

impl RingEngine {
    /// Handles a refusal: no process listens at a peer's address any more (A4, evidence). After the first one the peer
    /// gets a merge-detect message at once, to ask again: an idle ring may send it nothing for a long time.
    pub(super) fn on_unreachable(&mut self, node: NodeId) -> Step {
        let local = &mut self.local;
        let is_dead = local.others.on_refused(local.now, node);
        let members = match &self.phase {
            Phase::Operational => local.installed.members().to_vec(),
            Phase::Gather(_) | Phase::Commit(_) | Phase::Recovery(_) => local.sets.members(),
            Phase::Idle | Phase::Left => return Step::Stay,
        };
        let mut members = members.into_iter();
        let refusing = members.find(|process| process.node == node && *process != local.me);
        match refusing {
            Some(dead) if is_dead => {
                local.counters.members_dead += 1;
                self.give_up(dead)
            }
            Some(_) => {
                local.show_merge_detect(node);
                Step::Stay
            }
            None => Step::Stay,
        }
    }

    /// Gives up a process that was on the ring, or wanted on the next.
    fn give_up(&mut self, process: Process) -> Step {
        if self.phase.is_operational() {
            self.local.leave_ring();
        }
        self.local.sets.give_up([process]);
        Step::Gather
    }

    /// Gives up a member that cannot receive what the others can (A10, fail to receive), of a ring to be, too: its
    /// token goes round for ever while the link from the member that sends again to the member that asks is cut. The
    /// ill one may be this process.
    pub(super) fn give_up_ill(&mut self) -> Step {
        let Some(ring) = self.phase.ring_in_use(&self.local) else {
            return Step::Stay;
        };
        let Some(node) = ring.deaf_member(self.local.now) else {
            return self.leave_if_ill();
        };
        let deaf = ring.members().iter().find(|member| member.node == node);
        let Some(&deaf) = deaf else {
            return Step::Stay;
        };
        self.local.counters.members_deaf += 1;
        self.give_up(deaf)
    }

    /// Leaves the ring if no member receives what this process sends, though its tokens arrive, or if it loses much
    /// that the others get.
    fn leave_if_ill(&mut self) -> Step {
        let (now, again) = (self.local.now, self.local.silence.was_mute());
        let ring = self.phase.ring_in_use(&self.local);
        if ring.is_some_and(|ring| ring.is_mute(now, again)) {
            self.local.counters.self_mute += 1;
            if self.phase.is_operational() {
                self.local.leave_ring();
            }
            return self.fall_silent();
        }
        if !self.phase.is_operational() {
            return Step::Stay;
        }
        let ring = self.local.installed.ring_mut();
        if !ring.is_some_and(|ring| ring.loses_much(now, again)) {
            return Step::Stay;
        }
        self.local.counters.self_lossy += 1;
        self.local.leave_ring();
        self.local.say_goodbye();
        self.fall_silent()
    }

    /// Gathers and says nothing for a while, so that the others can go on.
    fn fall_silent(&mut self) -> Step {
        let local = &mut self.local;
        let token_loss = local.config.timers.token_loss;
        local.silence.begin_as_mute(local.now, token_loss);
        Step::Gather
    }

    /// Leaves the ring if it has waited so long for the application of this process, which takes nothing, that the
    /// application hangs. The others can go on, and this process says nothing until the application takes something.
    pub(super) fn leave_if_hung(&mut self) -> Step {
        let local = &mut self.local;
        let ring = local.installed.ring();
        let waits =
            self.phase.is_operational() && ring.is_some_and(Ordering::waits_for_application);
        let token_loss = local.config.timers.token_loss;
        match local.silence.on_held(local.now, waits, token_loss) {
            true => self.leave_as_hung(false),
            false => Step::Stay,
        }
    }

    /// Leaves the ring, as the application hangs. `told`: this process was told, and has not found out itself.
    pub(super) fn leave_as_hung(&mut self, told: bool) -> Step {
        let local = &mut self.local;
        if matches!(self.phase, Phase::Idle | Phase::Left) || local.silence.hangs() {
            return Step::Stay;
        }
        local.counters.self_hung += 1;
        local.silence.begin_as_hung(told);
        if self.phase.is_operational() {
            local.leave_ring();
        }
        Step::Gather
    }

    /// Notes that the application has taken a delivery, or (`told`) that the layer above, which told that it hangs,
    /// tells that it does not.
    pub(super) fn on_taken(&mut self, told: bool) {
        if self.local.silence.on_taken(told) && self.phase.is_gather() {
            self.take(Step::Gather);
        }
    }

    /// Leaves of its own will (A10).
    pub(super) fn leave_for_good(&mut self) {
        if self.phase.is_operational() {
            self.local.leave_ring();
        }
        if !matches!(self.phase, Phase::Idle | Phase::Left) {
            self.local.say_goodbye();
        }
        self.phase = Phase::Left;
    }
}
