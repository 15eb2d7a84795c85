//! The state Commit: the way from a set that all agree on to a ring with a name (A7, A8).

use alloc::vec;
use alloc::vec::Vec;

use super::engine::RingEngine;
use super::phase::{Committing, Phase};
use super::plan::Plan;
use crate::send_to;
use crate::wire::{Commit, Electorate, OldRing, Packet, have_ranges_for};
use rota_core::contract::{NodeId, Output, PersistId, Process, RingId, Time, TimerReason};
use rota_core::mutants::{self, Mutant};

/// A new ring's number is larger than all known ones by this much.
const RING_SEQ_STEP: u64 = 4;

/// Rings and configurations that an application may be behind: a process whose application takes nothing stays outside
/// rather than keep more of them, and says nothing. If it went on agreeing with others, they would wait for its part of
/// each commit token, and have no ring either.
const MAX_STAGES: usize = 64;
/// Rings and configurations with which such a process comes back: it takes more than one ring to be with the others
/// again.
const FEW_STAGES: usize = MAX_STAGES / 2;

impl Committing {
    pub fn next_timer(&self) -> (Time, TimerReason) {
        (self.resend_at.min(self.give_up_at), TimerReason::Commit)
    }
}

impl RingEngine {
    /// Asks for the number of the first ring of a process that has just started: a ring of it alone.
    pub(super) fn form_first_ring(&mut self) {
        if self.now < self.disk_pause_until {
            return;
        }
        let ring_seq = self.ring_seq.max + 1;
        self.ask_for(ring_seq);
        self.save_electorates();
        self.disk_pause_until = self.now.after(self.config.timers.token_loss);
    }

    fn ask_for(&mut self, ring_seq: u64) -> Option<PersistId> {
        let (waits_for, output) = self.ring_seq.agree(ring_seq);
        if output.is_some() {
            self.disk_asked_at = self.now;
        }
        self.outputs.extend(output);
        waits_for
    }

    /// Names the ring and sends the commit token on its way, at the smallest of the processes that agree.
    pub(super) fn form_ring(&mut self, members: Vec<Process>) {
        if !self.may_commit() {
            return;
        }
        let ring = RingId {
            ring_seq: self.ring_seq.max + RING_SEQ_STEP,
            rep: self.me.node,
            incarnation: self.me.incarnation,
        };
        let mut electorates = Vec::new();
        let Some(told) = self.tell(members.len(), &mut electorates) else {
            return;
        };
        let commit = Commit {
            cluster: self.config.cluster,
            ring,
            sender: self.me.node,
            token_seq: 1,
            members,
            electorates,
            told: vec![told],
        };
        self.commit_to(commit);
        self.install_if_alone();
    }

    /// Whether this process can agree to a ring now.
    fn may_commit(&self) -> bool {
        let disk = self.now >= self.disk_pause_until && !self.disk_failed;
        disk && self.electorates.is_durable()
            && !self.lags
            && self.hangs.is_none()
            && self.now >= self.mute_until
    }

    /// Whether this process says nothing, so that no other waits for it.
    pub(super) fn is_silent(&self) -> bool {
        let lags = self.lags && !mutants::on(Mutant::M43);
        self.disk_failed || lags || self.hangs.is_some() || self.now < self.mute_until
    }

    /// Looks how far the application is behind, as it has got another ring to take, or has taken one.
    pub(super) fn mind_stages(&mut self) {
        let stages = self.stages.len();
        if stages >= MAX_STAGES {
            self.lags = true;
        } else if stages <= FEW_STAGES
            && core::mem::take(&mut self.lags)
            && matches!(self.phase, Phase::Gather(_))
        {
            self.gather();
        }
    }

    /// The word of this process to the ring to be of `members` members; adds its electorates to those of the token.
    fn tell(&self, members: usize, electorates: &mut Vec<Electorate>) -> Option<OldRing> {
        let installed = self.installed.as_ref()?;
        let next_message = self.outbox.next_to_leave();
        let ranges = have_ranges_for(members);
        let counts = self.electorates.tell(electorates);
        let own = (next_message, self.config.settings(), counts);
        let mut told = installed.tell(self.obligations, own, ranges);
        if mutants::on(Mutant::M15) && self.attempts > 0 {
            told.ring.ring_seq = self.ring_seq.agreed;
        }
        Some(told)
    }

    /// Agrees to a ring: from here on no packet of the old ring is taken any more, except wrapped ones.
    fn commit_to(&mut self, token: Commit) {
        let after = self.ask_for(token.ring.ring_seq);
        let timers = self.config.timers;
        self.send_commit(&token, after);
        self.phase = Phase::Commit(Committing {
            token,
            resend_at: self.now.after(timers.token_retransmit),
            give_up_at: self.now.after(timers.token_loss),
        });
    }

    pub(super) fn send_commit(&mut self, commit: &Commit, after: Option<PersistId>) {
        let Some(successor) = successor(&commit.members, self.me) else {
            return;
        };
        let mut output = send_to(
            successor,
            &Packet::Commit(commit.clone()),
            self.config.seal_bytes,
        );
        if let Output::Send { after: waits, .. } = &mut output {
            *waits = after;
        }
        self.outputs.push_back(output);
    }

