//! What commands are answered.

use bytes::Bytes;
use rota_core::bytes::Reader;
use rota_multiring::Place;

use super::bytes::{put_bytes, put_place, take_bytes, take_place};
use super::value::Value;

/// Why an operation changed nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// The key has another kind of value.
    Kind,
    /// There is no number, or the one that was given is none.
    NotANumber,
    /// The number would be too large.
    Overflow,
    /// A value would be larger than one may be.
    TooLarge,
    /// The answers to all operations together would be.
    Answer,
}

/// Which kind of value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Bytes.
    Text,
    /// Fields with bytes.
    Fields,
}

/// What became of an operation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It is done.
    Done,
    /// There is nothing, or nothing was done.
    Nothing,
    /// A number.
    Number(i64),
    /// Bytes.
    Text(Bytes),
    /// Bytes, where there are some.
    Texts(Vec<Option<Bytes>>),
    /// Fields with their bytes.
    Pairs(Vec<(Bytes, Bytes)>),
    /// Keys, with what they have if that was wanted. `true`: there are more.
    Entries(Vec<(Bytes, Option<Value>)>, bool),
    /// A kind; `None`: there is no such key.
    Kind(Option<Kind>),
    /// Where in the order it was changed last; `None`: there is no such key.
    Version(Option<Place>),
    /// It is not done.
    Fault(Fault),
}

/// What one partition answers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// What became of the operations that are the partition's, each with its place among all of the batch.
    Outcomes(Vec<(u32, Outcome)>),
    /// A condition does not hold: nothing was done anywhere.
    Refused,
    /// It is no batch that this version knows.
    Unreadable,
    /// Its conditions are in more than one partition.
    Spread,
}

/// The answers to a message, and what they stand behind: the last command of several partitions before it, or itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answered {
    /// Where that stands.
    pub behind: Option<Place>,
    /// What each batch of the message is answered.
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
            Self::Entries(entries, more) => {
                out.push(9);
                out.extend((entries.len() as u32).to_le_bytes());
                for (key, value) in entries {
                    put_bytes(out, key);
                    out.push(u8::from(value.is_some()));
                    value.iter().for_each(|value| value.put(out));
                }
                out.push(u8::from(*more));
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
                    let key = owned(bytes)?;
                    let value = match bytes.flag()? {
                        true => Some(Value::take(bytes)?),
                        false => None,
                    };
                    entries.push((key, value));
                }
                Self::Entries(entries, bytes.flag()?)
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
        put_place(out, place);
    }
}

pub(crate) fn take_version(bytes: &mut Reader<'_>) -> Option<Option<Place>> {
    Some(match bytes.flag()? {
        true => Some(take_place(bytes)?),
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
            _ => return None,
        })
    }
}

impl Answered {
    /// As bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_version(&mut out, self.behind);
        out.extend((self.answers.len() as u32).to_le_bytes());
        self.answers.iter().for_each(|answer| answer.put(&mut out));
        out
    }

    /// What [`Self::encode`] has made; `None` for anything else.
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
