//! The exchange of the knowledge of the daemons of a new configuration: the pieces that this daemon has to tell, and
//! those that others have told.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use bytes::Bytes;

use super::message::Piece;
use super::part::{Part, daemons};
use super::state;
use crate::contract::Process;

/// The pieces that one sender has told so far.
#[derive(Debug, Default)]
struct Incomplete {
    count: u32,
    pieces: BTreeMap<u32, Bytes>,
}

/// All that has been told in this configuration.
#[derive(Debug, Default)]
pub(super) struct Gather {
    incomplete: BTreeMap<Process, Incomplete>,
    /// The parts of those sets of daemons that have told all.
    parts: Vec<Part>,
    covered: BTreeSet<Process>,
    /// The pieces that this daemon has still to tell.
    telling: VecDeque<Vec<u8>>,
}

impl Gather {
    /// Forgets all that has been told.
    pub fn begin_anew(&mut self) {
        self.incomplete.clear();
        self.parts.clear();
        self.covered.clear();
    }

    /// Has these pieces to tell from now on, and no others.
    pub fn tell(&mut self, pieces: Vec<Vec<u8>>) {
        self.telling = pieces.into();
    }

    /// The next piece to tell, if there is one, and whether it is the last.
    pub fn next_piece(&self) -> Option<(&[u8], bool)> {
        let piece = self.telling.front()?;
        Some((piece, self.telling.len() == 1))
    }

    /// The next piece was handed to the engine, or never will be.
    pub fn on_piece_done(&mut self) {
        self.telling.pop_front();
    }

    /// Takes the parts out that have been told.
    pub fn take_parts(&mut self) -> Vec<Part> {
        core::mem::take(&mut self.parts)
    }

    /// Takes a piece; says whether it made sense.
    pub fn on_piece(&mut self, from: Process, piece: Piece, members: &BTreeSet<Process>) -> bool {
        let told = self.incomplete.entry(from).or_default();
        if told.pieces.is_empty() {
            told.count = piece.count;
        }
        if told.count != piece.count || told.pieces.insert(piece.index, piece.bytes).is_some() {
            return false;
        }
        if told.pieces.len() < told.count as usize {
            return true;
        }
        let bytes: Vec<u8> = told.pieces.values().flatten().copied().collect();
        told.pieces.clear();
        self.on_told(from, &bytes, members).is_some()
    }

    /// The speaker of a set has told all: the set has to consist of members that no other set has.
    fn on_told(&mut self, from: Process, bytes: &[u8], members: &BTreeSet<Process>) -> Option<()> {
        let parts = state::decode(bytes)?;
        let set = daemons(&parts);
        let disjoint = parts.iter().map(|part| part.daemons.len()).sum::<usize>() == set.len();
        let speaks = set.first() == Some(&from);
        let fits = set.is_subset(members) && set.is_disjoint(&self.covered);
        (disjoint && speaks && fits).then_some(())?;
        self.covered.extend(set);
        self.parts.extend(parts);
        Some(())
    }

    /// Whether a speaker has told of each member.
    pub fn is_complete(&self, members: &BTreeSet<Process>) -> bool {
        self.covered == *members
    }

    pub fn has(&self, daemon: Process) -> bool {
        self.covered.contains(&daemon)
    }
}