    /// Handles a commit token, in any state: the rows "Commit token" of A6.
    pub(super) fn on_commit(&mut self, commit: Commit) {
        let fits = match &self.phase {
            Phase::Gather(_) => self.is_first_visit(&commit),
            Phase::Commit(committing) => {
                let sent = &committing.token;
                commit.ring == sent.ring
                    && commit.members == sent.members
                    && commit.is_complete()
                    // Every member has passed it on once, and those before this process twice.
                    && commit.token_seq == sent.token_seq + commit.members.len() as u64 - 1
                    // The words of this process and of those before it stay as they were.
                    && commit.told.starts_with(&sent.told)
                    && commit.electorates.starts_with(&sent.electorates)
            }
            Phase::Recovery(_) => return self.on_third_sighting(&commit),
            Phase::Idle | Phase::Operational | Phase::Left => false,
        };
        if !fits {
            self.counters.commits_ignored += 1;
        } else if matches!(self.phase, Phase::Gather(_)) {
            self.fill(commit);
        } else {
            self.recover(commit);
        }
    }

    /// Whether a commit token is for the set this process gathers, and it is its turn to tell.
    fn is_first_visit(&self, commit: &Commit) -> bool {
        let index = commit.members.iter().position(|&member| member == self.me);
        (commit.members == self.sets.members() || mutants::on(Mutant::M29))
            && index == Some(commit.told.len())
            && commit.token_seq == commit.told.len() as u64
            && commit.ring.ring_seq > self.ring_seq.agreed
            && commit.ring.ring_seq - self.ring_seq.agreed <= 1 << 32
            && self.may_commit()
    }

    fn fill(&mut self, mut commit: Commit) {
        let Some(told) = self.tell(commit.members.len(), &mut commit.electorates) else {
            return;
        };
        commit.told.push(told);
        commit.token_seq += 1;
        commit.sender = self.me.node;
        self.commit_to(commit);
    }

    pub(super) fn on_commit_timer(&mut self) {
        let (now, retransmit) = (self.now, self.config.timers.token_retransmit);
        let Phase::Commit(committing) = &mut self.phase else {
            return;
        };
        if now >= committing.give_up_at {
            self.gather();
        } else if now >= committing.resend_at {
            committing.resend_at = now.after(retransmit);
            let token = committing.token.clone();
            // A request that is still open holds this copy back, too.
            let after = self.ask_for(token.ring.ring_seq);
            self.send_commit(&token, after);
        }
    }

    pub(super) fn on_persisted(&mut self, id: PersistId) {
        self.ring_seq.on_persisted(id);
        self.electorates.on_persisted(id);
        if matches!(self.phase, Phase::Idle) && self.is_all_durable() {
            self.install_first();
        } else {
            self.install_if_alone();
        }
        if self.disk_failed && self.is_all_durable() {
            self.disk_failed = false;
            self.disk_pause_until = self.now;
            if matches!(self.phase, Phase::Gather(_)) {
                self.gather();
            }
        }
    }

    /// Whether the disk owes nothing.
    fn is_all_durable(&self) -> bool {
        self.ring_seq.is_durable(self.ring_seq.agreed) && self.electorates.is_durable()
    }

    /// Makes the electorates durable, if they have changed. No ring is agreed to before that.
    pub(super) fn save_electorates(&mut self) {
        if self.electorates.has_to_save() {
            self.disk_asked_at = self.now;
            let id = self.ring_seq.next_id();
            let output = self.electorates.save(id);
            self.outputs.push_back(output);
        }
    }

    /// Makes this process silent, as the disk makes nothing durable. The others give a silent process up and go on
    /// without it; if it went on agreeing with them, they would wait for its part of each commit token.
    fn be_silent(&mut self) {
        self.counters.persist_failures += 1;
        self.disk_failed = true;
        self.disk_pause_until = self.now.after(self.config.timers.token_loss);
    }

    /// A disk that does not answer is as bad as one that refuses.
    pub(super) fn notice_hanging_disk(&mut self) {
        let open = !self.is_all_durable();
        let long = self.now.since(self.disk_asked_at) >= self.config.timers.token_loss;
        if open && long && !self.disk_failed {
            self.be_silent();
        }
    }

    /// While the disk has failed: tries it again once in a while, with the number agreed to last.
    pub(super) fn try_disk_again(&mut self) {
        if self.disk_failed && self.now >= self.disk_pause_until {
            self.disk_pause_until = self.now.after(self.config.timers.token_loss);
            self.ask_for(self.ring_seq.agreed);
            self.save_electorates();
        }
    }

    /// Handles a number that could not be made durable: outputs that wait for it are not sent, and the others will go
    /// on without this process, which tries again after a while (A7).
    pub(super) fn on_persist_failed(&mut self, id: PersistId) {
        let failed = self.ring_seq.on_failed(id) | self.electorates.on_failed(id);
        if !failed {
            return;
        }
        self.be_silent();
        if matches!(self.phase, Phase::Commit(_) | Phase::Recovery(_)) {
            self.gather();
        }
    }

    /// Installs a ring of one, which needs no token, as soon as its number is durable (A6).
    fn install_if_alone(&mut self) {
        let Phase::Commit(committing) = &self.phase else {
            return;
        };
        let token = &committing.token;
        let (alone, ring_seq) = (token.members.len() == 1, token.ring.ring_seq);
        if !alone || !self.ring_seq.is_durable(ring_seq) {
            return;
        }
        let Some(old) = &self.installed else {
            return;
        };
        let plan = Plan::new(token, old.ring(), old.members());
        let next = self.ring_alone(token.ring);
        self.install(next, plan);
    }
}

/// The next member after `me`; `None` on a ring of one.
fn successor(members: &[Process], me: Process) -> Option<NodeId> {
    let index = members.iter().position(|&member| member == me)?;
    let next = members[(index + 1) % members.len()];
    (next != me).then_some(next.node)
}
