//! Files that are to become segments.
//!
//! They are written in full before: where blocks are overwritten, a sync need not wait for the file system's
//! own log, and a disk that becomes full later does not matter. Room that is only set aside
//! (`fallocate`) does not do it. Dropped segments serve again.

use std::io;

use super::dir::{Access, LogDisk, LogFile};
use super::survey::spare_name;

/// A file that is being written.
pub(super) const NEW: &str = "spare.new";

/// So much is written at a time.
const STEP: u64 = 1 << 20;

#[derive(Debug)]
pub(super) struct Spares<F> {
    /// How large they are.
    bytes: u64,
    /// No more than these are kept.
    limit: usize,
    ready: Vec<u64>,
    next: u64,
    begun: Option<(F, u64)>,
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

    /// Takes over what is there, and removes what is of no use.
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

    /// How much of the next one is written.
    pub fn begun(&self) -> u64 {
        self.begun.as_ref().map_or(0, |(_, written)| *written)
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

    /// Writes some more of the next one.
    ///
    /// # Errors
    /// The system's own. It is begun anew then.
    pub fn step<D: LogDisk<File = F>>(&mut self, disk: &D) -> io::Result<()> {
        let (file, written) = match self.begun.take() {
            Some(begun) => begun,
            None => (disk.open(NEW, Access::Create)?, 0),
        };
        let step = STEP.min(self.bytes - written);
        file.write_at(written, &vec![0; step as usize])?;
        // In small portions, since other syncs may wait for this one.
        file.sync()?;
        if written + step < self.bytes {
            self.begun = Some((file, written + step));
            return Ok(());
        }
        let number = self.number();
        disk.rename(NEW, &spare_name(number))?;
        self.ready.push(number);
        Ok(())
    }

    /// The name of a whole one.
    pub fn take<D: LogDisk<File = F>>(&mut self, disk: &D) -> io::Result<String> {
        loop {
            if let Some(number) = self.ready.pop() {
                return Ok(spare_name(number));
            }
            self.step(disk)?;
        }
    }

    const fn number(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }
}
