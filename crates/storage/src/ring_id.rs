//! The newest ring id's number, kept so that it survives a crash.
//!
//! A node that comes back must not form a ring under a number that it has used before. So the number of each ring is on
//! the disk before the ring starts, in this file.
//!
//! # Layout and use
//!
//! One file of two slots, 4096 bytes apart. A slot has a generation, the node, the value and a checksum; the good one
//! with the larger generation counts. A value is written to the *other* slot and then synced, so that the one before
//! stays whole until the new one is durable. Two slots in one file, and not two files, since one file is one lock, one
//! name to make durable, and one thing to look at.
//!
//! A new file is written and synced under a name of its own (`.new`) and renamed, so there never is a
//! file that is not whole. All its room is taken then: where blocks are overwritten in place, a disk that
//! becomes full later does not matter.
//!
//! Opening it writes the slot that counts once more, as it is, and syncs it. The value that a process reads may be in
//! the kernel's memory only, as when a sync of the process before failed; and a disk that takes no writes should be
//! noticed before a ring depends on it.
//!
//! # Faults and their outcomes
//!
//! | fault | outcome |
//! |---|---|
//! | no file | first start: no value; the file is made |
//! | no directory | refused; it is not made, since a missing mount looks the same |
//! | file of 0 bytes, or cut off in its first slot | refused as damaged: no crash leaves that behind |
//! | file cut off in its second slot | as one bad slot |
//! | one slot torn, or a bit of it flipped | the other counts, and [`RingIdFile::lost_a_slot`] says so |
//! | both slots bad, or of one generation | refused, until it is reset |
//! | another node's id in a good slot | refused, until it is reset |
//! | a later version's slot | refused, until it is reset |
//! | another process has the file | refused |
//! | no permission, read-only file system, input/output error while opening | refused |
//! | no room while the file is made | refused |
//! | no room (or quota) in a write | `NoSpace`; a later try may work |
//! | any other error in a write | `Io`; nothing more is stored until it is opened again |
//! | any error in a sync, also for want of room | the same |
//! | crash while the file is made | as no file; what is left of the new one is written over |
//! | crash or power loss in a write, or before its sync has ended | the value before, or the new one: nobody was told that it is durable |
//! | power loss after the sync | the new value |
//!
//! # Limits
//!
//! When one slot is bad, nothing tells a write that was cut off, which nobody was told about, from damage
//! to a value that was durable. The value may then be the one before. A ring id also has the
//! incarnation of the process that formed it, which keeps it apart from every other.
//!
//! Nor can the file show that an older copy of all of it was put back.

use rota_core::contract::NodeId;
use std::io;
use std::path::PathBuf;

use crate::disk::{Disk, FileDisk, Name};
use crate::error::{Kept, OpenError, StoreError, check_copy, wrong};
use crate::slot::{SLOT_BYTES, Slot, new_file};

/// The treatment of a file that must not be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OnDamage {
    /// Refuse to start.
    #[default]
    Refuse,
    /// Put a new file in its place. A file that can be used is kept as it is.
    Reset,
}

/// The value of a file that was reset. No ring has this number; but there is a value, so that the next start is not
/// taken for the node's first.
const NO_RING: u64 = 0;

/// A file with the newest ring id's number.
#[derive(Debug)]
pub struct RingIdFile<D = FileDisk> {
    disk: D,
    kept: Kept,
    /// The slot that counts, and its index.
    current: Slot,
    index: usize,
    lost_a_slot: bool,
    failed: bool,
}

impl RingIdFile {
    /// Opens the file of node `node` at `path`, and makes it where there is none.
    ///
    /// # Errors
    /// [`OpenError`]; the node must not start then.
    pub fn open(path: PathBuf, node: NodeId, on_damage: OnDamage) -> Result<Self, OpenError> {
        Self::open_on(FileDisk::new(path), node, on_damage)
    }
}

