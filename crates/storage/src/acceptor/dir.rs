//! The calls of the log to a file system, so that tests can have each of them fail.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::disk::lock;

/// A file of the log. Copies are the same file.
pub trait LogFile: Clone + Send + Sync + 'static {
    /// Reads until `buf` is full or the file ends; says how much.
    ///
    /// # Errors
    /// The system's own.
    fn read_at(&self, at: u64, buf: &mut [u8]) -> io::Result<usize>;

    /// Writes all of it.
    ///
    /// # Errors
    /// The system's own; any part may have been written.
    fn write_at(&self, at: u64, bytes: &[u8]) -> io::Result<()>;

    /// Writes whole blocks, of 4096 bytes, to where a block begins. The memory is aligned to as many.
    ///
    /// # Errors
    /// As [`write_at`](Self::write_at).
    fn append_at(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.write_at(at, bytes)
    }

    /// Nothing more is appended. Of copies nothing changes.
    fn end_appends(&mut self) {}

    /// Makes what was written durable.
    ///
    /// # Errors
    /// The system's own; then nothing is known about what was written, and never will be.
    fn sync(&self) -> io::Result<()>;

    /// Its length.
    ///
    /// # Errors
    /// The system's own.
    fn bytes(&self) -> io::Result<u64>;
}

/// The purpose for which a file is opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// Reading.
    Read,
    /// Reading and writing.
    Write,
    /// The same, empty, and made where it is not there.
    Create,
    /// Reading and writing; appended blocks are to be durable soon.
    Append,
}

/// The directory of one log.
pub trait LogDisk: Send {
    /// Its files.
    type File: LogFile;

    /// The path of the directory, for messages.
    fn path(&self) -> &Path;

    /// Whether the directory is there.
    fn has_directory(&self) -> bool;

    /// Keeps other processes from using it, until this is dropped.
    ///
    /// # Errors
    /// `WouldBlock` when another process has it; else the system's own.
    fn lock(&mut self) -> io::Result<()>;

    /// The names of all files in it.
    ///
    /// # Errors
    /// The system's own.
    fn names(&self) -> io::Result<Vec<String>>;

    /// Opens a file.
    ///
    /// # Errors
    /// The system's own.
    fn open(&self, name: &str, access: Access) -> io::Result<Self::File>;

    /// Gives a file another name. A file of that name is gone then.
    ///
    /// # Errors
    /// The system's own.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    /// The system's own.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes the names durable.
    ///
    /// # Errors
    /// The system's own.
    fn sync_names(&self) -> io::Result<()>;
}

/// The file that is locked.
const LOCK: &str = "lock";

/// Bodies of messages are in there: it is all for the owner only.
const MODE: u32 = 0o600;

/// A real directory.
#[derive(Debug)]
pub struct FileDir {
    path: PathBuf,
    lock: Option<File>,
}

impl FileDir {
    /// The directory at `path`.
    pub const fn new(path: PathBuf) -> Self {
        Self { path, lock: None }
    }
}

/// A real file.
#[derive(Clone, Debug)]
pub struct RealFile {
    file: Arc<File>,
    /// To append past the system's memory, where that is possible.
    direct: Option<Arc<File>>,
}

impl LogFile for RealFile {
    fn read_at(&self, at: u64, buf: &mut [u8]) -> io::Result<usize> {
        let mut done = 0;
        while done < buf.len() {
            match self.file.read_at(&mut buf[done..], at + done as u64) {
                Ok(0) => break,
                Ok(read) => done += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    fn write_at(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, at)
    }

    fn append_at(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let Some(direct) = &self.direct else {
            return self.write_at(at, bytes);
        };
        match direct.write_all_at(bytes, at) {
            // The file system knows `O_DIRECT`, and its blocks are larger.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => self.write_at(at, bytes),
            written => written,
        }
    }

    fn end_appends(&mut self) {
        self.direct = None;
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn bytes(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }
}

impl LogDisk for FileDir {
    type File = RealFile;

    fn path(&self) -> &Path {
        &self.path
    }

    fn has_directory(&self) -> bool {
        self.path.is_dir()
    }

    fn lock(&mut self) -> io::Result<()> {
        let file = File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(MODE)
            .open(self.path.join(LOCK))?;
        lock(&file)?;
        self.lock = Some(file);
        Ok(())
    }

    fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.path)? {
            // Names that are no text are none of the log's.
            names.extend(entry?.file_name().into_string().ok());
        }
        names.sort();
        Ok(names)
    }

    fn open(&self, name: &str, access: Access) -> io::Result<RealFile> {
        let path = self.path.join(name);
        let file = File::options()
            .read(true)
            .write(access != Access::Read)
            .create(access == Access::Create)
            .truncate(access == Access::Create)
            .mode(MODE)
            .open(&path)?;
        let direct = (access == Access::Append).then(|| {
            let mut options = File::options();
            options.write(true).custom_flags(libc::O_DIRECT).open(&path)
        });
        Ok(RealFile {
            file: Arc::new(file),
            // Not all file systems know it.
            direct: direct.and_then(Result::ok).map(Arc::new),
        })
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        std::fs::rename(self.path.join(from), self.path.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        std::fs::remove_file(self.path.join(name))
    }

    fn sync_names(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }
}
