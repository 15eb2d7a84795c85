//! A member that loses much of what the others get: it holds them all up, and they cannot tell it from a slow one.
//!
//! What it lacks it asks for, and gets when the token has come round again, if that is not lost in turn; everybody delivers in the
//! order, so that all wait. It can tell by itself: much of what it gets it has had to ask for, and hardly anything of that comes
//! twice, so that the others have it. Where the network loses for all, packets that others have asked for come to those who have them.

use alloc::vec;
use alloc::vec::Vec;

use rota_core::contract::{Seq, Time};
use rota_core::mutants::{self, Mutant};
use rota_core::wire::RequestRange;

/// Packets of others, at least, before anything is said of them. Half as many do for who has been found out before.
const PACKETS: u64 = 20;

/// Losses of one packet in so many are too much.
const MUCH: u64 = 4;

/// Whoever sent so many counts by itself.
const FEW: u64 = 5;

/// It is well heard if of its packets not one in so many had to be asked for: a last one may not have come yet.
const SOME: u64 = 8;

/// Others ask for less than one packet in so many of those that this member asks for.
const LITTLE: u64 = 8;

/// What came of others lately.
#[derive(Clone, Debug)]
pub(super) struct Lossy {
    since: Option<Time>,
    /// What was asked for, once each.
    asked: u64,
    /// What was here: somebody else had asked for it.
    again: u64,
    /// By member.
    of: Vec<Came>,
}

/// What came of a member for the first time, and how much of that had been asked for.
#[derive(Clone, Copy, Default, Debug)]
struct Came {
    all: u64,
    asked_for: u64,
}

impl Lossy {
    pub fn new(members: usize) -> Self {
        Self {
            since: None,
            asked: 0,
            again: 0,
            of: vec![Came::default(); members],
        }
    }

    /// A packet of a member came for the first time; it may have been asked for.
    #[inline(always)]
    pub fn on_new(&mut self, member: u16, asked_for: bool) {
        let came = &mut self.of[usize::from(member)];
        came.all += 1;
        came.asked_for += u64::from(asked_for);
    }

    /// One that is here came again.
    pub const fn on_again(&mut self) {
        self.again += 1;
    }

    /// These packets are asked for; what was missing up to `before` had been.
    pub fn on_asked(&mut self, missing: &[RequestRange], before: Seq) {
        let is_new =
            |range: &RequestRange| (range.last() + 1).saturating_sub(range.first.max(before + 1));
        self.asked += missing.iter().map(is_new).sum::<u64>();
    }

    /// Whether this member loses much of what each other one sends, and others do not, and has for three times so long; for so long, if
    /// it was found out before. Asked again later it looks at what has come since.
    pub fn loses_much(&mut self, now: Time, nanos: u64, found_out: bool) -> bool {
        let since = *self.since.get_or_insert(now);
        let (least, packets) = match found_out {
            true => (nanos, PACKETS / 2),
            false => (3 * nanos, PACKETS),
        };
        if now.since(since) < least {
            return false;
        }
        let came: u64 = self.of.iter().map(|came| came.all).sum();
        let mut senders = self.of.iter().filter(|came| came.all >= FEW);
        // Of one sender alone it cannot tell whether that one, or the link, is ill.
        if came < packets || senders.clone().count() < 2 {
            return false;
        }
        let of_each = senders.all(|came| SOME * came.asked_for >= came.all);
        let alone = LITTLE * self.again < self.asked;
        let much = MUCH * self.asked >= came;
        *self = Self::new(self.of.len());
        self.since = Some(now);
        much && of_each && alone && !mutants::on(Mutant::M59)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: u64 = 3_000_000;
    const UNTIL: Time = Time(5 + LONG);

    /// So many after the tenth, and those before it.
    fn packets(count: u64) -> [RequestRange; 2] {
        let of = |first, count| RequestRange { first, count };
        [of(3, 4), of(9, 2 + count as u32)]
    }

    /// After so many packets of each of two others, of which some had been asked for, and so many that came again.
    fn after(came: [(u64, u64); 2], again: u64) -> Lossy {
        let mut lossy = Lossy::new(3);
        assert!(!lossy.loses_much(Time(5), LONG / 3, false));
        for ((all, asked_for), member) in came.into_iter().zip(1..) {
            lossy.on_asked(&packets(asked_for), 10);
            (0..all).for_each(|at| lossy.on_new(member, at < asked_for));
        }
        (0..again).for_each(|_| lossy.on_again());
        lossy
    }

    #[test]
    fn who_asks_for_a_quarter_and_nobody_else_for_anything_loses_much() {
        assert!(after([(50, 13), (50, 12)], 0).loses_much(UNTIL, LONG / 3, false));
        assert!(!after([(50, 12), (50, 12)], 0).loses_much(UNTIL, LONG / 3, false));
        let mut early = after([(50, 50), (50, 50)], 0);
        assert!(!early.loses_much(Time(4 + LONG), LONG / 3, false), "so far");
        let few = PACKETS / 2;
        assert!(after([(few, few), (few, few)], 0).loses_much(UNTIL, LONG / 3, false));
        assert!(!after([(few, few), (few - 1, few - 1)], 0).loses_much(UNTIL, LONG / 3, false));
    }

    /// It may be that one's fault.
    #[test]
    fn who_loses_what_one_of_them_sends_says_nothing() {
        assert!(!after([(90, 90), (10, 1)], 0).loses_much(UNTIL, LONG / 3, false));
        assert!(after([(90, 90), (10, 2)], 0).loses_much(UNTIL, LONG / 3, false));
        assert!(!after([(90, 90), (FEW - 1, 4)], 0).loses_much(UNTIL, LONG / 3, false));
    }

    #[test]
    fn where_others_ask_too_it_is_the_network() {
        assert!(after([(50, 20), (50, 20)], 4).loses_much(UNTIL, LONG / 3, false));
        assert!(!after([(50, 20), (50, 20)], 5).loses_much(UNTIL, LONG / 3, false));
    }

    #[test]
    fn what_was_long_ago_does_not_count() {
        let mut lossy = after([(50, 25), (50, 25)], 50);
        assert!(!lossy.loses_much(UNTIL, LONG / 3, false));
        (0..100).for_each(|_| lossy.on_new(1, false));
        assert!(!lossy.loses_much(UNTIL.after(LONG), LONG / 3, false));
        lossy.on_asked(&packets(50), 10);
        for member in [1, 2] {
            (0..50).for_each(|_| lossy.on_new(member, true));
        }
        assert!(lossy.loses_much(UNTIL.after(2 * LONG), LONG / 3, false));
    }

    #[test]
    fn who_was_found_out_before_is_soon_found_out_again() {
        let few = PACKETS / 4;
        let soon = Time(5 + LONG / 3);
        assert!(!after([(few, few), (few, few)], 0).loses_much(soon, LONG / 3, false));
        assert!(after([(few, few), (few, few)], 0).loses_much(soon, LONG / 3, true));
        assert!(!after([(few, few), (few - 1, few)], 0).loses_much(soon, LONG / 3, true));
    }
}
