//! The cipher of one life of a node, and the bytes that a sealed datagram ends with.
//!
//! AES-256-GCM encrypts what is behind the header and authenticates the header with it. Its key follows by HKDF-SHA-256
//! from one key of the cluster and from everything that names the sender; the nonce from the datagram's counter, the
//! class of socket, and the receiver. So each bit of the trailer is bound, and a nonce could be used twice only if a
//! node drew the same life twice.

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::hkdf::{HKDF_SHA256, Prk, Salt};
use rota_core::contract::{Class, NodeId};
use rota_core::wire::{HEADER_BYTES, MAX_SEAL_BYTES};
use std::collections::BTreeMap;
use std::io;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::keys::{KeyId, KeyRing};
use crate::sys;

/// Bytes that a sealed datagram has beside header and body: tag 16, key 2, sender 2, receiver 2, life 16,
/// counter 8.
pub const SEALED_BYTES: usize = TAG_BYTES + TRAILER_BYTES;

const TAG_BYTES: usize = 16;
const TRAILER_BYTES: usize = 2 + 2 + 2 + 8 + 8 + 8;

const _: () = assert!(SEALED_BYTES <= MAX_SEAL_BYTES);

/// The shortest sealed datagram there is.
pub(super) const LEAST_BYTES: usize = HEADER_BYTES + SEALED_BYTES;

/// Keeps these keys apart from whatever else may once be derived from a cluster's key.
const PURPOSE: &[u8] = b"rota datagrams 1";

/// One life of a node, as far as its datagrams are concerned.
///
/// The difference between any two lives rests on 64 bits from the kernel's generator together with the time to the
/// nanosecond. The time also says which of two is the later one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Life {
    /// The time at which the life began: nanoseconds since 1970.
    pub start: u64,
    /// Drawn at random.
    pub salt: u64,
}

impl Life {
    /// A life that begins now.
    ///
    /// # Errors
    /// The kernel's own, on systems without random numbers.
    pub fn begin() -> io::Result<Self> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        Ok(Self {
            start: now.map_or(0, |since| since.as_nanos() as u64),
            salt: sys::random_u64()?,
        })
    }

    /// The nanoseconds by which the clock has been set forward since this life began, if that is `passed` nanoseconds
    /// ago.
    pub(super) const fn behind(&self, now: u64, passed: u64) -> u64 {
        now.saturating_sub(self.start.saturating_add(passed))
    }
}

/// The part of a sealed datagram that is in the clear.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Trailer {
    pub key: u16,
    pub sender: u16,
    /// The one node that the datagram is for; 0: all.
    pub receiver: u16,
    pub life: Life,
    /// Grows with each datagram of one life and class, from 1.
    pub counter: u64,
}

impl Trailer {
    fn write(&self, out: &mut [u8; TRAILER_BYTES]) {
        out[0..2].copy_from_slice(&self.key.to_le_bytes());
        out[2..4].copy_from_slice(&self.sender.to_le_bytes());
        out[4..6].copy_from_slice(&self.receiver.to_le_bytes());
        out[6..14].copy_from_slice(&self.life.start.to_le_bytes());
        out[14..22].copy_from_slice(&self.life.salt.to_le_bytes());
        out[22..30].copy_from_slice(&self.counter.to_le_bytes());
    }

    /// `None` where the datagram is too short to be sealed.
    pub fn read(datagram: &[u8]) -> Option<Self> {
        if datagram.len() < LEAST_BYTES {
            return None;
        }
        let bytes: &[u8; TRAILER_BYTES] = datagram.last_chunk()?;
        let u16_at = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let u64_at = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(word)
        };
        Some(Self {
            key: u16_at(0),
            sender: u16_at(2),
            receiver: u16_at(4),
            life: Life {
                start: u64_at(6),
                salt: u64_at(14),
            },
            counter: u64_at(22),
        })
    }

    fn nonce(&self, class: Class) -> Nonce {
        let mut bytes = [0; 12];
        bytes[0] = match class {
            Class::Data => 0,
            Class::Token => 1,
        };
        bytes[2..4].copy_from_slice(&self.receiver.to_le_bytes());
        bytes[4..].copy_from_slice(&self.counter.to_le_bytes());
        Nonce::assume_unique_for_key(bytes)
    }
}

