//! The record of primary configurations of a node, kept so that it survives a crash.
//!
//! A node that has agreed that a configuration becomes primary must never forget it: another one could become primary
//! beside it. So unlike a ring id, of which an older value does little harm, the file has the record that was promised
//! last, or the node does not start.
//!
//! # Layout and use
//!
//! One file of two copies of one record, 32 KiB apart. A copy has a generation, the node, the record and a checksum;
//! the good one with the larger generation counts, and the first copy of two alike. A record is written to the first
//! copy and synced, then to the second and synced; only then is it promised. So every promised record is in both, and
//! one bad copy never takes it away: that is what the second sync buys, and it is needed for changes of primaries only.
//!
//! A new file is made as that of a ring id is: written and synced under a name of its own, and renamed. Opening it
//! writes the record that counts to both copies once more, and syncs them, for the same reasons.
//!
//! # Faults and their outcomes
//!
//! | fault | outcome |
//! |---|---|
//! | no file, and nothing says that the node has lived before | first start: the file is made, with the record for that |
//! | no file, though the node has lived before | refused, until it is reset |
//! | no directory | refused; it is not made, since a missing mount looks the same |
//! | one copy torn, cut off, or a bit of it flipped | the other counts, the bad one is written again, and [`PrimaryFile::lost_a_copy`] says so |
//! | both copies bad, or different ones of one generation | refused, until it is reset |
//! | another node's record in a good copy | refused, until it is reset |
//! | a later version's copy | refused, until it is reset |
//! | another process has the file | refused |
//! | no permission, read-only file system, input/output error while opening | refused |
//! | no room while the file is made | refused |
//! | a record longer than a copy | `TooLong`; the one before stays |
//! | no room (or quota) in a write | `NoSpace`; a later try may work |
//! | any other error in a write | `Io`; nothing more is stored until it is opened again |
//! | any error in a sync, also for want of room | the same |
//! | crash while the file is made | as no file; what is left of the new one is written over |
//! | crash or power loss in a write, or before its second sync has ended | the record before, or the new one: nobody was told that it is durable |
//! | power loss after the second sync | the new record |
//!
//! A reset puts a record in the file's place that the caller chooses: as a rule that of a node that has
//! forgotten.
//!
//! # Limits
//!
//! The file cannot show that an older copy of all of it was put back, nor that an empty directory is not a first one: a
//! node whose disk was replaced has to be reset by the operator who replaced it.

use rota_core::contract::NodeId;
use std::io;
use std::path::PathBuf;

use crate::copies::{COPY_BYTES, RECORD_LIMIT, RecordCopy, new_file};
use crate::disk::{Disk, FileDisk, Name};
use crate::error::{Kept, OpenError, StoreError, check_copy, wrong};
use crate::ring_id::{OnDamage, is_no_room};

/// The options with which a file is opened.
#[derive(Clone, Copy, Debug)]
pub struct Opening<'a> {
    /// The record of a new file.
    pub first: &'a [u8],
    /// Something says that this node has lived before, so that a missing file was lost.
    pub lived_before: bool,
    /// The treatment of a file that is refused, or was lost.
    pub on_damage: OnDamage,
}

/// A file with the record of primary configurations of a node.
#[derive(Debug)]
pub struct PrimaryFile<D = FileDisk> {
    disk: D,
    current: RecordCopy,
    /// Each try has a number of its own, whatever became of those before.
    generation: u64,
    lost_a_copy: bool,
    failed: bool,
}

impl PrimaryFile {
    /// Opens the file of node `node` at `path`, and makes it where that is right.
    ///
    /// # Errors
    /// [`OpenError`]; the node must not start then.
    pub fn open(path: PathBuf, node: NodeId, opening: Opening<'_>) -> Result<Self, OpenError> {
        Self::open_on(FileDisk::new(path), node, opening)
    }
}