impl<D: Disk> RingIdFile<D> {
    /// The same on any disk.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open_on(disk: D, node: NodeId, on_damage: OnDamage) -> Result<Self, OpenError> {
        Self::open_kept(disk, node, on_damage, Kept::RingId)
    }

    /// The same for another number, which is kept in the same way.
    pub(crate) fn open_kept(
        mut disk: D,
        node: NodeId,
        on_damage: OnDamage,
        kept: Kept,
    ) -> Result<Self, OpenError> {
        if !disk.has_directory() {
            let directory = disk.path().parent().map(PathBuf::from);
            return Err(OpenError::NoDirectory(directory.unwrap_or_default()));
        }
        let found = match disk.open(Name::Final, false) {
            Ok(()) => choose(&mut disk, node, kept),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                create(&mut disk, (node, kept), None)
            }
            Err(error) => Err(wrong(&disk, "open it", error)),
        };
        let (current, index, lost_a_slot) = match found {
            Err(error) if error.reset_helps() && on_damage == OnDamage::Reset => {
                create(&mut disk, (node, kept), Some(NO_RING))?
            }
            found => found?,
        };
        let file = Self {
            disk,
            kept,
            current,
            index,
            lost_a_slot,
            failed: false,
        };
        file.settled()
    }

    /// Makes the value durable that was found, and the name of the file.
    fn settled(mut self) -> Result<Self, OpenError> {
        let at = (self.index * SLOT_BYTES) as u64;
        let steps = [
            (
                "write it",
                self.disk
                    .write_at(at, &self.current.encode(magic(self.kept))),
            ),
            ("make it durable", self.disk.sync()),
            ("make its directory durable", self.disk.sync_names()),
        ];
        for (doing, result) in steps {
            result.map_err(|error| wrong(&self.disk, doing, error))?;
        }
        Ok(self)
    }

    /// The value that counts; `None` if none was ever stored.
    pub const fn value(&self) -> Option<u64> {
        self.current.value
    }

    /// One slot was bad when the file was opened: the value may be the one before the newest.
    pub const fn lost_a_slot(&self) -> bool {
        self.lost_a_slot
    }

    /// Makes `value` durable. It is the file's value when this says `Ok`, and not before.
    ///
    /// # Errors
    /// [`StoreError`]; the value before is still in the file.
    pub fn store(&mut self, value: u64) -> Result<(), StoreError> {
        if self.failed {
            return Err(StoreError::Failed);
        }
        let next = Slot {
            generation: self.current.generation.wrapping_add(1),
            value: Some(value),
            ..self.current
        };
        let index = 1 - self.index;
        let at = (index * SLOT_BYTES) as u64;
        match self.disk.write_at(at, &next.encode(magic(self.kept))) {
            Ok(()) => {}
            // Nothing waits to be synced that was promised to anybody.
            Err(error) if is_no_room(&error) => return Err(StoreError::NoSpace(error)),
            Err(error) => return Err(self.fail(error)),
        }
        self.disk.sync().map_err(|error| self.fail(error))?;
        (self.current, self.index) = (next, index);
        Ok(())
    }

    /// After a failed sync the kernel takes what it could not write for written. A second try would
    /// succeed and prove nothing, so there is none.
    const fn fail(&mut self, error: io::Error) -> StoreError {
        self.failed = true;
        StoreError::Io(error)
    }
}

pub(crate) fn is_no_room(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

/// The bytes that tell a file of this kind from others.
const fn magic(kept: Kept) -> &'static [u8; 8] {
    match kept {
        Kept::RingId => b"ROTARING",
        Kept::Primaries => b"ROTAPRIM",
        Kept::Lives => b"ROTALIFE",
    }
}

/// Reads the open file: the slot that counts, its index, and whether the other one is bad.
fn choose<D: Disk>(
    disk: &mut D,
    node: NodeId,
    kept: Kept,
) -> Result<(Slot, usize, bool), OpenError> {
    let bytes = disk.read().map_err(|error| wrong(disk, "read it", error))?;
    let slots = [0, 1].map(|index| Slot::decode(&bytes, index, magic(kept)));
    for slot in &slots {
        let found = slot.as_ref().map(|slot| slot.node).map_err(|&bad| bad);
        check_copy(disk, kept, node, found)?;
    }
    let damaged = || OpenError::Damaged {
        kept,
        path: disk.path().to_owned(),
    };
    match slots {
        // Writes never leave two of one generation.
        [Ok(first), Ok(second)] if first.generation == second.generation => Err(damaged()),
        [Ok(first), Ok(second)] if first.generation > second.generation => Ok((first, 0, false)),
        [Ok(_), Ok(second)] => Ok((second, 1, false)),
        [Ok(first), Err(_)] => Ok((first, 0, true)),
        [Err(_), Ok(second)] => Ok((second, 1, true)),
        [Err(_), Err(_)] => Err(damaged()),
    }
}

/// Makes a new file, whole before it has its name.
fn create<D: Disk>(
    disk: &mut D,
    (node, kept): (NodeId, Kept),
    value: Option<u64>,
) -> Result<(Slot, usize, bool), OpenError> {
    let bytes = new_file(node, value, magic(kept));
    let made = disk
        .open(Name::New, true)
        .and_then(|()| disk.truncate(0))
        .and_then(|()| disk.write_at(0, &bytes))
        .and_then(|()| disk.sync())
        .and_then(|()| disk.publish());
    made.map_err(|error| wrong(disk, "make it", error))?;
    choose(disk, node, kept)
}
