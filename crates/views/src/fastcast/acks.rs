//! The acknowledgements of the members: fig. 2's `acks`, as one number for each member.
//!
//! A member that says `acked` holds all packets up to this sequence number and knows that these are their
//! places. Packets are delivered in the order of their numbers; so the lowest of these numbers says all
//! that `sum(acks[id]) = n` (fig. 2 l. 30) would say for each packet.

use alloc::vec;
use alloc::vec::Vec;

use rota_core::contract::Seq;
use rota_core::mutants::{self, Mutant};

#[derive(Clone, Debug)]
pub(super) struct Acks {
    acked: Vec<Seq>,
    delivered: Vec<Seq>,
    /// For each member, the numbers up to which it has the packets of each: row by row.
    have: Vec<u64>,
    ready: Seq,
    released: Seq,
}

impl Acks {
    pub fn new(members: usize) -> Self {
        Self {
            acked: vec![0; members],
            delivered: vec![0; members],
            have: vec![0; members * members],
            ready: 0,
            released: 0,
        }
    }

    const fn members(&self) -> usize {
        self.acked.len()
    }

    /// The sequence number up to which all members have acknowledged (fig. 2 l. 30).
    pub const fn ready(&self) -> Seq {
        self.ready
    }

    /// The sequence number up to which all members have delivered.
    pub const fn released(&self) -> Seq {
        self.released
    }

    /// The numbers up to which a member has acknowledged, and delivered.
    pub fn of(&self, member: usize) -> (Seq, Seq) {
        (self.acked[member], self.delivered[member])
    }

    pub fn have(&self, member: usize, of: usize) -> u64 {
        self.have[member * self.members() + of]
    }

    pub fn on_acked(&mut self, member: usize, seq: Seq) {
        let before = self.acked[member];
        if seq <= before {
            return;
        }
        self.acked[member] = seq;
        if before == self.ready {
            self.ready = self.acked.iter().copied().min().unwrap_or(0);
        }
        if mutants::on(Mutant::M38) {
            let mut acked = self.acked.clone();
            acked.sort_unstable();
            self.ready = acked[(acked.len() - 1) / 2];
        }
    }

    pub fn on_delivered(&mut self, member: usize, seq: Seq) {
        let before = self.delivered[member];
        if seq <= before {
            return;
        }
        self.delivered[member] = seq;
        if before == self.released {
            self.released = self.delivered.iter().copied().min().unwrap_or(0);
        }
    }

    pub fn on_have(&mut self, member: usize, of: usize, number: u64) {
        let have = &mut self.have[member * self.acked.len() + of];
        *have = number.max(*have);
    }

    /// The members that have not acknowledged everything up to `seq`, bit by bit.
    pub fn behind(&self, seq: Seq) -> u128 {
        mask(self.acked.iter().map(|&acked| acked < seq))
    }

    /// The members whose applications keep the windows closed, bit by bit.
    pub fn slowest(&self) -> u128 {
        mask(self.delivered.iter().map(|&seq| seq == self.released))
    }

    /// The members not known to have packet `number` of member `of`, bit by bit.
    pub fn lacking(&self, of: usize, number: u64) -> u128 {
        mask((0..self.members()).map(|member| self.have(member, of) < number))
    }
}

/// Bit `i` is the `i`th answer: at most 128.
fn mask(answers: impl Iterator<Item = bool>) -> u128 {
    let bits = answers.enumerate();
    bits.fold(0, |mask, (index, yes)| mask | (u128::from(yes) << index))
}

impl Acks {
    /// Its invariants.
    pub fn check(&self) {
        let least = |of: &[Seq]| of.iter().copied().min().unwrap_or(0);
        assert_eq!(
            self.acked.len(),
            self.delivered.len(),
            "each member has both"
        );
        assert_eq!(
            self.have.len(),
            self.acked.len() * self.acked.len(),
            "each has a row"
        );
        assert!(
            self.ready <= least(&self.acked),
            "all have acknowledged what is ready"
        );
        assert!(
            self.released <= least(&self.delivered),
            "all have delivered what is released"
        );
    }
}
