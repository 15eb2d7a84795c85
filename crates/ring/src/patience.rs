//! The delay before a missing packet is requested, where data is slower than tokens (P-47).
//!
//! The token and the data are different datagrams on different sockets, and their ways may take differently long: each
//! packet that is later than the rules of the protocol allow for would be sent again. A member that gets a requested
//! packet twice has asked too early, and waits one rotation longer from then on.

use alloc::vec::Vec;
use core::hash::Hasher;
use core::mem;

use super::Protocol;
use super::requests::union;
use rota_core::contract::Seq;
use rota_core::fingerprint::Fingerprint;
use rota_core::wire::RequestRange;

/// The most rotations to wait beyond what the protocol says: a packet that has not come by then is lost.
const MOST: usize = 5;

/// Rotations after which one less is tried: the delay may be over.
const TRIED_FOR: u32 = 256;

/// The least number of rotations for which requests are remembered. Answers and late packets come within one.
const REMEMBERED: u32 = 16;

#[derive(Clone, Debug)]
pub(super) struct RequestDelay {
    /// `seq` of the tokens received last, the latest first.
    seqs: [Seq; MOST + 2],
    rounds: usize,
    /// The visits since `rounds` was set last.
    visits: u32,
    asked: [Vec<RequestRange>; 2],
    asked_for: u32,
}

impl RequestDelay {
    pub const fn new() -> Self {
        Self {
            seqs: [0; MOST + 2],
            rounds: 0,
            visits: 0,
            asked: [Vec::new(), Vec::new()],
            asked_for: 0,
        }
    }

    /// The sequence number up to which missing packets are requested, in the visit of a token with this `seq`. In the
    /// accelerated protocol it is never beyond the `seq` of the *last* visit: newer packets may not have been sent yet
    /// (§III-B2).
    pub fn bound(&mut self, protocol: Protocol, seq: Seq) -> Seq {
        self.seqs.rotate_right(1);
        self.seqs[0] = seq;
        self.visits += 1;
        if self.visits == TRIED_FOR {
            self.visits = 0;
            self.rounds = self.rounds.saturating_sub(1);
        }
        self.asked_for += 1;
        if self.asked_for >= REMEMBERED {
            self.forget();
        }
        match protocol {
            Protocol::Original => self.seqs[self.rounds],
            Protocol::Accelerated => self.seqs[self.rounds + 1],
        }
    }

    fn forget(&mut self) {
        self.asked_for = 0;
        let [latest, before] = &mut self.asked;
        mem::swap(latest, before);
        latest.clear();
    }

    /// Remembers the packets that are requested.
    pub fn on_request(&mut self, missing: &[RequestRange], most: usize) {
        self.asked[0] = union(&self.asked[0], missing, most);
    }

    /// Takes note of a packet that came although it was here. If this member had requested it, the request was too
    /// early: one copy was late, and one was the answer. (Or the network doubled it; that costs a few rotations.)
    pub fn on_duplicate(&mut self, seq: Seq) {
        let within = |ranges: &Vec<RequestRange>| {
            let after = ranges.partition_point(|range| range.first <= seq);
            after > 0 && ranges[after - 1].last() >= seq
        };
        if !self.asked.iter().any(within) {
            return;
        }
        // One lesson from all packets that were late together.
        self.asked = [Vec::new(), Vec::new()];
        self.visits = 0;
        self.rounds = MOST.min(self.rounds + 1);
    }

    /// Its invariants.
    pub fn check(&self) {
        assert!(self.rounds <= MOST, "the delay has an end");
        assert!(
            self.visits < TRIED_FOR && self.asked_for < REMEMBERED,
            "visits are counted up to a bound"
        );
        assert!(
            self.seqs.is_sorted_by(|later, earlier| later >= earlier),
            "tokens number more and more packets"
        );
    }

    pub fn fingerprint(&self, print: &mut Fingerprint<'_, impl Hasher>) {
        let Self {
            seqs,
            rounds,
            visits,
            asked,
            asked_for,
        } = self;
        print.add((seqs, rounds, asked));
        // Counters matter only where they can change something.
        print.add(if *rounds > 0 { *visits } else { 0 });
        print.add(if asked.iter().all(Vec::is_empty) {
            0
        } else {
            *asked_for
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(first: u64, count: u32) -> RequestRange {
        RequestRange { first, count }
    }

    fn visited(protocol: Protocol) -> RequestDelay {
        let mut patience = RequestDelay::new();
        for seq in [10, 20, 30, 40, 50, 60, 70] {
            patience.bound(protocol, seq);
        }
        patience
    }

    #[test]
    fn the_original_protocol_asks_at_once_and_the_accelerated_one_a_visit_later() {
        assert_eq!(
            visited(Protocol::Original).bound(Protocol::Original, 80),
            80
        );
        let accelerated = Protocol::Accelerated;
        assert_eq!(visited(accelerated).bound(accelerated, 80), 70);
    }

    #[test]
    fn each_lesson_is_one_rotation_and_five_are_the_most() {
        let protocol = Protocol::Accelerated;
        let mut patience = visited(protocol);
        let mut bounds = Vec::new();
        for seq in [80, 90, 100, 110, 120, 130, 140] {
            patience.on_request(&[range(5, 3)], 9);
            patience.on_duplicate(8);
            patience.on_duplicate(4);
            patience.on_duplicate(7);
            // The other packets of the same request teach nothing more.
            patience.on_duplicate(6);
            bounds.push(patience.bound(protocol, seq));
        }
        assert_eq!(bounds, [60, 60, 60, 60, 60, 70, 80]);
    }

    #[test]
    fn what_was_not_asked_for_or_long_ago_teaches_nothing() {
        let protocol = Protocol::Accelerated;
        let mut patience = visited(protocol);
        patience.on_duplicate(65);
        patience.on_request(&[range(65, 1)], 9);
        for seq in 80..80 + 2 * u64::from(REMEMBERED) {
            patience.bound(protocol, seq);
        }
        patience.on_duplicate(65);
        assert_eq!(patience.bound(protocol, 200), 111);
    }

    /// The bounds of requests after one lesson, for the visits that it takes to try one rotation less.
    fn bounds_after_a_lesson(protocol: Protocol, seq: Seq) -> Vec<Seq> {
        let mut patience = visited(protocol);
        patience.on_request(&[range(seq, 1)], 9);
        patience.on_duplicate(seq);
        let seqs = 100..100 + u64::from(TRIED_FOR);
        seqs.map(|seq| patience.bound(protocol, seq)).collect()
    }

    #[test]
    fn patience_is_given_up_again() {
        let last = 100 + u64::from(TRIED_FOR) - 1;
        let bounds = bounds_after_a_lesson(Protocol::Original, 65);
        assert_eq!(bounds[..2], [70, 100]);
        assert_eq!(bounds[bounds.len() - 2..], [last - 2, last]);
        let bounds = bounds_after_a_lesson(Protocol::Accelerated, 5);
        assert_eq!(bounds[..3], [60, 70, 100]);
        assert_eq!(bounds[bounds.len() - 2..], [last - 3, last - 1]);
    }
}
