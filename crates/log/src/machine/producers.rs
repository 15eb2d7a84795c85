//! Who has appended what to a log of late: so that what is asked for again is not appended again.

use bytes::Bytes;
use imbl::{OrdMap, Vector};
use rota_core::bytes::{Reader, put_bytes, take_bytes, take_list};

use super::Position;
use crate::mutants::{self, Mutant};

/// So many names are known of each producer, and so many producers of each log: the ones that were used last.
pub(super) const MOST_NAMES: usize = 128;
pub(super) const MOST_PRODUCERS: usize = 1_024;
/// The name of a producer, or of what it has appended, has so many bytes at most.
pub(super) const MOST_BYTES: usize = 128;

#[derive(Clone, PartialEq, Default, Debug)]
struct Producer {
    /// When it was used last.
    used: u64,
    /// What it has appended: its names, the oldest first, and where that is.
    names: Vector<(Bytes, Position)>,
}

/// See the module's page. A copy takes no time.
#[derive(Clone, PartialEq, Default, Debug)]
pub(super) struct Producers {
    of: OrdMap<Bytes, Producer>,
    /// The one that was used longest ago first.
    by_use: OrdMap<u64, Bytes>,
    uses: u64,
}

impl Producers {
    /// Where the first entry of this is, if it was appended.
    pub(super) fn find(&self, (producer, name): (&[u8], &[u8])) -> Option<Position> {
        let names = &self.of.get(producer)?.names;
        // Whoever asks again asks for what it has asked for last.
        let found = names.iter().rev().find(|(known, _)| known == name);
        found.map(|(_, position)| *position)
    }

    /// It is appended there.
    pub(super) fn note(&mut self, (producer, name): (&[u8], &[u8]), at: Position) {
        self.uses += 1;
        let key = Bytes::copy_from_slice(producer);
        let mut of = self.of.get(producer).cloned().unwrap_or_default();
        self.by_use.remove(&of.used);
        of.used = self.uses;
        of.names.push_back((Bytes::copy_from_slice(name), at));
        if of.names.len() > MOST_NAMES {
            of.names.pop_front();
        }
        self.by_use.insert(of.used, key.clone());
        self.of.insert(key, of);
        if self.of.len() > MOST_PRODUCERS
            && let (Some((_, oldest)), rest) = self.by_use.without_min_with_key()
        {
            self.of.remove(&oldest);
            self.by_use = rest;
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
            let names = take_list(bytes, |bytes| {
                let name = Bytes::copy_from_slice(take_bytes(bytes)?);
                Some((name, bytes.u64()?))
            });
            let names = names?.into_iter().collect();
            Some((producer, Producer { used, names }))
        })?;
        let by_use = all.iter().map(|(name, of)| (of.used, name.clone()));
        let by_use: OrdMap<u64, Bytes> = by_use.collect();
        let of: OrdMap<Bytes, Producer> = all.into_iter().collect();
        (of.len() == by_use.len()).then_some(Self { of, by_use, uses })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_last_is_known_and_a_state_is_read_as_it_was_written() {
        let mut producers = Producers::default();
        for number in 0..2_000_u32 {
            let name = (number / 2).to_le_bytes();
            let number_bytes = number.to_le_bytes();
            let of = match number % 2 {
                0 => &number_bytes[..],
                _ => b"often",
            };
            producers.note((of, &name), u64::from(number) + 1);
        }
        let is_known = |of: &[u8], number: u32| producers.find((of, &number.to_le_bytes()));
        assert_eq!(is_known(b"often", 999), Some(2_000));
        assert_eq!(
            is_known(b"often", 1_000 - MOST_NAMES as u32),
            Some(2_000 - 2 * MOST_NAMES as u64 + 2)
        );
        assert_eq!(is_known(b"often", 999 - MOST_NAMES as u32), None);
        assert_eq!(is_known(&1_998_u32.to_le_bytes(), 999), Some(1_999));
        let mut many = producers.clone();
        for number in 2_000..4_000_u32 {
            many.note((&number.to_le_bytes(), b""), 1);
        }
        assert_eq!(many.find((b"often", &999_u32.to_le_bytes())), None);
        assert_eq!(many.of.len(), MOST_PRODUCERS);
        for of in [producers, many] {
            let mut bytes = Vec::new();
            of.put(&mut bytes);
            let mut reader = Reader(&bytes);
            assert_eq!(Producers::take(&mut reader), Some(of));
            assert!(reader.0.is_empty());
        }
    }
}
