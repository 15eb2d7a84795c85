//! Ranges of packets requested for retransmission.

use alloc::vec::Vec;

use crate::contract::Seq;

/// Neighbouring packets requested for retransmission: `count` of them from `first` on. An offloaded
/// buffer that is lost takes many neighbours with it, hence ranges.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RequestRange {
    /// The first packet wanted.
    pub first: Seq,
    /// The number of packets, at least 1.
    pub count: u32,
}

impl RequestRange {
    /// The last packet wanted.
    pub const fn last(&self) -> Seq {
        self.first + (self.count as u64 - 1)
    }
}

/// Appends a range that starts above all before it, merging it with the last where they touch. Returns false if that
/// would make more than `most` ranges.
pub fn push_merged(ranges: &mut Vec<RequestRange>, range: RequestRange, most: usize) -> bool {
    if let Some(last) = ranges.last_mut()
        && last.last() + 1 >= range.first
    {
        let grown = range.last().saturating_sub(last.last());
        last.count = last
            .count
            .saturating_add(u32::try_from(grown).unwrap_or(u32::MAX));
        return true;
    }
    if ranges.len() == most {
        return false;
    }
    ranges.push(range);
    true
}
