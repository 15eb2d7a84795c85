//! The newest names of appends to a log, by producer, so that an append that comes again is not done again.
//!
//! Names that are numbers are safe however old they are, as long as a producer counts upwards: the greatest number
//! among the forgotten names is known, and a name that is not greater is refused.

use bytes::Bytes;
use imbl::{OrdMap, Vector};
use rota_core::bytes::{Reader, put_bytes, take_bytes, take_list};

use super::Position;
use crate::mutants::{self, Mutant};

/// The number of names that are known of each producer: the newest ones.
pub(super) const MOST_NAMES: usize = 1_024;
/// The number of producers that are known of a log, and of names of all of them: the producer that was used longest ago
/// is forgotten first.
pub(super) const MOST_PRODUCERS: usize = 1_024;
const MOST_ALL: u64 = 131_072;
/// The bytes of a producer's name, and of the name of an append, at most.
pub(super) const MOST_BYTES: usize = 128;

/// The knowledge about a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Known {
    /// The name was not used.
    Nothing,
    /// The name was used for entries that begin at this position.
    At(Position),
    /// The name may have been used.
    Forgotten,
}

#[derive(Clone, PartialEq, Default, Debug)]
struct Producer {
    /// The number of its last use, among all uses.
    used: u64,
    /// The greatest number among the names that are forgotten.
    forgotten: Option<u64>,
    /// The names of its appends, the oldest first, and the positions.
    names: Vector<(Bytes, Position)>,
}

/// The producers of a log. A copy takes no time.
#[derive(Clone, PartialEq, Default, Debug)]
pub(super) struct Producers {
    of: OrdMap<Bytes, Producer>,
    /// The producers by their last use, the oldest first.
    by_use: OrdMap<u64, Bytes>,
    uses: u64,
    /// The number of names of all producers.
    names: u64,
}

/// The number of a name that is one, in its one usual form.
fn number(name: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(name).ok()?;
    let number: u64 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

impl Producers {
    pub(super) fn find(&self, (producer, name): (&[u8], &[u8])) -> Known {
        let Some(of) = self.of.get(producer) else {
            return Known::Nothing;
        };
        // A producer that asks again most likely asks for its newest names.
        let found = of.names.iter().rev().find(|(known, _)| known == name);
        match (found, number(name), of.forgotten) {
            (Some((_, at)), ..) => Known::At(*at),
            (None, Some(number), Some(forgotten)) if number <= forgotten => Known::Forgotten,
            _ => Known::Nothing,
        }
    }

    /// Notes a name whose entries begin at this position.
    pub(super) fn note(&mut self, (producer, name): (&[u8], &[u8]), at: Position) {
        self.uses += 1;
        let key = Bytes::copy_from_slice(producer);
        let mut of = self.of.get(producer).cloned().unwrap_or_default();
        self.by_use.remove(&of.used);
        of.used = self.uses;
        of.names.push_back((Bytes::copy_from_slice(name), at));
        self.names += 1;
        if of.names.len() > MOST_NAMES
            && let Some((oldest, _)) = of.names.pop_front()
        {
            self.names -= 1;
            of.forgotten = of.forgotten.max(number(&oldest));
        }
        self.by_use.insert(of.used, key.clone());
        self.of.insert(key, of);
        self.forget();
    }

    /// Forgets the producers that were used longest ago, if there are too many.
    fn forget(&mut self) {
        while self.of.len() > 1 && (self.of.len() > MOST_PRODUCERS || self.names > MOST_ALL) {
            let (Some((_, oldest)), rest) = self.by_use.without_min_with_key() else {
                return;
            };
            self.by_use = rest;
            let gone = self.of.remove(&oldest);
            self.names -= gone.map_or(0, |gone| gone.names.len() as u64);
        }
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        if mutants::on(Mutant::D12) {
            return Self::default().put_all(out);
        }
        self.put_all(out);
    }

    fn put_all(&self, out: &mut Vec<u8>) {
        out.extend(self.uses.to_le_bytes());
        out.extend((self.of.len() as u32).to_le_bytes());
        for (producer, of) in &self.of {
            put_bytes(out, producer);
            out.extend(of.used.to_le_bytes());
            out.push(u8::from(of.forgotten.is_some()));
            out.extend(of.forgotten.unwrap_or(0).to_le_bytes());
            out.extend((of.names.len() as u32).to_le_bytes());
            for (name, at) in &of.names {
                put_bytes(out, name);
                out.extend(at.to_le_bytes());
            }
        }
    }

    pub(super) fn take(bytes: &mut Reader<'_>) -> Option<Self> {
        let uses = bytes.u64()?;
        let all = take_list(bytes, |bytes| {
            let producer = Bytes::copy_from_slice(take_bytes(bytes)?);
            let used = bytes.u64()?;
            let (is_there, number) = (bytes.flag()?, bytes.u64()?);
            let names = take_list(bytes, |bytes| {
                let name = Bytes::copy_from_slice(take_bytes(bytes)?);
                Some((name, bytes.u64()?))
            });
            let of = Producer {
                used,
                forgotten: is_there.then_some(number),
                names: names?.into_iter().collect(),
            };
            Some((producer, of))
        })?;
        let by_use = all.iter().map(|(name, of)| (of.used, name.clone()));
        let by_use: OrdMap<u64, Bytes> = by_use.collect();
        let of: OrdMap<Bytes, Producer> = all.into_iter().collect();
        let names = of.values().map(|of| of.names.len() as u64).sum();
        let producers = Self {
            of,
            by_use,
            uses,
            names,
        };
        (producers.of.len() == producers.by_use.len()).then_some(producers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_last_is_known_and_numbers_are_never_taken_twice() {
        let mut producers = Producers::default();
        for number in 0..4_000_u64 {
            producers.note((b"often", number.to_string().as_bytes()), number + 1);
        }
        let is = |producers: &Producers, number: u64| {
            producers.find((b"often", number.to_string().as_bytes()))
        };
        assert_eq!(is(&producers, 3_999), Known::At(4_000));
        let oldest = 4_000 - MOST_NAMES as u64;
        assert_eq!(is(&producers, oldest), Known::At(oldest + 1));
        assert_eq!(is(&producers, oldest - 1), Known::Forgotten);
        assert_eq!(is(&producers, 4_000), Known::Nothing);
        assert_eq!(producers.find((b"often", b"word")), Known::Nothing);
        assert_eq!(producers.find((b"other", b"1")), Known::Nothing);
        let mut many = producers.clone();
        for number in 0..2_000_u32 {
            many.note((&number.to_le_bytes(), b"x"), 1);
        }
        assert_eq!(is(&many, 3_999), Known::Nothing);
        assert_eq!(many.of.len(), MOST_PRODUCERS);
        let mut full = producers.clone();
        for producer in 0..200_u64 {
            for name in 0..1_000_u64 {
                full.note((&producer.to_le_bytes(), &name.to_le_bytes()), 1);
            }
        }
        assert!(full.names <= MOST_ALL && full.names > MOST_ALL - 2 * MOST_NAMES as u64);
        for of in [producers, many, full] {
            let mut bytes = Vec::new();
            of.put(&mut bytes);
            let mut reader = Reader(&bytes);
            assert_eq!(Producers::take(&mut reader), Some(of));
            assert!(reader.0.is_empty());
        }
    }
}
