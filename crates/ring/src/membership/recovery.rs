//! The phase Recovery: the way from a ring with a name to an installed one (A8, A9).

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::hash::Hasher;

use super::local::Local;
use super::phase::Step;
use super::plan::Plan;
use super::wrap::{unwrap, wrap};
use crate::wire::{Commit, Data, Join, Settings, Token};
use crate::{Context, Ordering};
use rota_core::contract::{NodeId, Process, Seq, Time, TimerReason};
use rota_core::fingerprint::Fingerprint;
use rota_core::mutants::{self, Mutant};
use rota_core::wire::Frame;

/// The ring that is being formed, on which the members exchange the packets of their old rings.
#[derive(Clone, Debug)]
pub(super) struct Recovery {
    next: Ordering,
    plan: Plan,
    /// The commit token as it was sent on last, until a regular token shows that it arrived.
    sent: Option<(Commit, Time)>,
    /// `token_seq` of the commit token sent on last.
    commit_seq: u64,
    /// On the representative: the first regular token was created.
    started: bool,
}

impl Recovery {
    /// Begins at the second visit of the commit token: every member has told which packets it has. Passes it on.
    pub fn new(local: &mut Local, mut commit: Commit) -> Option<Self> {
        let old = local.installed.ring()?;
        let mut plan = Plan::new(&commit, old.ring(), old.members());
        if mutants::on(Mutant::M16) {
            plan.ended.line = old.safe_line();
        }
        if mutants::on(Mutant::R08) {
            plan.ended.high = *old.kept().end();
        }
        let queue = queue(local, &plan, old);
        let (ring, members) = (commit.ring, commit.members.clone());
        let node = local.me.node;
        let (starts, settings): (Vec<u64>, Vec<Settings>) = commit
            .told
            .iter()
            .map(|told| (told.next_message, told.settings))
            .unzip();
        let told = (&starts[..], settings);
        let mut next = Ordering::new(&local.config, ring, members, told, node, local.now);
        next.begin_recovery(queue);
        commit.token_seq += 1;
        commit.sender = node;
        local.outputs.pass_on(&commit, local.me, None);
        let resend_at = local.now.after(local.config.timers.token_retransmit);
        Some(Self {
            next,
            plan,
            commit_seq: commit.token_seq,
            sent: Some((commit, resend_at)),
            started: false,
        })
    }

    /// The ring that is being formed.
    #[inline(always)]
    pub const fn ring(&self) -> &Ordering {
        &self.next
    }

    /// The ring, to be installed, and what goes on to it from the old ring.
    pub fn into_ring(self) -> (Ordering, Plan) {
        (self.next, self.plan)
    }

    /// The time at which the process has to act, and the reason.
    pub fn next_timer(&self) -> Option<(Time, TimerReason)> {
        let ring = self.next.next_timer();
        let commit = self.sent.as_ref().map(|(_, at)| (*at, TimerReason::Commit));
        [ring, commit].into_iter().flatten().min()
    }

