//! A directory that fails where it is told to, and forgets what was not synced when the power goes.
#![allow(dead_code, reason = "each test uses a part of it")]

pub mod life;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use rota_core::contract::{LogId, NodeId};
use rota_storage::acceptor::{
    Access, DiskLog, FetchError, Identity, LogDisk, LogFile, LogOpenError, LogOptions, Record,
    RecordRef,
};

pub const SECTOR: usize = 512;
/// Appends are of whole ones, in files and in memory.
const BLOCK: u64 = 4096;

/// Numbers that look random, the same from the same seed.
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }

    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// A file: as processes see it, as it is on the disk, and what each sector was meanwhile.
#[derive(Clone, Debug, Default)]
pub struct Inode {
    pub seen: Vec<u8>,
    durable: Vec<u8>,
    unsynced: BTreeMap<usize, Vec<Vec<u8>>>,
}

impl Inode {
    fn sector(&self, index: usize) -> Vec<u8> {
        let start = index * SECTOR;
        self.seen[start..self.seen.len().min(start + SECTOR)].to_vec()
    }

    fn write(&mut self, at: usize, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let len = self.seen.len().max(at + bytes.len());
        self.seen.resize(len, 0);
        self.seen[at..at + bytes.len()].copy_from_slice(bytes);
        for index in at / SECTOR..=(at + bytes.len() - 1) / SECTOR {
            let version = self.sector(index);
            self.unsynced.entry(index).or_default().push(version);
        }
    }

    fn put(&mut self, index: usize, sector: &[u8]) {
        let (start, end) = (index * SECTOR, index * SECTOR + sector.len());
        let len = self.durable.len().max(end);
        self.durable.resize(len, 0);
        self.durable[start..end].copy_from_slice(sector);
    }

    fn sync(&mut self) {
        self.durable.resize(self.seen.len(), 0);
        for (index, versions) in std::mem::take(&mut self.unsynced) {
            self.put(index, versions.last().unwrap());
        }
    }

    /// Each sector is what it was at some time since the last sync; one of them may be torn.
    fn lose_power(&mut self, random: &mut Random, torn: &mut bool, keep: Keep) {
        for (index, versions) in std::mem::take(&mut self.unsynced) {
            let kept = match keep {
                Keep::Nothing => 0,
                Keep::All => versions.len(),
                Keep::Some => random.below(versions.len() as u64 + 1) as usize,
            };
            if kept == 0 {
                continue;
            }
            let mut sector = versions[kept - 1].clone();
            if keep == Keep::Some && !*torn && random.one_in(8) {
                *torn = true;
                let cut = random.below(sector.len() as u64) as usize;
                let start = index * SECTOR;
                for (at, byte) in sector.iter_mut().enumerate().skip(cut) {
                    *byte = self.durable.get(start + at).copied().unwrap_or(0);
                }
            }
            self.put(index, &sector);
        }
        self.seen.clone_from(&self.durable);
    }
}

/// The part of the unsynced bytes that stays when the power goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Keep {
    Nothing,
    All,
    Some,
}

#[derive(Clone, Debug)]
enum NameChange {
    Create(String, usize),
    Rename(String, String),
    Remove(String),
}

#[derive(Clone, Debug, Default)]
pub struct World {
    pub inodes: Vec<Inode>,
    pub names: BTreeMap<String, usize>,
    durable_names: BTreeMap<String, usize>,
    changes: Vec<NameChange>,
    /// Calls that may fail, so far.
    pub calls: usize,
    /// This call fails, with this error, and after so many bytes if it writes.
    fail: Option<(usize, i32, usize)>,
    /// All of these fail.
    pub always: Option<(&'static str, i32)>,
    /// From this call on there is no power.
    pub power_until: Option<usize>,
    pub log: Vec<&'static str>,
}

impl World {
    fn call(&mut self, name: &'static str) -> io::Result<()> {
        self.calls += 1;
        self.log.push(name);
        if self.power_until.is_some_and(|last| self.calls >= last) {
            return Err(io::Error::other("no power"));
        }
        if let Some((_, code)) = self.always.filter(|(which, _)| *which == name) {
            return Err(io::Error::from_raw_os_error(code));
        }
        match self.fail {
            Some((call, code, _)) if call == self.calls => Err(io::Error::from_raw_os_error(code)),
            _ => Ok(()),
        }
    }

