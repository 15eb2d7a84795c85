//! One log, but for its entries.

use rota_core::bytes::Reader;
use rota_multiring::Place;

use super::Position;
use super::producers::Producers;

/// The limits of a log. The oldest entries go first.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Limits {
    /// The number of entries.
    pub entries: Option<u64>,
    /// The bytes, about: more go in parts.
    pub bytes: Option<u64>,
    /// The age of entries, in milliseconds, at most.
    pub millis: Option<u64>,
}

/// A log, without its entries.
#[derive(Clone, PartialEq, Debug)]
pub struct Log {
    /// The number of the log, which no other log ever had.
    pub id: u64,
    /// The first entry that is kept; `next` where there is none.
    pub first: Position,
    /// The position that the next entry gets.
    pub next: Position,
    /// No entry is appended any more.
    pub is_sealed: bool,
    /// The limits.
    pub limits: Limits,
    /// The place of its last change in the order of all logs.
    pub changed: Option<Place>,
    /// The newest names of appends, by producer.
    pub(super) producers: Producers,
}

impl Log {
    /// An empty log.
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

    /// The number of entries that are kept.
    pub const fn len(&self) -> u64 {
        self.next - self.first
    }

    /// Whether no entry is kept.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The first entry that is kept under a rule.
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
