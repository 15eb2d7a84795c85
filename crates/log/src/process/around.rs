//! What is around the replica of a process: readers that wait, and the other processes.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use rota_storage::acceptor::FileDir;

use super::source::Source;
use super::waiters::Waiters;
use crate::mutants::{self, Mutant};
use crate::replicated::{Around, Replicated};
use crate::store::Store;

/// The machine of a process.
pub(super) type LogMachine = Replicated<FileDir>;

/// See the module's page.
pub(super) struct Neighbours {
    pub(super) waiters: Waiters,
    pub(super) source: Arc<Source>,
}

impl Around<FileDir> for Neighbours {
    fn changed(&self, logs: Option<&[Bytes]>) {
        match logs {
            Some(_) if mutants::on(Mutant::D10) => {}
            Some(logs) => self.waiters.wake(logs),
            None => self.waiters.wake_all(),
        }
    }

    fn get_all(&self, store: &Store<FileDir>) -> io::Result<()> {
        self.source.get_all(store)
    }
}
