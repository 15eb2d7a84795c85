//! The state of a partition, and how it is kept.

use std::collections::BTreeSet;
use std::fmt;
use std::io::{self, Read, Write};

use bytes::Bytes;
use imbl::OrdMap;
use rota_core::bytes::Reader;
use rota_multiring::Place;
use rota_replica::{Command, Frozen, Machine};

use super::MOST_ANSWER_BYTES;
use super::batch::Batch;
use super::bytes::{put_bytes, put_place, take_place};
use super::outcome::{Answer, Answered, owned, put_version, take_version};
use super::pack::{Pack, place_of};
use super::value::{Entry, Value};
use crate::map::{Map, Partition, Partitions};

/// What a state begins with.
const MAGIC: &[u8; 8] = b"rotakv02";
/// So many keys whose time is over are taken away with each command: a command takes no longer for others' sake.
const MOST_SWEPT: usize = 32;
/// And so many with a message without commands.
const MOST_SWEPT_IDLE: usize = 1_024;
/// To free so many keys takes long.
const MANY: usize = 10_000;
/// An entry of a state has at most so many bytes.
const MOST_ENTRY_BYTES: usize = 1 << 30;

/// Gets to know of the commands of several partitions.
pub trait Witness: Send {
    /// The store begins with a state, in which those up to this one were delivered.
    fn began(&mut self, seen: Option<Place>);

    /// One is delivered, of these partitions.
    fn delivered(&mut self, place: Place, of: &Partitions);
}

/// A partition's keys, and the machine that commands change them by.
pub struct Store {
    pub(super) me: Partition,
    pub(super) map: Map,
    /// The greatest time that any command had.
    pub(super) now: u64,
    /// The last command of several partitions, of which this is one.
    pub(super) last: Option<Place>,
    /// The last command of several partitions, whichever those are.
    seen: Option<Place>,
    /// The last command of all.
    pub(super) applied: Option<Place>,
    pub(super) keys: OrdMap<Bytes, Entry>,
    /// Keys that do not live for ever, by their ends.
    pub(super) ends: BTreeSet<(u64, Bytes)>,
    /// What all of it takes.
    pub(super) bytes: usize,
    witness: Option<Box<dyn Witness>>,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut of = f.debug_struct("Store");
        let of = of.field("me", &self.me).field("keys", &self.keys.len());
        of.field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl Store {
    /// A partition without a key. `map`: the same for all partitions.
    pub fn new(me: Partition, map: Map) -> Self {
        Self {
            me,
            map,
            now: 0,
            last: None,
            seen: None,
            applied: None,
            keys: OrdMap::new(),
            ends: BTreeSet::new(),
            bytes: 0,
            witness: None,
        }
    }

    /// The same, with somebody who has to know of the commands of several partitions.
    pub fn with_witness(mut self, witness: Box<dyn Witness>) -> Self {
        self.witness = Some(witness);
        self
    }

    /// Which partition has which keys.
    pub const fn map(&self) -> &Map {
        &self.map
    }

    /// So many keys, some of which may have come to their ends.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// So many of them have an end.
    pub fn ending(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// What all of them take, in bytes, about.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// The last command of several partitions that this one knows to be one of.
    pub const fn last(&self) -> Option<Place> {
        self.last
    }

    /// The last command of several partitions that came by, of this one or not.
    pub const fn seen(&self) -> Option<Place> {
        self.seen
    }

    /// What a key has now.
    pub fn get(&self, key: &[u8]) -> Option<&Entry> {
        self.keys.get(key).filter(|entry| entry.lives(self.now))
    }

    /// The entries are as they should be.
    pub fn check(&self) {
        let takes = self.keys.iter().map(|(key, entry)| entry.takes(key));
        assert_eq!(takes.sum::<usize>(), self.bytes, "the bytes of all keys");
        let ends = self.keys.iter().filter(|(_, entry)| entry.until.is_some());
        assert_eq!(ends.count(), self.ends.len(), "keys with an end");
        for (end, key) in &self.ends {
            let entry = self.keys.get(key);
            let until = entry.and_then(|entry| entry.until);
            assert_eq!(until, Some(*end), "the end of a key");
        }
        for (key, entry) in &self.keys {
            assert_eq!(entry.value.bytes(), entry.bytes, "the bytes of a value");
            assert_eq!(self.map.of_key(key), self.me, "a key of this partition");
        }
    }

    pub(super) fn put(&mut self, key: Bytes, entry: Entry) {
        self.bytes += entry.takes(&key);
        let until = entry.until;
        if let Some(old) = self.keys.insert(key.clone(), entry) {
            self.forget(&key, &old);
        }
        if let Some(until) = until {
            self.ends.insert((until, key));
        }
    }

    pub(super) fn remove(&mut self, key: &[u8]) -> Option<Entry> {
        let (key, old) = self.keys.remove_with_key(key)?;
        self.forget(&key, &old);
        Some(old)
    }

    fn forget(&mut self, key: &Bytes, old: &Entry) {
        self.bytes -= old.takes(key);
        if let Some(until) = old.until {
            self.ends.remove(&(until, key.clone()));
        }
    }

    /// There is no key any more.
    pub(super) fn clear(&mut self) {
        let keys = std::mem::take(&mut self.keys);
        let ends = std::mem::take(&mut self.ends);
        self.bytes = 0;
        if keys.len() > MANY {
            // To free many takes long, and commands wait meanwhile. Without a thread it is done here.
            let thread = std::thread::Builder::new().name("rota-kv-free".to_owned());
            let _ = thread.spawn(move || drop((keys, ends)));
        }
    }

    /// Whether there are keys whose end has come by then.
    pub fn has_ended(&self, time: u64) -> bool {
        self.ends
            .first()
            .is_some_and(|(end, _)| *end <= time.max(self.now))
    }

    /// Time passes. Of the keys that have come to their ends so many are taken away at most.
    fn sweep(&mut self, stamp: u64, most: usize) {
        self.now = self.now.max(stamp);
        for _ in 0..most {
            let first = self.ends.first().filter(|(end, _)| *end <= self.now);
            let Some((_, key)) = first.cloned() else {
                return;
            };
            self.remove(&key);
        }
    }

    /// A message; `left`: bytes that its answers may have yet.
    fn answer(&mut self, bytes: &[u8], place: Place, left: &mut usize) -> Answer {
        let Some(batch) = Batch::decode(bytes) else {
            return Answer::Unreadable;
        };
        let most = match batch.is_empty() {
            true => MOST_SWEPT_IDLE,
            false => MOST_SWEPT,
        };
        self.sweep(batch.stamp, most);
        self.applied = Some(place);
        let to = batch.to(&self.map);
        if to.len() > 1 {
            if to.contains(&self.me) {
                self.last = Some(place);
            }
            self.seen = Some(place);
            if let Some(witness) = &mut self.witness {
                witness.delivered(place, &to);
            }
        }
        self.run(&batch, (&to, place), left)
    }
}

impl Machine for Store {
    type Frozen = FrozenStore;

    fn apply(&mut self, command: Command<'_>) -> Vec<u8> {
        let pack = Pack::decode(command.bytes);
        let mut left = MOST_ANSWER_BYTES;
        let answers = match pack {
            None => vec![Answer::Unreadable],
            Some(Pack(batches)) => {
                let batches = batches.into_iter().enumerate();
                let answers = batches
                    .map(|(at, batch)| self.answer(batch, place_of(command.place, at), &mut left));
                answers.collect()
            }
        };
        let behind = self.last;
        Answered { behind, answers }.encode()
    }

    fn freeze(&mut self) -> FrozenStore {
        FrozenStore {
            map: self.map.clone(),
            now: self.now,
            last: self.last,
            seen: self.seen,
            applied: self.applied,
            keys: self.keys.clone(),
        }
    }

    fn install(&mut self, state: &mut dyn Read) -> io::Result<()> {
        let frozen = FrozenStore::read(state)?;
        let witness = self.witness.take();
        *self = Self::new(self.me, frozen.map);
        (self.now, self.applied) = (frozen.now, frozen.applied);
        (self.last, self.seen) = (frozen.last, frozen.seen);
        self.witness = witness;
        if let Some(witness) = &mut self.witness {
            witness.began(self.seen);
        }
        for (key, entry) in frozen.keys {
            if self.map.of_key(&key) != self.me {
                return Err(invalid("a key of another partition"));
            }
            self.put(key, entry);
        }
        Ok(())
    }
}

/// A partition's keys as they were at a moment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FrozenStore {
    map: Map,
    now: u64,
    last: Option<Place>,
    seen: Option<Place>,
    applied: Option<Place>,
    keys: OrdMap<Bytes, Entry>,
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
        head.extend((self.keys.len() as u64).to_le_bytes());
        write_record(out, &head)?;
        for (key, entry) in &self.keys {
            let mut record = Vec::with_capacity(64 + key.len() + entry.bytes);
            put_bytes(&mut record, key);
            put_place(&mut record, entry.version);
            record.extend(entry.until.unwrap_or(0).to_le_bytes());
            entry.value.put(&mut record);
            write_record(out, &record)?;
        }
        Ok(())
    }
}

