//! A log on disk, open for writing.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use super::blocks::Blocks;
use super::dir::{FileDir, LogDisk};
use super::error::{AppendError, FetchError};
use super::fetch::{Fetched, Reader};
use super::group::Group;
use super::header::{Identity, PAGE, Position};
use super::index::Index;
use super::mark::MarkFile;
use super::options::{LogOptions, Mode};
use super::record::{HEADER_BYTES, Kind, PAYLOAD_LIMIT, Record, RecordRef, seal};
use super::spares::Spares;
use super::sticky::Sticky;
use super::survey::{Segment, end_of};
use super::sync::{SyncDone, SyncJob};

/// The number of appended bytes at which they are written, also without a sync.
const WRITE_BYTES: usize = 1 << 20;

/// An acceptor's log on disk. The [module](super) describes the log, and the outcome of each fault.
///
/// The order of calls: any number of [`append`](Self::append), then one [`commit`](Self::commit), then the appended
/// records may be answered; then [`maintain`](Self::maintain) until it says that nothing is left to do or new records
/// wait. With [`Mode::Async`] also [`start_sync`](Self::start_sync) when [`sync_due`](Self::sync_due) says so.
#[derive(Debug)]
pub struct DiskLog<D: LogDisk = FileDir> {
    /// Dropped before the directory is unlocked.
    pub(super) spares: Spares<D::File>,
    pub(super) disk: D,
    pub(super) options: LogOptions,
    pub(super) mark: MarkFile<D::File>,
    /// The last one is written to.
    pub(super) segments: VecDeque<Segment<D::File>>,
    pub(super) index: Index,
    pub(super) sticky: Sticky,
    /// Appended, and not written yet, behind what its first block has; ends where the last segment's records end.
    pub(super) pending: Blocks,
    pub(super) durable: Position,
    /// The end of the newest trim, until the segments that it made needless are dropped.
    pub(super) dropping: Option<Position>,
    /// The mark was written, and not synced since.
    pub(super) mark_unsynced: bool,
    /// The end of its new name, in a log that may lack something.
    pub(super) renamed: Option<Position>,
    pub(super) failed: bool,
}

impl<D: LogDisk> DiskLog<D> {
    /// The owner of the log.
    pub const fn identity(&self) -> Identity {
        self.options.identity
    }

    /// The number of times that the log was opened, with this one. Kept in a second place, it tells when an older copy
    /// of the log was put back ([`LogOptions::least_life`]).
    pub const fn life(&self) -> u64 {
        self.mark.now.life
    }

    /// Whether something that was answered may be missing: the machine has lost its power where answers do not wait for
    /// the disk ([`Mode::Async`]), or the disk has failed there. All that is there is true, but the owner must not vote
    /// as if that were all. This holds as long as no new name is durable ([`LogOptions::name_key`]), in however many
    /// lives.
    pub const fn lost_some(&self) -> bool {
        self.mark.now.lost_some
    }

    /// The first instance that is kept.
    pub const fn first(&self) -> u64 {
        self.index.from()
    }

    /// The last instance of which anything is kept.
    pub fn last(&self) -> Option<u64> {
        self.index.last()
    }

    /// The state by key (ascending), the newest promises (by their first instances, ascending), configuration and hint:
    /// what an acceptor begins with, beside its votes.
    pub fn state(&self) -> Vec<Record> {
        self.sticky.of_caller()
    }

    /// The place before which all is durable.
    pub const fn durable(&self) -> Position {
        self.durable
    }

    /// The place of the next record.
    pub fn end(&self) -> Position {
        end_of(self.segments.back())
    }

    /// Whether the log has failed, and has to be opened again.
    pub const fn has_failed(&self) -> bool {
        self.failed
    }

    /// The most that one call of [`append`](Self::append) takes, in bytes.
    pub const fn append_limit(&self) -> u64 {
        self.options.segment_bytes - PAGE - self.state_limit()
    }

    /// The most that is written again at the head of each segment.
    const fn state_limit(&self) -> u64 {
        (self.options.segment_bytes - PAGE) / 2
    }

