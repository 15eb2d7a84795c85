//! A disk that fails where it is told to, and loses its power at every single step.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};

use rota_core::contract::NodeId;
use rota_storage::{Disk, Name};

/// A file: as processes see it, and as it would be after a loss of power.
#[derive(Clone, Debug, Default)]
struct Inode {
    seen: Vec<u8>,
    durable: Vec<u8>,
    /// The sync failed: the kernel believes that all is written.
    clean: bool,
}

#[derive(Clone, Debug, Default)]
pub struct World {
    inodes: Vec<Inode>,
    names: BTreeMap<Name, usize>,
    durable_names: BTreeMap<Name, usize>,
    /// Calls so far.
    pub calls: usize,
    /// This call fails, with this error, and after so many bytes if it writes.
    fail: Option<(usize, i32, usize)>,
    /// From this call on there is no power.
    pub power_until: Option<usize>,
    /// All calls, by name.
    pub log: Vec<&'static str>,
}

/// The part of the unsynced bytes that is left when the power goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Left {
    Nothing,
    All,
    /// The names, and nothing of what is in the files.
    Names,
    /// So many bytes of the last write, and no names.
    Torn(usize),
}

impl World {
    fn call(&mut self, name: &'static str) -> io::Result<()> {
        self.calls += 1;
        self.log.push(name);
        if self.power_until.is_some_and(|last| self.calls >= last) {
            return Err(io::Error::other("no power"));
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

    pub fn lose_power(&mut self, left: Left) {
        for inode in &mut self.inodes {
            if left == Left::All {
                inode.durable.clone_from(&inode.seen);
            }
            if let Left::Torn(bytes) = left {
                let seen = inode.seen.clone();
                inode.durable.resize(seen.len(), 0);
                let changed = (0..seen.len()).filter(|&at| inode.durable[at] != seen[at]);
                for at in changed.take(bytes).collect::<Vec<_>>() {
                    inode.durable[at] = seen[at];
                }
            }
            inode.seen.clone_from(&inode.durable);
            inode.clean = true;
        }
        if left == Left::All || left == Left::Names {
            self.durable_names.clone_from(&self.names);
        }
        self.names.clone_from(&self.durable_names);
        self.power_until = None;
    }
}

#[derive(Clone, Debug, Default)]
pub struct FakeDisk {
    world: Arc<Mutex<World>>,
    open: Option<usize>,
}

impl FakeDisk {
    /// The same disk, for the next process.
    pub fn again(&self) -> Self {
        Self {
            world: Arc::clone(&self.world),
            open: None,
        }
    }

    pub fn world(&self) -> std::sync::MutexGuard<'_, World> {
        self.world.lock().unwrap()
    }
}

impl Disk for FakeDisk {
    fn path(&self) -> &Path {
        Path::new("state/node-1")
    }

    fn open(&mut self, name: Name, create: bool) -> io::Result<()> {
        let mut world = self.world.lock().unwrap();
        world.call("open")?;
        self.open = world.names.get(&name).copied();
        if self.open.is_none() && create {
            self.open = Some(world.inodes.len());
            world.inodes.push(Inode::default());
            let inode = world.inodes.len() - 1;
            world.names.insert(name, inode);
        }
        self.open
            .map(|_| ())
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn read(&mut self) -> io::Result<Vec<u8>> {
        let mut world = self.world();
        world.call("read")?;
        Ok(world.inodes[self.open.unwrap()].seen.clone())
    }

    fn truncate(&mut self, len: u64) -> io::Result<()> {
        let mut world = self.world();
        world.call("truncate")?;
        world.inodes[self.open.unwrap()]
            .seen
            .truncate(usize::try_from(len).unwrap());
        Ok(())
    }

    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let mut world = self.world();
        let result = world.call("write");
        // Without power the write may still have begun: `lose_power` decides what is left of it.
        let written = match (&result, world.fail) {
            (Err(_), Some((call, _, written))) if call == world.calls => written.min(bytes.len()),
            _ => bytes.len(),
        };
        let at = usize::try_from(at).unwrap();
        let inode = &mut world.inodes[self.open.unwrap()];
        let len = inode.seen.len().max(at + written);
        inode.seen.resize(len, 0);
        inode.seen[at..at + written].copy_from_slice(&bytes[..written]);
        inode.clean = false;
        result
    }

    fn sync(&mut self) -> io::Result<()> {
        let mut world = self.world();
        let result = world.call("sync");
        let inode = &mut world.inodes[self.open.unwrap()];
        if result.is_ok() && !inode.clean {
            inode.durable.clone_from(&inode.seen);
        }
        inode.clean = true;
        result
    }

    fn publish(&mut self) -> io::Result<()> {
        let mut world = self.world();
        world.call("publish")?;
        let inode = world.names.remove(&Name::New).unwrap();
        world.names.insert(Name::Final, inode);
        Ok(())
    }

    fn sync_names(&mut self) -> io::Result<()> {
        let mut world = self.world();
        world.call("sync names")?;
        world.durable_names = world.names.clone();
        Ok(())
    }

    fn has_directory(&self) -> bool {
        true
    }
}

/// The node whose disk it is.
pub fn node() -> NodeId {
    NodeId::new(1).unwrap()
}
