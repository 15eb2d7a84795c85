//! The state Gather: the way from a broken ring, or from two rings that hear of each other, to a set of processes that
//! all agree on it (A5, A6).

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use super::engine::RingEngine;
use super::phase::{Gather, Phase};
use super::sets::{Sets, Verdict};
use super::steady::STEADY;
use crate::Ordering;
use crate::wire::Join;
use rota_core::contract::{Process, Time, TimerReason};
use rota_core::mutants::{self, Mutant};
use rota_core::wire::MAX_MEMBERS;

/// Token-loss times after which a ring has lasted: longer than it takes to find that a member is deaf.
const LASTING: u64 = 4;

/// Token-loss times after which all trouble of before is forgotten: twice the longest time that a node is left alone.
const FORGETTING: u64 = 128;

impl Gather {
    pub fn next_timer(&self) -> (Time, TimerReason) {
        let join = (self.join_at, TimerReason::Join);
        let end = self.commit_by.unwrap_or(self.give_up_at);
        let end = self.speak_at.map_or(end, |speak| end.min(speak));
        join.min((end, TimerReason::Consensus))
    }
}

impl RingEngine {
    /// Leaves the installed ring: its members are wanted on the next.
    pub(super) fn leave_ring(&mut self) {
        if let Some(installed) = &self.installed {
            let fails = core::mem::take(&mut self.sets.fails);
            self.sets = Sets::of_ring(installed.members());
            if mutants::on(Mutant::M30) {
                self.sets.fails = fails;
            }
        }
        self.heard.clear();
        self.left.clear();
        self.broken_at = self.now;
        let token_loss = self.config.timers.token_loss;
        let lasted = self.ring_lasted();
        if lasted >= FORGETTING {
            self.times_mute = 0;
        }
        for member in self.sets.members() {
            if lasted >= FORGETTING {
                self.back_off.forget(member.node);
            } else if lasted >= LASTING {
                self.back_off
                    .lasted(self.now, member.node, lasted >= STEADY);
            }
        }
        // A member that cannot receive what others can may hear enough to come back at once, and be as deaf as before
        // (P-38). All leave it alone, not only the member that gives it up first.
        let ring = self.installed.as_ref();
        let deaf = ring.and_then(|ring| ring.suspected_member(self.now));
        let deaf =
            deaf.and_then(|node| self.sets.procs.iter().find(|process| process.node == node));
        if let Some(&deaf) = deaf
            && self.back_off.failed(self.now, deaf, token_loss)
        {
            self.counters.back_offs += 1;
        }
    }

    /// Enters Gather, from anywhere (A5); enters it anew when the sets have changed.
    pub(super) fn gather(&mut self) {
        self.give_up_recovery();
        self.notice_hanging_disk();
        let (answered, said, join_at, speak_at) = match &mut self.phase {
            Phase::Gather(before) => {
                let answered = core::mem::take(&mut before.answered);
                (answered, before.said, before.join_at, before.speak_at)
            }
            _ => {
                self.counters.gathers += 1;
                (BTreeMap::new(), 0, self.now, None)
            }
        };
        let is_unspoken = !self.sets.against.is_subset(&self.sets.fails);
        let speak_at = is_unspoken.then(|| speak_at.unwrap_or(self.soon()));
        self.sets.procs.insert(self.me);
        let timers = self.config.timers;
        self.phase = Phase::Gather(Gather {
            consensus: BTreeSet::from([self.me]),
            answered,
            said,
            join_at,
            give_up_at: self.now.after(timers.consensus + self.modesty()),
            commit_by: None,
            speak_at,
        });
        self.hurry();
        self.send_join_at_once();
        self.check_consensus();
    }

    /// Acts if all wanted processes have said the same: the smallest of them forms the ring, the others wait for its
    /// commit token (A6, process(J) 1).
    fn check_consensus(&mut self) {
        let members = self.sets.members();
        let (now, token_loss) = (self.now, self.config.timers.token_loss);
        let Phase::Gather(gather) = &mut self.phase else {
            return;
        };
        if !members
            .iter()
            .all(|process| gather.consensus.contains(process))
        {
            return;
        }
        if members.len() > MAX_MEMBERS && !mutants::on(Mutant::M44) {
            return self.leave_out(&members[MAX_MEMBERS..]);
        }
        if members.first() == Some(&self.me) {
            self.form_ring(members);
        } else {
            gather.commit_by.get_or_insert(now.after(token_loss));
        }
    }

