//! The last token: the time to send it again, until something shows that it arrived (membership A10), and the time from
//! which it counts as lost (A4). `Ordering::on_timer` acts on the one; `RingEngine::on_operational_timer` and
//! `Recovery::on_timer` act on the other.

use core::hash::Hasher;

use crate::wire::Token;
use rota_core::contract::{NodeId, RingId, Time, TimerReason};
use rota_core::fingerprint::Fingerprint;
use rota_core::mutants::{self, Mutant};
use rota_core::timing::Timers;

#[derive(Clone, Debug)]
pub(super) struct Resend {
    timers: Timers,
    /// The last token sent, while it may be lost: exactly as it was sent.
    last: Option<Token>,
    resend_at: Time,
    lost_at: Time,
    /// Longest rotation lately, in nanoseconds: decays by an eighth each visit.
    rotation: u64,
    visited_at: Option<Time>,
}

impl Resend {
    pub const fn new(now: Time, timers: Timers) -> Self {
        let lost_at = now.after(timers.token_loss);
        Self {
            timers,
            last: None,
            resend_at: now,
            lost_at,
            rotation: 0,
            visited_at: None,
        }
    }

    /// Takes note of a new token: the one before has arrived. The next may take four times the longest rotation lately
    /// (A4), even if the configured time-out is shorter. Returns the time, in nanoseconds, that this one was away,
    /// unless it may have been held.
    pub fn on_token(&mut self, now: Time, idle: bool) -> Option<u64> {
        self.last.take_if(|_| !(idle && mutants::on(Mutant::I11)));
        let before = self.visited_at.replace(now).filter(|_| !idle);
        let took = before.map(|before| now.since(before));
        if let Some(took) = took {
            self.rotation = (self.rotation - self.rotation / 8).max(took);
        }
        self.begin_loss_time(now);
        took
    }

    fn begin_loss_time(&mut self, now: Time) {
        self.lost_at = now.after(self.timers.token_loss.max(4 * self.rotation));
    }

    /// Takes note of a token that was passed on.
    pub fn on_sent(&mut self, now: Time, token: Token) {
        self.visited_at = Some(now);
        self.resend_at = now.after(self.interval(token.idle));
        self.last = Some(token);
    }

    /// Ends the repetition, as some member has acted on the last token.
    pub fn on_evidence(&mut self) {
        self.last = None;
    }

    /// The token to send again, if it is time.
    pub fn due(&mut self, now: Time) -> Option<Token> {
        let token = self.last.as_ref()?;
        if now < self.resend_at {
            return None;
        }
        let token = token.clone();
        self.resend_at = now.after(self.interval(false));
        if mutants::on(Mutant::M11) {
            self.begin_loss_time(now);
        }
        Some(token)
    }

    /// Whether the ring has to count as broken. After a yes, the next one comes only after another token-loss time.
    pub fn lost(&mut self, now: Time) -> bool {
        let lost = now >= self.lost_at;
        if lost {
            self.lost_at = now.after(self.timers.token_loss);
        }
        lost
    }

    pub const fn is_overdue(&self, now: Time) -> bool {
        now.0 >= self.lost_at.0
    }

    pub fn next_timer(&self) -> (Time, TimerReason) {
        let loss = (self.lost_at, TimerReason::TokenLoss);
        match self.last {
            Some(_) => loss.min((self.resend_at, TimerReason::TokenRetransmit)),
            None => loss,
        }
    }

    /// Whether a token is repeated.
    pub const fn repeats(&self) -> bool {
        self.last.is_some()
    }

    /// Its invariants, at the member `me` of `ring`.
    pub fn check(&self, ring: RingId, me: NodeId, token_seq: u64) {
        let is_mine = |token: &Token| token.ring == ring && token.sender == me;
        assert!(
            self.last.as_ref().is_none_or(is_mine),
            "a member repeats its own token"
        );
        assert!(
            self.last
                .as_ref()
                .is_none_or(|token| token.token_seq == token_seq),
            "the newest token is repeated"
        );
    }

    pub fn fingerprint(&self, print: &mut Fingerprint<'_, impl Hasher>) {
        let Self {
            timers: _,
            last,
            resend_at,
            lost_at,
            rotation,
            visited_at,
        } = self;
        print.add(last);
        // Without a token there is nothing to send again.
        print.due(last.as_ref().map(|_| *resend_at));
        print.due(*lost_at);
        print.add(rotation);
        print.past(*visited_at);
    }

    /// Four rotations, at least the configured time, and four tries fit into a token loss. An idle
    /// token waits longer, for its receiver may be holding it.
    fn interval(&self, idle: bool) -> u64 {
        if idle {
            return self.timers.idle_retransmit();
        }
        (4 * self.rotation)
            .max(self.timers.token_retransmit)
            .min(self.timers.token_loss / 5)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rota_core::timing::Timing;

    fn timers() -> Timers {
        Timers::derive(Timing::Default, 3)
    }

    /// The time for which the token does not count as lost, after `visits` visits that are `rotation` nanoseconds
    /// apart.
    fn loss_time(resend: &mut Resend, now: &mut Time, visits: u32, rotation: u64) -> u64 {
        for _ in 0..visits {
            *now = now.after(rotation);
            resend.on_token(*now, false);
        }
        let (at, reason) = resend.next_timer();
        assert_eq!(reason, TimerReason::TokenLoss);
        at.since(*now)
    }

    #[test]
    fn a_ring_that_is_slow_is_given_four_rotations_and_one_that_was_is_not() {
        let (mut now, configured) = (Time(0), timers().token_loss);
        let mut resend = Resend::new(now, timers());
        assert_eq!(loss_time(&mut resend, &mut now, 9, 1000), configured);
        let slow = configured;
        assert_eq!(loss_time(&mut resend, &mut now, 2, slow), 4 * slow);
        // An eighth less with each visit.
        assert_eq!(
            loss_time(&mut resend, &mut now, 1, 1000),
            4 * (slow - slow / 8)
        );
        assert_eq!(loss_time(&mut resend, &mut now, 20, 1000), configured);
    }

    #[test]
    fn what_was_held_is_no_slow_rotation() {
        let (mut now, configured) = (Time(0), timers().token_loss);
        let mut resend = Resend::new(now, timers());
        loss_time(&mut resend, &mut now, 2, 1000);
        now = now.after(configured);
        assert_eq!(resend.on_token(now, true), None);
        assert_eq!(loss_time(&mut resend, &mut now, 1, 1000), configured);
    }
}
