//! The room for messages of rings that wait for other rings.

use super::RingsLearner;
use crate::order::Rank;

impl RingsLearner {
    /// The bytes of a ring's messages that wait for other rings.
    pub fn waiting_bytes(&self, rank: Rank) -> usize {
        self.merge.waiting_bytes(rank)
    }

    /// Whether the ring may hand out more: its engine keeps the rest, and throttles nobody.
    pub fn has_room(&self, rank: Rank) -> bool {
        self.merge.has_room(rank)
    }
}