impl FrozenStore {
    fn read(state: &mut dyn Read) -> io::Result<Self> {
        let head = read_record(state)?;
        let head = head.strip_prefix(MAGIC);
        let head = head.ok_or_else(|| invalid("it is no state of a key-value store"))?;
        let head = Self::head(&mut Reader(head)).ok_or_else(|| invalid("its head is damaged"))?;
        let (mut frozen, count) = head;
        for _ in 0..count {
            let record = read_record(state)?;
            let entry = entry_of(&mut Reader(&record));
            let (key, entry) = entry.ok_or_else(|| invalid("an entry is damaged"))?;
            let is_last = |(last, _): (&Bytes, &Entry)| *last < key;
            if !frozen
                .keys
                .get_max()
                .is_none_or(|(last, entry)| is_last((last, entry)))
            {
                return Err(invalid("its keys are not in order"));
            }
            frozen.keys.insert(key, entry);
        }
        match state.read(&mut [0])? {
            0 => Ok(frozen),
            _ => Err(invalid("there is something behind its end")),
        }
    }

    /// With the number of keys.
    fn head(bytes: &mut Reader<'_>) -> Option<(Self, u64)> {
        let frozen = Self {
            map: Map::decode(bytes)?,
            now: bytes.u64()?,
            last: take_version(bytes)?,
            seen: take_version(bytes)?,
            applied: take_version(bytes)?,
            keys: OrdMap::new(),
        };
        let count = bytes.u64()?;
        bytes.0.is_empty().then_some((frozen, count))
    }
}

fn entry_of(bytes: &mut Reader<'_>) -> Option<(Bytes, Entry)> {
    let key = owned(bytes)?;
    let version = take_place(bytes)?;
    let until = Some(bytes.u64()?).filter(|until| *until > 0);
    let value = Value::take(bytes)?;
    let entry = Entry {
        bytes: value.bytes(),
        value,
        version,
        until,
    };
    bytes.0.is_empty().then_some((key, entry))
}

fn write_record(out: &mut dyn Write, record: &[u8]) -> io::Result<()> {
    let length = u32::try_from(record.len()).map_err(|_| invalid("it is too large"))?;
    out.write_all(&length.to_le_bytes())?;
    out.write_all(record)
}

/// Room is made as it comes: a length alone costs nothing.
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
