//! The state Recovery: the way from a ring with a name to an installed one (A8, A9).

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use super::electorates::OfRing;
use super::engine::RingEngine;
use super::phase::{Phase, Recovery};
use super::plan::Plan;
use super::sets::Sets;
use super::wrap::{unwrap, wrap};
use crate::Ordering;
use crate::wire::{Commit, Data, Settings, Token};
use rota_core::contract::{
    Configuration, ConfigurationKind, NodeId, Process, RingId, Seq, Time, TimerReason,
};
use rota_core::mutants::{self, Mutant};
use rota_core::wire::Frame;

impl Recovery {
    pub fn next_timer(&self) -> Option<(Time, TimerReason)> {
        let ring = self.next.next_timer();
        let commit = self.sent.as_ref().map(|(_, at)| (*at, TimerReason::Commit));
        [ring, commit].into_iter().flatten().min()
    }
}

impl RingEngine {
    /// Handles the second visit of the commit token: every member has told which packets it has.
    pub(super) fn recover(&mut self, mut commit: Commit) {
        let Some(old) = &self.installed else {
            return;
        };
        let mut plan = Plan::new(&commit, old.ring(), old.members());
        if mutants::on(Mutant::M16) {
            plan.ended.line = old.safe_line();
        }
        if mutants::on(Mutant::R08) {
            plan.ended.high = *old.kept().end();
        }
        let queue = self.queue(&plan, old);
        let (ring, members) = (commit.ring, commit.members.clone());
        let node = self.me.node;
        let (starts, settings): (Vec<u64>, Vec<Settings>) = commit
            .told
            .iter()
            .map(|told| (told.next_message, told.settings))
            .unzip();
        let told = (&starts[..], settings);
        let mut next = Ordering::new(&self.config, ring, members, told, node, self.now);
        next.begin_recovery(queue);
        commit.token_seq += 1;
        commit.sender = node;
        self.send_commit(&commit, None);
        let resend_at = self.now.after(self.config.timers.token_retransmit);
        self.phase = Phase::Recovery(Box::new(Recovery {
            next,
            plan,
            commit_seq: commit.token_seq,
            sent: Some((commit, resend_at)),
            started: false,
        }));
    }

    /// The packets that this process sends of its old ring. After a recovery that failed, every process sends all that
    /// it has: the process that was to send a packet may be one that cannot be heard.
    fn queue(&self, plan: &Plan, old: &Ordering) -> VecDeque<(Seq, Frame)> {
        let all = self.attempts > 0;
        plan.range(&old.kept())
            .filter(|&seq| plan.is_sent_by(self.me, seq, all))
            .filter_map(|seq| old.old_packet(seq))
            .map(|packet| wrap(&packet))
            .collect()
    }

    /// Handles the third visit of the commit token, at the representative: all members are in recovery. The
    /// representative creates the first regular token, once for each ring (P-19).
    pub(super) fn on_third_sighting(&mut self, commit: &Commit) {
        let Phase::Recovery(recovery) = &mut self.phase else {
            return;
        };
        let next = &recovery.next;
        let third = next.ring() == commit.ring
            && next.ring().rep == self.me.node
            && (commit.token_seq > recovery.commit_seq || mutants::on(Mutant::R02));
        let again = recovery.started && !mutants::on(Mutant::R02);
        if !third || again {
            self.counters.commits_ignored += 1;
            return;
        }
        recovery.started = true;
        recovery.sent = None;
        self.on_next(Ordering::start);
    }

    pub(super) fn on_recovery_token(&mut self, token: Token) {
        let Phase::Recovery(recovery) = &mut self.phase else {
            self.counters.datagrams_foreign_ring += 1;
            return;
        };
        if recovery.next.ring() != token.ring {
            self.counters.datagrams_foreign_ring += 1;
            return;
        }
        recovery.sent = None;
        self.on_next(|ring, ctx| ring.on_token(ctx, token));
        self.install_if_recovered();
        self.give_up_deaf();
    }

    fn install_if_recovered(&mut self) {
        match core::mem::replace(&mut self.phase, Phase::Idle) {
            Phase::Recovery(recovery) if recovery.next.recovery_complete() => {
                let Recovery { next, plan, .. } = *recovery;
                return self.install(next, plan);
            }
            phase => self.phase = phase,
        }
        if self.on_next(|ring, _| ring.recovery_stuck()) == Some(true) {
            self.gather();
        }
    }

    /// Takes a packet of the ring to be. The packet wrapped in it belongs to the ring that its sender comes from: this
    /// process looks at it if it comes from that ring, too.
    pub(super) fn on_recovery_data(&mut self, data: Data) {
        let sender = data.sender;
        if mutants::on(Mutant::M25) && !self.comes_along(sender) {
            return;
        }
        let Some(frame) = self.on_next(|ring, ctx| ring.on_data(ctx, data)).flatten() else {
            return;
        };
        if !self.comes_along(sender) && !mutants::on(Mutant::R03) {
            return;
        }
        let Phase::Recovery(recovery) = &mut self.phase else {
            return;
        };
        let Some(packet) = unwrap(frame) else {
            self.counters.datagrams_malformed += 1;
            return;
        };
        recovery.next.recovered_by_another(packet.seq);
        if self.on_installed(|ring, ctx| ring.adopt(ctx, packet)) == Some(false) {
            self.gather();
        }
    }

