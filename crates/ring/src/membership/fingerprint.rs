//! The support for a search over many states: it tells two engines apart, and finds the holder of the token.

use core::hash::Hasher;

use super::engine::RingEngine;
use super::phase::{Committing, Gather, Phase, Recovery};
use crate::Ordering;
use crate::wire::Token;
use rota_core::contract::RingId;
use rota_core::fingerprint::Fingerprint;

impl RingEngine {
    /// Feeds `hasher` with all that decides what this engine will do from now on: see the page of
    /// `fingerprint` for what is left out, and when that is fair. Its outputs and deliveries have to
    /// have been taken.
    pub fn fingerprint(&self, hasher: &mut impl Hasher) {
        let longest = 11 * self.config.timers.token_loss;
        let print = &mut Fingerprint::new(hasher, self.now, longest);
        print.add((self.me, self.phase.name()));
        self.phase.fingerprint(print);
        print.add(self.installed.is_some());
        if let Some(installed) = &self.installed {
            installed.fingerprint(print);
        }
        print.past(self.installed_at);
        print.past(self.broken_at);
        print.past(self.held_since);
        print.add((
            self.stages.len(),
            self.outputs.len(),
            self.release,
            self.lags,
            self.hangs,
        ));
        print.add((&self.outbox, &self.sets, &self.heard, &self.left));
        print.add((self.obligations, self.attempts, &self.ring_seq));
        print.add(&self.electorates);
        print.due(self.disk_pause_until);
        print.due(self.mute_until);
        print.add((self.times_mute, self.hears_each));
        self.refusals.fingerprint(print);
        self.back_off.fingerprint(print);
        self.former.fingerprint(print);
        print.due(self.looks_for_absent().then_some(self.presence_at));
        print.past(self.answered_at);
    }

    /// The `token_seq` and the ring of the token that this process keeps while its ring is idle.
    pub fn holds_token(&self) -> Option<(RingId, u64)> {
        let operational = matches!(self.phase, Phase::Operational);
        let ring = self.installed.as_ref().filter(|_| operational)?;
        Some((ring.ring(), ring.holds()?))
    }

    /// Whether this process would take a token now.
    pub fn takes_token(&self, token: &Token) -> bool {
        let of = |ring: &Ordering| ring.ring() == token.ring && ring.takes(token);
        match &self.phase {
            Phase::Operational => self.installed.as_ref().is_some_and(of),
            Phase::Recovery(recovery) => of(&recovery.next),
            Phase::Idle | Phase::Gather(_) | Phase::Commit(_) | Phase::Left => false,
        }
    }
}

impl Phase {
    fn fingerprint(&self, print: &mut Fingerprint<'_, impl Hasher>) {
        match self {
            Self::Idle | Self::Operational | Self::Left => {}
            Self::Gather(gather) => gather.fingerprint(print),
            Self::Commit(committing) => committing.fingerprint(print),
            Self::Recovery(recovery) => recovery.fingerprint(print),
        }
    }
}

impl Gather {
    fn fingerprint(&self, print: &mut Fingerprint<'_, impl Hasher>) {
        let Self {
            consensus,
            answered,
            said,
            join_at,
            give_up_at,
            speak_at,
            commit_by,
        } = self;
        print.add((consensus, answered, said));
        print.due(*join_at);
        print.due(*give_up_at);
        print.due(*speak_at);
        print.due(*commit_by);
    }
}

impl Committing {
    fn fingerprint(&self, print: &mut Fingerprint<'_, impl Hasher>) {
        let Self {
            token,
            resend_at,
            give_up_at,
        } = self;
        print.add(token);
        print.due(*resend_at);
        print.due(*give_up_at);
    }
}

impl Recovery {
    fn fingerprint(&self, print: &mut Fingerprint<'_, impl Hasher>) {
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
}
