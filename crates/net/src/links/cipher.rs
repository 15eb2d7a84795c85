//! The proofs of who is at the other end, and the ciphers of the records of a session.
//!
//! With a key of the cluster, everything follows from it by HKDF-SHA-256, with a salt that keeps it apart from the keys
//! of datagrams: the proofs of a handshake, and two keys for each session, one for each direction, from both sides'
//! fresh random bytes. Records are sealed with AES-256-GCM, the nonce being their number in that direction. So a record
//! that is left out, comes twice, in another place or in another session does not open. Without a key there are
//! checksums in their places, which find damage and no attackers.

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Prk, Salt};
use crc_fast::{CrcAlgorithm, Digest};

use crate::keys::Secret;

/// The salt that keeps these keys apart from all others derived from a cluster's key.
const PURPOSE: &[u8] = b"rota links 1";

/// Bytes of a proof.
pub(super) const PROOF_BYTES: usize = 16;

/// Bytes of an AES-256-GCM tag.
const TAG_BYTES: usize = 16;
/// Bytes of a CRC32C.
const SUM_BYTES: usize = 4;
/// The larger of the two.
pub(super) const MOST_TAG_BYTES: usize = TAG_BYTES;

/// The purpose of a derived value. Each purpose gives values of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Use {
    Hello = 1,
    Welcome = 2,
    Confirm = 3,
    ToAcceptor = 4,
    ToDialer = 5,
}

/// The basis on which two nodes trust each other.
#[derive(Debug)]
pub(super) enum Trust {
    /// Nothing: `insecure = true`.
    Plain,
    /// One key of the cluster.
    Keyed(Prk),
}

/// The number of bytes to derive.
struct ProofLength;

impl KeyType for ProofLength {
    fn len(&self) -> usize {
        PROOF_BYTES
    }
}

impl Trust {
    pub(super) fn new(secret: Option<&Secret>) -> Self {
        let Some(secret) = secret else {
            return Self::Plain;
        };
        let salt = Salt::new(HKDF_SHA256, PURPOSE);
        Self::Keyed(salt.extract(secret.bytes()))
    }

    /// The proof that only a holder of the key can make of these bytes; `None` if the library refuses, which it does
    /// not.
    pub(super) fn proof(&self, of: Use, said: &[&[u8]]) -> Option<[u8; PROOF_BYTES]> {
        let mut proof = [0; PROOF_BYTES];
        match self {
            Self::Plain => proof[..SUM_BYTES].copy_from_slice(&sum(of as u8, said).to_le_bytes()),
            Self::Keyed(prk) => {
                let info = info(of, said);
                prk.expand(&info, ProofLength).ok()?.fill(&mut proof).ok()?;
            }
        }
        Some(proof)
    }

    /// Whether this is that proof. The check takes the same time whichever byte is wrong.
    pub(super) fn holds(&self, of: Use, said: &[&[u8]], shown: &[u8; PROOF_BYTES]) -> bool {
        self.proof(of, said)
            .is_some_and(|proof| verify_slices_are_equal(&proof, shown).is_ok())
    }

    /// The cipher that seals the records of one direction of a session, or opens them.
    pub(super) fn direction(&self, of: Use, said: &[&[u8]]) -> Option<Direction> {
        let key = match self {
            Self::Plain => None,
            Self::Keyed(prk) => {
                let info = info(of, said);
                let derived = prk.expand(&info, &AES_256_GCM);
                Some(LessSafeKey::new(UnboundKey::from(derived.ok()?)))
            }
        };
        Some(Direction { key, next: 0 })
    }
}

const LABELS: [[u8; 1]; 6] = [[0], [1], [2], [3], [4], [5]];

fn info<'a>(of: Use, said: &[&'a [u8]]) -> Vec<&'a [u8]> {
    let label: &'static [u8] = &LABELS[of as usize];
    std::iter::once(label).chain(said.iter().copied()).collect()
}

fn sum(label: u8, said: &[&[u8]]) -> u32 {
    let mut digest = Digest::new(CrcAlgorithm::Crc32Iscsi);
    digest.update(&[label]);
    said.iter().for_each(|bytes| digest.update(bytes));
    digest.finalize() as u32
}

/// One direction of a session: seals at one end, opens at the other.
#[derive(Debug)]
pub(super) struct Direction {
    key: Option<LessSafeKey>,
    /// The number of the next record.
    next: u64,
}

impl Direction {
    /// Bytes that a record has behind its body.
    pub(super) const fn tag_bytes(&self) -> usize {
        if self.key.is_some() {
            TAG_BYTES
        } else {
            SUM_BYTES
        }
    }

    /// Whether records are encrypted.
    pub(super) const fn is_keyed(&self) -> bool {
        self.key.is_some()
    }

    /// The tag of the next record where records are not encrypted, its body being in pieces.
    pub(super) fn sum<'a>(
        &mut self,
        header: &[u8],
        body: impl Iterator<Item = &'a [u8]>,
    ) -> [u8; SUM_BYTES] {
        let number = self.next;
        self.next += 1;
        record_sum(number, header, body).to_le_bytes()
    }

    /// Encrypts the body of the next record in place, and writes its tag behind it: `sealed` is both.
    pub(super) fn seal(&mut self, header: &[u8], sealed: &mut [u8]) {
        let number = self.next;
        self.next += 1;
        let at = sealed.len().saturating_sub(self.tag_bytes());
        let (body, tag) = sealed.split_at_mut(at);
        match &self.key {
            None => {
                let body = std::iter::once(&*body);
                tag.copy_from_slice(&record_sum(number, header, body).to_le_bytes());
            }
            Some(key) => {
                let seal = key.seal_in_place_separate_tag(nonce(number), Aad::from(header), body);
                match seal {
                    Ok(made) => tag.copy_from_slice(made.as_ref()),
                    // Only bodies of gigabytes are refused. A body that is not encrypted must not leave.
                    Err(_) => body.fill(0),
                }
            }
        }
    }

    /// Decrypts the next record in place and answers with the length of its body; `None` if it is not what the other
    /// end sent next.
    pub(super) fn open(&mut self, header: &[u8], sealed: &mut [u8]) -> Option<usize> {
        let number = self.next;
        let at = sealed.len().checked_sub(self.tag_bytes())?;
        match &self.key {
            None => {
                let (body, tag) = sealed.split_at(at);
                let body = std::iter::once(body);
                let sound = *tag == record_sum(number, header, body).to_le_bytes();
                sound.then_some(())?;
            }
            Some(key) => {
                let opened = key.open_in_place(nonce(number), Aad::from(header), sealed);
                opened.ok()?;
            }
        }
        self.next += 1;
        Some(at)
    }
}

fn nonce(number: u64) -> Nonce {
    let mut bytes = [0; 12];
    bytes[4..].copy_from_slice(&number.to_le_bytes());
    Nonce::assume_unique_for_key(bytes)
}

/// A record in another place is as wrong as a damaged one.
fn record_sum<'a>(number: u64, header: &[u8], body: impl Iterator<Item = &'a [u8]>) -> u32 {
    let mut digest = Digest::new(CrcAlgorithm::Crc32Iscsi);
    digest.update(&number.to_le_bytes());
    digest.update(header);
    body.for_each(|part| digest.update(part));
    digest.finalize() as u32
}