    /// Fails the `ahead`th call from now on.
    pub fn fail_in(&mut self, ahead: usize, code: i32, bytes: usize) {
        self.fail = Some((self.calls + ahead, code, bytes));
    }

    pub fn lose_power(&mut self, random: &mut Random, keep: Keep) {
        let mut torn = false;
        for inode in &mut self.inodes {
            inode.lose_power(random, &mut torn, keep);
        }
        for change in std::mem::take(&mut self.changes) {
            let kept = match keep {
                Keep::Nothing => false,
                Keep::All => true,
                Keep::Some => random.one_in(2),
            };
            if !kept {
                continue;
            }
            match change {
                NameChange::Create(name, inode) => {
                    self.durable_names.insert(name, inode);
                }
                NameChange::Rename(from, to) => {
                    if let Some(inode) = self.durable_names.remove(&from) {
                        self.durable_names.insert(to, inode);
                    }
                }
                NameChange::Remove(name) => {
                    self.durable_names.remove(&name);
                }
            }
        }
        self.names.clone_from(&self.durable_names);
        self.power_until = None;
        self.fail = None;
    }

    /// The system needs the memory of all that it believes to be written.
    pub fn forget_what_is_clean(&mut self) {
        let clean = self
            .inodes
            .iter_mut()
            .filter(|inode| inode.unsynced.is_empty());
        clean.for_each(|inode| inode.seen.clone_from(&inode.durable));
        self.fail = None;
    }

    /// The contents of all files.
    pub fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let file =
            |(name, inode): (&String, &usize)| (name.clone(), self.inodes[*inode].seen.clone());
        self.names.iter().map(file).collect()
    }
}

/// A directory, or the next process's use of it.
#[derive(Clone, Debug, Default)]
pub struct SimDir {
    world: Arc<Mutex<World>>,
}

impl SimDir {
    /// A directory with these files, all durable.
    pub fn with(files: &BTreeMap<String, Vec<u8>>) -> Self {
        let dir = Self::default();
        let mut world = dir.world();
        for (name, bytes) in files {
            let inode = world.inodes.len();
            world.names.insert(name.clone(), inode);
            world.inodes.push(Inode {
                seen: bytes.clone(),
                durable: bytes.clone(),
                unsynced: BTreeMap::new(),
            });
        }
        world.durable_names = world.names.clone();
        drop(world);
        dir
    }

    /// The same directory as it is now, to try something with.
    pub fn fork(&self) -> Self {
        Self {
            world: Arc::new(Mutex::new(self.world().clone())),
        }
    }

    pub fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap()
    }
}

#[derive(Clone, Debug)]
pub struct SimFile {
    world: Arc<Mutex<World>>,
    inode: usize,
}

impl LogFile for SimFile {
    fn read_at(&self, at: u64, buf: &mut [u8]) -> io::Result<usize> {
        let mut world = self.world.lock().unwrap();
        world.call("read")?;
        let seen = &world.inodes[self.inode].seen;
        let from = usize::try_from(at).unwrap().min(seen.len());
        let len = buf.len().min(seen.len() - from);
        buf[..len].copy_from_slice(&seen[from..from + len]);
        Ok(len)
    }

    fn write_at(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let mut world = self.world.lock().unwrap();
        let result = world.call("write");
        // Without power the write may still have begun: `lose_power` decides what is left of it.
        let written = match (&result, world.fail) {
            (Err(_), Some((call, _, written))) if call == world.calls => written.min(bytes.len()),
            (Err(_), _) if world.power_until.is_none() => 0,
            _ => bytes.len(),
        };
        world.inodes[self.inode].write(usize::try_from(at).unwrap(), &bytes[..written]);
        result
    }

    fn append_at(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let is_whole = |length: u64| length.is_multiple_of(BLOCK);
        assert!(is_whole(at) && is_whole(bytes.len() as u64) && is_whole(bytes.as_ptr() as u64));
        self.write_at(at, bytes)
    }

