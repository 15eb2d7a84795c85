//! Batches that are ordered as one message: each is done and answered by itself, one after the other.

use rota_core::bytes::{Reader, put_bytes, take_bytes};
use rota_multiring::Place;

/// The number of batches in a message, at most.
pub const MOST_PACKED: usize = 1_024;

/// Batches, as they were encoded.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Pack<B>(pub Vec<B>);

impl<B: AsRef<[u8]>> Pack<B> {
    /// The message.
    pub fn encode(&self) -> Vec<u8> {
        let bytes = self.0.iter().map(|batch| 4 + batch.as_ref().len());
        let mut out = Vec::with_capacity(bytes.sum());
        for batch in &self.0 {
            put_bytes(&mut out, batch.as_ref());
        }
        out
    }
}

impl<'a> Pack<&'a [u8]> {
    /// The batches of a message that [`Self::encode`] has written of at least one; `None` for anything else.
    pub fn decode(bytes: &'a [u8]) -> Option<Self> {
        let (mut bytes, mut batches) = (Reader(bytes), Vec::new());
        while !bytes.0.is_empty() {
            batches.push(take_bytes(&mut bytes)?);
        }
        let is_one = (1..=MOST_PACKED).contains(&batches.len());
        is_one.then_some(Self(batches))
    }
}

/// The place of a batch of a message, which no other batch has. Messages of an instance are far fewer than 2^22.
pub(super) const fn place_of(message: Place, at: usize) -> Place {
    let index = message.index.saturating_mul(MOST_PACKED as u32);
    Place {
        index: index.saturating_add(at as u32),
        ..message
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rota_multiring::Rank;

    #[test]
    fn a_pack_is_read_as_it_was_written_and_nothing_else_is_one() {
        let pack = Pack(vec![&b"one"[..], b"", b"three"]);
        let bytes = pack.encode();
        assert_eq!(Pack::decode(&bytes), Some(pack));
        assert_eq!(Pack::decode(&[]), None);
        assert_eq!(Pack::decode(&bytes[..bytes.len() - 1]), None);
        let many = |count: usize| Pack(vec![[0_u8; 0]; count]).encode();
        assert!(Pack::decode(&many(MOST_PACKED)).is_some());
        assert_eq!(Pack::decode(&many(MOST_PACKED + 1)), None);
    }

    #[test]
    fn places_are_in_the_order_of_messages_and_batches() {
        let message = |instance, index| Place {
            round: instance,
            rank: Rank(1),
            instance,
            index,
        };
        let places = [
            place_of(message(1, 0), 0),
            place_of(message(1, 0), MOST_PACKED - 1),
            place_of(message(1, 1), 0),
            place_of(message(1, 4_000_000), 3),
            place_of(message(2, 0), 0),
        ];
        assert!(places.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
