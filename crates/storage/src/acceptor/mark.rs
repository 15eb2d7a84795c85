//! The file that says how far the log is known to be durable.
//!
//! Two slots, 4096 bytes apart, written in turns; the good one of the larger generation counts. It is written
//! after each sync of the log and not synced itself, except where that is rare: so it never says too much, is
//! exact after a crash of the process, and after a loss of power says what it said some time before.

use std::io;

use super::dir::{Access, LogDisk, LogFile};
use super::header::{BadPage, Identity, PAGE, Position, checked, put_identity, put_sum};

pub(super) const NAME: &str = "mark";
const NEW: &str = "mark.new";

const MAGIC: &[u8; 8] = b"ROTAPMRK";
const VERSION: u16 = 1;
const SLOT_BYTES: usize = 60;
const SUM_AT: usize = SLOT_BYTES - 4;

/// What a slot says.
///
/// | bytes | field, little-endian |
/// |---|---|
/// | 0..8 | `ROTAPMRK` |
/// | 8..10 | version, 1 |
/// | 10..12 | 1 if the log was closed in order |
/// | 12..20 | cluster, node, ring |
/// | 20..28 | generation: one more with each write |
/// | 28..36 | life: one more with each opening |
/// | 36..52 | the place before which all is durable: segment, offset |
/// | 52..56 | 0 |
/// | 56..60 | CRC32C of all before |
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Mark {
    pub identity: Identity,
    pub generation: u64,
    pub life: u64,
    pub durable: Position,
    pub closed: bool,
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
        out.extend([0; 4]);
        put_sum(&mut out);
        out
    }

    fn decode(bytes: &[u8]) -> Result<Self, BadPage> {
        let mut fields = checked(bytes, MAGIC, VERSION, SUM_AT)?;
        let closed = fields.u16() == 1;
        let identity = fields.identity().ok_or(BadPage::Damaged)?;
        Ok(Self {
            identity,
            generation: fields.u64(),
            life: fields.u64(),
            durable: Position {
                segment: fields.u64(),
                offset: fields.u64(),
            },
            closed,
        })
    }
}

/// What a mark file came to, when it could be read at all.
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
        let mut bytes = [0; SLOT_BYTES];
        if file.read_at(index * PAGE, &mut bytes)? == SLOT_BYTES {
            *slot = Mark::decode(&bytes);
        }
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
    /// Makes the file, whole before it has its name.
    pub fn create<D: LogDisk<File = F>>(disk: &D, identity: Identity) -> io::Result<Self> {
        let file = disk.open(NEW, Access::Create)?;
        let now = Mark {
            identity,
            generation: 1,
            life: 0,
            durable: Position::default(),
            closed: false,
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

    /// Writes what is known now.
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

    /// The next life of the log: durable, in both slots, before anything is written in it.
    pub fn begin_life(&mut self) -> io::Result<()> {
        self.now.life += 1;
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