    /// Appends records, all of them or none. They are durable when [`durable`](Self::durable) has come to the place
    /// that this hands back.
    ///
    /// # Errors
    /// [`AppendError`].
    pub fn append(&mut self, records: &[RecordRef<'_>]) -> Result<Position, AppendError> {
        if self.failed {
            return Err(AppendError::Failed);
        }
        let bytes = self.check_room(records.iter().copied())?;
        let active = self.segments.back().ok_or(AppendError::Failed)?;
        if active.end + bytes > active.header.size {
            self.roll()?;
        }
        for record in records {
            self.put(*record);
        }
        if self.pending.len() >= WRITE_BYTES {
            self.write()?;
        }
        Ok(self.end())
    }

    /// Appends a group, one record after the other, and trims. Hands it back with nothing in it, also where that fails.
    ///
    /// # Errors
    /// [`AppendError`]: those before the record that it is about may be appended, so it is no use to try again.
    pub fn append_group(&mut self, group: &mut Group) -> Result<Position, AppendError> {
        let appended = self.append_all(group);
        group.begin_behind(self.end().offset);
        appended
    }

    fn append_all(&mut self, group: &mut Group) -> Result<Position, AppendError> {
        if self.failed {
            return Err(AppendError::Failed);
        }
        group.check()?;
        if self.fits_as_it_is(group) {
            self.adopt(group)?;
        } else {
            for record in group.records() {
                self.append(&[record])?;
            }
        }
        if let Some(first) = group.trims() {
            self.trim(first)?;
        }
        Ok(self.end())
    }

    /// Empties `group` for records that are gathered while `taken` is made durable. If they come behind another place
    /// than is expected now, appending them takes a copy.
    pub fn place_behind(&self, taken: &Group, group: &mut Group) {
        let trims = taken.trims().is_some_and(|first| first > self.first());
        let trim = if trims { HEADER_BYTES as u64 } else { 0 };
        group.begin_behind(self.end().offset + taken.bytes() + trim);
    }

    /// Whether a group can be written from its own memory.
    pub(super) fn fits_as_it_is(&self, group: &Group) -> bool {
        let ends = |active: &Segment<D::File>| active.end + group.bytes() <= active.header.size;
        self.pending.is_empty()
            && self.pending.written() == group.lead
            && self.segments.back().is_some_and(ends)
            && self.check_room(group.records()).is_ok()
    }

    fn adopt(&mut self, group: &mut Group) -> Result<(), AppendError> {
        let (start, durable) = (self.end(), self.durable);
        let active = self.segments.back().ok_or(AppendError::Failed)?;
        let key = active.header.key();
        group.seal(|header, behind| {
            let offset = start.offset + behind as u64;
            let is_durable = durable == Position { offset, ..start };
            seal(header, key, offset, is_durable);
        });
        for record in group.records() {
            self.took(record);
        }
        self.pending.take_over(&mut group.memory);
        Ok(())
    }

    fn check_room<'a>(
        &self,
        records: impl IntoIterator<Item = RecordRef<'a>>,
    ) -> Result<u64, AppendError> {
        let (mut all, mut state) = (0, 0);
        for record in records {
            if record.len() > PAYLOAD_LIMIT {
                let (bytes, limit) = (record.len() as u64, PAYLOAD_LIMIT as u64);
                return Err(AppendError::TooLong { bytes, limit });
            }
            all += record.encoded_bytes() as u64;
            // There always is a trim among them.
            if !record.kind.is_of_instances() && record.kind != Kind::Trim {
                state += record.encoded_bytes() as u64;
            }
        }
        if state > 0 {
            state += self.sticky.encoded_bytes();
        }
        for (bytes, limit) in [(all, self.append_limit()), (state, self.state_limit())] {
            if bytes > limit {
                return Err(AppendError::TooLong { bytes, limit });
            }
        }
        Ok(all)
    }

    /// Appends a record, for which there is room.
    fn put(&mut self, record: RecordRef<'_>) {
        let at = self.end();
        let synced_before = self.durable == at;
        let Some(active) = self.segments.back() else {
            return;
        };
        let key = active.header.key();
        self.pending.put(record, key, at.offset, synced_before);
        self.took(record);
    }

    /// Takes note of a record at the end of the log.
    fn took(&mut self, record: RecordRef<'_>) {
        let at = self.end();
        let Some(active) = self.segments.back_mut() else {
            return;
        };
        active.end += record.encoded_bytes() as u64;
        active.saw(record.kind, record.first, record.last);
        let end = active.end;
        self.sticky.take(record);
        self.index.take(at, record);
        let is_name = record.kind == Kind::State && self.options.name_key == Some(record.first);
        if is_name && self.lost_some() {
            self.renamed = Some(Position { offset: end, ..at });
        }
    }

