//! A state as it is written to a checkpoint: a head, and a record of each key.

#[cfg(test)]
mod tests;

use std::io::{self, Read, Write};
use std::sync::Arc;

use bytes::Bytes;
use imbl::OrdMap;
use rota_core::bytes::{Reader, put_bytes};
use rota_multiring::Place;
use rota_replica::Frozen;

use super::arrived::{Arrived, slot_of};
use super::keys::Keys;
use super::moves::{Aside, Moves};
use super::outcome::{owned, put_version, take_version};
use super::state::Store;
use super::step::{Freeze, put_name, take_name};
use super::value::Entry;
use crate::map::{Map, Partition};
use crate::outlook::Past;
use crate::slots::Slots;

/// The first bytes of a state.
const MAGIC: &[u8; 8] = b"rotakv07";
/// The bytes of an entry of a state, at most.
const MOST_ENTRY_BYTES: usize = 1 << 30;

/// A partition's keys as they were at a moment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FrozenStore {
    map: Arc<Map>,
    now: u64,
    told: u64,
    last: Option<Place>,
    past: Past,
    applied: Option<Place>,
    /// The settled keys.
    keys: OrdMap<Bytes, Entry>,
    /// The slots whose settled keys are stale, and the groups of slots that have arrived.
    left: Slots,
    arrived: Vec<Arrived>,
    moves: Moves,
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

impl Frozen for FrozenStore {
    fn write(self, out: &mut dyn Write) -> io::Result<()> {
        let mut head = MAGIC.to_vec();
        self.map.encode(&mut head);
        head.extend(self.now.to_le_bytes());
        head.extend(self.told.to_le_bytes());
        put_version(&mut head, self.last);
        self.past.put(&mut head);
        put_version(&mut head, self.applied);
        put_moves(&mut head, &self.moves);
        self.left.put(&mut head);
        head.extend((self.arrived.len() as u32).to_le_bytes());
        for group in &self.arrived {
            group.slots.put(&mut head);
            head.extend((group.keys.len() as u64).to_le_bytes());
        }
        head.extend((self.keys.len() as u64).to_le_bytes());
        write_record(out, &head)?;
        let arrived = self.arrived.iter().flat_map(|group| &group.keys);
        let aside = self.moves.aside().into_iter().flat_map(|aside| &aside.keys);
        for (key, entry) in self.keys.iter().chain(arrived).chain(aside) {
            let mut record = Vec::with_capacity(64 + key.len() + entry.bytes);
            put_bytes(&mut record, key);
            entry.put(&mut record);
            write_record(out, &record)?;
        }
        Ok(())
    }
}

fn put_moves(head: &mut Vec<u8>, moves: &Moves) {
    head.push(u8::from(moves.frozen().is_some()));
    moves
        .frozen()
        .into_iter()
        .for_each(|freeze| freeze.put(head));
    head.push(u8::from(moves.aside().is_some()));
    if let Some(aside) = moves.aside() {
        put_name(head, aside.of);
        head.extend(aside.count.to_le_bytes());
        head.extend(aside.touched.to_le_bytes());
        head.extend((aside.keys.len() as u64).to_le_bytes());
    }
}

fn take_freeze(bytes: &mut Reader<'_>) -> Option<Option<Freeze>> {
    Some(match bytes.flag()? {
        true => Some(Freeze::take(bytes)?),
        false => None,
    })
}

/// The copied keys of a head: without their entries, and with the number of them.
fn take_aside(bytes: &mut Reader<'_>) -> Option<Option<(Aside, u64)>> {
    Some(match bytes.flag()? {
        true => {
            let (of, count, touched) = (take_name(bytes)?, bytes.u32()?, bytes.u64()?);
            let aside = Aside {
                count,
                ..Aside::new(of, touched)
            };
            Some((aside, bytes.u64()?))
        }
        false => None,
    })
}

/// Reads the records of `count` keys, which have to be in order.
fn keys_of(state: &mut dyn Read, count: u64, mut take: impl FnMut(Bytes, Entry)) -> io::Result<()> {
    let mut last: Option<Bytes> = None;
    for _ in 0..count {
        let record = read_record(state)?;
        let entry = entry_of(&mut Reader(&record));
        let (key, entry) = entry.ok_or_else(|| invalid("an entry is damaged"))?;
        if last.is_some_and(|last| last >= key) {
            return Err(invalid("its keys are not in order"));
        }
        last = Some(key.clone());
        take(key, entry);
    }
    Ok(())
}

/// Slots that have arrived, as a head has them: the keys are not there yet, only their number.
type ArrivedHead = (Slots, u64);

/// The head of a state.
struct Head {
    frozen: FrozenStore,
    arrived: Vec<ArrivedHead>,
    aside: Option<(Aside, u64)>,
    freeze: Option<Freeze>,
    count: u64,
}

/// The groups of a head. Each has slots, and no slot is in two of them, so there are no more groups than slots.
fn take_arrived(bytes: &mut Reader<'_>) -> Option<Vec<ArrivedHead>> {
    let (mut arrived, mut seen) = (Vec::new(), Slots::default());
    for _ in 0..bytes.u32()? {
        let slots = Slots::take(bytes)?;
        if slots.is_empty() || !slots.iter().all(|slot| seen.insert(slot)) {
            return None;
        }
        arrived.push((slots, bytes.u64()?));
    }
    Some(arrived)
}

