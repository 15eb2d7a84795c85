//! What keys have.

use bytes::Bytes;
use imbl::OrdMap;
use rota_core::bytes::Reader;
use rota_multiring::Place;

use super::bytes::put_bytes;
use super::outcome::{Kind, owned};

/// An entry takes about so much beside its bytes.
const ENTRY_BYTES: usize = 192;
/// So does a field.
const FIELD_BYTES: usize = 64;

/// What a key has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Value {
    /// Bytes.
    Text(Bytes),
    /// Fields with bytes; at least one.
    Fields(OrdMap<Bytes, Bytes>),
}

impl Value {
    /// Which kind of value it is.
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Text(_) => Kind::Text,
            Self::Fields(_) => Kind::Fields,
        }
    }

    /// The bytes of all of it. Walks over all fields.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Text(bytes) => bytes.len(),
            Self::Fields(fields) => fields
                .iter()
                .map(|(field, value)| field_bytes(field, value))
                .sum(),
        }
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Text(bytes) => {
                out.push(0);
                put_bytes(out, bytes);
            }
            Self::Fields(fields) => {
                out.push(1);
                out.extend((fields.len() as u32).to_le_bytes());
                for (field, value) in fields {
                    put_bytes(out, field);
                    put_bytes(out, value);
                }
            }
        }
    }

    pub(super) fn take(bytes: &mut Reader<'_>) -> Option<Self> {
        Some(match bytes.byte()? {
            0 => Self::Text(owned(bytes)?),
            1 => {
                let mut fields = OrdMap::new();
                for _ in 0..bytes.u32()? {
                    let field = owned(bytes)?;
                    if fields.insert(field, owned(bytes)?).is_some() {
                        return None;
                    }
                }
                (!fields.is_empty()).then_some(Self::Fields(fields))?
            }
            _ => return None,
        })
    }
}

/// What a field takes.
pub(super) const fn field_bytes(field: &Bytes, value: &Bytes) -> usize {
    FIELD_BYTES + field.len() + value.len()
}

/// A key's value, and what else is known of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// What it has.
    pub value: Value,
    /// The bytes of that.
    pub(super) bytes: usize,
    /// Where in the order it was changed last.
    pub version: Place,
    /// Until when it lives; `None`: for ever.
    pub until: Option<u64>,
}

impl Entry {
    /// What it takes with its key.
    pub(crate) const fn takes(&self, key: &Bytes) -> usize {
        ENTRY_BYTES + key.len() + self.bytes
    }

    /// Whether it is there at a time.
    pub(super) fn lives(&self, now: u64) -> bool {
        self.until.is_none_or(|until| until > now)
    }
}
