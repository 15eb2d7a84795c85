//! The answers to commands.

use bytes::Bytes;
use rota_core::bytes::{Reader, put_bytes, put_some, take_bytes};
use rota_multiring::Place;

use super::value::Value;

/// The reason why an operation changed nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// The key has another kind of value.
    Kind,
    /// The value is no number, or the argument is none.
    NotANumber,
    /// The number would be too large.
    Overflow,
    /// A value would be larger than it may be.
    TooLarge,
    /// The answers to all operations together would be too large.
    Answer,
}

/// The kind of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Bytes.
    Text,
    /// Fields with bytes.
    Fields,
}

/// The data that a range shows of a key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Found {
    /// There is the key.
    Name,
    /// The kind. Also of a value that is too large to be shown with others.
    Kind(Kind),
    /// The value.
    Value(Value),
}

/// The outcome of an operation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The operation was done.
    Done,
    /// There is no such key, or nothing was done.
    Nothing,
    /// A number.
    Number(i64),
    /// Bytes.
    Text(Bytes),
    /// Bytes of each field, if there is the field.
    Texts(Vec<Option<Bytes>>),
    /// Fields with their bytes.
    Pairs(Vec<(Bytes, Bytes)>),
    /// Keys, with the data that was asked for; and the key to go on with, if there may be more.
    Entries(Vec<(Bytes, Found)>, Option<Bytes>),
    /// A kind; `None`: there is no such key.
    Kind(Option<Kind>),
    /// The place in the order of the last change; `None`: there is no such key.
    Version(Option<Place>),
    /// The operation was not done.
    Fault(Fault),
}

/// The answer of one partition to a batch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// The outcomes of the operations that are the partition's, each with its place among all of the batch.
    Outcomes(Vec<(u32, Outcome)>),
    /// A condition does not hold: nothing was done anywhere.
    Refused,
    /// The bytes are no batch that this version knows.
    Unreadable,
    /// The conditions are in more than one partition.
    Spread,
    /// The slots move, or have another partition than the sender knew: nothing was done anywhere, and the sender has to
    /// ask again.
    Moving,
    /// The rest of the message leaves no room for the answer: nothing was done, and the sender has to ask again.
    Later,
    /// The answer would be larger than it may be: nothing was done.
    TooMuch,
}

/// The answers to a message, and the last command of several partitions before it, or itself: the answers stand behind
/// that command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answered {
    /// The place of that command.
    pub behind: Option<Place>,
    /// The answer to each batch of the message.
    pub answers: Vec<Answer>,
}

impl Fault {
    const ALL: [Self; 5] = [
        Self::Kind,
        Self::NotANumber,
        Self::Overflow,
        Self::TooLarge,
        Self::Answer,
    ];
}

impl Kind {
    const ALL: [Self; 2] = [Self::Text, Self::Fields];
}

impl Found {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Name => out.push(0),
            Self::Kind(kind) => out.extend([1, *kind as u8]),
            Self::Value(value) => {
                out.push(2);
                value.put(out);
            }
        }
    }

    fn take(bytes: &mut Reader<'_>) -> Option<Self> {
        Some(match bytes.byte()? {
            0 => Self::Name,
            1 => Self::Kind(*Kind::ALL.get(usize::from(bytes.byte()?))?),
            2 => Self::Value(Value::take(bytes)?),
            _ => return None,
        })
    }
}

