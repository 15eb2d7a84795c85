//! The search for damage that no reader has met: all files are read, one behind the other, at a pace at which each comes
//! once in a while. What is damaged is put in order with what another process has, while one still has it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use rota_storage::acceptor::FileDir;

use super::source::Source;
use crate::store::{ReadError, Scrub as Files, Store};

/// The bytes that are read in a second, at most: readers and the writer need the disk.
const MOST_RATE: f64 = (32 << 20) as f64;
/// The bytes behind which the pace is kept.
const PART_BYTES: u64 = 256 << 10;
/// The longest time without a look at whether the process stops.
const LOOK: Duration = Duration::from_millis(100);

/// What was read so far.
#[derive(Debug, Default)]
pub(super) struct Scrubbed {
    /// Bytes of files.
    pub(super) bytes: AtomicU64,
    /// How often the last file was reached: but for the first time, all files were read.
    pub(super) rounds: AtomicU64,
}

/// The search.
pub(super) struct Scrub {
    pub(super) store: Arc<Store<FileDir>>,
    pub(super) source: Arc<Source>,
    pub(super) scrubbed: Arc<Scrubbed>,
    /// The time in which each file is read once.
    pub(super) period: Duration,
    /// A random number: where to begin, as a process may be started again before it has read all.
    pub(super) draw: u64,
}

impl Scrub {
    /// Searches until the process stops.
    pub(super) fn run(&self, stop: &AtomicBool) {
        let mut files = Files::anywhere(&self.store, self.draw);
        while !stop.load(SeqCst) {
            let began = Instant::now();
            self.round(&mut files, stop);
            self.scrubbed.rounds.fetch_add(1, SeqCst);
            pause(self.period.saturating_sub(began.elapsed()), stop);
        }
    }

    /// Reads all files that are left. Pauses are between files: one that is open and trimmed meanwhile takes room on the disk.
    fn round(&self, files: &mut Files<FileDir>, stop: &AtomicBool) {
        while !stop.load(SeqCst) {
            let (began, mut seen, mut owed) = (Instant::now(), 0, 0);
            let paced = |at: u64| {
                let more = at.saturating_sub(seen);
                (seen, owed) = (at, owed + more);
                if owed >= PART_BYTES {
                    pause(time_of(owed, MOST_RATE), stop);
                    owed = 0;
                }
            };
            let Some((log, found)) = files.next(paced) else {
                return;
            };
            self.scrubbed.bytes.fetch_add(seen, SeqCst);
            if let Err(why) = found {
                self.mend(log, &why);
            }
            let rate = self.store.status().disk_bytes as f64 / self.period.as_secs_f64();
            let time = time_of(seen, rate.max(1.0)).min(self.period);
            pause(time.saturating_sub(began.elapsed()), stop);
        }
    }

    fn mend(&self, log: u64, why: &ReadError) {
        let (ReadError::Damaged { from, to } | ReadError::Io { from, to, .. }) = *why else {
            return;
        };
        tracing::error!(log, from, to, %why, "a file is damaged that nobody has read: its entries are got from another process");
        match self.source.repair(&self.store, (log, from, to)) {
            Ok(true) => tracing::info!(log, from, to, "the file is in order"),
            Ok(false) => {
                tracing::warn!(log, from, to, "no other process gives these entries now");
            }
            Err(error) => tracing::error!(%error, "the file cannot be replaced"),
        }
    }
}

fn time_of(bytes: u64, rate: f64) -> Duration {
    Duration::from_secs_f64(bytes as f64 / rate)
}

/// Waits, but not for longer than the process goes on.
fn pause(time: Duration, stop: &AtomicBool) {
    // No clock goes as far as the longest period that can be set.
    let began = Instant::now();
    loop {
        let left = time.saturating_sub(began.elapsed());
        if left.is_zero() || stop.load(SeqCst) {
            return;
        }
        thread::sleep(left.min(LOOK));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_period_that_can_be_set_is_no_error() {
        pause(Duration::from_secs(u64::MAX), &AtomicBool::new(true));
    }
}
