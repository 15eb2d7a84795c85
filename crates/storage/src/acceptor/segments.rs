//! New segments, and the end of old ones.

use std::io;

use super::dir::{LogDisk, LogFile};
use super::error::AppendError;
use super::header::{PAGE, Position, SegmentHeader};
use super::log::DiskLog;
use super::record::{Kind, RecordRef};
use super::spares::Upkeep;
use super::survey::{Segment, segment_name};
use crate::ring_id::is_no_room;

impl<D: LogDisk> DiskLog<D> {
    /// Instances before `first` are not wanted any more. They are not found from now on; their segments are
    /// dropped when this is durable.
    ///
    /// # Errors
    /// [`AppendError`].
    pub fn trim(&mut self, first: u64) -> Result<Position, AppendError> {
        if self.failed {
            return Err(AppendError::Failed);
        }
        if first <= self.first() {
            return Ok(self.end());
        }
        let needless =
            |segment: &&Segment<D::File>| segment.highest.is_none_or(|last| last < first);
        let old = self.segments.len().saturating_sub(1);
        let dropped = self.segments.iter().take(old).take_while(needless).count();
        let oldest = self.segments.get(dropped).map_or(0, |s| s.header.number);
        let at = self.append(&[RecordRef {
            kind: Kind::Trim,
            first,
            last: oldest,
            head: &[],
            bytes: &[],
        }])?;
        self.dropping = Some(at);
        Ok(at)
    }

    /// Does the work that no answer has to wait for: drops segments that were trimmed, gets files ready that are to
    /// become segments. A step of some milliseconds; says whether there is more.
    ///
    /// # Errors
    /// [`AppendError`]. For want of room it may be tried again later.
    pub fn maintain(&mut self) -> Result<bool, AppendError> {
        match self.start_upkeep()? {
            Upkeep::Done | Upkeep::UnderWay => Ok(false),
            Upkeep::Job(job) => {
                job.run();
                self.look_at_spares()?;
                Ok(!self.is_ahead())
            }
        }
    }

    /// As [`maintain`](Self::maintain), but long work is handed out, to be run in another thread. To be called again
    /// when that has ended. The log waits for it when it needs the file, and when it is dropped.
    ///
    /// # Errors
    /// [`AppendError`], also that of what was handed out before. For want of room it may be tried again later.
    pub fn start_upkeep(&mut self) -> Result<Upkeep<D::File>, AppendError> {
        if self.failed {
            return Err(AppendError::Failed);
        }
        self.drop_segments()?;
        self.look_at_spares()?;
        if self.is_ahead() {
            return Ok(Upkeep::Done);
        }
        let started = self.spares.start(&self.disk);
        let job = started.map_err(|error| self.no_room_or_fail(error))?;
        Ok(job.map_or(Upkeep::UnderWay, Upkeep::Job))
    }

    /// Gets a file ready that is to become a segment, if any are kept so: then there is room for more than fits into the
    /// newest segment.
    ///
    /// # Errors
    /// [`AppendError::NoSpace`] where there is none, and any other.
    pub fn make_room(&mut self) -> Result<(), AppendError> {
        while self.options.spares > 0 && self.spares.ready() == 0 {
            let started = self.spares.start(&self.disk);
            let Some(job) = started.map_err(|error| self.no_room_or_fail(error))? else {
                break;
            };
            job.run();
            self.look_at_spares()?;
        }
        Ok(())
    }

    fn look_at_spares(&mut self) -> Result<(), AppendError> {
        let looked = self.spares.look(&self.disk);
        looked.map_err(|error| self.no_room_or_fail(error))
    }

    /// Whether the next segment's file grows faster than this segment is used up.
    fn is_ahead(&self) -> bool {
        let used = self.segments.back().map_or(0, |active| active.end);
        self.options.spares == 0 || self.spares.ready() > 0 || self.spares.begun() / 2 > used
    }

    /// Makes the mark durable, too: to be called when nothing was appended for a while. Then also damage to the
    /// newest records is told from a write that was cut off.
    ///
    /// # Errors
    /// [`AppendError`].
    pub fn settle(&mut self) -> Result<(), AppendError> {
        if self.failed {
            return Err(AppendError::Failed);
        }
        if std::mem::take(&mut self.mark_unsynced) {
            let synced = self.mark.sync();
            synced.map_err(|error| self.fail(error))?;
        }
        Ok(())
    }

    /// For want of room, a new segment's file cannot be made, and nothing else has changed.
    fn no_room_or_fail(&mut self, error: io::Error) -> AppendError {
        if is_no_room(&error) {
            AppendError::NoSpace(error)
        } else {
            self.fail(error)
        }
    }

    fn drop_segments(&mut self) -> Result<(), AppendError> {
        if self.dropping.is_none_or(|at| at > self.durable) {
            return Ok(());
        }
        let dropped = self.recycle();
        dropped.map_err(|error| self.fail(error))?;
        self.dropping = None;
        Ok(())
    }

    /// Segments that are not needed become spare ones, oldest first. Their old names are durably gone before
    /// anything is written to them.
    fn recycle(&mut self) -> io::Result<()> {
        let mut dropped = false;
        while let Some(segment) = self
            .segments
            .front()
            .filter(|segment| segment.header.number < self.sticky.oldest)
        {
            let name = segment_name(segment.header.number);
            self.spares
                .recycle(&self.disk, &name, segment.header.size)?;
            self.segments.pop_front();
            dropped = true;
        }
        if dropped {
            self.disk.sync_names()?;
        }
        Ok(())
    }

    /// Begins a new segment: all before is durable then.
    pub(super) fn roll(&mut self) -> Result<(), AppendError> {
        self.sync()?;
        self.drop_segments()?;
        let name = self.spares.take(&self.disk);
        let name = name.map_err(|error| self.no_room_or_fail(error))?;
        let begun = self.begin(&name);
        begun.map_err(|error| self.fail(error))
    }

    /// Makes this file the newest segment. It has its name when it has its header and the records that must not be
    /// forgotten, and nothing is appended before these are durable.
    pub(super) fn begin(&mut self, name: &str) -> io::Result<()> {
        let last = self.end();
        let number = last.segment + 1;
        // If this is the first segment, none before it is needed.
        self.sticky.oldest = self.sticky.oldest.max(1);
        let header = SegmentHeader {
            identity: self.options.identity,
            number,
            life: self.life(),
            size: self.options.segment_bytes,
            previous_end: last.offset,
            preamble_end: PAGE + self.sticky.encoded_bytes(),
        };
        let mut page = header.encode();
        page.resize(PAGE as usize, 0);
        for record in self.sticky.records() {
            let offset = page.len() as u64;
            record
                .borrowed()
                .encode(&mut page, header.key(), offset, false);
        }
        let file = self.disk.open(name, self.options.mode.access())?;
        file.write_at(0, &page)?;
        file.sync()?;
        self.disk.rename(name, &segment_name(number))?;
        self.disk.sync_names()?;
        self.pending.go_on_behind(&page);
        if let Some(before) = self.segments.back_mut() {
            before.file.end_appends();
        }
        self.segments.push_back(Segment {
            file,
            header,
            end: header.preamble_end,
            highest: None,
        });
        self.durable = self.end();
        self.mark.note(self.durable, false)?;
        self.mark.sync()
    }
}
