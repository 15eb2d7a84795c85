//! Reads the traces of processes of several rings.

use std::path::Path;

use super::event::Line;
use crate::trace::TraceError;

/// Reads files, each of one node: its lives one after the other. A last line that was cut off says nothing.
///
/// # Errors
/// A file cannot be read, or holds a line that is none of a trace.
pub fn read<P: AsRef<Path>>(files: &[P]) -> Result<Vec<Line>, TraceError> {
    let mut lines = Vec::new();
    for file in files {
        let file = file.as_ref();
        let failed = |error| TraceError::Io(file.to_owned(), error);
        let text = std::fs::read_to_string(file).map_err(failed)?;
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        for (at, line) in text[..whole].lines().enumerate() {
            let read = serde_json::from_str(line);
            lines.push(read.map_err(|error| TraceError::Malformed {
                file: file.to_owned(),
                line: at + 1,
                what: error.to_string(),
            })?);
        }
    }
    Ok(lines)
}
