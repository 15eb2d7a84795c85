//! Members that fall silent again and again: the others go on without them, and leave them alone for longer and longer.
//!
//! A member that stands still for longer than the token-loss time breaks its ring, and is back a moment later. If that
//! happened every few seconds, no member would have a ring for much of the time (P-12).

use alloc::vec::Vec;

use super::engine::RingEngine;
use super::phase::Phase;
use rota_core::contract::{Process, Time};
use rota_core::mutants::{self, Mutant};

/// Token-loss times after which a ring was steady: a member that breaks it then costs the others a twentieth of the
/// time at most.
pub(super) const STEADY: u64 = 48;

/// A process that was not heard in this part of a token-loss time after the ring broke is late: processes send joins
/// several times in it.
const LATE: u64 = 4;

impl RingEngine {
    /// The time that the ring installed last was in use, in token-loss times.
    pub(super) fn ring_lasted(&self) -> u64 {
        let lasted = self.broken_at.since(self.installed_at);
        lasted / self.config.timers.token_loss.max(1)
    }

    /// The time by which every process that is there has been heard.
    pub(super) fn soon(&self) -> Time {
        self.now.after(self.config.timers.token_loss / LATE)
    }

    /// Notes that a process was heard itself, and whether late.
    pub(super) fn note_heard(&mut self, process: Process) {
        let late = self.config.timers.token_loss / LATE;
        let is_late = self.now.since(self.broken_at) >= late;
        self.heard.entry(process).or_insert(is_late);
    }

    /// Shortens the wait if only processes have not agreed that fall silent again and again.
    pub(super) fn hurry(&mut self) {
        let soon = self.soon();
        let members = self.sets.members();
        let Phase::Gather(gather) = &mut self.phase else {
            return;
        };
        let mut waits_for = members
            .iter()
            .filter(|member| !gather.consensus.contains(member))
            .peekable();
        let only_for_unsteady = waits_for.peek().is_some()
            && waits_for.all(|member| self.back_off.is_unsteady(member.node));
        if only_for_unsteady && !mutants::on(Mutant::M49) {
            gather.give_up_at = gather.give_up_at.min(soon);
        }
    }

    /// Counts the members that kept the others for long from the ring that follows.
    pub(super) fn leave_unsteady_alone(&mut self, before: &[Process], next: &[Process]) {
        let token_loss = self.config.timers.token_loss;
        if self.ring_lasted() >= STEADY || mutants::on(Mutant::M48) {
            return;
        }
        for process in self.fell_silent(before, next) {
            self.heard.remove(&process);
            if self.back_off.fell_silent(self.now, process, token_loss) {
                self.counters.members_unsteady += 1;
            }
        }
    }

    /// Counts a node that is on the ring again after a short life, which came to a ring at `since`. A process that
    /// crashes as soon as it is started has such lives, and each costs the others two rings.
    pub(super) fn back_off_from_short_lives(&mut self, process: Process, since: Time) {
        let token_loss = self.config.timers.token_loss;
        let is_short = self.now.since(since) < STEADY * token_loss;
        if !is_short || mutants::on(Mutant::M61) {
            return;
        }
        if self.back_off.fell_silent(self.now, process, token_loss) {
            self.counters.members_unsteady += 1;
        }
    }

    /// Members of the ring before for which the others had to wait: they are not on the next one, or were heard late.
    /// None if these are half of all or more: then this process, or the network, may have been away.
    fn fell_silent(&self, before: &[Process], next: &[Process]) -> Vec<Process> {
        let late = self.config.timers.token_loss / LATE;
        let waited = self.now.since(self.broken_at) >= late;
        let is_silent = |process: &&Process| {
            let is_back = next.iter().any(|member| member.node == process.node);
            let is_late = self.heard.get(process).copied().unwrap_or(false);
            is_late || waited && !is_back
        };
        let stays = |process: &&Process| **process != self.me && !self.left.contains(process);
        let others = before.iter().filter(stays);
        let silent: Vec<Process> = others.filter(is_silent).copied().collect();
        match 2 * silent.len() < before.len() {
            true => silent,
            false => Vec::new(),
        }
    }
}
