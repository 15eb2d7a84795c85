//! The phase Gather: the way from a broken ring, or from two rings that hear of each other, to a set of processes that
//! all agree on it (A5, A6).

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::hash::Hasher;

use super::joins::Joins;
use super::local::Local;
use super::phase::Step;
use super::sets::Sets;
use rota_core::contract::{Process, Time, TimerReason};
use rota_core::fingerprint::Fingerprint;
use rota_core::mutants::{self, Mutant};
use rota_core::wire::MAX_MEMBERS;

/// One attempt to agree, for as long as the sets stay as they are.
#[derive(Clone, Debug)]
pub(super) struct Gather {
    /// The processes that have said the same as this one, itself included.
    consensus: BTreeSet<Process>,
    /// The time at which processes that have not agreed are given up.
    give_up_at: Time,
    /// The time at which processes are given up that have given this one up.
    speak_at: Option<Time>,
    /// The time by which the commit token of the representative has to come, once all agree.
    commit_by: Option<Time>,
}

impl Gather {
    /// Begins with the present sets; `before` is the attempt with the sets of before, if the process gathered already.
    pub fn new(local: &mut Local, before: Option<&Self>) -> Self {
        let (me, now) = (local.me, local.now);
        let speak_at = before.and_then(|before| before.speak_at);
        let speak_at = local
            .sets
            .have_unspoken()
            .then(|| speak_at.unwrap_or(local.others.soon(now)));
        local.sets.want(me);
        Self {
            consensus: BTreeSet::from([me]),
            give_up_at: now.after(local.config.timers.consensus + local.modesty()),
            speak_at,
            commit_by: None,
        }
    }

    /// The time at which the process has to act, and the reason.
    pub fn next_timer(&self, joins: &Joins) -> (Time, TimerReason) {
        let join = (joins.due_at(), TimerReason::Join);
        let end = self.commit_by.unwrap_or(self.give_up_at);
        let end = self.speak_at.map_or(end, |speak| end.min(speak));
        join.min((end, TimerReason::Consensus))
    }

    /// The wanted processes that have not agreed.
    pub fn silent(&self, sets: &Sets) -> Vec<Process> {
        let mut wanted = sets.members();
        wanted.retain(|process| !self.consensus.contains(process));
        wanted
    }

    /// Shortens the wait if only processes have not agreed that fall silent again and again.
    pub fn hurry(&mut self, local: &Local) {
        let silent = self.silent(&local.sets);
        let is_unsteady = |process: &Process| local.others.are_unsteady(process.node);
        let only_for_unsteady = !silent.is_empty() && silent.iter().all(is_unsteady);
        if only_for_unsteady && !mutants::on(Mutant::M49) {
            self.give_up_at = self.give_up_at.min(local.others.soon(local.now));
        }
    }

    /// Acts if all wanted processes have said the same: the smallest of them forms the ring, the others wait for its
    /// commit token (A6, process(J) 1).
    pub fn check_consensus(&mut self, local: &mut Local) -> Step {
        let members = local.sets.members();
        if !members
            .iter()
            .all(|process| self.consensus.contains(process))
        {
            return Step::Stay;
        }
        if members.len() > MAX_MEMBERS && !mutants::on(Mutant::M44) {
            return leave_out(local, &members[MAX_MEMBERS..]);
        }
        if members.first() == Some(&local.me) {
            return Step::Form(members);
        }
        let token_loss = local.config.timers.token_loss;
        self.commit_by.get_or_insert(local.now.after(token_loss));
        Step::Stay
    }

    /// Takes note that a process has said the same.
    pub fn on_agreement(&mut self, local: &mut Local, process: Process) -> Step {
        self.consensus.insert(process);
        self.hurry(local);
        // Earlier joins of this process may have come too early to be taken.
        local.answer(process);
        self.check_consensus(local)
    }

    /// Acts on the times of the phase.
    pub fn on_timer(&mut self, local: &mut Local) -> Step {
        let now = local.now;
        local.durable.try_again(now, &mut local.outputs);
        if self.speak_at.is_some_and(|at| now >= at) {
            // Those that have given this process up have not changed their mind: others need not wait for them.
            local.sets.give_up_those_against();
            return Step::Gather;
        }
        match self.commit_by {
            // The commit token never came: every process has to send a join again.
            Some(by) if now >= by => return Step::Gather,
            // Consensus expiry (A6): the processes that have not agreed are given up.
            None if now >= self.give_up_at => {
                let silent = self.silent(&local.sets);
                local.sets.give_up(silent);
                return Step::Gather;
            }
            _ => {}
        }
        if !local.joins.is_due(now) {
            return Step::Stay;
        }
        local.send_join();
        self.check_consensus(local)
    }

    /// Feeds `print` with the attempt.
    pub fn fingerprint(&self, print: &mut Fingerprint<'_, impl Hasher>) {
        let Self {
            consensus,
            give_up_at,
            speak_at,
            commit_by,
        } = self;
        print.add(consensus);
        print.due(*give_up_at);
        print.due(*speak_at);
        print.due(*commit_by);
    }

    /// Its invariants.
    pub fn check(&self, me: Process) {
        assert!(self.consensus.contains(&me), "a process agrees with itself");
    }
}

/// Gives up the processes beyond the most that a ring may have: the first of all go on, and the others hear of it
/// from them.
fn leave_out(local: &mut Local, others: &[Process]) -> Step {
    if others.contains(&local.me) {
        return Step::Stay;
    }
    local.sets.give_up(others.iter().copied());
    Step::Gather
}
