//! One of the two copies of a record in a file.

use rota_core::contract::NodeId;

use crate::slot::BadSlot;

/// The offset of the second copy.
pub(crate) const COPY_BYTES: usize = 32 << 10;

/// The bytes of a copy before its record.
const HEADER_BYTES: usize = 24;
const SUM_BYTES: usize = 4;

/// The longest record.
pub(crate) const RECORD_LIMIT: usize = COPY_BYTES - HEADER_BYTES - SUM_BYTES;

const MAGIC: &[u8; 8] = b"ROTAPRIM";
const VERSION: u16 = 1;

/// A record, and the fields that tell whether it is good.
///
/// | bytes | field, little-endian |
/// |---|---|
/// | 0..8 | `ROTAPRIM` |
/// | 8..10 | version, 1 |
/// | 10..12 | node id |
/// | 12..16 | length of the record, n |
/// | 16..24 | generation: one more with each try to write |
/// | 24..24 + n | record |
/// | 24 + n..28 + n | CRC32C of all before |
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct RecordCopy {
    pub node: u16,
    pub generation: u64,
    pub record: Vec<u8>,
}

impl RecordCopy {
    /// The record must not be longer than `RECORD_LIMIT`.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER_BYTES + self.record.len() + SUM_BYTES);
        bytes.extend(MAGIC);
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(self.node.to_le_bytes());
        bytes.extend((self.record.len() as u32).to_le_bytes());
        bytes.extend(self.generation.to_le_bytes());
        bytes.extend(&self.record);
        let sum = crc_fast::crc32_iscsi(&bytes);
        bytes.extend(sum.to_le_bytes());
        bytes
    }

    /// Reads copy number `index` of a file's contents. Any bytes will do.
    pub fn decode(file: &[u8], index: usize) -> Result<Self, BadSlot> {
        Self::sound(file, index).unwrap_or(Err(BadSlot::Damaged))
    }

    /// `None`: not sound.
    fn sound(file: &[u8], index: usize) -> Option<Result<Self, BadSlot>> {
        let bytes = file.get(index * COPY_BYTES..)?;
        let header: &[u8; HEADER_BYTES] = bytes.first_chunk()?;
        let len = u32::from_le_bytes([header[12], header[13], header[14], header[15]]);
        let len = usize::try_from(len)
            .ok()
            .filter(|len| *len <= RECORD_LIMIT)?;
        let (summed, rest) = bytes.split_at_checked(HEADER_BYTES + len)?;
        let sum: &[u8; SUM_BYTES] = rest.first_chunk()?;
        if &header[..8] != MAGIC || *sum != crc_fast::crc32_iscsi(summed).to_le_bytes() {
            return None;
        }
        let version = u16::from_le_bytes([header[8], header[9]]);
        if version != VERSION {
            return Some(Err(BadSlot::Version(version)));
        }
        let mut generation = [0; 8];
        generation.copy_from_slice(&header[16..]);
        Some(Ok(Self {
            node: u16::from_le_bytes([header[10], header[11]]),
            generation: u64::from_le_bytes(generation),
            record: summed[HEADER_BYTES..].to_vec(),
        }))
    }
}

/// The contents of a new file: the same in both copies.
pub(crate) fn new_file(node: NodeId, record: &[u8]) -> Vec<u8> {
    let copy = RecordCopy {
        node: node.get(),
        generation: 1,
        record: record.to_vec(),
    };
    let bytes = copy.encode();
    let mut file = vec![0; 2 * COPY_BYTES];
    for index in [0, 1] {
        file[index * COPY_BYTES..][..bytes.len()].copy_from_slice(&bytes);
    }
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_read_as_it_was_written_and_any_flipped_bit_is_found() {
        for record in [vec![], vec![7], vec![3; 300]] {
            let copy = RecordCopy {
                node: 7,
                generation: 1 << 40,
                record,
            };
            let bytes = copy.encode();
            assert_eq!(RecordCopy::decode(&bytes, 0), Ok(copy));
            for bit in 0..bytes.len() * 8 {
                let mut damaged = bytes.clone();
                damaged[bit / 8] ^= 1 << (bit % 8);
                let found = RecordCopy::decode(&damaged, 0);
                assert_eq!(found, Err(BadSlot::Damaged), "{bit}");
            }
        }
    }

    #[test]
    fn a_later_version_is_no_damage() {
        let copy = RecordCopy {
            node: 7,
            generation: 3,
            record: vec![1, 2, 3],
        };
        let mut bytes = copy.encode();
        bytes[8] = 2;
        let end = bytes.len() - SUM_BYTES;
        let sum = crc_fast::crc32_iscsi(&bytes[..end]).to_le_bytes();
        bytes[end..].copy_from_slice(&sum);
        assert_eq!(RecordCopy::decode(&bytes, 0), Err(BadSlot::Version(2)));
    }

    #[test]
    fn the_longest_record_fits_and_a_file_of_any_length_is_read() {
        let record = vec![9; RECORD_LIMIT];
        let file = new_file(NodeId::new(3).unwrap(), &record);
        assert_eq!(file.len(), 2 * COPY_BYTES);
        for index in [0, 1] {
            assert_eq!(RecordCopy::decode(&file, index).unwrap().record, record);
        }
        for len in [0, 1, 23, 24, COPY_BYTES - 1, 2 * COPY_BYTES - 1] {
            let found = RecordCopy::decode(&file[..len], 1);
            assert_eq!(found, Err(BadSlot::Damaged), "{len} bytes");
        }
    }
}