/// The keys of a cluster, ready to derive others from.
#[derive(Clone, Debug)]
pub(super) struct Masters {
    cluster: u32,
    pub ring: KeyRing,
    derive: BTreeMap<u16, Prk>,
}

impl Masters {
    pub fn new(cluster: u32, ring: KeyRing) -> Self {
        let salt = Salt::new(HKDF_SHA256, PURPOSE);
        let derive = ring
            .keys()
            .map(|(id, secret)| (id.get(), salt.extract(secret.bytes())));
        Self {
            cluster,
            derive: derive.collect(),
            ring,
        }
    }

    pub fn has(&self, key: u16) -> bool {
        self.derive.contains_key(&key)
    }

    /// The cipher of a life, under the key with this id.
    pub fn cipher(&self, key: u16, sender: u16, life: Life) -> Option<Cipher> {
        let mut info = [0; 24];
        info[0..4].copy_from_slice(&self.cluster.to_le_bytes());
        info[4..6].copy_from_slice(&key.to_le_bytes());
        info[6..8].copy_from_slice(&sender.to_le_bytes());
        info[8..16].copy_from_slice(&life.start.to_le_bytes());
        info[16..24].copy_from_slice(&life.salt.to_le_bytes());
        let info = [&info[..]];
        let derived = self.derive.get(&key)?.expand(&info, &AES_256_GCM).ok()?;
        Some(Cipher(LessSafeKey::new(UnboundKey::from(derived))))
    }

    /// The key to send with.
    pub fn sending(&self) -> KeyId {
        self.ring.sending()
    }

    /// Whether the same key is in both.
    pub fn shares(&self, other: &Self, key: u16) -> bool {
        let of = |masters: &Self| KeyId::new(key).and_then(|id| masters.ring.get(id).cloned());
        of(self).is_some() && of(self) == of(other)
    }
}

/// The cipher that seals, or opens, the datagrams of one life under one key.
#[derive(Debug)]
pub(super) struct Cipher(LessSafeKey);

impl Cipher {
    /// Encrypts the body of a datagram of at least [`LEAST_BYTES`] in place, and writes its end.
    pub fn seal(&self, class: Class, trailer: &Trailer, datagram: &mut [u8]) {
        let Some((rest, end)) = datagram.split_last_chunk_mut::<TRAILER_BYTES>() else {
            return;
        };
        trailer.write(end);
        let Some((rest, tag)) = rest.split_last_chunk_mut::<TAG_BYTES>() else {
            return;
        };
        let (header, body) = rest.split_at_mut(HEADER_BYTES);
        let sealed =
            self.0
                .seal_in_place_separate_tag(trailer.nonce(class), Aad::from(&*header), body);
        match sealed {
            Ok(sum) => tag.copy_from_slice(sum.as_ref()),
            // Only bodies of gigabytes are refused. A body that is not encrypted must not leave.
            Err(_) => body.fill(0),
        }
    }

    /// Decrypts the body in place; `false` if the datagram is not authentic, and then the body is
    /// garbage.
    pub fn open(&self, class: Class, trailer: &Trailer, datagram: &mut [u8]) -> bool {
        let sealed = datagram.len() - TRAILER_BYTES;
        let (header, rest) = datagram[..sealed].split_at_mut(HEADER_BYTES);
        let nonce = trailer.nonce(class);
        self.0
            .open_in_place(nonce, Aad::from(&*header), rest)
            .is_ok()
    }
}

/// The receiver that a datagram is sealed for: only a control datagram is for one node alone, and would do harm
/// elsewhere. Data goes to all, whichever node asked for it.
pub(super) const fn receiver(class: Class, to: Option<NodeId>) -> u16 {
    match (class, to) {
        (Class::Token, Some(node)) => node.get(),
        _ => 0,
    }
}
