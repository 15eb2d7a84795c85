//! Reads of a log's entries, wherever these are: in memory, on the disk, or in another process.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep};

use super::server::Server;
use crate::machine::{Log, Position};
use crate::store::{Missing, ReadError, Run};

/// The bytes that are read at once, about.
pub(super) const READ_BYTES: usize = 256 << 10;
/// The pauses before entries that came are read, and before others are asked again.
const SOON: Duration = Duration::from_millis(1);
const AGAIN: Duration = Duration::from_millis(50);

/// The reason why entries are not read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ReadFailed {
    /// The entries were trimmed.
    Trimmed,
    /// This process does not have the entries, or they are damaged here, and no other process gives them.
    Nowhere,
}

impl Server {
    /// A log as it is here; none: there is no such log.
    pub(super) fn head(&self, log: &[u8]) -> Option<Log> {
        self.view.look(|logs| logs.get(log).cloned())
    }

    /// Several logs, at one place of the order.
    pub(super) fn heads<'a>(&self, logs: impl Iterator<Item = &'a Bytes>) -> Vec<Option<Log>> {
        let now = self.view.now();
        logs.map(|name| now.get(name).cloned()).collect()
    }

    /// Entries from a position on and before another one: some of them, at least one.
    pub(super) async fn entries(
        &self,
        log: u64,
        (from, to): (Position, Position),
    ) -> Result<Run, ReadFailed> {
        self.some_entries(log, (from, to), READ_BYTES).await
    }

    /// The same, but of about `most` bytes.
    pub(super) async fn some_entries(
        &self,
        log: u64,
        (from, to): (Position, Position),
        most: usize,
    ) -> Result<Run, ReadFailed> {
        if let Some(run) = self.store.cached(log, from, to, most) {
            return Ok(run);
        }
        let until = Instant::now() + self.way.patience;
        loop {
            let store = Arc::clone(&self.store);
            let read = spawn_blocking(move || store.read(log, from, to, most)).await;
            match read {
                Ok(Ok(run)) => return Ok(run),
                Ok(Err(ReadError::Trimmed { .. })) => return Err(ReadFailed::Trimmed),
                Ok(Err(error)) => {
                    let pause = match self.get(log, error).await {
                        true => SOON,
                        false => AGAIN,
                    };
                    if Instant::now() >= until {
                        return Err(ReadFailed::Nowhere);
                    }
                    sleep(pause).await;
                }
                Err(_) => return Err(ReadFailed::Nowhere),
            }
        }
    }

    /// Gets entries that cannot be read here from another process. `false`: no process gives them now.
    async fn get(&self, log: u64, why: ReadError) -> bool {
        let (store, source) = (Arc::clone(&self.store), Arc::clone(&self.source));
        let got = spawn_blocking(move || match why {
            ReadError::Missing { from, to } => source
                .get(&store, &Missing { log, from, to })
                .is_ok_and(|got| got),
            ReadError::Damaged { from, to } | ReadError::Io { from, to, .. } => {
                tracing::error!(log, from, to, %why, "entries are got from another process");
                source.repair(&store, (log, from, to)).is_ok_and(|got| got)
            }
            // The entries were applied, and are not in the store yet.
            ReadError::NotThere { .. } | ReadError::Trimmed { .. } => false,
        });
        got.await.unwrap_or(false)
    }
}
