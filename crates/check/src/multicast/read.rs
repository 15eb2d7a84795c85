//! Reads the traces of processes of several rings.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use super::event::Line;

/// Why a trace could not be read.
#[derive(Debug)]
pub enum MulticastError {
    /// The system's own.
    Io(PathBuf, io::Error),
    /// A line is not one of a trace.
    Malformed {
        /// In which file.
        file: PathBuf,
        /// Its number, from 1.
        line: usize,
        /// What is wrong with it.
        what: String,
    },
}

impl fmt::Display for MulticastError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(file, error) => write!(f, "cannot read {}: {error}", file.display()),
            Self::Malformed { file, line, what } => {
                write!(f, "{} line {line}: {what}", file.display())
            }
        }
    }
}

impl std::error::Error for MulticastError {}

/// Reads files, each of one node: its lives one after the other. A last line that was cut off says nothing.
///
/// # Errors
/// A file cannot be read, or holds a line that is none of a trace.
pub fn read<P: AsRef<Path>>(files: &[P]) -> Result<Vec<Line>, MulticastError> {
    let mut lines = Vec::new();
    for file in files {
        let file = file.as_ref();
        let failed = |error| MulticastError::Io(file.to_owned(), error);
        let text = std::fs::read_to_string(file).map_err(failed)?;
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        for (at, line) in text[..whole].lines().enumerate() {
            let read = serde_json::from_str(line);
            lines.push(read.map_err(|error| MulticastError::Malformed {
                file: file.to_owned(),
                line: at + 1,
                what: error.to_string(),
            })?);
        }
    }
    Ok(lines)
}
