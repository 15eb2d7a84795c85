//! Reads trace files.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use super::Trace;
use super::line::{Fields, Line};
use crate::event::EventKind;

/// The reason for which a trace could not be read.
#[derive(Debug)]
pub enum TraceError {
    /// An error of the system.
    Io(PathBuf, io::Error),
    /// A line is not one of a trace.
    Malformed {
        /// The file.
        file: PathBuf,
        /// Its number, from 1.
        line: usize,
        /// The mistake in the line.
        what: String,
    },
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(file, error) => write!(f, "cannot read {}: {error}", file.display()),
            Self::Malformed { file, line, what } => {
                write!(f, "{} line {line}: {what}", file.display())
            }
        }
    }
}

impl std::error::Error for TraceError {}

/// A line that cannot be read, and whether it may have been cut off.
struct Bad {
    what: String,
    cut: bool,
}

impl Trace {
    /// Reads files: of one process or of several each, the lives of a node one after the other or in
    /// files of their own. Files are taken in the order of their first times, which is the order of
    /// a node's lives as long as its host was not restarted between them.
    ///
    /// # Errors
    /// A file cannot be read, or holds a line that is none of a trace.
    pub fn from_files<P: AsRef<Path>>(files: &[P]) -> Result<Self, TraceError> {
        let mut opened = Vec::new();
        for file in files {
            let path = file.as_ref();
            let failed = |error| TraceError::Io(path.to_owned(), error);
            let mut reader = BufReader::with_capacity(1 << 20, File::open(path).map_err(failed)?);
            opened.push((first_time(reader.fill_buf().map_err(failed)?), path, reader));
        }
        opened.sort_by_key(|(time, ..)| *time);
        let mut trace = Self::new();
        for (_, path, reader) in opened {
            trace.read(path, reader)?;
        }
        Ok(trace)
    }

    /// Adds the lines of one file, which is called `file` in errors.
    ///
    /// A process that is killed may leave half a line behind: at the end of the file, or before what
    /// the harness or a later life of the node appended. Half a line says nothing and is passed over.
    ///
    /// # Errors
    /// As [`Trace::from_files`].
    pub fn read(&mut self, file: &Path, mut reader: impl BufRead) -> Result<(), TraceError> {
        let mut text = Vec::new();
        let mut cut: Option<(usize, String)> = None;
        let malformed = |(line, what)| TraceError::Malformed {
            file: file.to_owned(),
            line,
            what,
        };
        for number in 1.. {
            text.clear();
            let failed = |error| TraceError::Io(file.to_owned(), error);
            if reader.read_until(b'\n', &mut text).map_err(failed)? == 0 {
                break;
            }
            match (parse(&text), cut.take()) {
                (Ok(line), None) => self.take(line),
                (Ok(line), Some(earlier)) if ends_a_life(&line) => {
                    drop(earlier);
                    self.take(line);
                }
                (Err(_), None) if text.last() != Some(&b'\n') => break,
                (Err(bad), None) if bad.cut => cut = Some((number, bad.what)),
                (Err(bad), None) => return Err(malformed((number, bad.what))),
                (_, Some(earlier)) => return Err(malformed(earlier)),
            }
        }
        cut.map_or(Ok(()), |earlier| Err(malformed(earlier)))
    }

    fn take(&mut self, line: Line) {
        match line {
            Line::Event(event) => self.push(&event),
            Line::Quiesce => self.quiesce(),
        }
    }
}

fn parse(text: &[u8]) -> Result<Line, Bad> {
    // A line break within a string would hide that the line was cut off.
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    let fields: Fields<'_> = serde_json::from_slice(text).map_err(|error| Bad {
        cut: error.is_eof(),
        what: error.to_string(),
    })?;
    fields.line().map_err(|what| Bad { what, cut: false })
}

/// Whether this line follows when a process was killed.
fn ends_a_life(line: &Line) -> bool {
    matches!(line, Line::Event(event) if matches!(event.kind, EventKind::Start | EventKind::Crash))
}

/// The time of the first line, 0 if there is none.
fn first_time(beginning: &[u8]) -> u64 {
    let line = beginning.split(|byte| *byte == b'\n').next();
    match line.map(parse) {
        Some(Ok(Line::Event(event))) => event.time.0,
        _ => 0,
    }
}
