//! Opening of received datagrams: whether they are authentic, and whether they are new.
//!
//! For each sender one life is known, the latest that has shown itself with an authentic datagram. Nothing
//! is kept of a datagram before it is authentic, and the lives that are not known yet, whose keys have to
//! be derived before that can be told, are tried at a bounded rate: so forged datagrams cost a node little
//! time and no memory.
//!
//! A node that has just started is not told what others have sent before. See `docs/operations/security.md`.

use rota_core::contract::{Class, NodeId, Time};
use std::collections::{BTreeMap, BTreeSet};

use super::OpenError;
use super::checksum;
use super::cipher::{Cipher, Life, Masters, Trailer};
use super::window::{Stale, Window};
use crate::keys::KeyRing;

/// Senders that are remembered where any node may join. Bounds what a holder of the key can make a node
/// keep.
const MOST_SENDERS: usize = 256;

/// Ciphers kept for one life: when the key changes, datagrams under the old one are still on their way.
const CIPHERS: usize = 2;

/// Unknown ciphers that may be derived at once: more than a cluster has nodes.
const DERIVE_AT_ONCE: u64 = 256;

/// In the long run, one more may be derived after this many nanoseconds.
const DERIVE_EVERY_NANOS: u64 = 1_000_000;

/// The nodes that may send.
#[derive(Clone, Debug)]
pub enum Senders {
    /// These nodes.
    Only(BTreeSet<NodeId>),
    /// Every node that has the key.
    Any,
}

/// A sender's latest life.
#[derive(Debug)]
struct Sender {
    life: Life,
    ciphers: Vec<(u16, Cipher)>,
    /// One for each class: its datagrams wait in a socket of their own, for any time.
    windows: [Window; 2],
    heard: Time,
}

/// Opens the datagrams that a node receives.
#[derive(Debug)]
pub struct Opener {
    me: NodeId,
    life: Life,
    masters: Masters,
    may_send: Senders,
    senders: BTreeMap<u16, Sender>,
    derivations: Derivations,
}

impl Opener {
    /// For node `me` of a cluster, in this life.
    pub fn new(cluster: u32, keys: KeyRing, (me, life): (NodeId, Life), may_send: Senders) -> Self {
        Self {
            me,
            life,
            masters: Masters::new(cluster, keys),
            may_send,
            senders: BTreeMap::new(),
            derivations: Derivations::default(),
        }
    }

    /// Takes datagrams under these keys from now on. The state of senders stays.
    pub fn set_keys(&mut self, cluster: u32, keys: KeyRing) {
        let masters = Masters::new(cluster, keys);
        for sender in self.senders.values_mut() {
            let kept = |(key, _): &(u16, Cipher)| masters.shares(&self.masters, *key);
            sender.ciphers.retain(kept);
        }
        self.masters = masters;
    }

    /// Takes datagrams of these nodes from now on. What is kept of others stays: they are refused before it counts.
    pub fn set_senders(&mut self, may_send: Senders) {
        self.may_send = may_send;
    }

    /// This node is in another life from now on.
    pub const fn live_anew(&mut self, life: Life) {
        self.life = life;
    }

    /// The number of senders that something is kept of.
    pub fn senders(&self) -> usize {
        self.senders.len()
    }

    /// Checks a received datagram, and decrypts it in place.
    ///
    /// # Errors
    /// [`OpenError`] when the datagram must be dropped; it may then be garbage.
    pub fn open(&mut self, now: Time, class: Class, datagram: &mut [u8]) -> Result<(), OpenError> {
        let Some(trailer) = Trailer::read(datagram) else {
            // A datagram of a node without a key can be shorter than anything that is sealed.
            return Err(if datagram.len() < checksum::LEAST_BYTES {
                OpenError::Short
            } else {
                OpenError::UnknownKey
            });
        };
        self.check_sender(&trailer)?;
        match self.senders.get_mut(&trailer.sender) {
            Some(sender) if sender.life == trailer.life => {
                sender.check(class, trailer.counter)?;
                let known = sender.ciphers.iter().find(|(key, _)| *key == trailer.key);
                if let Some((_, cipher)) = known {
                    if !cipher.open(class, &trailer, datagram) {
                        return Err(OpenError::Forged);
                    }
                    sender.windows[class as usize].accept(trailer.counter);
                    sender.heard = now;
                    return Ok(());
                }
            }
            Some(sender) if sender.life.start >= trailer.life.start => {
                return Err(OpenError::OldLife);
            }
            _ => {}
        }
        self.open_unknown(now, class, &trailer, datagram)
    }

