//! A member that loses much of what the others get: it holds them all up, and they cannot tell it from a slow one.
//!
//! The member requests the packets that it lacks, and gets them when the token has come round again, if they are not
//! lost in turn. All members deliver in the order, so that all wait. The member can tell by itself: it had to request
//! much of what it gets, and hardly any packet comes to it twice, so that the others have those packets. If the network
//! loses packets for all, retransmissions that others have requested come also to members that have the packets.

use alloc::vec;
use alloc::vec::Vec;

use rota_core::contract::{Seq, Time};
use rota_core::invariants::FEW as FEW_MEMBERS;
use rota_core::mutants::{self, Mutant};
use rota_core::wire::RequestRange;

/// The least number of packets of others for a verdict. Half as many do for a member that was found lossy before.
const PACKETS: u64 = 20;

/// Losses of one packet in this many are too much.
const MUCH: u64 = 4;

/// A sender of at least this many packets counts by itself.
const FEW: u64 = 5;

/// A sender is well heard if less than one in this many of its packets had to be requested: a last one may not have
/// come yet.
const SOME: u64 = 8;

/// The others lose little if they request less than one packet for this many requests of this member.
const LITTLE: u64 = 8;

/// The packets of others that came lately.
#[derive(Clone, Debug)]
pub(super) struct Lossy {
    since: Option<Time>,
    /// The packets that this member requested, each counted once.
    asked: u64,
    /// The packets that came although they were here: another member had requested them.
    again: u64,
    /// By member.
    of: Vec<Came>,
}

/// The packets of a member that came for the first time, and how many of them this member had requested.
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

    /// Notes a packet of a member that came for the first time; `asked_for` says whether this member had requested it.
    #[inline(always)]
    pub fn on_new(&mut self, member: u16, asked_for: bool) {
        let came = &mut self.of[usize::from(member)];
        came.all += 1;
        came.asked_for += u64::from(asked_for) << u32::from(mutants::on(Mutant::I13));
    }

    /// Notes a packet that came although it was here.
    pub const fn on_again(&mut self) {
        self.again += 1;
    }

    /// Notes that the `missing` packets are requested; those up to `before` had been requested already.
    pub fn on_asked(&mut self, missing: &[RequestRange], before: Seq) {
        let is_new =
            |range: &RequestRange| (range.last() + 1).saturating_sub(range.first.max(before + 1));
        self.asked += missing.iter().map(is_new).sum::<u64>();
    }

    /// Whether this member loses much of what each other one sends, and the others do not. The counts have to cover
    /// three times `nanos` nanoseconds, or `nanos` if this member was found lossy before; they begin anew after each
    /// verdict.
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
        // With one sender alone this member cannot tell whether the sender, or the link, is ill.
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

impl Lossy {
    /// Its invariants.
    pub fn check(&self) {
        let is_sound = |came: &Came| came.asked_for <= came.all;
        assert!(
            self.of.len() > FEW_MEMBERS || self.of.iter().all(is_sound),
            "packets that were requested are packets"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: u64 = 3_000_000;
    const UNTIL: Time = Time(5 + LONG);

    /// Missing packets: `count` after the tenth, and some before it.
    fn packets(count: u64) -> [RequestRange; 2] {
        let of = |first, count| RequestRange { first, count };
        [of(3, 4), of(9, 2 + count as u32)]
    }

    /// The counts after packets of two others, of each so many in all and so many requested, and after `again` repeated
    /// ones.
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

    /// The sender may be at fault.
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
