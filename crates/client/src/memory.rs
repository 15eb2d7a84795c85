//! The daemon's frames through memory (`docs/protocols/client.md`), for both kinds of clients.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rota_memory::Reader;

use crate::protocol::Welcome;

/// The memory, for both halves of a client.
#[derive(Debug)]
pub struct Memory(Mutex<Reader>);

impl Memory {
    /// The reader of the memory, if the daemon speaks through memory.
    pub fn of(welcome: &Welcome, descriptor: Option<&OwnedFd>) -> io::Result<Option<Box<Self>>> {
        match (welcome.memory, descriptor) {
            (0, None) => Ok(None),
            (0, Some(_)) | (_, None) => Err(io::ErrorKind::InvalidData.into()),
            (bytes, Some(descriptor)) => {
                let reader = Reader::new(descriptor, bytes as usize)?;
                Ok(Some(Box::new(Self(Mutex::new(reader)))))
            }
        }
    }

    fn reader(&self) -> MutexGuard<'_, Reader> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// See [`Reader::read`].
    pub fn read(
        &self,
        into: &mut [u8],
        socket: impl FnMut(&mut [u8]) -> io::Result<Option<usize>>,
    ) -> io::Result<Option<usize>> {
        self.reader().read(into, socket)
    }

    /// Whether there is something to read that no descriptor tells of.
    pub fn has_more(&self) -> bool {
        self.reader().has_more()
    }
}