impl<D: Disk> PrimaryFile<D> {
    /// The same on any disk.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open_on(mut disk: D, node: NodeId, opening: Opening<'_>) -> Result<Self, OpenError> {
        if !disk.has_directory() {
            let directory = disk.path().parent().map(PathBuf::from);
            return Err(OpenError::NoDirectory(directory.unwrap_or_default()));
        }
        let found = match disk.open(Name::Final, false) {
            Ok(()) => choose(&mut disk, node),
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(wrong(&disk, "open it", error))
            }
            Err(_) if opening.lived_before => Err(OpenError::Lost(disk.path().to_owned())),
            Err(_) => create(&mut disk, node, opening.first),
        };
        let reset = opening.on_damage == OnDamage::Reset;
        let (current, lost_a_copy) = match found {
            Err(error) if error.reset_helps() && reset => create(&mut disk, node, opening.first)?,
            found => found?,
        };
        let file = Self {
            disk,
            generation: current.generation,
            current,
            lost_a_copy,
            failed: false,
        };
        file.settled()
    }

    /// Makes the record durable that was found, in both copies, and the name of the file.
    fn settled(mut self) -> Result<Self, OpenError> {
        let bytes = self.current.encode();
        for index in [0, 1] {
            let written = self.disk.write_at(index * COPY_BYTES as u64, &bytes);
            written.map_err(|error| wrong(&self.disk, "write it", error))?;
            let synced = self.disk.sync();
            synced.map_err(|error| wrong(&self.disk, "make it durable", error))?;
        }
        let named = self.disk.sync_names();
        named.map_err(|error| wrong(&self.disk, "make its directory durable", error))?;
        Ok(self)
    }

    /// The record that counts.
    pub fn record(&self) -> &[u8] {
        &self.current.record
    }

    /// One copy was bad when the file was opened; the record is sound all the same.
    pub const fn lost_a_copy(&self) -> bool {
        self.lost_a_copy
    }

    /// Makes `record` durable. It is the file's record when this says `Ok`, and not before.
    ///
    /// # Errors
    /// [`StoreError`]; after a crash the record is this one or the one before.
    pub fn store(&mut self, record: &[u8]) -> Result<(), StoreError> {
        if self.failed {
            return Err(StoreError::Failed);
        }
        if record.len() > RECORD_LIMIT {
            return Err(StoreError::TooLong(record.len()));
        }
        self.generation = self.generation.wrapping_add(1);
        let next = RecordCopy {
            node: self.current.node,
            generation: self.generation,
            record: record.to_vec(),
        };
        let bytes = next.encode();
        for index in [0, 1] {
            match self.disk.write_at(index * COPY_BYTES as u64, &bytes) {
                Ok(()) => {}
                // Nothing waits to be synced that was promised to anybody.
                Err(error) if is_no_room(&error) => return Err(StoreError::NoSpace(error)),
                Err(error) => return Err(self.fail(error)),
            }
            self.disk.sync().map_err(|error| self.fail(error))?;
        }
        self.current = next;
        Ok(())
    }

    /// As with a ring id: a second try would succeed and prove nothing.
    const fn fail(&mut self, error: io::Error) -> StoreError {
        self.failed = true;
        StoreError::Io(error)
    }
}

/// Reads the open file: the copy that counts, and whether the other one is bad.
fn choose<D: Disk>(disk: &mut D, node: NodeId) -> Result<(RecordCopy, bool), OpenError> {
    let bytes = disk.read().map_err(|error| wrong(disk, "read it", error))?;
    let copies = [0, 1].map(|index| RecordCopy::decode(&bytes, index));
    for copy in &copies {
        let found = copy.as_ref().map(|copy| copy.node).map_err(|&bad| bad);
        check_copy(disk, Kept::Primaries, node, found)?;
    }
    let damaged = || OpenError::Damaged {
        kept: Kept::Primaries,
        path: disk.path().to_owned(),
    };
    match copies {
        // No write leaves that behind.
        [Ok(first), Ok(second)]
            if first.generation == second.generation && first.record != second.record =>
        {
            Err(damaged())
        }
        [Ok(first), Ok(second)] if first.generation >= second.generation => Ok((first, false)),
        [Ok(_), Ok(second)] => Ok((second, false)),
        [Ok(one), Err(_)] | [Err(_), Ok(one)] => Ok((one, true)),
        [Err(_), Err(_)] => Err(damaged()),
    }
}

/// Makes a new file, whole before it has its name.
fn create<D: Disk>(
    disk: &mut D,
    node: NodeId,
    record: &[u8],
) -> Result<(RecordCopy, bool), OpenError> {
    if record.len() > RECORD_LIMIT {
        let error = io::ErrorKind::InvalidInput.into();
        return Err(wrong(disk, "make it with so long a record", error));
    }
    let bytes = new_file(node, record);
    let made = disk
        .open(Name::New, true)
        .and_then(|()| disk.truncate(0))
        .and_then(|()| disk.write_at(0, &bytes))
        .and_then(|()| disk.sync())
        .and_then(|()| disk.publish());
    made.map_err(|error| wrong(disk, "make it", error))?;
    choose(disk, node)
}
