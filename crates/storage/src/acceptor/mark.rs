//! The file with the place before which the log is known to be durable.
//!
//! Two slots, 4096 bytes apart, written in turns; the good one of the larger generation counts. It is written after
//! each sync of the log and not synced itself, except where that is rare: so it never says too much, is exact after a
//! crash of the process, and after a loss of power has its contents of some time before.

use std::io;

use super::dir::{Access, LogDisk, LogFile};
use super::header::{BadPage, Fields, Identity, PAGE, Position, checked, put_identity, put_sum};

pub(super) const NAME: &str = "mark";
const NEW: &str = "mark.new";

const MAGIC: &[u8; 8] = b"ROTAPMRK";
const VERSION: u16 = 2;
const SLOT_BYTES: usize = 84;
const SUM_AT: usize = SLOT_BYTES - 4;

/// The layout of the first version: it has neither the mode of the log, nor the run of the machine. The newer one has a
/// sum at the same place, too, so that a program of that time can say which version it does not know.
const FIRST_VERSION: u16 = 1;
const FIRST_SUM_AT: usize = 56;

/// The run of the machine: a number that the system draws whenever it starts. Zeros where that is not known.
pub type BootId = [u8; 16];

/// The mode of a log, and the run of the machine, since it was opened the last time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Run {
    /// Zeros where it is not known.
    pub boot: BootId,
    /// Answers did not wait for a sync.
    pub is_async: bool,
}

/// The contents of a slot.
///
/// | bytes | field, little-endian |
/// |---|---|
/// | 0..8 | `ROTAPMRK` |
/// | 8..10 | version, 2 |
/// | 10..12 | 1 if the log was closed in order |
/// | 12..20 | cluster, node, ring |
/// | 20..28 | generation: one more with each write |
/// | 28..36 | life: one more with each opening |
/// | 36..52 | the place before which all is durable: segment, offset |
/// | 52..56 | a sum of the place where the log ended that is being opened, and 0 where it is open, or has lost something |
/// | 56..60 | CRC32C of all before |
/// | 60..76 | the run of the machine in which it was opened; 0 where that is not known |
/// | 76..78 | 1 if answers did not wait for a sync |
/// | 78..80 | 1 if something that was answered may be missing |
/// | 80..84 | CRC32C of all before |
///
/// Version 1 ends with byte 60.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Mark {
    pub identity: Identity,
    pub generation: u64,
    pub life: u64,
    pub durable: Position,
    pub closed: bool,
    /// `None`: an earlier version wrote it.
    pub run: Option<Run>,
    /// Something that was answered may be missing, and the owner has not written since then that it knows. With
    /// `opening`: it is missing only if the log does not end there any more.
    pub lost_some: bool,
    /// While a log is being opened whose records may be in the system's memory only: the sum of the place where it ends.
    /// A process that is killed meanwhile takes nothing with it; a disk that fails may.
    pub opening: Option<u32>,
}

/// The sum of a place, never 0.
fn sum_of(Position { segment, offset }: Position) -> u32 {
    let bytes = [segment.to_le_bytes(), offset.to_le_bytes()].concat();
    crc_fast::crc32_iscsi(&bytes).max(1)
}

impl Mark {
    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(SLOT_BYTES);
        out.extend(MAGIC);
        out.extend(VERSION.to_le_bytes());
        out.extend(u16::from(self.closed).to_le_bytes());
        put_identity(&mut out, self.identity);
        let Position { segment, offset } = self.durable;
        for field in [self.generation, self.life, segment, offset] {
            out.extend(field.to_le_bytes());
        }
        out.extend(self.opening.unwrap_or_default().to_le_bytes());
        put_sum(&mut out);
        let Run { boot, is_async } = self.run.unwrap_or_default();
        out.extend(boot);
        for flag in [is_async, self.lost_some] {
            out.extend(u16::from(flag).to_le_bytes());
        }
        put_sum(&mut out);
        out
    }

    fn decode(bytes: &[u8]) -> Result<Self, BadPage> {
        let first = checked(bytes, MAGIC, FIRST_VERSION, FIRST_SUM_AT);
        if !matches!(first, Err(BadPage::Version(VERSION))) {
            return Self::read(&mut first?, false);
        }
        Self::read(&mut checked(bytes, MAGIC, VERSION, SUM_AT)?, true)
    }

    fn read(fields: &mut Fields<'_>, has_run: bool) -> Result<Self, BadPage> {
        let closed = fields.u16() == 1;
        let identity = fields.identity().ok_or(BadPage::Damaged)?;
        let mark = Self {
            identity,
            generation: fields.u64(),
            life: fields.u64(),
            durable: Position {
                segment: fields.u64(),
                offset: fields.u64(),
            },
            closed,
            run: None,
            lost_some: false,
            opening: None,
        };
        if !has_run {
            return Ok(mark);
        }
        let opening = Some(fields.u32()).filter(|sum| *sum > 0);
        // The sum of the bytes before.
        fields.u32();
        let boot = fields.take();
        let [is_async, lost_some] = [(); 2].map(|()| fields.u16() == 1);
        Ok(Self {
            run: Some(Run { boot, is_async }),
            lost_some,
            opening,
            ..mark
        })
    }

    /// Whether something that was answered may be missing, from the life of the mark or from one before. `now` is the
    /// way in which the log is opened: the writer of a mark of the first version is taken to have kept it in the same
    /// way.
    ///
    /// Records that are answered before they are synced are in the system's memory. There they survive processes, but
    /// not the machine's loss of power; and then the log ends where the disk has its end, as if nothing had been
    /// answered behind. An opening that did not come to its end has lost nothing if the log ends at the same place in the
    /// same run of the machine. `end`: the place where it ends.
    pub fn may_lack_some(&self, now: Run, end: Position) -> bool {
        let boot = self.run.map_or_else(BootId::default, |run| run.boot);
        let same_run = boot != BootId::default() && boot == now.boot;
        let lost_some = if same_run {
            self.has_lost_some(end)
        } else {
            self.lost_some
        };
        lost_some || self.is_in_memory(now) && !same_run
    }

    /// Whether something is missing that processes before it had, without a loss of power since.
    pub fn has_lost_some(&self, end: Position) -> bool {
        self.lost_some && self.opening != Some(sum_of(end))
    }

    /// Whether some answered records may be nowhere but in the system's memory.
    pub fn is_in_memory(&self, now: Run) -> bool {
        self.opening.is_some() || self.run.unwrap_or(now).is_async && !self.closed
    }

    /// A log that ends there is being opened. `lost_some`: something may be missing already.
    pub fn open(&mut self, now: Run, end: Position, lost_some: bool) {
        let is_in_memory = self.is_in_memory(now);
        self.opening = (is_in_memory && !lost_some).then(|| sum_of(end));
        self.lost_some = lost_some || is_in_memory;
    }

    /// The log is open, and durable.
    pub const fn opened(&mut self, lost_some: bool) {
        (self.lost_some, self.opening) = (lost_some, None);
    }
}

