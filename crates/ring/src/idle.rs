//! The hold of the token of an idle ring (membership A10).
//!
//! The representative counts its visits in which nothing happened. After three of them every member has seen twice that
//! all members have every packet, so nothing waits for a rotation any more: the representative marks the token idle,
//! and if the mark comes back untouched it keeps the token for a while. A member that has something to send meanwhile
//! asks the representative to hurry.

use core::hash::Hasher;

use crate::wire::Token;
use rota_core::contract::{Time, TimerReason};
use rota_core::fingerprint::Fingerprint;
use rota_core::mutants::{self, Mutant};
use rota_core::timing::Timers;

/// Quiet visits before the token is marked idle. At the first the representative learns that all members had every
/// packet; at the second all others have sent that aru once; at the third twice, so that their safe lines have reached
/// `seq`.
const QUIET_VISITS: u32 = 3;

#[derive(Clone, Debug)]
pub(super) struct Idle {
    is_rep: bool,
    timers: Timers,
    quiet_visits: u32,
    last_seq: u64,
    held: Option<(Token, Time)>,
    /// A member asked to hurry while the token was under way.
    hurried: bool,
    /// The token passed on last was marked idle: it may be held.
    passed_idle: bool,
    hurry_at: Option<Time>,
}

impl Idle {
    pub const fn new(is_rep: bool, timers: Timers) -> Self {
        Self {
            is_rep,
            timers,
            quiet_visits: 0,
            last_seq: 0,
            held: None,
            hurried: false,
            passed_idle: false,
            hurry_at: None,
        }
    }

    /// Decides on a received token: holds it (`None`), or gives it back for a visit.
    pub fn on_token(&mut self, now: Time, mut token: Token, backlog: bool) -> Option<Token> {
        self.hurry_at = None;
        // A newer token is under way: one that is still held would contradict it.
        self.held = None;
        let quiet = is_quiet(&token) && token.seq == self.last_seq && !backlog && !self.hurried;
        self.hurried = false;
        self.last_seq = token.seq;
        if !self.is_rep {
            return Some(token);
        }
        self.quiet_visits = if quiet {
            self.quiet_visits.saturating_add(1)
        } else {
            0
        };
        if quiet && token.idle {
            self.held = Some((token, now.after(self.timers.token_hold)));
            return None;
        }
        token.idle = self.quiet_visits >= QUIET_VISITS;
        Some(token)
    }

    /// Prepares the token that is about to be passed on: takes the idle mark off if this visit had work.
    pub fn on_pass(&mut self, token: &mut Token, worked: bool) {
        if worked || !is_quiet(token) {
            token.idle = false;
        }
        self.last_seq = token.seq;
        self.passed_idle = token.idle;
    }

    /// The held token, if its time is over.
    pub fn due(&mut self, now: Time) -> Option<Token> {
        match self.held {
            Some((_, until)) if now >= until => self.held.take().map(|(token, _)| token),
            _ => None,
        }
    }

    /// Ends the hold, as some member has something to send: returns the held token, no longer idle.
    pub fn hurry(&mut self) -> Option<Token> {
        self.quiet_visits = 0;
        let Some((mut token, _)) = self.held.take() else {
            self.hurried = true;
            return None;
        };
        token.idle = false;
        Some(token)
    }

    /// Whether this member, which has something to send, has to ask the representative now.
    pub fn ask(&mut self, now: Time) -> bool {
        let may_ask = !self.is_rep || mutants::on(Mutant::I12);
        let ask = may_ask && self.passed_idle && self.hurry_at.is_none();
        if ask {
            self.hurry_at = Some(now.after(self.timers.token_retransmit));
        }
        ask
    }

    /// Whether to ask the representative once more.
    pub fn ask_again(&mut self, now: Time) -> bool {
        match self.hurry_at {
            Some(at) if now >= at => {
                self.hurry_at = Some(now.after(self.timers.token_retransmit));
                true
            }
            _ => false,
        }
    }

    pub const fn is_holding(&self) -> bool {
        self.held.is_some()
    }

    /// The `token_seq` of the token that is held.
    pub fn held(&self) -> Option<u64> {
        self.held.as_ref().map(|(token, _)| token.token_seq)
    }

    /// Its invariants.
    pub fn check(&self) {
        assert!(
            self.is_rep || self.held.is_none() && self.quiet_visits == 0,
            "the representative holds the token"
        );
        assert!(
            !self.is_rep || self.hurry_at.is_none(),
            "the representative asks nobody to hurry"
        );
        assert!(
            self.held
                .as_ref()
                .is_none_or(|(token, _)| token.idle && is_quiet(token)),
            "a token is held while nothing waits for it"
        );
    }

    pub fn fingerprint(&self, print: &mut Fingerprint<'_, impl Hasher>) {
        let Self {
            is_rep,
            timers: _,
            quiet_visits,
            last_seq,
            held,
            hurried,
            passed_idle,
            hurry_at,
        } = self;
        // Only the representative counts, and counts above `QUIET_VISITS` make no difference.
        let quiet_visits = (*quiet_visits).min(QUIET_VISITS);
        print.add((is_rep, quiet_visits, last_seq, hurried, passed_idle));
        print.add(held.as_ref().map(|(token, _)| token));
        print.due(held.as_ref().map(|(_, until)| *until));
        print.due(*hurry_at);
    }

    pub fn next_timer(&self) -> Option<(Time, TimerReason)> {
        let hold = self
            .held
            .as_ref()
            .map(|(_, until)| (*until, TimerReason::TokenHold));
        hold.or(self.hurry_at.map(|at| (at, TimerReason::Hurry)))
    }
}

/// Whether nothing in this token waits for another rotation.
const fn is_quiet(token: &Token) -> bool {
    token.rtr.is_empty() && token.aru == token.seq
}
