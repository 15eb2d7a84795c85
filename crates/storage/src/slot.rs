//! One of the two places for a value in a file.

use rota_core::contract::NodeId;

/// The offset of the second slot. Each has a block of its own: a write that damages one, or the sector it is in, cannot
/// reach the other.
pub(crate) const SLOT_BYTES: usize = 4096;

/// The size of the contents of a slot; the rest of its block is unused.
pub(crate) const RECORD_BYTES: usize = 36;

const VERSION: u16 = 1;

/// A value, and the fields that tell whether it is good.
///
/// | bytes | field, little-endian |
/// |---|---|
/// | 0..8 | `ROTARING`, or what else is kept |
/// | 8..10 | version, 1 |
/// | 10..12 | node id |
/// | 12..16 | 1 if there is a value, else 0 |
/// | 16..24 | generation: one more with each write |
/// | 24..32 | value |
/// | 32..36 | CRC32C of all before |
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Slot {
    pub node: u16,
    pub generation: u64,
    pub value: Option<u64>,
}

/// Why a slot cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BadSlot {
    /// Too short, no record of ours, or its checksum is wrong.
    Damaged,
    /// A sound record of a version that this one cannot read.
    Version(u16),
}

impl Slot {
    pub fn encode(self, magic: &[u8; 8]) -> [u8; RECORD_BYTES] {
        let mut bytes = [0; RECORD_BYTES];
        bytes[..8].copy_from_slice(magic);
        bytes[8..10].copy_from_slice(&VERSION.to_le_bytes());
        bytes[10..12].copy_from_slice(&self.node.to_le_bytes());
        bytes[12..16].copy_from_slice(&u32::from(self.value.is_some()).to_le_bytes());
        bytes[16..24].copy_from_slice(&self.generation.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.value.unwrap_or(0).to_le_bytes());
        let sum = crc_fast::crc32_iscsi(&bytes[..32]);
        bytes[32..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// Reads slot number `index` of a file's contents. Any bytes will do.
    pub fn decode(file: &[u8], index: usize, magic: &[u8; 8]) -> Result<Self, BadSlot> {
        let bytes: &[u8; RECORD_BYTES] = file
            .get(index * SLOT_BYTES..)
            .and_then(<[u8]>::first_chunk)
            .ok_or(BadSlot::Damaged)?;
        let sum = crc_fast::crc32_iscsi(&bytes[..32]).to_le_bytes();
        if &bytes[..8] != magic || bytes[32..] != sum {
            return Err(BadSlot::Damaged);
        }
        let u16_at = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let u64_at = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(word)
        };
        if u16_at(8) != VERSION {
            return Err(BadSlot::Version(u16_at(8)));
        }
        let value = match bytes[12] {
            0 => None,
            _ => Some(u64_at(24)),
        };
        Ok(Self {
            node: u16_at(10),
            generation: u64_at(16),
            value,
        })
    }
}

/// The contents of a new file: this value, or none, in both slots.
pub(crate) fn new_file(node: NodeId, value: Option<u64>, magic: &[u8; 8]) -> Vec<u8> {
    let mut file = vec![0; 2 * SLOT_BYTES];
    for (index, generation) in [(0, 1), (1, 0)] {
        let slot = Slot {
            node: node.get(),
            generation,
            value,
        };
        file[index * SLOT_BYTES..][..RECORD_BYTES].copy_from_slice(&slot.encode(magic));
    }
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAGIC: &[u8; 8] = b"ROTATEST";

    #[test]
    fn a_slot_is_read_as_it_was_written_and_any_flipped_bit_is_found() {
        for value in [None, Some(0), Some(u64::MAX)] {
            let slot = Slot {
                node: 7,
                generation: 1 << 40,
                value,
            };
            let bytes = slot.encode(MAGIC);
            assert_eq!(Slot::decode(&bytes, 0, MAGIC), Ok(slot));
            for bit in 0..bytes.len() * 8 {
                let mut damaged = bytes;
                damaged[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(
                    Slot::decode(&damaged, 0, MAGIC),
                    Err(BadSlot::Damaged),
                    "{bit}"
                );
            }
        }
    }

    #[test]
    fn a_later_version_is_no_damage() {
        let slot = Slot {
            node: 7,
            generation: 3,
            value: Some(9),
        };
        let mut bytes = slot.encode(MAGIC);
        bytes[8] = 2;
        let sum = crc_fast::crc32_iscsi(&bytes[..32]).to_le_bytes();
        bytes[32..].copy_from_slice(&sum);
        assert_eq!(Slot::decode(&bytes, 0, MAGIC), Err(BadSlot::Version(2)));
    }

    #[test]
    fn what_a_short_file_still_holds_is_read() {
        let file = new_file(NodeId::new(3).unwrap(), None, MAGIC);
        for len in 0..file.len() {
            let slots = [0, 1].map(|index| Slot::decode(&file[..len], index, MAGIC).is_ok());
            let whole = [len >= RECORD_BYTES, len >= SLOT_BYTES + RECORD_BYTES];
            assert_eq!(slots, whole, "{len} bytes");
        }
    }
}
