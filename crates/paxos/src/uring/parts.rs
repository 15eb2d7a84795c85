//! Values that are multicast: cut into datagrams, and put together again.

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;
use bytes::Bytes;

use super::config::Multicast;
use super::wire::MAX_FRAME_BYTES;
use crate::ValueId;
use rota_core::contract::Burst;
use rota_core::invariants::FEW;
use rota_core::mutants::{self, Mutant};
use rota_core::wire::{Part, PartHead, part_bytes};

/// Values of one process that may have come in part only.
const MOST_PARTIAL: usize = 256;

const WORD: usize = u64::BITS as usize;

/// The datagrams of a value.
pub fn cut(settings: &Multicast, id: ValueId, value: &Bytes) -> Vec<Burst> {
    let (datagram, seal) = (settings.datagram_bytes, settings.seal_bytes);
    let part = part_bytes(datagram, seal);
    let count = value.len().div_ceil(part);
    let at_once = (Burst::MAX_BYTES / datagram).clamp(1, Burst::MAX_SEGMENTS);
    let mut bursts = Vec::with_capacity(count.div_ceil(at_once));
    let parts: Vec<&[u8]> = value.chunks(part).collect();
    for (burst, parts) in parts.chunks(at_once).enumerate() {
        let mut bytes = Vec::with_capacity(parts.len() * datagram);
        for (at, part) in parts.iter().enumerate() {
            let head = PartHead {
                cluster: settings.cluster,
                proposer: id.process,
                counter: id.counter,
                index: (burst * at_once + at) as u16,
                count: count as u16,
                total: value.len() as u32,
            };
            head.encode_into(part, &mut bytes, seal);
        }
        let segment = datagram.min(bytes.len());
        bursts.push(Burst { bytes, segment });
    }
    bursts
}

/// A part that no process of the cluster sends: it contradicts others, or is of no value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dropped;

/// A value of which something has come.
#[derive(Debug)]
struct Partial {
    /// The bytes, as far as any have come.
    bytes: Vec<u8>,
    total: usize,
    /// The size of its parts but the last.
    size: usize,
    count: usize,
    /// The parts that have come, bit by bit.
    have: Vec<u64>,
    lacks: usize,
}

/// The values of one process of which parts have come, by their counters.
#[derive(Debug, Default)]
pub struct Arriving {
    values: BTreeMap<u64, Partial>,
    bytes: usize,
    /// The largest counter of which anything has come.
    top: u64,
}

impl Partial {
    fn new(part: &Part<'_>) -> Self {
        let count = usize::from(part.head.count);
        Self {
            bytes: Vec::with_capacity(part.head.total as usize),
            total: part.head.total as usize,
            size: part.size(),
            count,
            have: vec![0; count.div_ceil(WORD)],
            lacks: count,
        }
    }

    /// Whether a part says the same of the value as those that have come.
    fn suits(&self, part: &Part<'_>) -> bool {
        part.head.total as usize == self.total
            && usize::from(part.head.count) == self.count
            && part.size() == self.size
    }

    fn put(&mut self, part: &Part<'_>) {
        let index = usize::from(part.head.index);
        let bit = 1 << (index % WORD);
        let have = &mut self.have[index / WORD];
        if *have & bit > 0 && !mutants::on(Mutant::U30) {
            return;
        }
        *have |= bit;
        self.lacks = self.lacks.saturating_sub(1);
        let end = part.offset + part.bytes.len();
        if self.bytes.len() == part.offset {
            // Parts come in order, usually.
            self.bytes.extend_from_slice(part.bytes);
            return;
        }
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        self.bytes[part.offset..end].copy_from_slice(part.bytes);
    }
}

impl Arriving {
    /// The bytes that the values take.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// The largest counter of which anything has come.
    pub const fn top(&self) -> u64 {
        self.top
    }

    /// Takes a part of a value. Returns the whole value, if that was the last part. A value that would take more than
    /// `room` is not kept.
    pub fn on_part(&mut self, part: &Part<'_>, room: usize) -> Result<Option<Bytes>, Dropped> {
        let (counter, total) = (part.head.counter, part.head.total as usize);
        if total > MAX_FRAME_BYTES {
            return Err(Dropped);
        }
        self.top = self.top.max(counter);
        if part.head.count == 1 {
            return Ok(Some(Bytes::copy_from_slice(part.bytes)));
        }
        if !self.values.contains_key(&counter) {
            if self.values.len() >= MOST_PARTIAL || self.bytes + total > room {
                return Ok(None);
            }
            self.bytes += total + usize::from(mutants::on(Mutant::I15));
            self.values.insert(counter, Partial::new(part));
        }
        let partial = self.values.get_mut(&counter);
        let partial = partial.filter(|partial| partial.suits(part));
        let partial = partial.ok_or(Dropped)?;
        partial.put(part);
        if partial.lacks > 0 {
            return Ok(None);
        }
        let whole = self.forget(counter);
        Ok(whole.map(|whole| whole.bytes.into()))
    }

    /// A value has come in another way, or nobody needs it any more.
    pub fn drop_value(&mut self, counter: u64) {
        if !self.values.is_empty() {
            self.forget(counter);
        }
    }

    fn forget(&mut self, counter: u64) -> Option<Partial> {
        let partial = self.values.remove(&counter)?;
        self.bytes -= partial.total;
        Some(partial)
    }

    /// Values up to this one have counted.
    pub fn forget_to(&mut self, counter: u64) {
        while let Some((&first, _)) = self.values.first_key_value()
            && first <= counter
        {
            self.forget(first);
        }
    }
}

impl Arriving {
    /// Its invariants.
    pub fn check(&self) {
        assert!(
            self.values.len() <= MOST_PARTIAL,
            "few values have come in part"
        );
        if self.values.len() <= FEW {
            let values = self.values.values();
            assert_eq!(
                self.bytes,
                values.clone().map(|value| value.total).sum(),
                "values that have come in part are counted"
            );
            assert!(
                values.clone().all(|value| value.lacks > 0),
                "a value that is whole is handed on"
            );
        }
    }
}