/// The contents of a mark file that could be read at all.
pub(super) enum Found {
    Good(Mark),
    /// Neither slot is good.
    Damaged,
    Version(u16),
}

/// Reads the mark.
pub(super) fn read<F: LogFile>(file: &F) -> io::Result<Found> {
    let mut slots = [Err(BadPage::Damaged); 2];
    for (index, slot) in (0..).zip(&mut slots) {
        // Shorter where an earlier version wrote the last one.
        let mut bytes = [0; SLOT_BYTES];
        let read = file.read_at(index * PAGE, &mut bytes)?;
        *slot = Mark::decode(&bytes[..read]);
    }
    let version = slots.iter().find_map(|slot| match slot {
        Err(BadPage::Version(found)) => Some(*found),
        _ => None,
    });
    let newest = slots
        .iter()
        .flatten()
        .max_by_key(|mark| mark.generation)
        .copied();
    Ok(match (version, newest) {
        (Some(found), _) => Found::Version(found),
        (None, Some(mark)) => Found::Good(mark),
        (None, None) => Found::Damaged,
    })
}

/// The mark of a log that is open.
#[derive(Debug)]
pub(super) struct MarkFile<F> {
    file: F,
    pub now: Mark,
}

impl<F: LogFile> MarkFile<F> {
    /// Makes the file, whole before it has its name, for a log that had `life` lives.
    pub fn create<D: LogDisk<File = F>>(
        disk: &D,
        identity: Identity,
        life: u64,
    ) -> io::Result<Self> {
        let file = disk.open(NEW, Access::Create)?;
        let now = Mark {
            identity,
            generation: 1,
            life,
            durable: Position::default(),
            closed: false,
            run: Some(Run::default()),
            lost_some: false,
            opening: None,
        };
        let mut bytes = now.encode();
        bytes.resize(PAGE as usize, 0);
        let first = Mark {
            generation: 0,
            ..now
        };
        bytes.extend(first.encode());
        bytes.resize(2 * PAGE as usize, 0);
        // Generation 1 belongs in slot 1.
        bytes.rotate_left(PAGE as usize);
        file.write_at(0, &bytes)?;
        file.sync()?;
        disk.rename(NEW, NAME)?;
        disk.sync_names()?;
        Ok(Self { file, now })
    }

    pub const fn of(file: F, now: Mark) -> Self {
        Self { file, now }
    }

    /// Writes the mark as of now.
    pub fn note(&mut self, durable: Position, closed: bool) -> io::Result<()> {
        let next = Mark {
            generation: self.now.generation + 1,
            durable,
            closed,
            ..self.now
        };
        self.file
            .write_at(next.generation % 2 * PAGE, &next.encode())?;
        self.now = next;
        Ok(())
    }

    /// The next life of the log: durable, in both slots, before anything is written in it. Records that are answered in
    /// it may be in the system's memory only, so the mark says that from the first moment on.
    pub fn begin_life(&mut self, run: Run) -> io::Result<()> {
        self.now.life += 1;
        self.now.run = Some(run);
        for _ in 0..2 {
            self.note(self.now.durable, false)?;
            self.sync()?;
        }
        Ok(())
    }

    pub fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }
}
