//! The directory for files of benchmarks that have to be on disk: in the same place for all of them, so that they can
//! be compared.

use tempfile::TempDir;

use crate::error::BenchError;

/// A directory in the system's temporary one; it is gone when this is dropped.
pub(crate) fn directory() -> Result<TempDir, BenchError> {
    let directory = tempfile::Builder::new().prefix("rota-bench-").tempdir();
    directory.map_err(BenchError::io("cannot make a directory"))
}
