//! Numbers of rings: durable before a ring of that number is agreed to (§0.4, A7).
//!
//! Making a number durable takes a disk a millisecond or more, at every member in turn. So numbers are
//! reserved in blocks, and most rings form without waiting for a disk.

use alloc::vec;
use bytes::Bytes;

use rota_core::contract::{LogId, LogRecord, Output, PersistId, StartState};
use rota_core::mutants::{self, Mutant};

/// The log whose record 0 holds the largest reserved ring number, as eight bytes, little-endian.
pub const RING_SEQ_LOG: LogId = LogId(1);

/// Numbers reserved at once.
const BLOCK: u64 = 1024;

#[derive(Clone, Hash, Debug, Default)]
pub(super) struct RingSeq {
    /// The largest number seen in any packet, or used.
    pub max: u64,
    /// The largest number this process has agreed to.
    pub agreed: u64,
    /// Numbers up to here are durable.
    durable: u64,
    /// The newest request to make numbers durable, and the number that it goes up to.
    asked: Option<(PersistId, u64)>,
    next_id: u64,
}

impl RingSeq {
    /// The numbers after an earlier life, which may have used all numbers up to the stored one.
    pub fn new(start: &StartState) -> Self {
        let stored = |(log, _, bytes): &(LogId, u64, Bytes)| {
            let bytes = bytes.first_chunk().filter(|_| *log == RING_SEQ_LOG)?;
            Some(u64::from_le_bytes(*bytes))
        };
        let stored = start.records.iter().find_map(stored).unwrap_or(0);
        let stored = if mutants::on(Mutant::M13) { 0 } else { stored };
        Self {
            max: stored,
            agreed: stored,
            durable: stored,
            asked: None,
            next_id: 1,
        }
    }

    /// Takes note of a ring number that another process knows; returns whether it is plausible. A number far ahead
    /// comes from a broken packet, and must not use up the numbers (A11).
    pub fn see(&mut self, ring_seq: u64) -> bool {
        let plausible = ring_seq.saturating_sub(self.max) <= 1 << 32;
        if plausible {
            self.max = self.max.max(ring_seq);
        }
        plausible
    }

    /// Agrees to a ring of this number: answers with the request that must be durable first, if
    /// there is one, and with the output that asks for it.
    pub fn agree(&mut self, ring_seq: u64) -> (Option<PersistId>, Option<Output>) {
        self.max = self.max.max(ring_seq);
        self.agreed = self.agreed.max(ring_seq);
        if mutants::on(Mutant::M12) {
            let (_, output) = self.reserve(ring_seq);
            self.durable = self.durable.max(ring_seq);
            return (None, Some(output));
        }
        if ring_seq <= self.durable {
            return (None, None);
        }
        match self.asked {
            Some((id, up_to)) if ring_seq <= up_to => (Some(id), None),
            _ => {
                let (id, output) = self.reserve(ring_seq);
                (Some(id), Some(output))
            }
        }
    }

    /// A name for a request.
    pub const fn next_id(&mut self) -> PersistId {
        let id = PersistId(self.next_id);
        self.next_id += 1;
        id
    }

    fn reserve(&mut self, ring_seq: u64) -> (PersistId, Output) {
        let id = self.next_id();
        let block = if mutants::on(Mutant::M12) { 0 } else { BLOCK };
        let up_to = ring_seq.saturating_add(block);
        self.asked = Some((id, up_to));
        let record = LogRecord::Put {
            log: RING_SEQ_LOG,
            position: 0,
            bytes: up_to.to_le_bytes().to_vec().into(),
        };
        let records = vec![record];
        (id, Output::Persist { id, records })
    }

    pub fn on_persisted(&mut self, id: PersistId) {
        if let Some((asked, up_to)) = self.asked
            && asked <= id
        {
            self.durable = up_to;
            self.asked = None;
        }
    }

    /// Answers whether it was the newest request that failed.
    pub fn on_failed(&mut self, id: PersistId) -> bool {
        let newest = self.asked.is_some_and(|(asked, _)| asked == id);
        if newest {
            self.asked = None;
        }
        newest
    }

    /// Whether a ring of this number may be used now.
    pub const fn is_durable(&self, ring_seq: u64) -> bool {
        ring_seq <= self.durable
    }

    /// Whether the number agreed to last is durable, or a request under way makes it so.
    pub fn is_cared_for(&self) -> bool {
        let asked = self.asked.is_some_and(|(_, up_to)| self.agreed <= up_to);
        self.is_durable(self.agreed) || asked
    }

    /// Its invariants.
    pub fn check(&self) {
        assert!(
            self.asked.is_none_or(|(_, up_to)| self.durable < up_to),
            "only what is not durable is asked for"
        );
        assert!(
            self.asked.is_none_or(|(id, _)| id.0 < self.next_id),
            "requests have names of their own"
        );
    }
}