    /// Gives up the processes beyond the most that a ring may have: the first of all go on, and the others hear of it
    /// from them.
    fn leave_out(&mut self, others: &[Process]) {
        if !others.contains(&self.me) {
            self.sets.fails.extend(others);
            self.gather();
        }
    }

    pub(super) fn on_gather_timer(&mut self) {
        self.try_disk_again();
        let now = self.now;
        let Phase::Gather(gather) = &mut self.phase else {
            return;
        };
        if gather.speak_at.is_some_and(|at| now >= at) {
            return self.speak_of_those_against();
        }
        match gather.commit_by {
            // The commit token never came: every process has to send a join again.
            Some(by) if now >= by => return self.gather(),
            None if now >= gather.give_up_at => return self.give_up_silent(),
            _ => {}
        }
        if now >= gather.join_at {
            gather.said = 0;
            self.send_join();
            self.check_consensus();
        }
    }

    /// Gives up the processes that have given this one up, and have not changed their mind: others need not wait for
    /// them.
    fn speak_of_those_against(&mut self) {
        let against = self.sets.against.clone();
        self.sets.fails.extend(against);
        self.gather();
    }

    /// Consensus expiry (A6): gives up the processes that have not agreed.
    fn give_up_silent(&mut self) {
        let Phase::Gather(gather) = &self.phase else {
            return;
        };
        let wanted = self.sets.members().into_iter();
        let silent = wanted.filter(|process| !gather.consensus.contains(process));
        self.sets.fails.extend(silent);
        self.gather();
    }

    /// Handles a join, in any state (A6).
    pub(super) fn on_join(&mut self, join: &Join) {
        if !self.is_another(join.sender) || !self.ring_seq.see(join.ring_seq) {
            return;
        }
        if !self.takes_join(join) {
            self.counters.joins_ignored += 1;
            return;
        }
        if !self.sets.procs.contains(&join.sender) && self.avoids(join.sender) {
            let token_loss = self.config.timers.token_loss;
            self.back_off.let_in(self.now, join.sender.node, token_loss);
        }
        if matches!(self.phase, Phase::Operational) {
            self.leave_ring();
        }
        let gathers = matches!(self.phase, Phase::Gather(_));
        self.refusals.clear(join.sender.node);
        let is_new = !self.heard.contains_key(&join.sender);
        let restarted = self.hear(join);
        if self.hears_each && is_new && gathers {
            self.send_join_at_once();
        }
        match self.sets.process(self.me, join) {
            Verdict::Merged => {
                self.give_up_unlisted();
                self.gather();
            }
            Verdict::Agrees => {
                if !gathers || restarted {
                    self.gather();
                }
                let Phase::Gather(gather) = &mut self.phase else {
                    return;
                };
                gather.consensus.insert(join.sender);
                self.hurry();
                // Earlier joins of this process may have come too early to be taken.
                self.answer(join.sender);
                self.check_consensus();
            }
            Verdict::Behind | Verdict::GivenUp => {
                if !gathers || restarted {
                    self.gather();
                } else if !self.sets.fails.contains(&join.sender) {
                    self.answer(join.sender);
                }
            }
        }
    }

    /// Gives up nodes that are not listed here: no packet of theirs reaches this process, though others, which have a
    /// newer list, list them. No ring forms with them, and the others need not wait until this process has found that
    /// out.
    fn give_up_unlisted(&mut self) {
        if !self.config.closed || mutants::on(Mutant::M63) {
            return;
        }
        let is_listed = |process: &&Process| self.config.members.contains(&process.node);
        let unlisted = self.sets.procs.iter().filter(|who| !is_listed(who));
        let unlisted: Vec<Process> = unlisted.copied().collect();
        self.sets.fails.extend(unlisted);
    }

