//! Opening a log: all durable records are there, a write that was cut off is dropped, and all that is left is durable
//! then.

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;

use super::blocks::{BLOCK, Blocks};
use super::dir::{Access, FileDir, LogDisk, LogFile};
use super::error::LogOpenError;
use super::header::{PAGE, Position};
use super::index::Index;
use super::log::DiskLog;
use super::mark::MarkFile;
use super::options::LogOptions;
use super::record::RecordRef;
use super::spares::Spares;
use super::survey::{LARGEST, SMALLEST, Segment, Survey, segment_name, survey};

/// The bytes that are written again at once.
const CHUNK: u64 = 1 << 20;

impl DiskLog {
    /// Opens the log in this directory, and makes one where there is none, if the options say so.
    ///
    /// # Errors
    /// [`LogOpenError`]; the acceptor must not take part then.
    pub fn open(path: PathBuf, options: LogOptions) -> Result<Self, LogOpenError> {
        Self::open_on(FileDir::new(path), options)
    }
}

impl<D: LogDisk> DiskLog<D> {
    /// The same on any disk.
    ///
    /// # Errors
    /// [`LogOpenError`].
    pub fn open_on(mut disk: D, options: LogOptions) -> Result<Self, LogOpenError> {
        let bytes = options.segment_bytes;
        if !(SMALLEST..=LARGEST).contains(&bytes) || !bytes.is_multiple_of(PAGE) {
            return Err(LogOpenError::SegmentBytes(bytes));
        }
        if !disk.has_directory() {
            return Err(LogOpenError::NoDirectory(disk.path().to_owned()));
        }
        disk.lock().map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => LogOpenError::InUse(disk.path().to_owned()),
            _ => wrong(&disk, "lock it", error),
        })?;
        let mut index = Index::default();
        let mut take = |at, record: RecordRef<'_>| index.take(at, record);
        let mut found = survey(&disk, Access::Write, &mut take)?;
        check(&disk, &options, &mut found)?;
        let mark = match found.mark.take() {
            Some((file, mark)) => MarkFile::of(file, mark),
            None if options.create => MarkFile::create(&disk, options.identity, options.least_life)
                .map_err(|error| wrong(&disk, "make the mark", error))?,
            None => return Err(LogOpenError::Lost(disk.path().to_owned())),
        };
        let mut log = Self {
            spares: Spares::new(options.segment_bytes, options.spares),
            disk,
            options,
            mark,
            segments: VecDeque::new(),
            index,
            sticky: found.sticky,
            pending: Blocks::default(),
            durable: Position::default(),
            dropping: None,
            mark_unsynced: false,
            renamed: None,
            failed: false,
        };
        log.segments.extend(found.segments);
        match log.resume(&found.spares, &found.leftovers) {
            Ok(()) => Ok(log),
            Err(error) => Err(wrong(&log.disk, "make it durable", error)),
        }
    }

    /// Makes the records durable that were found: they may be in the memory of the system only, as when a sync of the
    /// process before failed. Then nothing is left behind them that could be taken for a record later.
    fn resume(&mut self, spares: &[u64], leftovers: &[u64]) -> io::Result<()> {
        let (before, run, end) = (self.mark.now, self.options.run(), self.end());
        let lost_some = before.may_lack_some(run, end);
        // If this opening fails, the next one may not find what is only in the system's memory.
        self.mark.now.open(run, end, lost_some);
        self.mark.begin_life(run)?;
        self.disk.sync_names()?;
        self.spares.find(&self.disk, spares)?;
        for number in leftovers {
            let name = segment_name(*number);
            let bytes = self.disk.open(&name, Access::Read)?.bytes()?;
            self.spares.recycle(&self.disk, &name, bytes)?;
        }
        self.disk.sync_names()?;
        let Some(active) = self.segments.back_mut() else {
            let name = self.spares.take(&self.disk)?;
            self.mark.now.opened(lost_some);
            return self.begin(&name);
        };
        let name = segment_name(end.segment);
        active.file = self.disk.open(&name, self.options.mode.access())?;
        if !before.closed || before.durable != end {
            let from = match before.durable {
                known if known.segment == end.segment => known.offset,
                _ => 0,
            };
            settle(active, from.max(active.header.preamble_end))?;
        }
        let mut block = vec![0; end.offset as usize % BLOCK];
        let from = end.offset - block.len() as u64;
        if active.file.read_at(from, &mut block)? < block.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.pending = Blocks::behind(&block);
        self.durable = end;
        self.mark.now.opened(lost_some);
        self.mark.note(self.durable, false)?;
        self.mark.sync()
    }
}

/// Writes the bytes from `from` on again, and zeros behind them.
fn settle<F: LogFile>(active: &Segment<F>, from: u64) -> io::Result<()> {
    let chunk = active.header.size.min(CHUNK);
    let mut bytes = vec![0; chunk as usize];
    let mut at = from;
    while at < active.end {
        let len = (active.end - at).min(chunk) as usize;
        if active.file.read_at(at, &mut bytes[..len])? < len {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        active.file.write_at(at, &bytes[..len])?;
        at += len as u64;
    }
    bytes.fill(0);
    while at < active.header.size {
        let len = (active.header.size - at).min(chunk) as usize;
        active.file.write_at(at, &bytes[..len])?;
        at += len as u64;
    }
    active.file.sync()
}

/// Checks that the log that was found is this acceptor's, and all there.
fn check<D: LogDisk>(
    disk: &D,
    options: &LogOptions,
    found: &mut Survey<D::File>,
) -> Result<(), LogOpenError> {
    let path = || disk.path().to_owned();
    let mark = found.mark.as_ref().map(|(_, mark)| *mark);
    let wanted = options.identity;
    let of_segment = found
        .segments
        .first()
        .map(|segment| segment.header.identity);
    let owner = mark.map(|mark| mark.identity).or(of_segment);
    if let Some(found) = owner.filter(|found| *found != wanted) {
        return Err(LogOpenError::WrongOwner {
            path: path(),
            found,
            wanted,
        });
    }
    if let Some(damage) = found.damage.first() {
        return Err(LogOpenError::Damaged(damage.clone()));
    }
    match mark {
        Some(mark) if mark.life < options.least_life => Err(LogOpenError::Older {
            path: path(),
            found: mark.life,
            wanted: options.least_life,
        }),
        _ => Ok(()),
    }
}

fn wrong<D: LogDisk>(disk: &D, doing: &'static str, error: io::Error) -> LogOpenError {
    LogOpenError::Io {
        path: disk.path().to_owned(),
        doing,
        error,
    }
}
