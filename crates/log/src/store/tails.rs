//! Tails: the records of all logs that were durable at a checkpoint.

use std::collections::BTreeMap;

/// The part of a segment that was durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Extent {
    /// The position of its first record.
    pub(super) first: u64,
    /// The file's own number.
    pub(super) id: u64,
    /// The position behind its last record.
    pub(super) next: u64,
    /// The end of that record in the file.
    pub(super) bytes: u64,
}

/// The records of all logs that were durable at a checkpoint, segment by segment, so that no store has to read its
/// files through to know.
///
/// Tails belong into the checkpoint. They are only about the store that made them.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Tails {
    pub(super) store: u64,
    pub(super) logs: BTreeMap<u64, Vec<Extent>>,
}

const VERSION: u8 = 1;

impl Tails {
    /// The number of the store that made these tails.
    pub const fn store(&self) -> u64 {
        self.store
    }

    /// Adds the tails to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.push(VERSION);
        out.extend_from_slice(&self.store.to_le_bytes());
        out.extend_from_slice(&(self.logs.len() as u64).to_le_bytes());
        for (log, extents) in &self.logs {
            out.extend_from_slice(&log.to_le_bytes());
            out.extend_from_slice(&(extents.len() as u64).to_le_bytes());
            for extent in extents {
                for number in [extent.first, extent.id, extent.next, extent.bytes] {
                    out.extend_from_slice(&number.to_le_bytes());
                }
            }
        }
        let sum = crc_fast::crc32_iscsi(&out[start..]);
        out.extend_from_slice(&sum.to_le_bytes());
    }

    /// The tails that were encoded: none when the bytes are something else, or damaged.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (body, sum) = bytes.split_last_chunk::<4>()?;
        if crc_fast::crc32_iscsi(body).to_le_bytes() != *sum {
            return None;
        }
        let (version, mut rest) = body.split_first()?;
        if *version != VERSION {
            return None;
        }
        let mut tails = Self {
            store: number(&mut rest)?,
            logs: BTreeMap::new(),
        };
        for _ in 0..number(&mut rest)? {
            let log = number(&mut rest)?;
            let mut extents = Vec::new();
            for _ in 0..number(&mut rest)? {
                extents.push(Extent {
                    first: number(&mut rest)?,
                    id: number(&mut rest)?,
                    next: number(&mut rest)?,
                    bytes: number(&mut rest)?,
                });
            }
            tails.logs.insert(log, extents);
        }
        rest.is_empty().then_some(tails)
    }

    /// The durable part of the segment that begins at `first`.
    pub(super) fn extent(&self, log: u64, first: u64) -> Option<Extent> {
        let extents = self.logs.get(&log)?;
        let at = extents.binary_search_by_key(&first, |extent| extent.first);
        Some(extents[at.ok()?])
    }
}

fn number(rest: &mut &[u8]) -> Option<u64> {
    let (number, behind) = rest.split_first_chunk()?;
    *rest = behind;
    Some(u64::from_le_bytes(*number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_are_decoded_as_they_were_and_damaged_ones_are_not() {
        let extent = |first| Extent {
            first,
            id: first + 3,
            next: first + 10,
            bytes: 1_000,
        };
        let logs = BTreeMap::from([(3, vec![extent(1), extent(11)]), (4, vec![])]);
        let tails = Tails { store: 9, logs };
        let mut bytes = Vec::new();
        tails.encode(&mut bytes);
        assert_eq!(Tails::decode(&bytes), Some(tails.clone()));
        assert_eq!(tails.extent(3, 11), Some(extent(11)));
        assert_eq!(tails.extent(3, 12), None);
        for at in 0..bytes.len() {
            let mut wrong = bytes.clone();
            wrong[at] ^= 4;
            assert_eq!(Tails::decode(&wrong), None);
            assert_eq!(Tails::decode(&bytes[..at]), None);
        }
    }
}
