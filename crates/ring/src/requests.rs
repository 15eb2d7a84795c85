//! The token's `rtr` field: sorted, merged, bounded ranges of packets to be sent again.

use alloc::vec::Vec;

use rota_core::wire::{RequestRange, push_merged};

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
