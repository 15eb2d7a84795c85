//! The parting of members: a process gives up members that are gone or of no use, or leaves of its own will.

use super::engine::RingEngine;
use super::phase::Phase;
use crate::Ordering;
use crate::wire::Packet;
use rota_core::contract::{NodeId, Process};
use rota_core::mutants::{self, Mutant};

/// The longest silence of a process that is mute, in token-loss times, as a power of two.
const MOST_MUTE: u32 = 6;

/// Token-loss times after which an application hangs that has taken nothing while all waited for it. An application
/// that is only slow slows the others down, and they wait for it.
const HUNG: u64 = 16;

impl RingEngine {
    /// Handles a refusal: no process listens at a peer's address any more (A4, evidence). After the first one the peer
    /// gets a merge-detect message at once, to ask again: an idle ring may send it nothing for a long time.
    pub(super) fn on_unreachable(&mut self, node: NodeId) {
        let is_dead = self.refusals.note(self.now, node);
        let members = match &self.phase {
            Phase::Operational => self.installed.as_ref().map(|ring| ring.members().to_vec()),
            Phase::Gather(_) | Phase::Commit(_) | Phase::Recovery(_) => Some(self.sets.members()),
            Phase::Idle | Phase::Left => None,
        };
        let refusing = members
            .into_iter()
            .flatten()
            .find(|process| process.node == node && *process != self.me);
        match refusing {
            Some(dead) if is_dead => {
                self.counters.members_dead += 1;
                self.give_up(dead);
            }
            Some(_) => self.show_merge_detect(node),
            None => {}
        }
    }

    /// Gives up a process that was on the ring, or wanted on the next.
    fn give_up(&mut self, process: Process) {
        if matches!(self.phase, Phase::Operational) {
            self.leave_ring();
        }
        self.sets.fails.insert(process);
        self.gather();
    }

    /// The ring whose token goes round: the one to be, or the one that is installed.
    fn ring_in_use(&self) -> Option<&Ordering> {
        match &self.phase {
            Phase::Recovery(recovery) => Some(&recovery.next),
            _ => self.installed.as_ref(),
        }
    }

    /// Leaves the ring if no member receives what this process sends, though its tokens arrive, or if it loses much
    /// that the others get.
    fn leave_if_ill(&mut self) {
        let (now, again) = (self.now, self.times_mute > 0);
        let ring = self.ring_in_use();
        if ring.is_some_and(|ring| ring.is_mute(now, again)) {
            self.counters.self_mute += 1;
            if matches!(self.phase, Phase::Operational) {
                self.leave_ring();
            }
            return self.fall_silent();
        }
        let operational = matches!(self.phase, Phase::Operational);
        let ring = self.installed.as_mut().filter(|_| operational);
        if ring.is_some_and(|ring| ring.loses_much(now, again)) {
            self.counters.self_lossy += 1;
            self.leave_ring();
            self.say_goodbye();
            self.fall_silent();
        }
    }

    /// Gathers and says nothing for a while, longer each time, so that the others can go on.
    fn fall_silent(&mut self) {
        let shift = (3 + 2 * self.times_mute).min(MOST_MUTE);
        self.times_mute = self.times_mute.saturating_add(1);
        self.mute_until = self.now.after(self.config.timers.token_loss << shift);
        self.gather();
    }

    /// Leaves the ring if it has waited so long for the application of this process, which takes nothing, that the
    /// application hangs. The others can go on, and this process says nothing until the application takes something.
    pub(super) fn leave_if_hung(&mut self) {
        let operational = matches!(self.phase, Phase::Operational);
        let ring = self.installed.as_ref().filter(|_| operational);
        if !ring.is_some_and(Ordering::waits_for_application) {
            self.held_since = None;
            return;
        }
        let since = *self.held_since.get_or_insert(self.now);
        let hangs = self.now.since(since) >= HUNG * self.config.timers.token_loss;
        if !hangs || mutants::on(Mutant::M51) {
            return;
        }
        self.leave_as_hung(false);
    }

    /// Leaves the ring, as the application hangs. `told`: this process was told, and has not found out itself.
    pub(super) fn leave_as_hung(&mut self, told: bool) {
        if matches!(self.phase, Phase::Idle | Phase::Left) || self.hangs.is_some() {
            return;
        }
        self.counters.self_hung += 1;
        (self.hangs, self.held_since) = (Some(told), None);
        if matches!(self.phase, Phase::Operational) {
            self.leave_ring();
        }
        self.gather();
    }

    /// Notes that the application has taken a delivery, or (`told`) that the layer above, which told that it hangs,
    /// tells that it does not.
    pub(super) fn on_taken(&mut self, told: bool) {
        self.held_since = None;
        if self.hangs.take_if(|by| *by == told).is_some() && matches!(self.phase, Phase::Gather(_))
        {
            self.gather();
        }
    }

    /// Gives up a member that cannot receive what the others can (A10, fail to receive), of a ring to be, too: its
    /// token goes round for ever while the link from the member that sends again to the member that asks is cut.
    pub(super) fn give_up_deaf(&mut self) {
        let Some(ring) = self.ring_in_use() else {
            return;
        };
        let Some(node) = ring.deaf_member(self.now) else {
            return self.leave_if_ill();
        };
        let deaf = ring.members().iter().find(|member| member.node == node);
        if let Some(deaf) = deaf.copied() {
            self.counters.members_deaf += 1;
            self.give_up(deaf);
        }
    }

    /// Leaves of its own will (A10).
    pub(super) fn leave_for_good(&mut self) {
        if matches!(self.phase, Phase::Operational) {
            self.leave_ring();
        }
        if !matches!(self.phase, Phase::Idle | Phase::Left) {
            self.say_goodbye();
        }
        self.phase = Phase::Left;
    }

    /// Tells the others that this process leaves, so that they need not wait for a token to be missed.
    fn say_goodbye(&mut self) {
        let mut join = self.join(true);
        join.procs.remove(&self.me);
        join.fails.insert(self.me);
        let goodbye = Packet::Join(join);
        // Twice: the others would notice the loss of the first only by a lost token.
        self.say_to_others(&goodbye);
        self.say_to_others(&goodbye);
    }
}