    /// Notes that the sender of a join is alive; answers whether that ends another life of its node.
    fn hear(&mut self, join: &Join) -> bool {
        if join.leaving && !mutants::on(Mutant::M58) {
            // The process goes of its own will: that no ring forms with it says nothing against its node.
            self.heard.remove(&join.sender);
            self.left.insert(join.sender);
            self.former.on_leave(join.sender);
        }
        if join.leaving || self.sets.fails.contains(&join.sender) {
            return false;
        }
        self.note_heard(join.sender);
        let before = self.sets.fails.len();
        self.sets.hear(join.sender);
        let ended = self.sets.fails.len() - before;
        self.counters.members_dead += ended as u64;
        ended > 0
    }

    /// Whether a packet comes from another node, in its present life: two processes that go by one number are a mistake
    /// of the operator (P-07).
    pub(super) fn is_another(&mut self, sender: Process) -> bool {
        let same_node = sender.node == self.me.node;
        self.counters.duplicate_nodes += u64::from(same_node && sender != self.me);
        !same_node && !self.former.contains(sender)
    }

    /// Whether a join concerns this process now: the rows "Join" of A6.
    fn takes_join(&self, join: &Join) -> bool {
        let sender = join.sender;
        if !self.sets.have_room_for(join) {
            return false;
        }
        match &self.phase {
            Phase::Idle | Phase::Left => false,
            Phase::Operational => {
                let Some(installed) = &self.installed else {
                    return false;
                };
                let stale = is_outdated(installed, sender, join.ring_seq);
                let given_up = join.fails.contains(&self.me) && !mutants::on(Mutant::M27);
                let news = !stale || mutants::on(Mutant::R04);
                news && !given_up && !self.leaves_alone(join) && !self.is_full_for(sender)
            }
            Phase::Gather(_) => self.sets.procs.contains(&sender) || !self.leaves_alone(join),
            Phase::Commit(committing) => {
                let ring = &committing.token;
                let newer = join.ring_seq >= ring.ring.ring_seq || self.has_changed_its_mind(join);
                ring.members.contains(&sender) && newer
            }
            Phase::Recovery(recovery) => {
                let next = &recovery.next;
                next.members().contains(&sender) && join.ring_seq >= next.ring().ring_seq
            }
        }
    }

    /// Whether a member of the ring to be has learnt of more since it agreed: it will not take the
    /// commit token, and to wait for that to be noticed by time-out would be a waste. Sets only grow, so
    /// a join from before it agreed holds nothing new.
    fn has_changed_its_mind(&self, join: &Join) -> bool {
        let late = self
            .installed_ring()
            .is_some_and(|ring| join.ring_seq < ring.ring_seq);
        let known =
            join.procs.is_subset(&self.sets.procs) && join.fails.is_subset(&self.sets.fails);
        !late && !known
    }

    /// Whether a join comes from a process that is left alone now. If it wants a ring with this one it is
    /// let in now and then: two that leave each other alone at different times would never come
    /// together.
    fn leaves_alone(&self, join: &Join) -> bool {
        let wants_me = join.procs.contains(&self.me);
        let open = wants_me && self.back_off.is_open(self.now, join.sender.node);
        self.avoids(join.sender) && !open
    }

    /// Whether a process is left alone now: members of the installed ring never are.
    pub(super) fn avoids(&self, process: Process) -> bool {
        let installed = self.installed.as_ref().map_or(&[][..], Ordering::members);
        !installed.contains(&process) && self.back_off.is_avoided(self.now, process.node)
    }
}

/// Whether a number that `sender` knew of is from before it was on this ring, in this life or another: a
/// node's next life begins behind all numbers that it may have agreed to. (One that has lost its disk is
/// heard when the ring misses its former life.)
pub(super) fn is_outdated(installed: &Ordering, sender: Process, ring_seq: u64) -> bool {
    let members = installed.members().iter();
    let mut nodes = members.map(|member| member.node);
    nodes.any(|node| node == sender.node) && ring_seq < installed.ring().ring_seq
}
