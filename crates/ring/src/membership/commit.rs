//! The phase Commit: the way from a set that all agree on to a ring with a name (A7, A8).

use core::hash::Hasher;

use super::local::Local;
use super::phase::Step;
use super::plan::Plan;
use crate::Ordering;
use crate::wire::{Commit, Join};
use rota_core::contract::{Process, Time, TimerReason};
use rota_core::fingerprint::Fingerprint;
use rota_core::mutants::{self, Mutant};

/// The agreement to one ring: from here on no packet of the old ring is taken any more, except wrapped ones.
#[derive(Clone, Debug)]
pub(super) struct Committing {
    /// The commit token as it was sent on last.
    token: Commit,
    resend_at: Time,
    give_up_at: Time,
}

impl Committing {
    /// Agrees to the ring of a commit token in which this process has told its part, and passes the token on.
    pub fn new(local: &mut Local, token: Commit) -> Self {
        pass_on(local, &token);
        let timers = local.config.timers;
        Self {
            token,
            resend_at: local.now.after(timers.token_retransmit),
            give_up_at: local.now.after(timers.token_loss),
        }
    }

    /// The time at which the process has to act, and the reason.
    pub fn next_timer(&self) -> (Time, TimerReason) {
        (self.resend_at.min(self.give_up_at), TimerReason::Commit)
    }

    /// Whether a commit token is this one in its second visit: the rows "Commit token" of A6.
    pub fn is_second_visit(&self, commit: &Commit) -> bool {
        let sent = &self.token;
        commit.ring == sent.ring
            && commit.members == sent.members
            && commit.is_complete()
            // Every member has passed it on once, and those before this process twice.
            && commit.token_seq == sent.token_seq + commit.members.len() as u64 - 1
            // The words of this process and of those before it stay as they were.
            && commit.told.starts_with(&sent.told)
            && commit.electorates.starts_with(&sent.electorates)
    }

    /// Whether a join concerns this agreement: a member of the ring to be goes on without it.
    pub fn takes_join(&self, local: &Local, join: &Join) -> bool {
        let token = &self.token;
        let newer = join.ring_seq >= token.ring.ring_seq || has_changed_its_mind(local, join);
        token.members.contains(&join.sender) && newer
    }

    /// Acts on the times of the phase.
    pub fn on_timer(&mut self, local: &mut Local) -> Step {
        let now = local.now;
        if now >= self.give_up_at {
            return Step::Gather;
        }
        if now >= self.resend_at {
            self.resend_at = now.after(local.config.timers.token_retransmit);
            // A request that is still open holds this copy back, too.
            pass_on(local, &self.token);
        }
        Step::Stay
    }

    /// Installs a ring of one, which needs no token, as soon as its number is durable (A6).
    pub fn install_if_alone(&self, local: &Local) -> Step {
        let is_alone = self.token.members.len() == 1;
        match is_alone && local.durable.is_durable(self.token.ring.ring_seq) {
            true => Step::Install,
            false => Step::Stay,
        }
    }

    /// The ring of one, to be installed, and what goes on to it from the old ring.
    pub fn ring_of_one(&self, local: &Local) -> Option<(Ordering, Plan)> {
        let old = local.installed.ring()?;
        let plan = Plan::new(&self.token, old.ring(), old.members());
        Some((local.ring_alone(self.token.ring), plan))
    }

    /// Feeds `print` with the agreement.
    pub fn fingerprint(&self, print: &mut Fingerprint<'_, impl Hasher>) {
        let Self {
            token,
            resend_at,
            give_up_at,
        } = self;
        print.add(token);
        print.due(*resend_at);
        print.due(*give_up_at);
    }

    /// Its invariants.
    pub fn check(&self, me: Process) {
        assert!(
            self.token.members.contains(&me),
            "a process agrees to rings that it is on"
        );
        let (token, told) = (&self.token, self.token.told.len());
        let place = token.members.iter().position(|member| *member == me);
        assert_eq!(place, told.checked_sub(1), "each member tells in its turn");
        assert_eq!(token.sender, me.node, "the token is passed on as one's own");
        assert_eq!(
            token.token_seq, told as u64,
            "each member passes it on once"
        );
    }
}

impl Committing {
    /// The number of the ring.
    pub const fn ring_seq(&self) -> u64 {
        self.token.ring.ring_seq
    }
}

/// Passes a commit token on, once the number of its ring is durable here.
fn pass_on(local: &mut Local, token: &Commit) {
    let ring_seq = token.ring.ring_seq;
    let after = local.durable.agree(local.now, ring_seq, &mut local.outputs);
    local.outputs.pass_on(token, local.me, after);
}

/// Whether a commit token is for the set that a process gathers, and it is its turn to tell.
pub(super) fn is_first_visit(local: &Local, commit: &Commit) -> bool {
    let mut members = commit.members.iter();
    let index = members.position(|&member| member == local.me);
    (commit.members == local.sets.members() || mutants::on(Mutant::M29))
        && index == Some(commit.told.len())
        && commit.token_seq == commit.told.len() as u64
        && local.durable.allows_number(commit.ring.ring_seq)
        && local.allows_a_ring()
}

/// The commit token with the word of this process (A8, fill).
pub(super) fn fill(local: &Local, mut commit: Commit) -> Option<Commit> {
    let told = local.tell(commit.members.len(), &mut commit.electorates)?;
    commit.told.push(told);
    commit.token_seq += 1;
    commit.sender = local.me.node;
    Some(commit)
}

/// Whether a member of the ring to be has learnt of more since it agreed: it will not take the
/// commit token, and to wait for that to be noticed by time-out would be a waste. Sets only grow, so
/// a join from before it agreed holds nothing new.
fn has_changed_its_mind(local: &Local, join: &Join) -> bool {
    let installed = local.installed.id();
    let late = installed.is_some_and(|ring| join.ring_seq < ring.ring_seq);
    !late && !local.sets.cover(join)
}