impl Outcome {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Done => out.push(0),
            Self::Nothing => out.push(1),
            Self::Number(number) => {
                out.push(2);
                out.extend(number.to_le_bytes());
            }
            Self::Text(bytes) => {
                out.push(3);
                put_bytes(out, bytes);
            }
            Self::Texts(texts) => {
                out.push(4);
                out.extend((texts.len() as u32).to_le_bytes());
                for text in texts {
                    out.push(u8::from(text.is_some()));
                    text.iter().for_each(|text| put_bytes(out, text));
                }
            }
            Self::Pairs(pairs) => {
                out.push(5);
                out.extend((pairs.len() as u32).to_le_bytes());
                for (key, value) in pairs {
                    put_bytes(out, key);
                    put_bytes(out, value);
                }
            }
            Self::Kind(kind) => {
                out.push(6);
                out.push(match kind {
                    None => 0,
                    Some(Kind::Text) => 1,
                    Some(Kind::Fields) => 2,
                });
            }
            Self::Version(version) => {
                out.push(7);
                put_version(out, *version);
            }
            Self::Fault(fault) => {
                out.push(8);
                out.push(*fault as u8);
            }
            Self::Entries(entries, next) => {
                out.push(9);
                out.extend((entries.len() as u32).to_le_bytes());
                for (key, found) in entries {
                    put_bytes(out, key);
                    found.put(out);
                }
                put_some(out, next.as_deref());
            }
        }
    }

    fn take(bytes: &mut Reader<'_>) -> Option<Self> {
        Some(match bytes.byte()? {
            0 => Self::Done,
            1 => Self::Nothing,
            2 => Self::Number(bytes.u64()?.cast_signed()),
            3 => Self::Text(owned(bytes)?),
            4 => {
                let mut texts = Vec::new();
                for _ in 0..bytes.u32()? {
                    texts.push(match bytes.flag()? {
                        true => Some(owned(bytes)?),
                        false => None,
                    });
                }
                Self::Texts(texts)
            }
            5 => {
                let mut pairs = Vec::new();
                for _ in 0..bytes.u32()? {
                    pairs.push((owned(bytes)?, owned(bytes)?));
                }
                Self::Pairs(pairs)
            }
            6 => Self::Kind(match bytes.byte()? {
                0 => None,
                1 => Some(Kind::Text),
                2 => Some(Kind::Fields),
                _ => return None,
            }),
            7 => Self::Version(take_version(bytes)?),
            9 => {
                let mut entries = Vec::new();
                for _ in 0..bytes.u32()? {
                    entries.push((owned(bytes)?, Found::take(bytes)?));
                }
                let next = match bytes.flag()? {
                    true => Some(owned(bytes)?),
                    false => None,
                };
                Self::Entries(entries, next)
            }
            8 => Self::Fault(*Fault::ALL.get(usize::from(bytes.byte()?))?),
            _ => return None,
        })
    }
}

pub(super) fn owned(bytes: &mut Reader<'_>) -> Option<Bytes> {
    take_bytes(bytes).map(Bytes::copy_from_slice)
}

pub(crate) fn put_version(out: &mut Vec<u8>, version: Option<Place>) {
    out.push(u8::from(version.is_some()));
    if let Some(place) = version {
        place.put(out);
    }
}

pub(crate) fn take_version(bytes: &mut Reader<'_>) -> Option<Option<Place>> {
    Some(match bytes.flag()? {
        true => Some(Place::take(bytes)?),
        false => None,
    })
}

impl Answer {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Outcomes(outcomes) => {
                out.push(0);
                out.extend((outcomes.len() as u32).to_le_bytes());
                for (at, outcome) in outcomes {
                    out.extend(at.to_le_bytes());
                    outcome.put(out);
                }
            }
            Self::Refused => out.push(1),
            Self::Unreadable => out.push(2),
            Self::Spread => out.push(3),
            Self::Later => out.push(4),
            Self::Moving => out.push(5),
            Self::TooMuch => out.push(6),
        }
    }

    fn take(bytes: &mut Reader<'_>) -> Option<Self> {
        Some(match bytes.byte()? {
            0 => {
                let mut outcomes = Vec::new();
                for _ in 0..bytes.u32()? {
                    outcomes.push((bytes.u32()?, Outcome::take(bytes)?));
                }
                Self::Outcomes(outcomes)
            }
            1 => Self::Refused,
            2 => Self::Unreadable,
            3 => Self::Spread,
            4 => Self::Later,
            5 => Self::Moving,
            6 => Self::TooMuch,
            _ => return None,
        })
    }
}

impl Answered {
    /// The answers as bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_version(&mut out, self.behind);
        out.extend((self.answers.len() as u32).to_le_bytes());
        self.answers.iter().for_each(|answer| answer.put(&mut out));
        out
    }

    /// The answers that [`Self::encode`] has written; `None` for anything else.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut bytes = Reader(bytes);
        let behind = take_version(&mut bytes)?;
        let mut answers = Vec::new();
        for _ in 0..bytes.u32()? {
            answers.push(Answer::take(&mut bytes)?);
        }
        bytes.0.is_empty().then_some(Self { behind, answers })
    }
}
