//! The outcomes of operations.

use rota_core::bytes::{Reader, take_list};

use super::Position;

/// The reason why an operation was not done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// The log is sealed.
    Sealed,
    /// The next position is this one, and not the expected one.
    Expected(Position),
    /// There are too many logs.
    TooMany,
    /// An entry, or a name, is too large.
    TooLarge,
    /// The producer has used later names since, and it is not known any more whether it has used this one.
    Forgotten,
}

/// The outcome of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The entries were appended, the first one at this position.
    Appended(Position),
    /// The entries had been appended before, the first one at this position.
    Again(Position),
    /// The number of entries that went.
    Gone(u64),
    /// The operation was done.
    Done,
    /// There was nothing to do: there is no such log, or there is one already.
    Nothing,
    /// The operation was not done.
    Fault(Fault),
}

/// The answer to a batch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// The outcome of each operation.
    Outcomes(Vec<Outcome>),
    /// No operation was done, since this one cannot be.
    Refused(u32, Fault),
    /// The batch cannot be read: the sender has another version.
    Unreadable,
}

impl Fault {
    const fn numbers(self) -> (u8, u64) {
        match self {
            Self::Sealed => (0, 0),
            Self::Expected(next) => (1, next),
            Self::TooMany => (2, 0),
            Self::TooLarge => (3, 0),
            Self::Forgotten => (4, 0),
        }
    }

    const fn of(kind: u8, number: u64) -> Option<Self> {
        Some(match kind {
            0 => Self::Sealed,
            1 => Self::Expected(number),
            2 => Self::TooMany,
            3 => Self::TooLarge,
            4 => Self::Forgotten,
            _ => return None,
        })
    }
}

impl Outcome {
    fn put(self, out: &mut Vec<u8>) {
        let (kind, number) = match self {
            Self::Appended(at) => (0, at),
            Self::Again(at) => (1, at),
            Self::Gone(count) => (2, count),
            Self::Done => (3, 0),
            Self::Nothing => (4, 0),
            Self::Fault(fault) => {
                let (kind, number) = fault.numbers();
                (16 + kind, number)
            }
        };
        out.push(kind);
        out.extend(u64::to_le_bytes(number));
    }

    fn take(bytes: &mut Reader<'_>) -> Option<Self> {
        let (kind, number) = (bytes.byte()?, bytes.u64()?);
        Some(match kind {
            0 => Self::Appended(number),
            1 => Self::Again(number),
            2 => Self::Gone(number),
            3 => Self::Done,
            4 => Self::Nothing,
            16.. => Self::Fault(Fault::of(kind - 16, number)?),
            _ => return None,
        })
    }
}

impl Answer {
    /// Writes the answer behind others.
    pub fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Outcomes(outcomes) => {
                out.push(0);
                out.extend((outcomes.len() as u32).to_le_bytes());
                outcomes.iter().for_each(|outcome| outcome.put(out));
            }
            Self::Refused(which, fault) => {
                out.push(1);
                out.extend(which.to_le_bytes());
                Outcome::Fault(*fault).put(out);
            }
            Self::Unreadable => out.push(2),
        }
    }

    /// Reads the next answer. `None` where there is none.
    pub fn take(bytes: &mut Reader<'_>) -> Option<Self> {
        Some(match bytes.byte()? {
            0 => Self::Outcomes(take_list(bytes, Outcome::take)?),
            1 => match (bytes.u32()?, Outcome::take(bytes)?) {
                (which, Outcome::Fault(fault)) => Self::Refused(which, fault),
                _ => return None,
            },
            2 => Self::Unreadable,
            _ => return None,
        })
    }

    /// Reads all answers to a message.
    pub fn all(bytes: &[u8]) -> Option<Vec<Self>> {
        let (mut bytes, mut all) = (Reader(bytes), Vec::new());
        while !bytes.0.is_empty() {
            all.push(Self::take(&mut bytes)?);
        }
        Some(all)
    }
}