impl Head {
    fn take(bytes: &mut Reader<'_>) -> Option<Self> {
        let map = Arc::new(Map::decode(bytes)?);
        let (now, told) = (bytes.u64()?, bytes.u64()?);
        let (last, past) = (take_version(bytes)?, Past::take(bytes)?);
        let applied = take_version(bytes)?;
        let freeze = take_freeze(bytes)?;
        let aside = take_aside(bytes)?;
        let (left, arrived) = (Slots::take(bytes)?, take_arrived(bytes)?);
        let frozen = FrozenStore {
            map,
            now,
            told,
            last,
            past,
            applied,
            keys: OrdMap::new(),
            left,
            arrived: Vec::new(),
            moves: Moves::default(),
        };
        let count = bytes.u64()?;
        let is_whole = bytes.0.is_empty();
        is_whole.then_some(Self {
            frozen,
            arrived,
            aside,
            freeze,
            count,
        })
    }
}

impl FrozenStore {
    pub(super) fn of(store: &Store) -> Self {
        Self {
            map: Arc::clone(&store.map),
            now: store.now,
            told: store.told,
            last: store.last,
            past: store.past.clone(),
            applied: store.applied,
            keys: store.keys.settled().clone(),
            left: store.keys.left().clone(),
            arrived: store.keys.arrived().iter().cloned().collect(),
            moves: store.moves.clone(),
        }
    }

    /// The store of a partition that begins with this state.
    pub(super) fn begin(self, me: Partition) -> io::Result<Store> {
        let mut store = Store::new(me, self.map);
        (store.now, store.asked, store.told) = (self.now, self.now, self.told);
        store.applied = self.applied;
        (store.last, store.past) = (self.last, self.past);
        store.moves = self.moves;
        check_keys(&self.keys, &self.left, &self.arrived, |slot| {
            store.map.of_slot(slot) == me
        })?;
        store.keys = Keys::begin(self.keys, self.left, self.arrived);
        Ok(store)
    }

    pub(super) fn read(state: &mut dyn Read) -> io::Result<Self> {
        let head = read_record(state)?;
        let head = head.strip_prefix(MAGIC);
        let head = head.ok_or_else(|| invalid("it is no state of a key-value store"))?;
        let head = Head::take(&mut Reader(head)).ok_or_else(|| invalid("its head is damaged"))?;
        let mut frozen = head.frozen;
        keys_of(state, head.count, |key, entry| {
            frozen.keys.insert(key, entry);
        })?;
        for (slots, count) in head.arrived {
            let mut group = Arrived::new(slots, OrdMap::new(), 0);
            keys_of(state, count, |key, entry| group.put(key, entry))?;
            if !group.keys.keys().all(|key| group.slots.has(slot_of(key))) {
                return Err(invalid("a key of other slots"));
            }
            frozen.arrived.push(group);
        }
        let mut aside = None;
        if let Some((mut copied, count)) = head.aside {
            keys_of(state, count, |key, entry| copied.put(key, Some(entry)))?;
            aside = Some(copied);
        }
        frozen.moves = Moves::begin(head.freeze, aside);
        match state.read(&mut [0])? {
            0 => Ok(frozen),
            _ => Err(invalid("there is something behind its end")),
        }
    }
}

/// Checks that each key is of the partition, or stale, and that no key is in two places.
fn check_keys(
    settled: &OrdMap<Bytes, Entry>,
    left: &Slots,
    arrived: &[Arrived],
    is_own: impl Fn(u16) -> bool,
) -> io::Result<()> {
    if !arrived.iter().all(|group| group.slots.iter().all(&is_own)) {
        return Err(invalid("a key of another partition"));
    }
    let back: Slots = arrived
        .iter()
        .flat_map(|group| group.slots.iter())
        .collect();
    for slot in settled.keys().map(|key| slot_of(key)) {
        match (is_own(slot), left.has(slot)) {
            (false, false) => return Err(invalid("a key of another partition")),
            // The slot has left, and has not come back.
            (true, true) if !back.has(slot) => {
                return Err(invalid("a slot has left, and is the partition's"));
            }
            _ => {}
        }
    }
    let is_twice = |key: &Bytes| !left.has(slot_of(key)) && settled.contains_key(key);
    let mut grouped = arrived.iter().flat_map(|group| group.keys.keys());
    match grouped.any(is_twice) {
        true => Err(invalid("a key is there twice")),
        false => Ok(()),
    }
}

fn entry_of(bytes: &mut Reader<'_>) -> Option<(Bytes, Entry)> {
    let key = owned(bytes)?;
    let entry = Entry::take(bytes)?;
    bytes.0.is_empty().then_some((key, entry))
}

fn write_record(out: &mut dyn Write, record: &[u8]) -> io::Result<()> {
    let length = u32::try_from(record.len()).map_err(|_| invalid("it is too large"))?;
    out.write_all(&length.to_le_bytes())?;
    out.write_all(record)
}

/// Reads a record. Room is made for the bytes that come: a length alone costs nothing.
fn read_record(state: &mut dyn Read) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    state.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > MOST_ENTRY_BYTES {
        return Err(invalid("an entry is too large"));
    }
    let mut record = Vec::new();
    state.take(length as u64).read_to_end(&mut record)?;
    match record.len() == length {
        true => Ok(record),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}
