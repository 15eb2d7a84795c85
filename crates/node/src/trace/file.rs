//! The file of a trace, and its end where that takes no more.
//!
//! A node does not stop for its trace. But a trace with a hole would say that things happened which did not: so once
//! something could not be written, nothing more is, though there may be room again. The file then holds the beginning
//! of what this process did, as if it had been killed then.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A trace's file. Clones write to the same, whole lines each, and end together.
#[derive(Clone, Debug)]
pub struct TraceFile {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    file: File,
    path: PathBuf,
    has_ended: AtomicBool,
    lost: AtomicU64,
}

impl TraceFile {
    /// Opens the file to append to it. An earlier life may have been killed within a line: this one starts on a line of
    /// its own.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let mut options = File::options();
        let mut file = options.create(true).append(true).read(true).open(path)?;
        let torn = ends_within_a_line(&mut file)?;
        let opened = Self {
            shared: Arc::new(Shared {
                file,
                path: path.to_owned(),
                has_ended: AtomicBool::new(false),
                lost: AtomicU64::new(0),
            }),
        };
        if torn {
            opened.put(b"\n");
        }
        Ok(opened)
    }

    /// Hands whole lines to the kernel, or counts them as lost.
    pub fn write(&self, lines: &[u8]) {
        if lines.is_empty() {
            return;
        }
        let written = self.put(lines);
        if written < lines.len() {
            let lost = lines[written..].iter().filter(|byte| **byte == b'\n');
            let lost = lost.count() as u64;
            self.shared.lost.fetch_add(lost, Ordering::Relaxed);
        }
    }

    /// Lines that could not be written.
    pub fn lost(&self) -> u64 {
        self.shared.lost.load(Ordering::Relaxed)
    }

    /// Writes these bytes; says how many of them were written.
    fn put(&self, bytes: &[u8]) -> usize {
        let Shared {
            file,
            path,
            has_ended,
            ..
        } = &*self.shared;
        if has_ended.load(Ordering::Relaxed) {
            return 0;
        }
        let mut written = 0;
        let error = loop {
            match (&mut &*file).write(&bytes[written..]) {
                Ok(0) => break ErrorKind::WriteZero.into(),
                Ok(more) => written += more,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => break error,
            }
            if written == bytes.len() {
                return written;
            }
        };
        has_ended.store(true, Ordering::Relaxed);
        let path = path.display();
        tracing::error!(%path, %error, "the trace has ended: the node goes on without it");
        written
    }
}

fn ends_within_a_line(file: &mut File) -> io::Result<bool> {
    if file.metadata()?.len() == 0 {
        return Ok(false);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_torn_stands_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("trace");
        std::fs::write(&path, "whole\nto").unwrap();
        let file = TraceFile::open(&path).unwrap();
        file.clone().write(b"mine\n");
        file.write(b"and mine\n");
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text, "whole\nto\nmine\nand mine\n");
        assert_eq!(file.lost(), 0);
    }

    #[test]
    fn one_that_takes_no_more_has_ended_for_all_who_write_to_it() {
        // It can be opened, and is always full.
        let file = TraceFile::open(Path::new("/dev/full")).unwrap();
        file.clone().write(b"one\ntwo\n");
        assert_eq!(file.lost(), 2);
        file.write(b"three\n");
        assert_eq!(file.lost(), 3);
    }
}
