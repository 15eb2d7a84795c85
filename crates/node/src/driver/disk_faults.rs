//! A disk for votes that is slow, hangs, fails or is full on purpose, so that real daemons can be watched with one. Off
//! unless configured ([`FaultConfig`]).

use rota_core::contract::NodeId;
use rota_storage::acceptor::{Access, FileDir, LogDisk, LogFile, RealFile};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::config::path_of;
use rota_net::fault::FaultConfig;

/// The pause between two looks whether a trouble is over.
const LOOK: Duration = Duration::from_millis(5);

/// The name of a file that is to become a segment, while it is written.
const NEW: &str = "spare.new";

/// The configured faults of a disk, and their start.
#[derive(Debug)]
pub(super) struct DiskFaults {
    delay: Duration,
    hang: Duration,
    every: Duration,
    trouble: Option<PathBuf>,
    began: Instant,
}

impl DiskFaults {
    /// `None` if the disk is to be as it is.
    pub(super) fn new(config: &FaultConfig, node: NodeId) -> Option<Arc<Self>> {
        let every = Duration::from_millis(config.disk_hang_every_ms);
        let faults = Self {
            delay: Duration::from_micros(config.disk_delay_us),
            hang: Duration::from_millis(config.disk_hang_ms).min(every),
            every,
            trouble: config
                .disk_trouble
                .as_deref()
                .map(|path| path_of(path, node)),
            began: Instant::now(),
        };
        let any = faults.trouble.is_some() || !(faults.delay + faults.hang).is_zero();
        any.then(|| Arc::new(faults))
    }

    /// The time for which the disk stands still from now on: at the end of each period.
    fn hangs(&self, since: Duration) -> Duration {
        if self.hang.is_zero() {
            return Duration::ZERO;
        }
        let into = Duration::from_nanos((since.as_nanos() % self.every.as_nanos()) as u64);
        match into >= self.every - self.hang {
            true => self.every - into,
            false => Duration::ZERO,
        }
    }

    /// Whether the file of troubles contains this word.
    fn has(&self, trouble: &str) -> bool {
        let said = self.trouble.as_ref().map(std::fs::read_to_string);
        said.is_some_and(|said| said.is_ok_and(|said| said.trim() == trouble))
    }

    /// The faults before a call that changes something.
    fn before(&self, is_new: bool) -> io::Result<()> {
        std::thread::sleep(self.hangs(self.began.elapsed()));
        while self.has("hang") {
            std::thread::sleep(LOOK);
        }
        if self.has("fail") {
            return Err(io::Error::from_raw_os_error(libc::EIO));
        }
        match is_new && self.has("full") {
            true => Err(io::Error::from_raw_os_error(libc::ENOSPC)),
            false => Ok(()),
        }
    }
}

/// A directory on such a disk.
#[derive(Debug)]
pub(super) struct FaultyDir {
    pub(super) dir: FileDir,
    pub(super) faults: Arc<DiskFaults>,
}

/// A file on it.
#[derive(Clone, Debug)]
pub(super) struct FaultyFile {
    file: RealFile,
    faults: Arc<DiskFaults>,
    /// The file needs room.
    is_new: bool,
}

impl LogFile for FaultyFile {
    fn read_at(&self, at: u64, buf: &mut [u8]) -> io::Result<usize> {
        self.file.read_at(at, buf)
    }

    fn write_at(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.faults.before(self.is_new)?;
        self.file.write_at(at, bytes)
    }

    fn append_at(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.faults.before(self.is_new)?;
        self.file.append_at(at, bytes)
    }

    fn end_appends(&mut self) {
        self.file.end_appends();
    }

    fn sync(&self) -> io::Result<()> {
        self.faults.before(false)?;
        std::thread::sleep(self.faults.delay);
        self.file.sync()
    }

    fn bytes(&self) -> io::Result<u64> {
        self.file.bytes()
    }
}

impl LogDisk for FaultyDir {
    type File = FaultyFile;

    fn path(&self) -> &Path {
        self.dir.path()
    }

    fn has_directory(&self) -> bool {
        self.dir.has_directory()
    }

    fn lock(&mut self) -> io::Result<()> {
        self.dir.lock()
    }

    fn names(&self) -> io::Result<Vec<String>> {
        self.dir.names()
    }

    fn open(&self, name: &str, access: Access) -> io::Result<FaultyFile> {
        let is_new = name == NEW;
        self.faults.before(is_new && access == Access::Create)?;
        Ok(FaultyFile {
            file: self.dir.open(name, access)?,
            faults: Arc::clone(&self.faults),
            is_new,
        })
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.faults.before(false)?;
        self.dir.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.faults.before(false)?;
        self.dir.remove(name)
    }

    fn sync_names(&self) -> io::Result<()> {
        self.faults.before(false)?;
        self.dir.sync_names()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(config: &FaultConfig) -> Option<Arc<DiskFaults>> {
        DiskFaults::new(config, NodeId::new(3).unwrap())
    }

    #[test]
    fn a_disk_hangs_at_the_end_of_each_period() {
        let none = FaultConfig {
            loss: 0.5,
            disk_hang_every_ms: 100,
            ..FaultConfig::default()
        };
        assert!(faults(&none).is_none());
        let faults = faults(&FaultConfig {
            disk_hang_ms: 30,
            ..none
        });
        let faults = faults.unwrap();
        for (since, hangs) in [(0, 0), (69, 0), (70, 30), (99, 1), (100, 0), (185, 15)] {
            let [since, hangs] = [since, hangs].map(Duration::from_millis);
            assert_eq!(faults.hangs(since), hangs, "{since:?}");
        }
    }

    #[test]
    fn a_word_in_a_file_says_what_the_trouble_is() {
        let directory = tempfile::tempdir().unwrap();
        let faults = faults(&FaultConfig {
            disk_trouble: Some(directory.path().join("{node}.trouble")),
            ..FaultConfig::default()
        });
        let faults = faults.unwrap();
        let own = directory.path().join("3.trouble");
        let code = |is_new| faults.before(is_new).err().and_then(|e| e.raw_os_error());
        assert_eq!((code(false), code(true)), (None, None));
        std::fs::write(&own, "full\n").unwrap();
        assert_eq!((code(false), code(true)), (None, Some(libc::ENOSPC)));
        std::fs::write(&own, "fail").unwrap();
        assert_eq!(code(false), Some(libc::EIO));
        std::fs::write(&own, "hang").unwrap();
        std::thread::scope(|scope| {
            let hung = scope.spawn(|| code(false));
            std::thread::sleep(Duration::from_millis(50));
            assert!(!hung.is_finished());
            std::fs::remove_file(&own).unwrap();
            assert_eq!(hung.join().unwrap(), None);
        });
    }
}