    fn sync(&self) -> io::Result<()> {
        let mut world = self.world.lock().unwrap();
        let result = world.call("sync");
        let has_power = world.power_until.is_none_or(|last| world.calls < last);
        let inode = &mut world.inodes[self.inode];
        match result {
            Ok(()) => inode.sync(),
            // The system believes now that all is written.
            Err(_) if has_power => inode.unsynced.clear(),
            Err(_) => {}
        }
        result
    }

    fn bytes(&self) -> io::Result<u64> {
        let mut world = self.world.lock().unwrap();
        world.call("bytes")?;
        Ok(world.inodes[self.inode].seen.len() as u64)
    }
}

impl LogDisk for SimDir {
    type File = SimFile;

    fn path(&self) -> &Path {
        Path::new("state/ring-1")
    }

    fn has_directory(&self) -> bool {
        true
    }

    fn lock(&mut self) -> io::Result<()> {
        self.world().call("lock")
    }

    fn names(&self) -> io::Result<Vec<String>> {
        let mut world = self.world();
        world.call("names")?;
        Ok(world.names.keys().cloned().collect())
    }

    fn open(&self, name: &str, access: Access) -> io::Result<SimFile> {
        let mut world = self.world();
        world.call("open")?;
        let inode = match world.names.get(name).copied() {
            Some(inode) => inode,
            None if access != Access::Create => return Err(io::ErrorKind::NotFound.into()),
            None => {
                let inode = world.inodes.len();
                world.inodes.push(Inode::default());
                world.names.insert(name.to_owned(), inode);
                let change = NameChange::Create(name.to_owned(), inode);
                world.changes.push(change);
                inode
            }
        };
        if access == Access::Create {
            world.inodes[inode] = Inode::default();
        }
        Ok(SimFile {
            world: Arc::clone(&self.world),
            inode,
        })
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut world = self.world();
        world.call("rename")?;
        let inode = world.names.remove(from).ok_or(io::ErrorKind::NotFound)?;
        world.names.insert(to.to_owned(), inode);
        let change = NameChange::Rename(from.to_owned(), to.to_owned());
        world.changes.push(change);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut world = self.world();
        world.call("remove")?;
        world.names.remove(name).ok_or(io::ErrorKind::NotFound)?;
        world.changes.push(NameChange::Remove(name.to_owned()));
        Ok(())
    }

    fn sync_names(&self) -> io::Result<()> {
        let mut world = self.world();
        world.call("sync names")?;
        world.changes.clear();
        world.durable_names = world.names.clone();
        Ok(())
    }
}

pub fn identity() -> Identity {
    Identity {
        cluster: 7,
        node: NodeId::new(1).unwrap(),
        log: LogId(1),
    }
}

/// The smallest segments.
pub fn options() -> LogOptions {
    LogOptions {
        segment_bytes: 8 << 10,
        ..LogOptions::new(identity())
    }
}

pub fn open(dir: &SimDir) -> Result<DiskLog<SimDir>, LogOpenError> {
    DiskLog::open_on(dir.clone(), options())
}

pub fn record(kind: rota_storage::acceptor::Kind, first: u64, last: u64, bytes: &[u8]) -> Record {
    Record {
        kind,
        first,
        last,
        bytes: bytes.to_vec(),
    }
}

pub fn append(
    log: &mut DiskLog<SimDir>,
    records: &[Record],
) -> Result<(), rota_storage::acceptor::AppendError> {
    let records: Vec<RecordRef<'_>> = records.iter().map(Record::borrowed).collect();
    log.append(&records).map(|_| ())
}

/// All that a log tells: what it keeps from where on, the state, and all instances.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Told {
    pub first: u64,
    pub state: Vec<Record>,
    pub instances: Vec<Record>,
}

pub fn told(log: &mut DiskLog<SimDir>) -> Told {
    try_told(log).unwrap()
}

pub fn try_told(log: &mut DiskLog<SimDir>) -> Result<Told, FetchError> {
    let first = log.first();
    let (mut instances, mut from) = (Vec::new(), Some(first));
    // A piece ends before a record that is damaged: the next one is an error then.
    while let Some(next) = from {
        let fetched = log.fetch(next, u64::MAX, usize::MAX)?;
        instances.extend(fetched.records);
        from = fetched.next;
    }
    Ok(Told {
        first,
        state: log.state(),
        instances,
    })
}
