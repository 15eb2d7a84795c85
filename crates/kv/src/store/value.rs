//! The values of keys.

use bytes::Bytes;
use imbl::OrdMap;
use rota_core::bytes::{Reader, put_bytes};
use rota_multiring::Place;

use super::outcome::{Kind, owned};

/// The memory of an entry beside its bytes, about.
const ENTRY_BYTES: usize = 192;
/// The memory of a field beside its bytes, about.
const FIELD_BYTES: usize = 64;

/// The value of a key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Value {
    /// Bytes.
    Text(Bytes),
    /// Fields with bytes; at least one.
    Fields(OrdMap<Bytes, Bytes>),
}

impl Value {
    /// The kind of the value.
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Text(_) => Kind::Text,
            Self::Fields(_) => Kind::Fields,
        }
    }

    /// The bytes of the whole value. Walks over all fields.
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

/// The memory of a field.
pub(super) const fn field_bytes(field: &Bytes, value: &Bytes) -> usize {
    FIELD_BYTES + field.len() + value.len()
}

/// A key's value, with its version and its end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// The value.
    pub value: Value,
    /// The bytes of the value.
    pub(super) bytes: usize,
    /// The place in the order of its last change.
    pub version: Place,
    /// The end of its life; `None`: it lives for ever.
    pub until: Option<u64>,
}

impl Entry {
    /// The entry of a value.
    pub fn new(value: Value, version: Place, until: Option<u64>) -> Self {
        Self {
            bytes: value.bytes(),
            value,
            version,
            until,
        }
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        self.version.put(out);
        out.extend(self.until.unwrap_or(0).to_le_bytes());
        self.value.put(out);
    }

    pub(super) fn take(bytes: &mut Reader<'_>) -> Option<Self> {
        let version = Place::take(bytes)?;
        let until = Some(bytes.u64()?).filter(|until| *until > 0);
        Some(Self::new(Value::take(bytes)?, version, until))
    }

    /// The entry with more fields, which were not in it yet.
    pub(super) fn with(&self, more: &Self) -> Self {
        match (&self.value, &more.value) {
            (Value::Fields(before), Value::Fields(fields)) => {
                let all = fields.clone().union(before.clone());
                let are_new = all.len() == fields.len() + before.len();
                let bytes = are_new.then_some(self.bytes + more.bytes);
                let value = Value::Fields(all);
                Self {
                    bytes: bytes.unwrap_or_else(|| value.bytes()),
                    value,
                    ..more.clone()
                }
            }
            _ => more.clone(),
        }
    }

    pub(super) const fn has_fields(&self) -> bool {
        matches!(self.value, Value::Fields(_))
    }

    /// The memory of the entry with its key, about.
    pub(crate) const fn takes(&self, key: &Bytes) -> usize {
        ENTRY_BYTES + key.len() + self.bytes
    }

    /// Whether the entry is alive at a time.
    pub(super) fn lives(&self, now: u64) -> bool {
        self.until.is_none_or(|until| until > now)
    }
}
