//! The successor in the ring: its last resume message, and what it was told since.

use alloc::vec;
use alloc::vec::Vec;

use super::word::ResumeFrom;
use crate::Instance;
use rota_core::contract::Session;
use rota_core::mutants::{self, Mutant};

/// The last resume message of the successor, and what it was told since then.
#[derive(Clone, Debug)]
pub struct Successor {
    pub session: Session,
    pub epoch: u32,
    /// The next proposal to send.
    pub at: Instance,
    /// By acceptor: the first instance without its vote, as the successor was last told.
    pub told: Vec<Instance>,
    /// Likewise the first instance that it has not learnt.
    pub told_learnt: Vec<Instance>,
    /// Likewise whether the successor was told that its log has failed.
    pub told_mute: Vec<bool>,
    /// By place in the ring: the number of times that values had to be asked for, as the successor was last told.
    pub told_losses: Vec<u64>,
    /// It wants the values of proposals in these instances.
    pub lacks: Vec<Instance>,
    pub told_start: bool,
    pub told_complete: bool,
}

impl Successor {
    /// A successor that has said this, and was told nothing of these numbers of acceptors and processes.
    pub fn new(
        session: Session,
        (follow, lacks): (&ResumeFrom, Vec<Instance>),
        (acceptors, places): (usize, usize),
    ) -> Self {
        let told = if mutants::on(Mutant::U15) {
            follow.next
        } else {
            0
        };
        Self {
            session,
            epoch: follow.epoch,
            at: follow.next,
            told: vec![told; acceptors],
            told_learnt: vec![0; acceptors],
            told_mute: vec![false; acceptors],
            told_losses: vec![0; places],
            lacks,
            told_start: false,
            told_complete: false,
        }
    }
}
