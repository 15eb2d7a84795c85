//! One log, but for its entries.

use rota_core::bytes::Reader;
use rota_multiring::Place;

use super::Position;
use super::producers::Producers;

/// How much a log keeps. The oldest entries go first; the last one stays in any case.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Limits {
    /// So many entries.
    pub entries: Option<u64>,
    /// So many bytes, about: what is above goes in parts.
    pub bytes: Option<u64>,
    /// What is no older than so many milliseconds.
    pub millis: Option<u64>,
}

/// See the module's page.
#[derive(Clone, PartialEq, Debug)]
pub struct Log {
    /// Its number: of all logs that there ever were it is the only one that has it.
    pub id: u64,
    /// The first entry that is kept; `next` where there is none.
    pub first: Position,
    /// The one that the next entry gets.
    pub next: Position,
    /// Nothing is appended any more.
    pub is_sealed: bool,
    /// What it keeps.
    pub limits: Limits,
    /// Where the last change of it stands in the order of everything.
    pub changed: Option<Place>,
    /// Who has appended what of late.
    pub(super) producers: Producers,
}

impl Log {
    /// An empty one.
    pub(super) fn new(id: u64, limits: Limits) -> Self {
        Self {
            id,
            first: 1,
            next: 1,
            is_sealed: false,
            limits,
            changed: None,
            producers: Producers::default(),
        }
    }

    /// So many entries are kept.
    pub const fn len(&self) -> u64 {
        self.next - self.first
    }

    /// None is kept.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The first one that is kept then.
    pub(super) fn first_then(&self, keep: super::Keep) -> Position {
        let wanted = match keep {
            super::Keep::Last(count) => self.next.saturating_sub(count),
            super::Keep::From(position) => position,
        };
        wanted.clamp(self.first, self.next)
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        for number in [self.id, self.first, self.next] {
            out.extend(number.to_le_bytes());
        }
        out.push(u8::from(self.is_sealed));
        self.limits.put(out);
        out.push(u8::from(self.changed.is_some()));
        if let Some(place) = self.changed {
            place.put(out);
        }
        self.producers.put(out);
    }

    pub(super) fn take(bytes: &mut Reader<'_>) -> Option<Self> {
        let log = Self {
            id: bytes.u64()?,
            first: bytes.u64()?,
            next: bytes.u64()?,
            is_sealed: bytes.flag()?,
            limits: Limits::take(bytes)?,
            changed: match bytes.flag()? {
                true => Some(Place::take(bytes)?),
                false => None,
            },
            producers: Producers::take(bytes)?,
        };
        (1 <= log.first && log.first <= log.next).then_some(log)
    }
}