    /// The checks of the trailer alone, whoever wrote it.
    fn check_sender(&self, trailer: &Trailer) -> Result<(), OpenError> {
        if !self.masters.has(trailer.key) {
            return Err(OpenError::UnknownKey);
        }
        let known = NodeId::new(trailer.sender).is_some_and(|sender| match &self.may_send {
            Senders::Only(nodes) => nodes.contains(&sender),
            Senders::Any => true,
        });
        if !known {
            return Err(OpenError::UnknownSender);
        }
        if trailer.receiver != 0 && trailer.receiver != self.me.get() {
            return Err(OpenError::Misdirected);
        }
        if trailer.sender == self.me.get() {
            // A node's own datagrams are not for it. It has to hear of another process by its number.
            if trailer.life == self.life {
                return Err(OpenError::Misdirected);
            }
            if trailer.life.start <= self.life.start {
                return Err(OpenError::OldLife);
            }
        }
        Ok(())
    }

    /// Opens a datagram of a life that is not known, or of a known one under another key.
    fn open_unknown(
        &mut self,
        now: Time,
        class: Class,
        trailer: &Trailer,
        datagram: &mut [u8],
    ) -> Result<(), OpenError> {
        if !self.derivations.take(now) {
            return Err(OpenError::Unchecked);
        }
        let cipher = self
            .masters
            .cipher(trailer.key, trailer.sender, trailer.life)
            .ok_or(OpenError::UnknownKey)?;
        if trailer.counter == 0 || !cipher.open(class, trailer, datagram) {
            return Err(OpenError::Forged);
        }
        // The derivation was worth its cost.
        self.derivations.give_back();
        let sender = self.remember(now, trailer);
        if sender.ciphers.len() >= CIPHERS {
            sender.ciphers.remove(0);
        }
        sender.ciphers.push((trailer.key, cipher));
        sender.windows[class as usize].accept(trailer.counter);
        sender.heard = now;
        Ok(())
    }

    /// The place of an authentic sender. A life that was not known begins with empty windows.
    fn remember(&mut self, now: Time, trailer: &Trailer) -> &mut Sender {
        let (id, life) = (trailer.sender, trailer.life);
        if self.senders.len() >= MOST_SENDERS && !self.senders.contains_key(&id) {
            let longest_silent = self.senders.iter().min_by_key(|(_, sender)| sender.heard);
            let longest_silent = longest_silent.map(|(id, _)| *id);
            longest_silent.and_then(|id| self.senders.remove(&id));
        }
        let fresh = || Sender {
            life,
            ciphers: Vec::new(),
            windows: [Window::new(), Window::new()],
            heard: now,
        };
        let sender = self.senders.entry(id).or_insert_with(fresh);
        if sender.life != life {
            *sender = fresh();
        }
        sender
    }
}

impl Sender {
    fn check(&self, class: Class, counter: u64) -> Result<(), OpenError> {
        self.windows[class as usize]
            .check(counter)
            .map_err(|stale| match stale {
                Stale::Old => OpenError::Old,
                Stale::Seen => OpenError::Seen,
            })
    }
}

/// Bounds how often a key is derived for a sender that may be a forger.
#[derive(Debug)]
struct Derivations {
    left: u64,
    since: Time,
}

impl Default for Derivations {
    fn default() -> Self {
        Self {
            left: DERIVE_AT_ONCE,
            since: Time(0),
        }
    }
}

impl Derivations {
    fn take(&mut self, now: Time) -> bool {
        let more = now.since(self.since) / DERIVE_EVERY_NANOS;
        if more > 0 {
            self.left = self.left.saturating_add(more).min(DERIVE_AT_ONCE);
            self.since = now;
        }
        let left = self.left.checked_sub(1);
        self.left = left.unwrap_or(0);
        left.is_some()
    }

    fn give_back(&mut self) {
        self.left = (self.left + 1).min(DERIVE_AT_ONCE);
    }
}