    /// Hands everything to the system.
    ///
    /// # Errors
    /// [`AppendError::Io`], also when there is no room: part of it may be written, and the log has failed.
    pub fn write(&mut self) -> Result<(), AppendError> {
        if self.failed {
            return Err(AppendError::Failed);
        }
        let Some(active) = self.segments.back().filter(|_| !self.pending.is_empty()) else {
            return Ok(());
        };
        let result = self.pending.write(&active.file, active.end);
        result.map_err(|error| self.fail(error))?;
        Ok(())
    }

    /// The records of the instances from `first` to `last`: payloads of about `bytes`, but at least one record, and
    /// none from a damaged one on.
    ///
    /// # Errors
    /// [`FetchError`]; for damage if the first record has it.
    pub fn fetch(&mut self, first: u64, last: u64, bytes: usize) -> Result<Fetched, FetchError> {
        if self.failed {
            return Err(FetchError::Failed);
        }
        if first < self.first() {
            let first = self.first();
            return Err(FetchError::Trimmed { first });
        }
        // The newest records may not be in the file yet.
        self.write().map_err(|_| FetchError::Failed)?;
        Reader::new(&self.disk, &self.segments, &self.index).fetch(first, last, bytes)
    }

    /// Makes everything as durable as the mode wants before it is answered.
    ///
    /// # Errors
    /// [`AppendError`]; then nothing that was appended since the last time may be answered as durable.
    pub fn commit(&mut self) -> Result<(), AppendError> {
        match self.options.mode {
            Mode::Sync => self.sync(),
            Mode::Async { .. } | Mode::Memory { .. } => self.write(),
        }
    }

    /// Makes everything durable.
    ///
    /// # Errors
    /// [`AppendError`].
    pub fn sync(&mut self) -> Result<(), AppendError> {
        match self.start_sync()? {
            Some(job) => self.finish_sync(job.run()),
            None => Ok(()),
        }
    }

    /// Whether a sync is due, `since` after the one before.
    pub fn sync_due(&self, since: Duration) -> bool {
        let unsynced = self.unsynced_bytes();
        match self.options.mode {
            Mode::Async { interval, bytes } => {
                unsynced >= bytes.max(1) || unsynced > 0 && since >= interval
            }
            Mode::Sync => unsynced > 0,
            Mode::Memory { .. } => false,
        }
    }

    /// The number of bytes that are not known to be durable.
    pub fn unsynced_bytes(&self) -> u64 {
        // A new segment begins with a sync, so they are all in the newest.
        self.end().offset.saturating_sub(self.durable.offset)
    }

    /// Begins to make everything durable that was appended; `None` if it is. [`finish_sync`](Self::finish_sync)
    /// has to hear of its end.
    ///
    /// # Errors
    /// [`AppendError`].
    pub fn start_sync(&mut self) -> Result<Option<SyncJob<D::File>>, AppendError> {
        self.write()?;
        let upto = self.end();
        let active = self.segments.back().filter(|_| upto > self.durable);
        Ok(active.map(|active| SyncJob {
            file: active.file.clone(),
            upto,
        }))
    }

    /// Takes over the result of a sync.
    ///
    /// # Errors
    /// [`AppendError::Io`] when it failed. It is never tried again: the system takes what it could not write
    /// for written, and the next sync would succeed without it.
    pub fn finish_sync(&mut self, done: SyncDone) -> Result<(), AppendError> {
        done.result.map_err(|error| self.fail(error))?;
        if self.failed {
            return Err(AppendError::Failed);
        }
        if done.upto > self.durable {
            self.durable = done.upto;
            let durable = self.durable;
            if self.renamed.take_if(|end| *end <= durable).is_some() {
                self.mark.now.lost_some = false;
            }
            self.note()?;
        }
        Ok(())
    }

    /// Notes in the mark the place before which all is durable.
    pub(super) fn note(&mut self) -> Result<(), AppendError> {
        let noted = self.mark.note(self.durable, false);
        noted.map_err(|error| self.fail(error))?;
        self.mark_unsynced = true;
        Ok(())
    }

    /// Makes everything durable, with the word that the log ends here.
    ///
    /// # Errors
    /// [`AppendError`].
    pub fn close(mut self) -> Result<(), AppendError> {
        self.sync()?;
        let closed = self.mark.note(self.durable, true);
        let closed = closed.and_then(|()| self.mark.sync());
        closed.map_err(|error| self.fail(error))
    }

    pub(super) fn fail(&mut self, error: io::Error) -> AppendError {
        self.failed = true;
        if self.options.run().is_async {
            // Answered records may have been on their way to the disk, and the system forgets what it could not write.
            self.mark.now.lost_some = true;
            let _ = self.mark.note(self.durable, false);
        }
        AppendError::Io(error)
    }
}
