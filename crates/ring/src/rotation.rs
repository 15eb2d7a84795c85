//! The token as it goes round past one member: the newest one it has seen, the one that may be lost on its way on, the
//! one that is held while the ring is idle, and what packets tell of where it is.

use core::hash::Hasher;

use super::idle::Idle;
use super::priority::Priority;
use super::resend::Resend;
use super::roster::Roster;
use super::{Protocol, RingConfig};
use crate::wire::{Data, Token};
use rota_core::contract::{Class, Seq, Time, TimerReason};
use rota_core::fingerprint::Fingerprint;
use rota_core::mutants::{self, Mutant};

/// A `token_seq` from here on comes from a broken token: no ring lasts so long.
const LAST: u64 = u64::MAX / 2;

/// The rotation of the token at this member.
#[derive(Clone, Debug)]
pub(super) struct Rotation {
    /// `token_seq` of the newest token accepted or sent.
    newest: u64,
    /// `seq` of the token received in the last visit.
    seq_received: Seq,
    resend: Resend,
    idle: Idle,
    priority: Priority,
}

impl Rotation {
    /// Before the first token. The configuration is the one in force on the ring.
    pub fn new(now: Time, config: &RingConfig, roster: &Roster) -> Self {
        Self {
            newest: 0,
            seq_received: 0,
            resend: Resend::new(now, config.timers),
            idle: Idle::new(roster.is_rep(), config.timers),
            priority: Priority::new(config, roster.predecessor()),
        }
    }

    /// Whether a token is newer than all that this member has had or sent.
    pub const fn is_new(&self, token: &Token) -> bool {
        token.token_seq > self.newest
    }

    /// Whether a token can follow those of before.
    pub const fn may_follow(&self, token: &Token) -> bool {
        token.seq >= self.seq_received && token.token_seq < LAST
    }

    /// Takes note of a token that comes again (a mutant learns from it).
    pub fn on_repeated(&mut self, now: Time) {
        if mutants::on(Mutant::M11) {
            self.resend.on_token(now, false);
        }
    }

    /// Takes note of a new token. Returns the time, in nanoseconds, that it was away, unless it may have been held.
    pub fn on_token(&mut self, now: Time, token: &Token) -> Option<u64> {
        self.newest = token.token_seq;
        self.resend.on_token(now, token.idle)
    }

    /// Holds a new token, as the ring is idle (`None`), or gives it back for a visit.
    pub fn hold_if_idle(&mut self, now: Time, token: Token, backlog: bool) -> Option<Token> {
        self.idle.on_token(now, token, backlog)
    }

    /// Begins the visit of a token.
    pub const fn begin_visit(&mut self, token: &Token) {
        self.seq_received = token.seq;
        self.priority.begin_visit(token.token_seq);
    }

    /// The stamp of a packet that leaves in this visit, before the token or after it.
    pub const fn stamp(&self, before_token: bool) -> u16 {
        match before_token {
            true => self.priority.stamp_before_token(),
            false => self.priority.stamp_after_token(),
        }
    }

    /// Makes the token of this visit the next one; `worked`: the visit has sent packets.
    pub fn pass_on(&mut self, token: &mut Token, worked: bool) {
        token.token_seq += 1;
        self.idle.on_pass(token, worked);
    }

    /// Takes note of the token that leaves, and keeps it in case it is lost.
    pub fn on_sent(&mut self, now: Time, token: &Token) {
        self.newest = token.token_seq;
        self.resend.on_sent(now, token.clone());
    }

    /// Takes note of a packet of another member: it may show that the token sent on last has arrived, and that the next
    /// one comes.
    #[inline(always)]
    pub fn on_data(&mut self, data: &Data) {
        // A packet that was numbered before this member's last visit is sent again with its old stamp, which looks
        // newer once the stamps have gone half way round: it says nothing of the token.
        let is_new = data.seq > self.seq_received || mutants::on(Mutant::M57);
        if is_new && self.priority.on_data(data.sender, data.round) {
            self.resend.on_evidence();
        }
    }

    /// The class to read first.
    pub const fn reading(&self, protocol: Protocol) -> Class {
        match protocol {
            Protocol::Accelerated => self.priority.reading(),
            Protocol::Original => Class::Data,
        }
    }

    /// The held token, if this member holds one, as it has something to send itself.
    pub fn take_held(&mut self) -> Option<Token> {
        if self.idle.is_holding() {
            self.idle.hurry()
        } else {
            None
        }
    }

    /// The held token, if this member holds one, as another has something to send. A token that is still under way will
    /// not be held.
    pub fn on_hurry(&mut self) -> Option<Token> {
        self.idle.hurry()
    }

    /// Whether this member, which has something to send, has to ask the holder for the token.
    pub fn has_to_hurry(&mut self, now: Time) -> bool {
        self.idle.ask(now)
    }

    /// The `token_seq` of the token that this member holds.
    pub fn held(&self) -> Option<u64> {
        self.idle.held()
    }

    /// The held token, if the hold is over.
    pub fn hold_over(&mut self, now: Time) -> Option<Token> {
        self.idle.due(now)
    }

    /// Whether the holder has to be asked once more.
    pub fn has_to_hurry_again(&mut self, now: Time) -> bool {
        self.idle.ask_again(now)
    }

    /// The token that has to be sent again.
    pub fn repeat(&mut self, now: Time) -> Option<Token> {
        self.resend.due(now)
    }

    /// Whether the token has been away for so long that the ring counts as broken. After a yes, the next one comes only
    /// after another token-loss time.
    pub fn is_lost(&mut self, now: Time) -> bool {
        self.resend.lost(now)
    }

    /// The same, callable at any time.
    pub const fn is_overdue(&self, now: Time) -> bool {
        self.resend.is_overdue(now)
    }

    /// The time at which something is due, and its reason.
    pub fn next_timer(&self) -> (Time, TimerReason) {
        let resend = self.resend.next_timer();
        self.idle
            .next_timer()
            .map_or(resend, |idle| idle.min(resend))
    }

    /// Feeds `print` with all that decides what becomes of tokens.
    pub fn fingerprint(&self, print: &mut Fingerprint<'_, impl Hasher>) {
        let Self {
            newest,
            seq_received,
            resend,
            idle,
            priority,
        } = self;
        print.add((newest, seq_received, priority));
        resend.fingerprint(print);
        idle.fingerprint(print);
    }

    /// Its invariants.
    pub fn check(&self, roster: &Roster) {
        assert!(self.newest <= LAST, "tokens are counted from the first on");
        assert!(
            self.held().is_none() || !self.resend.repeats(),
            "a token that is held is not repeated"
        );
        self.idle.check();
        self.resend.check(roster.ring(), roster.me(), self.newest);
        self.priority.check(self.newest);
        assert!(
            self.held().is_none_or(|held| held == self.newest),
            "the token that is held is the newest"
        );
    }
}
