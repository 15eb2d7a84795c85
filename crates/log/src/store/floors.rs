//! Small files: the first positions of logs, and the number of the store.
//!
//! A floor is durable before any file below it goes. Else a replica that begins anew with an older checkpoint would
//! take trimmed records for lost ones.
//!
//! A disk may be full just when files are to be removed. So a spare file of zeros is kept, and the floors are written
//! over it: a file that has its blocks takes no more room.

use std::collections::BTreeMap;
use std::io;
use std::sync::Mutex;

use rota_storage::acceptor::{Access, LogDisk, LogFile as _};

use super::{Inner, Store, Tails, lock};

const FLOORS: &str = "floors";
const NEW_FLOORS: &str = "floors.new";
const FLOORS_MAGIC: &[u8; 8] = b"ROTAFLOR";
const STORE: &str = "store";
const NEW_STORE: &str = "store.new";
const TAILS: &str = "tails";
const NEW_TAILS: &str = "tails.new";
const STORE_MAGIC: &[u8; 8] = b"ROTALSTO";
const LEAST_SPARE: usize = 16 << 10;

fn with_sum(mut out: Vec<u8>) -> Vec<u8> {
    let sum = crc_fast::crc32_iscsi(&out);
    out.extend_from_slice(&sum.to_le_bytes());
    out
}

fn encode(floors: &[(u64, u64)]) -> Vec<u8> {
    let mut out = Vec::with_capacity(20 + floors.len() * 16);
    out.extend_from_slice(FLOORS_MAGIC);
    out.extend_from_slice(&(floors.len() as u64).to_le_bytes());
    for (log, floor) in floors {
        out.extend_from_slice(&log.to_le_bytes());
        out.extend_from_slice(&floor.to_le_bytes());
    }
    with_sum(out)
}

fn decode(bytes: &[u8]) -> Option<BTreeMap<u64, u64>> {
    let rest = bytes.strip_prefix(FLOORS_MAGIC)?;
    let (count, rest) = rest.split_first_chunk()?;
    let length = usize::try_from(u64::from_le_bytes(*count))
        .ok()?
        .checked_mul(16)?;
    let (floors, rest) = rest.split_at_checked(length)?;
    let sum = crc_fast::crc32_iscsi(&bytes[..16 + length]);
    if rest.first_chunk() != Some(&sum.to_le_bytes()) {
        return None;
    }
    let (floors, _) = floors.as_chunks::<16>();
    let number = |bytes: &[u8]| {
        bytes
            .first_chunk()
            .map_or(0, |bytes| u64::from_le_bytes(*bytes))
    };
    let floor = |both: &[u8; 16]| (number(&both[..8]), number(&both[8..]));
    Some(floors.iter().map(floor).collect())
}

fn read<D: LogDisk>(disk: &D, name: &str) -> io::Result<Option<Vec<u8>>> {
    let file = match disk.open(name, Access::Read) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let mut bytes = vec![0; usize::try_from(file.bytes()?).unwrap_or(0)];
    let read = file.read_at(0, &mut bytes)?;
    bytes.truncate(read);
    Ok(Some(bytes))
}

fn write<D: LogDisk>(disk: &Mutex<D>, new: &str, name: &str, bytes: &[u8]) -> io::Result<()> {
    let file = lock(disk).open(new, Access::Write);
    let file = match file {
        Ok(file) if file.bytes()? >= bytes.len() as u64 => file,
        _ => lock(disk).open(new, Access::Create)?,
    };
    file.write_at(0, bytes)?;
    file.sync()?;
    let disk = lock(disk);
    disk.rename(new, name)?;
    disk.sync_names()
}

/// The floors on the disk; none when the file is damaged.
pub(super) fn read_floors<D: LogDisk>(disk: &D) -> io::Result<Option<BTreeMap<u64, u64>>> {
    Ok(match read(disk, FLOORS)? {
        Some(bytes) => decode(&bytes),
        None => Some(BTreeMap::new()),
    })
}