    /// Calls the ring with the context of one call.
    fn call<T>(
        &mut self,
        local: &mut Local,
        call: impl FnOnce(&mut Ordering, &mut Context<'_>) -> T,
    ) -> T {
        call(&mut self.next, &mut local.context())
    }

    /// Handles the third visit of the commit token, at the representative: all members are in recovery. The
    /// representative creates the first regular token, once for each ring (P-19).
    pub fn on_third_visit(&mut self, local: &mut Local, commit: &Commit) {
        let ring = self.next.ring();
        let third = ring == commit.ring
            && ring.rep == local.me.node
            && (commit.token_seq > self.commit_seq || mutants::on(Mutant::R02));
        let again = self.started && !mutants::on(Mutant::R02);
        if !third || again {
            local.counters.commits_ignored += 1;
            return;
        }
        self.started = true;
        self.sent = None;
        self.call(local, Ordering::start);
    }

    /// Takes a regular token; the ring can be installed once all members are known to have everything.
    pub fn on_token(&mut self, local: &mut Local, token: Token) -> Step {
        self.sent = None;
        self.call(local, |ring, ctx| ring.on_token(ctx, token));
        match (self.next.recovery_complete(), self.next.recovery_stuck()) {
            (true, _) => Step::Install,
            (false, true) => Step::Gather,
            (false, false) => Step::Stay,
        }
    }

    /// Takes a packet of the ring to be. The packet wrapped in it belongs to the ring that its sender comes from: this
    /// process looks at it if it comes from that ring, too.
    pub fn on_data(&mut self, local: &mut Local, data: Data) -> Step {
        let sender = data.sender;
        if mutants::on(Mutant::M25) && !self.comes_along(sender) {
            return Step::Stay;
        }
        let Some(frame) = self.call(local, |ring, ctx| ring.on_data(ctx, data)) else {
            return Step::Stay;
        };
        if !self.comes_along(sender) && !mutants::on(Mutant::R03) {
            return Step::Stay;
        }
        let Some(packet) = unwrap(frame) else {
            local.counters.datagrams_malformed += 1;
            return Step::Stay;
        };
        self.next.recovered_by_another(packet.seq);
        match local.on_installed(true, |ring, ctx| ring.adopt(ctx, packet)) {
            Some(false) => Step::Gather,
            _ => Step::Stay,
        }
    }

    /// Whether a member of the ring to be comes from the same ring as this process.
    fn comes_along(&self, node: NodeId) -> bool {
        let mut transitional = self.plan.transitional.iter();
        transitional.any(|process| process.node == node)
    }

    /// Whether a join concerns the ring to be: a member of it has given it up.
    pub fn takes_join(&self, join: &Join) -> bool {
        let next = &self.next;
        next.members().contains(&join.sender) && join.ring_seq >= next.ring().ring_seq
    }

    /// Acts on the times of the phase.
    pub fn on_timer(&mut self, local: &mut Local) -> Step {
        let now = local.now;
        if self.next.has_lost_token(now) {
            local.counters.token_losses += 1;
            return Step::Gather;
        }
        self.call(local, Ordering::on_timer);
        if let Some((commit, at)) = &mut self.sent
            && now >= *at
        {
            *at = now.after(local.config.timers.token_retransmit);
            local.outputs.pass_on(commit, local.me, None);
        }
        Step::Stay
    }

    /// Gives the ring to be up, as gathering begins while it is being formed. The packets that came in by it stay, and
    /// so do the promises of this process to others, which may have delivered relying on them (A8, obligation set).
    pub fn give_up(&self, local: &mut Local) {
        local.counters.failed_recoveries += 1;
        let acknowledged = self.next.recovery_acknowledged();
        let obliged = self.plan.ended.obliged;
        if local.installed.on_failed_recovery(acknowledged, obliged) {
            local.counters.obligations_kept += 1;
        }
    }

    /// Feeds `print` with the ring to be, and how far it is.
    pub fn fingerprint(&self, print: &mut Fingerprint<'_, impl Hasher>) {
        let Self {
            next,
            plan,
            sent,
            commit_seq,
            started,
        } = self;
        next.fingerprint(print);
        print.add((plan, commit_seq, started));
        print.add(sent.as_ref().map(|(commit, _)| commit));
        print.due(sent.as_ref().map(|(_, at)| *at));
    }

    /// Its invariants.
    pub fn check(&self, me: Process) {
        self.next.check();
        assert!(
            self.next.members().contains(&me),
            "the next ring contains it"
        );
        self.plan.check(me);
        let ring = self.next.ring();
        assert!(
            !self.started || ring.rep == me.node,
            "the representative creates the token"
        );
        let is_of_it = |(commit, _): &(Commit, Time)| {
            commit.ring == ring && commit.token_seq == self.commit_seq
        };
        assert!(
            self.sent.as_ref().is_none_or(is_of_it),
            "what is sent again is of the ring to be"
        );
    }

    /// The number of the ring to be.
    pub const fn ring_seq(&self) -> u64 {
        self.next.ring().ring_seq
    }
}

/// The packets that this process sends of its old ring. After a recovery that failed, every process sends all that
/// it has: the process that was to send a packet may be one that cannot be heard.
fn queue(local: &Local, plan: &Plan, old: &Ordering) -> VecDeque<(Seq, Frame)> {
    let all = local.installed.has_failed_to_end();
    plan.range(&old.kept())
        .filter(|&seq| plan.is_sent_by(local.me, seq, all))
        .filter_map(|seq| old.old_packet(seq))
        .map(|packet| wrap(&packet))
        .collect()
}
