//! Members that fall silent again and again: the others go on without them, and leave them alone for longer and longer.
//!
//! Who stands still for longer than a token may be lost breaks its ring, and is back a moment later. Where that happens every few
//! seconds nobody would have a ring for much of the time (P-12).

use alloc::vec::Vec;

use super::engine::RingEngine;
use super::phase::Phase;
use rota_core::contract::{Process, Time};
use rota_core::mutants::{self, Mutant};

/// Token-loss times after which a ring was steady: whoever breaks it then costs the others a twentieth of the time at most.
pub(super) const STEADY: u64 = 48;

/// Who was not heard in this part of a token-loss time after the ring broke is late: joins are said several times in it.
const LATE: u64 = 4;

impl RingEngine {
    /// How long the ring installed last was in use, in token-loss times.
    pub(super) fn ring_lasted(&self) -> u64 {
        let lasted = self.broken_at.since(self.installed_at);
        lasted / self.config.timers.token_loss.max(1)
    }

    /// When who is there has been heard.
    pub(super) fn soon(&self) -> Time {
        self.now.after(self.config.timers.token_loss / LATE)
    }

    /// A process was heard itself.
    pub(super) fn note_heard(&mut self, process: Process) {
        let late = self.config.timers.token_loss / LATE;
        let is_late = self.now.since(self.broken_at) >= late;
        self.heard.entry(process).or_insert(is_late);
    }

    /// Nobody waits for long where only those have not agreed who fall silent again and again.
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

    /// A ring follows on another: who kept the others from it for long is counted.
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

    /// A node is on the ring again, whose life before came to one at that time: where that was short, as one that crashes as soon as it is
    /// started has, each life costs the others two rings.
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

    /// Members of the ring before for whom the others had to wait: they are not on the next one, or were heard late. None where
    /// that is half of all: then it may be this process that was away, or the network was.
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
