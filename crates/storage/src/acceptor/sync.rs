//! Waiting for the disk, beside further appends.

use std::io;

use rota_core::mutants::{self, Mutant};

use super::dir::LogFile;
use super::header::Position;

/// A sync that may be run beside further appends, in another thread.
#[derive(Debug)]
pub struct SyncJob<F> {
    pub(super) file: F,
    pub(super) upto: Position,
}

/// The result of a sync.
#[derive(Debug)]
#[must_use = "the log has to hear of it"]
pub struct SyncDone {
    pub(super) upto: Position,
    pub(super) result: io::Result<()>,
}

impl<F: LogFile> SyncJob<F> {
    /// Waits for the disk.
    pub fn run(self) -> SyncDone {
        let synced = self.file.sync();
        let result = if mutants::on(Mutant::M36) {
            Ok(())
        } else {
            synced
        };
        SyncDone {
            upto: self.upto,
            result,
        }
    }
}
