//! What protects a datagram between two nodes: the only place that knows how.
//!
//! [`Seal::Plain`] finds damage, not attackers: a CRC32C over the whole datagram, kept in its header.
//! Authenticated encryption will be another variant; nothing else has to change for it.

use std::fmt;

use rota_core::wire::CHECKSUM_OFFSET;

/// Bytes of the header that every datagram starts with; the checksum is its last field.
pub const HEADER_BYTES: usize = CHECKSUM_OFFSET + CHECKSUM_BYTES;

const CHECKSUM_BYTES: usize = 4;

/// A way to seal datagrams on sending and to open them on receipt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Seal {
    /// A checksum and no secrecy: what `insecure = true` stands for.
    Plain,
}

/// Why a received datagram was not opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpenError {
    /// Shorter than the header.
    Short,
    /// Damaged on its way, or not one of ours.
    Checksum,
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short => write!(f, "the datagram has fewer than {HEADER_BYTES} bytes"),
            Self::Checksum => f.write_str("the datagram's checksum is wrong"),
        }
    }
}

impl std::error::Error for OpenError {}

impl Seal {
    /// Seals a datagram in place. One without a whole header is left alone: no receiver opens it.
    pub fn seal(self, datagram: &mut [u8]) {
        let Self::Plain = self;
        if let Some(sum) = checksum(datagram) {
            datagram[CHECKSUM_OFFSET..HEADER_BYTES].copy_from_slice(&sum.to_le_bytes());
        }
    }

    /// Checks a received datagram.
    ///
    /// # Errors
    /// [`OpenError`] when the datagram must be dropped.
    pub fn open(self, datagram: &[u8]) -> Result<(), OpenError> {
        let Self::Plain = self;
        let sum = checksum(datagram).ok_or(OpenError::Short)?;
        if datagram[CHECKSUM_OFFSET..HEADER_BYTES] == sum.to_le_bytes() {
            Ok(())
        } else {
            Err(OpenError::Checksum)
        }
    }
}

/// The checksum with its own field taken as zero; `None` without a whole header.
fn checksum(datagram: &[u8]) -> Option<u32> {
    let (header, body) = datagram.split_at_checked(HEADER_BYTES)?;
    let mut blank = [0; HEADER_BYTES];
    blank[..CHECKSUM_OFFSET].copy_from_slice(&header[..CHECKSUM_OFFSET]);
    Some(crc32c::crc32c_append(crc32c::crc32c(&blank), body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sealed_datagram_opens_and_any_flipped_bit_is_found() {
        let mut datagram: Vec<u8> = (0..100).collect();
        Seal::Plain.seal(&mut datagram);
        assert_eq!(Seal::Plain.open(&datagram), Ok(()));
        for bit in 0..datagram.len() * 8 {
            let mut damaged = datagram.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(
                Seal::Plain.open(&damaged),
                Err(OpenError::Checksum),
                "bit {bit}"
            );
        }
    }

    #[test]
    fn a_header_alone_is_enough_and_a_byte_less_is_not() {
        let mut datagram = vec![9; HEADER_BYTES];
        Seal::Plain.seal(&mut datagram);
        assert_eq!(Seal::Plain.open(&datagram), Ok(()));
        assert_eq!(
            Seal::Plain.open(&datagram[..HEADER_BYTES - 1]),
            Err(OpenError::Short)
        );
        Seal::Plain.seal(&mut datagram[..HEADER_BYTES - 1]);
    }

    #[test]
    fn the_polynomial_is_castagnolis() {
        // The check value that catalogues give for CRC-32/ISCSI.
        assert_eq!(crc32c::crc32c(b"123456789"), 0xE306_9283);
    }
}
