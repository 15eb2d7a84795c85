//! The owner of the checkpoints in a directory.

use std::io;

use super::error::{CheckpointError, Refused};
use super::failed;
use super::manifest::Subject;
use crate::acceptor::{Access, LogDisk, LogFile as _};

const NAME: &str = "store";
const NEW: &str = "store.new";
const MAGIC: &[u8; 8] = b"ROTASTOR";
const BYTES: usize = 32;

/// The number of this store; where the directory is empty it becomes `fresh`.
pub(super) fn open<D: LogDisk>(
    disk: &D,
    of: Subject,
    fresh: u64,
    has_checkpoints: bool,
) -> Result<u64, CheckpointError> {
    let path = disk.path().join(NAME);
    let bytes = match read_all(disk, NAME) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound && has_checkpoints => {
            return Err(CheckpointError::NoStore(path));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let written = write(disk, NEW, NAME, &encode(of, fresh));
            written.map_err(|error| failed(&path, "write", error))?;
            return Ok(fresh);
        }
        Err(error) => return Err(failed(&path, "read", error)),
    };
    let (found, store) =
        decode(&bytes).map_err(|why| CheckpointError::Damaged(path.clone(), why))?;
    match found == of {
        true => Ok(store),
        false => Err(CheckpointError::WrongOwner {
            path,
            found,
            wanted: of,
        }),
    }
}

fn encode(of: Subject, store: u64) -> Vec<u8> {
    let mut out = Vec::with_capacity(BYTES);
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&of.cluster.to_le_bytes());
    out.extend_from_slice(&of.partition.to_le_bytes());
    out.extend_from_slice(&store.to_le_bytes());
    let sum = crc_fast::crc32_iscsi(&out);
    out.extend_from_slice(&sum.to_le_bytes());
    out
}

fn decode(bytes: &[u8]) -> Result<(Subject, u64), Refused> {
    let bytes: &[u8; BYTES] = bytes.try_into().map_err(|_| Refused::Cut)?;
    let number = |at: usize| {
        bytes[at..]
            .first_chunk()
            .map_or(0, |n| u64::from_le_bytes(*n))
    };
    let half = |at: usize| {
        bytes[at..]
            .first_chunk()
            .map_or(0, |n| u32::from_le_bytes(*n))
    };
    if &bytes[..8] != MAGIC {
        return Err(Refused::NoManifest);
    }
    if crc_fast::crc32_iscsi(&bytes[..28]) != half(28) {
        return Err(Refused::Sum);
    }
    let of = Subject {
        cluster: number(8),
        partition: half(16),
    };
    Ok((of, number(20)))
}

/// All of a file.
pub(super) fn read_all<D: LogDisk>(disk: &D, name: &str) -> io::Result<Vec<u8>> {
    let file = disk.open(name, Access::Read)?;
    let bytes = usize::try_from(file.bytes()?).map_err(io::Error::other)?;
    let mut all = vec![0; bytes];
    let read = file.read_at(0, &mut all)?;
    all.truncate(read);
    Ok(all)
}

/// Writes a file that is whole when it has its name, and durable when this returns.
pub(super) fn write<D: LogDisk>(disk: &D, new: &str, name: &str, bytes: &[u8]) -> io::Result<()> {
    let file = disk.open(new, Access::Create)?;
    file.write_at(0, bytes)?;
    file.sync()?;
    // The names of the files that this one speaks of are made durable, too: a newer name may be durable before an older
    // one.
    disk.sync_names()?;
    disk.rename(new, name)?;
    disk.sync_names()
}
