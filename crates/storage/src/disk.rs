//! The few calls to a file system, so that tests can have each of them fail.

use std::fs::{File, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// One of the two names of a file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Name {
    /// The file itself: whole from its first moment on.
    Final,
    /// A file that is not whole yet, and gets its final name when it is.
    New,
}

/// A place for one file, which has at most one file open.
pub trait Disk: Send {
    /// The file's final path, for messages.
    fn path(&self) -> &Path;

    /// Opens a file for reading and writing, locked against other processes, in place of the one that is
    /// open. With `create` it is made where it does not exist.
    ///
    /// # Errors
    /// `NotFound` without `create`; `WouldBlock` when another process has it; else the system's own.
    fn open(&mut self, name: Name, create: bool) -> io::Result<()>;

    /// All of the open file.
    ///
    /// # Errors
    /// The system's own.
    fn read(&mut self) -> io::Result<Vec<u8>>;

    /// Cuts the open file off at `len` bytes.
    ///
    /// # Errors
    /// The system's own.
    fn truncate(&mut self, len: u64) -> io::Result<()>;

    /// Writes all of `bytes` into the open file.
    ///
    /// # Errors
    /// The system's own; any part of the bytes may have been written.
    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()>;

    /// Makes what was written to the open file durable.
    ///
    /// # Errors
    /// The system's own; then nothing is known about what was written, and never will be.
    fn sync(&mut self) -> io::Result<()>;

    /// Gives the open file, which was opened as [`Name::New`], its final name. A file of that name is
    /// gone then.
    ///
    /// # Errors
    /// The system's own.
    fn publish(&mut self) -> io::Result<()>;

    /// Makes the names durable.
    ///
    /// # Errors
    /// The system's own.
    fn sync_names(&mut self) -> io::Result<()>;

    /// Whether the directory is there.
    fn has_directory(&self) -> bool;
}

/// The number of tries for a file that another process has locked, and the time between them. A process that is about
/// to end has it for a moment longer, and so has a child that was forked and has not started its program.
const TRIES: u32 = 20;
const BETWEEN_TRIES: Duration = Duration::from_millis(25);

pub(crate) fn lock(file: &File) -> io::Result<()> {
    for _ in 0..TRIES {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) => std::thread::sleep(BETWEEN_TRIES),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Err(io::ErrorKind::WouldBlock.into())
}

/// A real file.
#[derive(Debug)]
pub struct FileDisk {
    path: PathBuf,
    file: Option<File>,
    /// The file that the open one is to replace: it stays locked until then, so that nobody else
    /// replaces it, too.
    replaced: Option<File>,
}

impl FileDisk {
    /// The file at `path`, not opened yet.
    pub const fn new(path: PathBuf) -> Self {
        Self {
            path,
            file: None,
            replaced: None,
        }
    }

    fn at(&self, name: Name) -> PathBuf {
        match name {
            Name::Final => self.path.clone(),
            Name::New => {
                let mut path = self.path.clone().into_os_string();
                path.push(".new");
                path.into()
            }
        }
    }

    fn directory(&self) -> &Path {
        match self.path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        }
    }

    fn opened(&mut self) -> io::Result<&mut File> {
        self.file
            .as_mut()
            .ok_or_else(|| io::Error::other("no file is open"))
    }
}

impl Disk for FileDisk {
    fn path(&self) -> &Path {
        &self.path
    }

    fn open(&mut self, name: Name, create: bool) -> io::Result<()> {
        let path = self.at(name);
        let file = File::options()
            .read(true)
            .write(true)
            .create(create)
            .truncate(false)
            .open(&path)?;
        lock(&file)?;
        // Before the lock was there, another process may have given the name to another file.
        let (locked, named) = (file.metadata()?, std::fs::metadata(&path));
        match named {
            Ok(named) if (named.dev(), named.ino()) == (locked.dev(), locked.ino()) => {}
            _ => return Err(io::ErrorKind::WouldBlock.into()),
        }
        // A final file that is not this process's was made by another one just now.
        if name == Name::New && self.file.is_none() && std::fs::exists(&self.path)? {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.replaced = self.file.replace(file);
        Ok(())
    }

    fn read(&mut self) -> io::Result<Vec<u8>> {
        let file = self.opened()?;
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(0))?;
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn truncate(&mut self, len: u64) -> io::Result<()> {
        self.opened()?.set_len(len)
    }

    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.opened()?.write_all_at(bytes, at)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.opened()?.sync_data()
    }

    fn publish(&mut self) -> io::Result<()> {
        std::fs::rename(self.at(Name::New), &self.path)?;
        self.replaced = None;
        Ok(())
    }

    fn sync_names(&mut self) -> io::Result<()> {
        File::open(self.directory())?.sync_all()
    }

    fn has_directory(&self) -> bool {
        self.directory().is_dir()
    }
}
