//! Files that are to become segments.
//!
//! They are written in full before: where blocks are overwritten, a sync need not wait for the file system's
//! own log, and a disk that becomes full later does not matter. Room that is only set aside
//! (`fallocate`) does not do it. Dropped segments serve again.

use std::io;
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};

use super::dir::{Access, LogDisk, LogFile};
use super::header::PAGE;
use super::survey::spare_name;
use crate::ring_id::is_no_room;

/// A file that is being written.
pub(super) const NEW: &str = "spare.new";

/// The most that is written at a time.
const STEP: u64 = 1 << 20;

#[derive(Debug)]
pub(super) struct Spares<F> {
    /// The size of each file, in bytes.
    bytes: u64,
    /// The number of files, at most, that are kept.
    limit: usize,
    ready: Vec<u64>,
    next: u64,
    begun: Option<Begun<F>>,
}

/// The next one.
#[derive(Debug)]
struct Begun<F> {
    file: F,
    written: u64,
    /// The result of the portion behind that, while another thread writes it.
    under_way: Option<Receiver<io::Result<()>>>,
}

/// A portion of a file that is to become a segment. It may be written beside further appends, in another thread.
#[derive(Debug)]
#[must_use = "the log waits for it when it has no other file, and when it is dropped"]
pub struct SpareJob<F> {
    file: F,
    at: u64,
    bytes: u64,
    ended: Sender<io::Result<()>>,
}

/// The upkeep that is left, for which no answer has to wait.
#[derive(Debug)]
#[must_use]
pub enum Upkeep<F> {
    /// Nothing.
    Done,
    /// The portion that was handed out is not written yet.
    UnderWay,
    /// This portion, before there is more.
    Job(SpareJob<F>),
}

impl<F: LogFile> SpareJob<F> {
    /// Writes it, and waits for the disk.
    pub fn run(self) {
        let zeros = vec![0; self.bytes as usize];
        let written = self.file.write_at(self.at, &zeros);
        // In small portions, since other syncs may wait for this one.
        let synced = written.and_then(|()| self.file.sync());
        // A log that has ended has waited before.
        let _ = self.ended.send(synced);
    }
}

impl<F: LogFile> Spares<F> {
    pub const fn new(bytes: u64, limit: usize) -> Self {
        Self {
            bytes,
            limit,
            ready: Vec::new(),
            next: 1,
            begun: None,
        }
    }

    /// Takes over the files that are there, and removes those that are of no use.
    pub fn find<D: LogDisk<File = F>>(&mut self, disk: &D, found: &[u64]) -> io::Result<()> {
        self.next = found.iter().max().map_or(1, |last| last.saturating_add(1));
        for number in found {
            let name = spare_name(*number);
            let fits = disk.open(&name, Access::Read)?.bytes()? == self.bytes;
            if fits && self.ready.len() < self.limit {
                self.ready.push(*number);
            } else {
                disk.remove(&name)?;
            }
        }
        Ok(())
    }

    pub const fn ready(&self) -> usize {
        self.ready.len()
    }

    /// The bytes of the next file that are written.
    pub fn begun(&self) -> u64 {
        self.begun.as_ref().map_or(0, |begun| begun.written)
    }

    /// Makes a file that is not used any more a spare one, or removes it.
    pub fn recycle<D: LogDisk<File = F>>(
        &mut self,
        disk: &D,
        name: &str,
        bytes: u64,
    ) -> io::Result<()> {
        if bytes != self.bytes || self.ready.len() >= self.limit {
            return disk.remove(name);
        }
        let number = self.number();
        disk.rename(name, &spare_name(number))?;
        self.ready.push(number);
        Ok(())
    }

    /// Gives away the portion to be written next, unless one is under way.
    ///
    /// # Errors
    /// The system's own.
    pub fn start<D: LogDisk<File = F>>(&mut self, disk: &D) -> io::Result<Option<SpareJob<F>>> {
        let begun = match &mut self.begun {
            Some(Begun {
                under_way: Some(_), ..
            }) => return Ok(None),
            Some(begun) => begun,
            none => none.insert(Begun {
                file: disk.open(NEW, Access::Create)?,
                written: 0,
                under_way: None,
            }),
        };
        let (ended, under_way) = mpsc::channel();
        begun.under_way = Some(under_way);
        Ok(Some(SpareJob {
            file: begun.file.clone(),
            at: begun.written,
            bytes: step(self.bytes, begun.written),
            ended,
        }))
    }

    /// Takes over the result of the portion that was given away, if it has ended.
    ///
    /// # Errors
    /// The system's own, of that portion. The file is begun anew then.
    pub fn look<D: LogDisk<File = F>>(&mut self, disk: &D) -> io::Result<()> {
        let Some(under_way) = self.under_way() else {
            return Ok(());
        };
        match under_way.try_recv() {
            Err(TryRecvError::Empty) => Ok(()),
            Err(TryRecvError::Disconnected) => self.ended(disk, Err(given_up())),
            Ok(result) => self.ended(disk, result),
        }
    }

    /// The name of a whole file. It is waited for if there is none.
    pub fn take<D: LogDisk<File = F>>(&mut self, disk: &D) -> io::Result<String> {
        loop {
            if let Some(number) = self.ready.pop() {
                return Ok(spare_name(number));
            }
            let job = self.start(disk)?;
            let is_own = job.is_some();
            job.into_iter().for_each(SpareJob::run);
            match self.wait(disk) {
                // There may be room by now.
                Err(error) if !is_own && is_no_room(&error) => {}
                ended => ended?,
            }
        }
    }

    fn wait<D: LogDisk<File = F>>(&mut self, disk: &D) -> io::Result<()> {
        let Some(under_way) = self.under_way() else {
            return Ok(());
        };
        let result = under_way.recv().unwrap_or_else(|_| Err(given_up()));
        self.ended(disk, result)
    }

    fn under_way(&self) -> Option<&Receiver<io::Result<()>>> {
        self.begun.as_ref()?.under_way.as_ref()
    }

    fn ended<D: LogDisk<File = F>>(&mut self, disk: &D, result: io::Result<()>) -> io::Result<()> {
        let Some(mut begun) = self.begun.take() else {
            return Ok(());
        };
        result?;
        begun.written += step(self.bytes, begun.written);
        begun.under_way = None;
        if begun.written < self.bytes {
            self.begun = Some(begun);
            return Ok(());
        }
        if self.ready.len() >= self.limit.max(1) {
            // Others have become free meanwhile.
            return disk.remove(NEW);
        }
        let number = self.number();
        disk.rename(NEW, &spare_name(number))?;
        self.ready.push(number);
        Ok(())
    }

    const fn number(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }
}

/// The file serves another log next: nobody may write to it any more.
impl<F> Drop for Spares<F> {
    fn drop(&mut self) {
        let under_way = self.begun.take().and_then(|begun| begun.under_way);
        let _ = under_way.map(|under_way| under_way.recv());
    }
}

/// The bytes to be written next of a file of `bytes` bytes.
fn step(bytes: u64, written: u64) -> u64 {
    let quarter = (bytes / 4).next_multiple_of(PAGE);
    quarter.min(STEP).min(bytes - written)
}

fn given_up() -> io::Error {
    io::Error::other("who was to write a new segment has given up")
}
