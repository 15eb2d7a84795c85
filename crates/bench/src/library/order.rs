//! Proof that all nodes delivered the same order, in a few bytes for each thousand messages.

use serde::{Deserialize, Serialize};

/// The number of messages after which the next digest is kept.
const STRIDE: u64 = 1024;

/// The deliveries of a node so far and their order, in two numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Digest {
    /// The number of messages that it covers.
    pub count: u64,
    /// Differs where the same number of other messages came, or the same messages in another order.
    pub value: u64,
}

impl Digest {
    /// Adds a delivered message: its sender and its number there.
    pub fn note(&mut self, node: u16, counter: u64) {
        // Multiplying by an odd number and mixing the high bits down makes every position count.
        let mixed =
            (self.value ^ counter ^ (u64::from(node) << 48)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.value = mixed ^ (mixed >> 29);
        self.count += 1;
    }
}

/// A running digest of what a node delivered, in its order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Order {
    digest: Digest,
    /// The digest after 1024, 2048, ... messages.
    checkpoints: Vec<u64>,
}

impl Order {
    /// Adds a delivered message.
    pub(super) fn note(&mut self, node: u16, counter: u64) {
        self.digest.note(node, counter);
        if self.digest.count.is_multiple_of(STRIDE) {
            self.checkpoints.push(self.digest.value);
        }
    }

    /// The number of messages that it covers.
    pub(super) fn count(&self) -> u64 {
        self.digest.count
    }

    /// The message before which two orders differ, as far as both go.
    pub(super) fn differs(&self, other: &Self) -> Option<u64> {
        let mut both = self.checkpoints.iter().zip(&other.checkpoints);
        if let Some(at) = both.position(|(a, b)| a != b) {
            return Some((at as u64 + 1) * STRIDE);
        }
        let (one, two) = (self.digest, other.digest);
        (one.count == two.count && one.value != two.value).then_some(one.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(messages: impl IntoIterator<Item = (u16, u64)>) -> Order {
        let mut order = Order::default();
        messages
            .into_iter()
            .for_each(|(node, counter)| order.note(node, counter));
        order
    }

    #[test]
    fn a_prefix_agrees_with_the_whole() {
        let long = of((0..5000).map(|i| (1, i)));
        assert_eq!(long.differs(&of((0..3000).map(|i| (1, i)))), None);
        assert_eq!(long.differs(&long.clone()), None);
    }

    #[test]
    fn two_messages_swapped_are_found() {
        let mut swapped: Vec<_> = (0..5000).map(|i| (1, i)).collect();
        swapped.swap(1500, 1501);
        assert_eq!(
            of((0..5000).map(|i| (1, i))).differs(&of(swapped)),
            Some(2048)
        );
    }

    #[test]
    fn the_rest_after_the_last_checkpoint_counts_too() {
        assert_eq!(of([(1, 1), (2, 1)]).differs(&of([(2, 1), (1, 1)])), Some(2));
    }
}