/// The number of the store in this directory: `fresh` where it has none, or a damaged one.
pub(super) fn store_id<D: LogDisk>(disk: &Mutex<D>, fresh: u64) -> io::Result<u64> {
    let found = read(&*lock(disk), STORE)?;
    let id = found.and_then(|bytes| {
        let id = bytes.strip_prefix(STORE_MAGIC)?.first_chunk()?;
        let id = u64::from_le_bytes(*id);
        (bytes == store_file(id)).then_some(id)
    });
    match id {
        Some(id) => Ok(id),
        None => write(disk, NEW_STORE, STORE, &store_file(fresh)).map(|()| fresh),
    }
}

fn store_file(id: u64) -> Vec<u8> {
    let mut out = STORE_MAGIC.to_vec();
    out.extend_from_slice(&id.to_le_bytes());
    with_sum(out)
}

impl<D: LogDisk> Inner<D> {
    /// Makes the floors durable, if they are not.
    pub(super) fn write_floors(&self) -> io::Result<()> {
        let _alone = lock(&self.floors);
        let floors: Vec<(u64, u64)> = {
            let mut state = lock(&self.state);
            if !std::mem::take(&mut state.are_floors_dirty) {
                return Ok(());
            }
            let floor = |(log, entry): (&u64, &super::state::Log)| (*log, entry.floor);
            let all = state.logs.iter().map(floor);
            all.filter(|(_, floor)| *floor > 1).collect()
        };
        let written = write(&self.disk, NEW_FLOORS, FLOORS, &encode(&floors));
        if let Err(error) = &written {
            let mut state = lock(&self.state);
            state.are_floors_dirty = true;
            state.troubles.on_error("write of floors", error);
        }
        written
    }

    /// Sees that there is a file over which the floors can be written when there is no room.
    pub(super) fn make_spare(&self) -> io::Result<()> {
        let _alone = lock(&self.floors);
        let wanted = (lock(&self.state).logs.len() * 32).max(LEAST_SPARE);
        let found = lock(&self.disk).open(NEW_FLOORS, Access::Read);
        if found.and_then(|file| file.bytes()).unwrap_or(0) >= wanted as u64 {
            return Ok(());
        }
        let file = lock(&self.disk).open(NEW_FLOORS, Access::Create)?;
        file.write_at(0, &vec![0; wanted])
    }
}

impl<D: LogDisk + 'static> Store<D> {
    /// Keeps tails that are in no state of this replica's own, so that it need not read through all records after a
    /// restart.
    ///
    /// # Errors
    /// The system's own: without these tails the store does read through them.
    pub fn keep_tails(&self, tails: &Tails) -> io::Result<()> {
        let mut bytes = Vec::new();
        tails.encode(&mut bytes);
        let disk = lock(&self.inner.disk);
        let file = disk.open(NEW_TAILS, Access::Create)?;
        file.write_at(0, &bytes)?;
        file.sync()?;
        disk.rename(NEW_TAILS, TAILS)?;
        disk.sync_names()
    }

    /// The tails that were kept last, if they are there and sound.
    pub fn kept_tails(&self) -> Option<Tails> {
        let disk = lock(&self.inner.disk);
        let file = disk.open(TAILS, Access::Read).ok()?;
        let mut bytes = vec![0; usize::try_from(file.bytes().ok()?).ok()?];
        let read = file.read_at(0, &mut bytes).ok()?;
        bytes.truncate(read);
        Tails::decode(&bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floors_are_read_from_the_beginning_of_a_longer_file_and_never_when_damaged() {
        let floors = vec![(1, 5), (7, u64::MAX)];
        let mut bytes = encode(&floors);
        let length = bytes.len();
        bytes.resize(length + 100, 0);
        assert_eq!(decode(&bytes), Some(floors.into_iter().collect()));
        for at in 0..length {
            let mut wrong = bytes.clone();
            wrong[at] ^= 1;
            assert_eq!(decode(&wrong), None);
            assert_eq!(decode(&bytes[..at]), None);
        }
    }
}
