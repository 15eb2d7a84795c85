//! Charters: rings that are founded while processes run, as one ring, the *control ring*, has ordered it.
//!
//! A charter is all that the processes of a new ring have to agree on, in bytes that this engine does not read. It is
//! an entry of the table that every process of the control ring has ([`super::accounts`]), and a part of each base: a
//! process that begins at a base, or is restarted behind one, knows the rings that were founded before.
//!
//! The first charter of a number stands for ever. The same one again changes nothing, so whoever is not sure has it
//! ordered again; another one of that number is refused.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use bytes::Bytes;

use super::accounts::Refused;
use super::codec::put_list;
use crate::Instance;
use rota_core::mutants::{self, Mutant};

/// The most bytes of a charter.
pub const MOST_CHARTER: usize = 400;
/// The most rings that are founded so. All charters together fit into a record of a file.
pub const MOST_CHARTERS: usize = 64;

/// The charter of a ring, and where it was ordered.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Chartered {
    /// The instance of the control ring.
    pub at: Instance,
    /// The round that others had come to, as its proposer knew. Not a part of the charter: whoever proposes the same
    /// charter later knows of a later one.
    pub from: u64,
    /// The charter.
    pub charter: Bytes,
}

/// The rings that were founded, by their numbers.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Charters(BTreeMap<u16, Chartered>);

impl Charters {
    /// Whether a charter may be ordered, or was: what is refused here once is refused for ever.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn may_found(&self, ring: u16, charter: &Bytes) -> Result<(), Refused> {
        match self.0.get(&ring) {
            Some(before) if before.charter == *charter => Ok(()),
            Some(before) if !mutants::on(Mutant::U134) => Err(Refused::Otherwise(before.at)),
            None if self.0.len() >= MOST_CHARTERS => Err(Refused::Full),
            _ => Ok(()),
        }
    }

    /// Takes a charter that was ordered in an instance.
    pub(super) fn found(&mut self, ring: u16, charter: Chartered) -> Result<(), Refused> {
        if !is_sound(ring, &charter.charter) {
            return Err(Refused::Unsound);
        }
        self.may_found(ring, &charter.charter)?;
        if mutants::on(Mutant::U134) {
            self.0.remove(&ring);
        }
        // Where it was ordered first, it stays: the ring's constants follow from that place.
        self.0.entry(ring).or_insert(charter);
        Ok(())
    }

    /// The charter of a ring.
    pub fn get(&self, ring: u16) -> Option<&Chartered> {
        self.0.get(&ring)
    }

    /// All of them, by their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u16, &Chartered)> {
        self.0.iter().map(|(ring, charter)| (*ring, charter))
    }

    /// The number of them.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The charters from their list in the order of their numbers, each once; `None` for any other list, also for an
    /// empty one, so that a table has one form.
    pub(super) fn restore(list: Vec<(u16, Chartered)>) -> Option<Self> {
        let is_map = list.is_sorted_by(|one, next| one.0 < next.0);
        let is_one = is_map && (1..=MOST_CHARTERS).contains(&list.len());
        is_one.then(|| Self(list.into_iter().collect()))
    }

    /// Writes them at the end of a table; nothing if there are none and nothing follows (`goes_on`), so that a table
    /// without charters has the bytes that it had before there were any.
    pub(super) fn put(&self, out: &mut Vec<u8>, goes_on: bool) {
        let charters = self.0.iter().filter(|_| !mutants::on(Mutant::U135));
        let charters: Vec<_> = charters.collect();
        if charters.is_empty() && !goes_on {
            return;
        }
        put_list(out, &charters, |out, (ring, of)| {
            out.extend(of.at.to_le_bytes());
            put_charter(out, (**ring, of.from), &of.charter);
        });
    }
}

/// Whether a ring may have this number and this charter.
pub(super) const fn is_sound(ring: u16, charter: &Bytes) -> bool {
    ring > 0 && charter.len() <= MOST_CHARTER
}

/// A ring's number, the round that others had come to, and the ring's charter.
pub(super) fn put_charter(out: &mut Vec<u8>, (ring, from): (u16, u64), charter: &Bytes) {
    out.extend(ring.to_le_bytes());
    out.extend(from.to_le_bytes());
    out.extend((charter.len() as u16).to_le_bytes());
    out.extend_from_slice(charter);
}
