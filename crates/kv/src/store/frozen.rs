//! A state as it is written to a checkpoint: a head, and a record of each key.

use std::io::{self, Read, Write};
use std::sync::Arc;

use bytes::Bytes;
use imbl::OrdMap;
use rota_core::bytes::{Reader, put_bytes};
use rota_multiring::Place;
use rota_replica::Frozen;

use super::moves::Aside;
use super::outcome::{owned, put_version, take_version};
use super::state::Store;
use super::step::{Freeze, put_name, take_name};
use super::value::Entry;
use crate::map::{Map, Partition};

/// The first bytes of a state.
const MAGIC: &[u8; 8] = b"rotakv03";
/// The bytes of an entry of a state, at most.
const MOST_ENTRY_BYTES: usize = 1 << 30;

/// A partition's keys as they were at a moment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FrozenStore {
    map: Arc<Map>,
    now: u64,
    last: Option<Place>,
    seen: Option<Place>,
    applied: Option<Place>,
    keys: OrdMap<Bytes, Entry>,
    frozen: Option<Freeze>,
    stands: u64,
    aside: Option<Aside>,
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

impl Frozen for FrozenStore {
    fn write(self, out: &mut dyn Write) -> io::Result<()> {
        let mut head = MAGIC.to_vec();
        self.map.encode(&mut head);
        head.extend(self.now.to_le_bytes());
        put_version(&mut head, self.last);
        put_version(&mut head, self.seen);
        put_version(&mut head, self.applied);
        head.push(u8::from(self.frozen.is_some()));
        self.frozen.iter().for_each(|freeze| freeze.put(&mut head));
        head.extend(self.stands.to_le_bytes());
        head.push(u8::from(self.aside.is_some()));
        if let Some(aside) = &self.aside {
            put_name(&mut head, aside.of);
            head.extend(aside.count.to_le_bytes());
            head.extend(aside.touched.to_le_bytes());
            head.extend((aside.keys.len() as u64).to_le_bytes());
        }
        head.extend((self.keys.len() as u64).to_le_bytes());
        write_record(out, &head)?;
        let aside = self.aside.iter().flat_map(|aside| &aside.keys);
        for (key, entry) in self.keys.iter().chain(aside) {
            let mut record = Vec::with_capacity(64 + key.len() + entry.bytes);
            put_bytes(&mut record, key);
            entry.put(&mut record);
            write_record(out, &record)?;
        }
        Ok(())
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

/// The head of a state: with the number of copied keys, and the number of its own.
type Head = (FrozenStore, u64, u64);

impl FrozenStore {
    pub(super) fn of(store: &Store) -> Self {
        Self {
            map: Arc::clone(&store.map),
            now: store.now,
            last: store.last,
            seen: store.seen,
            applied: store.applied,
            keys: store.keys.clone(),
            frozen: store.frozen.clone(),
            stands: store.stands,
            aside: store.aside.clone(),
        }
    }

    /// The store of a partition that begins with this state.
    pub(super) fn begin(self, me: Partition) -> io::Result<Store> {
        let mut store = Store::new(me, self.map);
        (store.now, store.applied) = (self.now, self.applied);
        (store.last, store.seen) = (self.last, self.seen);
        (store.frozen, store.stands, store.aside) = (self.frozen, self.stands, self.aside);
        for (key, entry) in self.keys {
            if store.map.of_key(&key) != me {
                return Err(invalid("a key of another partition"));
            }
            store.put(key, entry);
        }
        Ok(store)
    }

    pub(super) fn read(state: &mut dyn Read) -> io::Result<Self> {
        let head = read_record(state)?;
        let head = head.strip_prefix(MAGIC);
        let head = head.ok_or_else(|| invalid("it is no state of a key-value store"))?;
        let head = Self::head(&mut Reader(head)).ok_or_else(|| invalid("its head is damaged"))?;
        let (mut frozen, copied, count) = head;
        keys_of(state, count, |key, entry| {
            frozen.keys.insert(key, entry);
        })?;
        if let Some(aside) = &mut frozen.aside {
            keys_of(state, copied, |key, entry| aside.put(key, Some(entry)))?;
        }
        match state.read(&mut [0])? {
            0 => Ok(frozen),
            _ => Err(invalid("there is something behind its end")),
        }
    }

    fn head(bytes: &mut Reader<'_>) -> Option<Head> {
        let map = Arc::new(Map::decode(bytes)?);
        let now = bytes.u64()?;
        let [last, seen, applied] = [(); 3].map(|()| take_version(bytes));
        let (frozen, stands) = (take_freeze(bytes)?, bytes.u64()?);
        let (aside, copied) = take_aside(bytes)?.unzip();
        let frozen = Self {
            map,
            now,
            last: last?,
            seen: seen?,
            applied: applied?,
            keys: OrdMap::new(),
            frozen,
            stands,
            aside,
        };
        let count = bytes.u64()?;
        let is_whole = bytes.0.is_empty();
        is_whole.then_some((frozen, copied.unwrap_or(0), count))
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