    /// Whether a member of the ring to be comes from the same ring as this process.
    fn comes_along(&self, node: NodeId) -> bool {
        let Phase::Recovery(recovery) = &self.phase else {
            return false;
        };
        let transitional = &recovery.plan.transitional;
        transitional.iter().any(|process| process.node == node)
    }

    pub(super) fn on_recovery_timer(&mut self) {
        let now = self.now;
        if self.on_next(|ring, _| ring.has_lost_token(now)) == Some(true) {
            self.counters.token_losses += 1;
            return self.gather();
        }
        self.on_next(Ordering::on_timer);
        let retransmit = self.config.timers.token_retransmit;
        let Phase::Recovery(recovery) = &mut self.phase else {
            return;
        };
        if let Some((commit, at)) = &mut recovery.sent
            && now >= *at
        {
            *at = now.after(retransmit);
            let commit = commit.clone();
            self.send_commit(&commit, None);
        }
    }

    /// Gives the ring to be up, as gathering begins while it is being formed. The packets that came in by it stay, and
    /// so do the promises of this process to others, which may have delivered relying on them (A8, obligation set).
    pub(super) fn give_up_recovery(&mut self) {
        if let Phase::Recovery(recovery) = &self.phase {
            self.counters.failed_recoveries += 1;
            self.attempts = self.attempts.saturating_add(1);
            if recovery.next.recovery_acknowledged() && !mutants::on(Mutant::M20) {
                self.obligations |= recovery.plan.ended.obliged;
                self.counters.obligations_kept += 1;
            }
        }
    }

    /// Installs the first ring of this process: nothing comes before it.
    pub(super) fn install_first(&mut self) {
        let ring = RingId {
            ring_seq: self.ring_seq.agreed,
            rep: self.me.node,
            incarnation: self.me.incarnation,
        };
        self.disk_pause_until = self.now;
        let first = self.ring_alone(ring);
        let electorates = self.electorates.alone(self.me.node);
        self.enter(first, electorates);
    }

    pub(super) fn ring_alone(&self, ring: RingId) -> Ordering {
        let me = self.me;
        let told = (&[self.outbox.next_to_leave()][..], Vec::new());
        Ordering::new(&self.config, ring, vec![me], told, me.node, self.now)
    }

    /// Installs a ring (A9). The remaining deliveries of the old ring, and the configuration of each, are settled here
    /// in one step, and handed out as the application takes them.
    pub(super) fn install(&mut self, mut next: Ordering, plan: Plan) {
        let Some(old) = self.installed.take() else {
            return;
        };
        let before = old.members().to_vec();
        next.go_on_judging(&old);
        let transitional = Configuration {
            kind: ConfigurationKind::Transitional {
                old: old.ring(),
                new: next.ring(),
            },
            members: plan.transitional,
        };
        self.stages.end(old, plan.ended, transitional);
        next.install();
        self.leave_unsteady_alone(&before, next.members());
        self.back_off_from_lost(next.members());
        self.enter(next, plan.electorates);
    }

    fn enter(&mut self, ring: Ordering, electorates: OfRing) {
        let members = ring.members();
        self.electorates.on_ring(ring.ring(), members, electorates);
        for &member in members {
            let since = self.former.on_ring(self.now, member);
            if let Some(since) = since.filter(|_| member != self.me) {
                self.back_off_from_short_lives(member, since);
            }
        }
        self.stages.begin(Self::regular(&ring));
        let before = self.obligations;
        self.obligations = members
            .iter()
            .position(|&member| member == self.me)
            .map(|index| index + usize::from(mutants::on(Mutant::R09)))
            .map_or(0, |index| 1 << index);
        if mutants::on(Mutant::M21) {
            self.obligations |= before;
        }
        let fails = core::mem::take(&mut self.sets.fails);
        self.sets = Sets::of_ring(members);
        if mutants::on(Mutant::M30) {
            self.sets.fails = fails;
        }
        self.attempts = 0;
        self.installed = Some(ring);
        self.installed_at = self.now;
        self.phase = Phase::Operational;
        if !mutants::on(Mutant::R01) {
            self.outbox.rewind();
        }
        self.counters.configurations += 1;
        self.save_electorates();
        self.mind_stages();
        self.look_for_absent();
    }

    /// Leaves the processes alone for a while that could be heard and are not on the ring all the same.
    fn back_off_from_lost(&mut self, members: &[Process]) {
        let token_loss = self.config.timers.token_loss;
        for (process, _) in core::mem::take(&mut self.heard) {
            let back = members.iter().any(|member| member.node == process.node);
            if !back && self.back_off.failed(self.now, process, token_loss) {
                self.counters.back_offs += 1;
            }
        }
    }
}
