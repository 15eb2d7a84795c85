//! The state that an acceptor finds in its log when its process starts.

use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;

use super::codec::Source;
use super::snapshot::{Snapshot, SnapshotRecord};
use crate as paxos;
use crate::state_key::{BASE, COMPLETE, CONFIG, DECIDED, FLOOR, PROMISED, SLOT, STORE};
use crate::{Acceptor, AcceptorId, Config, Instance, Round, STATE_LOG, Slot, VOTES_LOG, Vote};
use rota_core::contract::LogId;
use rota_core::mutants::{self, Mutant};

/// See the module's page.
#[derive(Debug, Default)]
pub struct Found {
    pub store: Option<u64>,
    pub promised: Round,
    pub config: Option<Arc<Config>>,
    pub slot: Option<(Round, Slot<Arc<Config>>)>,
    pub base: Snapshot,
    /// Its votes before this instance are for decided values.
    pub decided: Instance,
    pub floor: Instance,
    /// The newest configuration that was known to be complete.
    pub complete: Round,
    /// In the order of their rounds.
    pub votes: Vec<Vote>,
    /// Something could not be read.
    pub damaged: bool,
}

impl Found {
    /// The state from these records. `lost_some`: votes and promises may be missing among them, so another acceptor
    /// begins here. It knows the decided values that are there.
    pub fn read(records: Vec<(LogId, u64, Bytes)>, lost_some: bool) -> Self {
        let mut found = Self::default();
        let mut base = SnapshotRecord::default();
        for (log, position, bytes) in records {
            let read = match log {
                VOTES_LOG => found.on_vote(position, &bytes),
                STATE_LOG => found.on_state(position, bytes, &mut base),
                _ => Some(()),
            };
            found.damaged |= read.is_none();
        }
        // Of two votes for an instance the one of the higher round was cast later.
        found.votes.sort_by_key(|vote| vote.round);
        found.base = base.with_values(&found.votes);
        if found.damaged {
            return Self {
                damaged: true,
                ..Self::default()
            };
        }
        if lost_some && !mutants::on(Mutant::U47) {
            found.forget_votes();
        }
        found
    }

    /// Forgets the name, promises, and all votes but those for decided values.
    fn forget_votes(&mut self) {
        (self.store, self.slot, self.promised) = (None, None, 0);
        let decided = self.decided;
        let votes = self.votes.drain(..);
        self.votes = votes.filter_map(|vote| vote.part(0, decided)).collect();
    }

    fn on_vote(&mut self, position: Instance, bytes: &Bytes) -> Option<()> {
        self.votes.push(vote(position, bytes)?);
        Some(())
    }

    fn on_state(&mut self, key: u64, bytes: Bytes, base: &mut SnapshotRecord) -> Option<()> {
        let mut source = Source(bytes);
        match key {
            PROMISED => self.promised = source.number()?,
            CONFIG => self.config = Some(source.config()?),
            SLOT => self.slot = Some((source.number()?, source.slot()?)),
            BASE => *base = source.base_record()?,
            STORE => self.store = Some(source.u64()?),
            DECIDED => self.decided = source.number()?,
            FLOOR => self.floor = source.number()?,
            COMPLETE => self.complete = source.number()?,
            _ => return None,
        }
        source.is_over().then_some(())
    }

    /// The acceptor with this state.
    pub fn acceptor(&mut self, id: AcceptorId) -> Acceptor {
        let mut votes = core::mem::take(&mut self.votes);
        if mutants::on(Mutant::U18) {
            votes.clear();
        }
        if mutants::on(Mutant::U124) {
            votes.retain(|vote| !matches!(vote.value, paxos::Value::Skip(_)));
        }
        if mutants::on(Mutant::U24) {
            self.promised = 0;
        }
        let kept = [
            paxos::Record::Trimmed(self.base.next),
            paxos::Record::Floor(self.floor),
        ];
        let records = core::iter::once(paxos::Record::Promised(self.promised))
            .chain(votes.into_iter().map(paxos::Record::Voted))
            .chain(kept);
        Acceptor::restore(id, records)
    }
}

/// A vote in the log, by its position and its record.
pub fn vote(position: Instance, bytes: &Bytes) -> Option<Vote> {
    let mut whole = Vec::with_capacity(8 + bytes.len());
    whole.extend(position.to_le_bytes());
    whole.extend_from_slice(bytes);
    let mut source = Source(whole.into());
    source.vote().filter(|_| source.is_over())
}
