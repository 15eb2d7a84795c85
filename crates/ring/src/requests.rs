//! The requests for packets that this member lacks, and the lessons from what comes of them; and the token's `rtr`
//! field: sorted, merged, bounded ranges of packets to be sent again.

use alloc::vec::Vec;
use core::hash::Hasher;

use super::Protocol;
use super::lossy::Lossy;
use super::packets::Packets;
use super::patience::RequestDelay;
use rota_core::contract::{Seq, Time};
use rota_core::fingerprint::Fingerprint;
use rota_core::wire::{RequestRange, push_merged};

/// The requests of this member.
#[derive(Clone, Debug)]
pub(super) struct Requests {
    delay: RequestDelay,
    /// Missing packets up to this sequence number have been requested.
    asked_up_to: Seq,
    lossy: Lossy,
    /// The most ranges in one token.
    most: usize,
}

impl Requests {
    /// On a ring of so many members, with `most` ranges in a token at most.
    pub fn new(members: usize, most: usize) -> Self {
        Self {
            delay: RequestDelay::new(),
            asked_up_to: 0,
            lossy: Lossy::new(members),
            most,
        }
    }

    /// Adds the packets to `rtr` that are missing and should have come by now, in the visit of a token that came with
    /// this `seq`; returns their number.
    pub fn ask(
        &mut self,
        packets: &Packets,
        (protocol, seq): (Protocol, Seq),
        rtr: &mut Vec<RequestRange>,
    ) -> u64 {
        let bound = self.delay.bound(protocol, seq);
        if packets.aru() >= bound {
            return 0;
        }
        let (missing, count) = packets.missing(bound, self.most);
        self.delay.on_request(&missing, self.most);
        self.lossy.on_asked(&missing, self.asked_up_to);
        if let Some(last) = missing.last() {
            self.asked_up_to = self.asked_up_to.max(last.last());
        }
        *rtr = union(rtr, &missing, self.most);
        count
    }

    /// Adds one packet to a list of requests, if there is room.
    pub fn add(&self, seq: Seq, list: &mut Vec<RequestRange>) {
        let one = RequestRange {
            first: seq,
            count: 1,
        };
        push_merged(list, one, self.most);
    }

    /// Notes a packet of a member that came for the first time; answers whether it had been requested.
    #[inline(always)]
    pub fn on_new(&mut self, seq: Seq, member: u16) -> bool {
        let asked_for = seq <= self.asked_up_to;
        self.lossy.on_new(member, asked_for);
        asked_for
    }

    /// Notes a packet that came although it was here.
    pub fn on_duplicate(&mut self, seq: Seq, is_own: bool) {
        self.delay.on_duplicate(seq);
        if !is_own {
            self.lossy.on_again();
        }
    }

    /// Counts the losses on an earlier ring of the same members on this one, too.
    pub fn go_on_from(&mut self, before: &Self) {
        self.lossy = before.lossy.clone();
    }

    /// Whether this member loses much that the others get: see [`Lossy::loses_much`].
    pub fn loses_much(&mut self, now: Time, nanos: u64, found_out: bool) -> bool {
        self.lossy.loses_much(now, nanos, found_out)
    }

    /// Feeds `print` with the delay of requests. A search over states has too few packets for a verdict of `lossy`.
    pub fn fingerprint(&self, print: &mut Fingerprint<'_, impl Hasher>) {
        self.delay.fingerprint(print);
    }

    /// Its invariants, with the highest number that a packet of the ring may have here.
    pub fn check(&self, reach: Seq) {
        assert!(
            self.asked_up_to <= reach,
            "no packet is requested for which there is no room"
        );
        self.delay.check();
        self.lossy.check();
    }
}

/// The union of two sorted lists, cut at `most` ranges: the lowest requests stay, since their packets keep all members
/// from delivering.
pub(super) fn union(
    left: &[RequestRange],
    right: &[RequestRange],
    most: usize,
) -> Vec<RequestRange> {
    let mut merged = Vec::with_capacity((left.len() + right.len()).min(most));
    let (mut left, mut right) = (left.iter().peekable(), right.iter().peekable());
    loop {
        let take_left = match (left.peek(), right.peek()) {
            (Some(a), Some(b)) => a.first <= b.first,
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (None, None) => return merged,
        };
        let next = if take_left { left.next() } else { right.next() };
        if let Some(range) = next
            && !push_merged(&mut merged, *range, most)
        {
            return merged;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn range(first: u64, count: u32) -> RequestRange {
        RequestRange { first, count }
    }

    #[test]
    fn union_merges_overlapping_and_touching_ranges() {
        let merged = union(
            &[range(3, 2), range(9, 1)],
            &[range(4, 4), range(8, 1), range(20, 1)],
            2,
        );
        assert_eq!(merged, vec![range(3, 7), range(20, 1)]);
    }

    #[test]
    fn a_range_inside_another_changes_nothing() {
        assert_eq!(
            union(&[range(1, 10)], &[range(3, 2)], 9),
            vec![range(1, 10)]
        );
    }

    #[test]
    fn union_keeps_the_lowest_requests_when_there_are_too_many() {
        let many: Vec<_> = (0..200).map(|i| range(1 + 3 * i, 1)).collect();
        let merged = union(&many, &[], 36);
        assert_eq!(merged.len(), 36);
        assert_eq!(merged[0], range(1, 1));
    }
}
