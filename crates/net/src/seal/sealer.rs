//! Sealing what a node sends.

use rota_core::contract::{Class, NodeId, Target};
use std::io;

use super::cipher::{Cipher, LEAST_BYTES, Life, Masters, Trailer, receiver};
use crate::keys::KeyRing;

/// Seals the datagrams of one life of a node.
#[derive(Debug)]
pub struct Sealer {
    me: NodeId,
    life: Life,
    masters: Masters,
    cipher: Cipher,
    /// The last counter of each class. It grows on also when the key is changed.
    counters: [u64; 2],
}

impl Sealer {
    /// For node `me` of a cluster, in this life.
    ///
    /// # Errors
    /// In practice none: the cryptographic library refuses to derive keys.
    pub fn new(cluster: u32, keys: KeyRing, me: NodeId, life: Life) -> io::Result<Self> {
        let masters = Masters::new(cluster, keys);
        Ok(Self {
            me,
            life,
            cipher: cipher(&masters, me, life)?,
            masters,
            counters: [0; 2],
        })
    }

    /// Seals with the key that these keys say from now on.
    ///
    /// # Errors
    /// As [`Self::new`]; then nothing has changed.
    pub fn set_keys(&mut self, cluster: u32, keys: KeyRing) -> io::Result<()> {
        let masters = Masters::new(cluster, keys);
        self.cipher = cipher(&masters, self.me, self.life)?;
        self.masters = masters;
        Ok(())
    }

    /// Seals in another life from now on.
    ///
    /// # Errors
    /// As [`Self::new`]; then nothing has changed.
    pub fn live_anew(&mut self, life: Life) -> io::Result<()> {
        self.cipher = cipher(&self.masters, self.me, life)?;
        self.life = life;
        self.counters = [0; 2];
        Ok(())
    }

    pub(super) const fn key_ring(&self) -> &KeyRing {
        &self.masters.ring
    }

    /// Seals a datagram in place. One that is too short is left alone: no receiver opens it.
    pub fn seal(&mut self, class: Class, to: Target, datagram: &mut [u8]) {
        if datagram.len() < LEAST_BYTES {
            return;
        }
        let counter = &mut self.counters[class as usize];
        *counter += 1;
        let to = match to {
            Target::Others => None,
            Target::Node(node) => Some(node),
        };
        let trailer = Trailer {
            key: self.masters.sending().get(),
            sender: self.me.get(),
            receiver: receiver(class, to),
            life: self.life,
            counter: *counter,
        };
        self.cipher.seal(class, &trailer, datagram);
    }
}

fn cipher(masters: &Masters, me: NodeId, life: Life) -> io::Result<Cipher> {
    let cipher = masters.cipher(masters.sending().get(), me.get(), life);
    cipher.ok_or_else(|| io::Error::other("no key can be derived from the cluster's"))
}
