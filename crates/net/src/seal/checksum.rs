//! The checksum that datagrams end with where there is no key: finds damage, not attackers.
//!
//! Every datagram ends with the CRC32C of all bytes before.

use rota_core::wire::{HEADER_BYTES, SEAL_BYTES};

use super::OpenError;

/// The shortest datagram there is.
pub(super) const LEAST_BYTES: usize = HEADER_BYTES + SEAL_BYTES;

/// Writes the checksum of a datagram. One that is too short is left alone: no receiver opens it.
pub fn seal(datagram: &mut [u8]) {
    if datagram.len() < LEAST_BYTES {
        return;
    }
    if let Some((text, sum)) = datagram.split_last_chunk_mut::<SEAL_BYTES>() {
        *sum = crc_fast::crc32_iscsi(text).to_le_bytes();
    }
}

/// Checks a received datagram.
///
/// # Errors
/// [`OpenError`] when the datagram must be dropped.
pub fn open(datagram: &[u8]) -> Result<(), OpenError> {
    if datagram.len() < LEAST_BYTES {
        return Err(OpenError::Short);
    }
    match datagram.split_last_chunk::<SEAL_BYTES>() {
        Some((text, sum)) if *sum == crc_fast::crc32_iscsi(text).to_le_bytes() => Ok(()),
        _ => Err(OpenError::Checksum),
    }
}

/// Checks whole bursts at once, which takes half the time of checking their datagrams.
///
/// After a sound datagram, which ends with its own CRC, the register of a CRC has a value that
/// depends only on the value before and on the datagram's length. So all sound bursts of one layout
/// have the same CRC32C as a whole. It is learned from the first, checked datagram by datagram; a
/// later burst of another CRC has some damaged datagram in it.
pub(crate) struct Bursts {
    /// The layouts last seen, by number of datagrams.
    known: Box<[Option<Layout>; MAX_DATAGRAMS]>,
}

/// Datagrams that the kernel merges at most.
const MAX_DATAGRAMS: usize = 64;

/// Bursts of fewer datagrams are checked one by one.
const WORTHWHILE: usize = 3;

#[derive(Clone, Copy, Debug)]
struct Layout {
    segment: usize,
    len: usize,
    sum: u32,
}

impl Bursts {
    pub(crate) fn new() -> Self {
        Self {
            known: Box::new([None; MAX_DATAGRAMS]),
        }
    }

    /// Whether all datagrams of the burst are known to be sound. `false` says nothing.
    pub(crate) fn are_sound(&self, burst: &[u8], segment: usize) -> bool {
        let place = burst.len().div_ceil(segment) % MAX_DATAGRAMS;
        self.known[place].is_some_and(|known| {
            (known.segment, known.len) == (segment, burst.len())
                && known.sum == crc_fast::crc32_iscsi(burst)
        })
    }

    /// Learns from a burst whose datagrams have all been checked.
    pub(crate) fn learn(&mut self, burst: &[u8], segment: usize) {
        let datagrams = burst.len().div_ceil(segment);
        if datagrams < WORTHWHILE {
            return;
        }
        self.known[datagrams % MAX_DATAGRAMS] = Some(Layout {
            segment,
            len: burst.len(),
            sum: crc_fast::crc32_iscsi(burst),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sealed_datagram_opens_and_any_flipped_bit_is_found() {
        let mut datagram: Vec<u8> = (0..100).collect();
        seal(&mut datagram);
        assert_eq!(open(&datagram), Ok(()));
        for bit in 0..datagram.len() * 8 {
            let mut damaged = datagram.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(open(&damaged), Err(OpenError::Checksum), "bit {bit}");
        }
    }

    #[test]
    fn a_header_and_a_checksum_are_enough_and_a_byte_less_is_not() {
        let mut datagram = vec![9; LEAST_BYTES];
        seal(&mut datagram);
        assert_eq!(open(&datagram), Ok(()));
        assert_eq!(open(&datagram[..LEAST_BYTES - 1]), Err(OpenError::Short));
        seal(&mut datagram[..LEAST_BYTES - 1]);
    }

    #[test]
    fn the_polynomial_is_castagnolis() {
        // The check value that catalogues give for CRC-32/ISCSI.
        assert_eq!(crc_fast::crc32_iscsi(b"123456789"), 0xE306_9283);
    }

    /// A burst of sealed datagrams with contents that follow from `salt`.
    fn burst(segment: usize, len: usize, salt: u8) -> Vec<u8> {
        let mut bytes: Vec<u8> = (0..len).map(|at| (at as u8).wrapping_mul(salt)).collect();
        for datagram in bytes.chunks_mut(segment) {
            seal(datagram);
        }
        bytes
    }

    #[test]
    fn a_layout_once_learned_tells_sound_bursts_from_damaged_ones() {
        let mut bursts = Bursts::new();
        for (segment, len) in [(100, 4000), (1393, 55_720), (1393, 55_000), (41, 163)] {
            assert!(
                !bursts.are_sound(&burst(segment, len, 3), segment),
                "not learned"
            );
            bursts.learn(&burst(segment, len, 3), segment);
            for salt in 4..40 {
                let sound = burst(segment, len, salt);
                assert!(bursts.are_sound(&sound, segment), "{segment} {len} {salt}");
                for at in (0..len).step_by(97).chain([len - 1]) {
                    let mut damaged = sound.clone();
                    damaged[at] ^= 1 << (salt % 8);
                    assert!(!bursts.are_sound(&damaged, segment), "byte {at} of {len}");
                }
            }
        }
        assert!(
            !bursts.are_sound(&burst(100, 4100, 3), 100),
            "another layout"
        );
    }

    #[test]
    fn datagrams_in_another_order_are_as_sound() {
        let mut bursts = Bursts::new();
        let ordered = burst(50, 500, 7);
        bursts.learn(&ordered, 50);
        let turned: Vec<u8> = ordered.rchunks(50).flatten().copied().collect();
        assert!(bursts.are_sound(&turned, 50));
    }
}
