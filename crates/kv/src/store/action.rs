//! The actions on one key.

use rota_core::bytes::{Reader, put_bytes, take_bytes, take_list};

/// The life of a key, in milliseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Life {
    /// For ever.
    Ever,
    /// As long as before.
    Keep,
    /// Until this time, as the order has it: milliseconds of the Unix epoch.
    Until(u64),
    /// For this time, from the place of the command in the order.
    For(u64),
}

/// The condition of an action.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Only {
    /// In any case.
    Always,
    /// If there is no such key.
    New,
    /// If there is the key.
    Old,
}

/// The condition for a change of a life, beside that there is the key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OnlyLife {
    /// In any case.
    Always,
    /// If the key lives for ever.
    Ever,
    /// If the key does not live for ever.
    Limited,
    /// If the key lives longer then.
    Longer,
    /// If the key lives less long then.
    Shorter,
}

/// An action on one key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Action<'a> {
    /// Reads the bytes.
    Get,
    /// Reads the length of the bytes.
    Length,
    /// Reads the kind of the value.
    Kind,
    /// Reads whether there is the key.
    Exists,
    /// Reads the rest of the key's life.
    LivesUntil,
    /// Reads the place in the order of the last change.
    Version,
    /// Reads the place in the order of this state.
    Place,
    /// Reads the bytes, and deletes the key.
    Take,
    /// Sets the bytes.
    Set {
        /// The bytes.
        value: &'a [u8],
        /// The life of the key then.
        life: Life,
        /// The condition.
        only: Only,
        /// The answer is the bytes from before.
        get: bool,
    },
    /// Appends bytes.
    Append(&'a [u8]),
    /// Adds a number to the one that is there.
    Add(i64),
    /// Deletes the key.
    Delete,
    /// Changes the life.
    Lives(Life, OnlyLife),
    /// Reads the bytes, and changes the life.
    GetAndLives(Life),
    /// Reads the bytes of some fields.
    Fields(Vec<&'a [u8]>),
    /// Reads all fields.
    AllFields,
    /// Reads the number of fields.
    CountFields,
    /// Sets the bytes of fields.
    SetFields(Vec<(&'a [u8], &'a [u8])>),
    /// Deletes some fields.
    DeleteFields(Vec<&'a [u8]>),
}

impl Action<'_> {
    /// Whether a life begins that comes to an end: what it is depends on the time of the command.
    pub(super) const fn limits_life(&self) -> bool {
        let (Self::Set { life, .. } | Self::Lives(life, _) | Self::GetAndLives(life)) = self else {
            return false;
        };
        matches!(life, Life::Until(_) | Life::For(_))
    }
}

impl Life {
    fn put(self, out: &mut Vec<u8>) {
        let (kind, time) = match self {
            Self::Ever => (0, 0),
            Self::Keep => (1, 0),
            Self::Until(time) => (2, time),
            Self::For(time) => (3, time),
        };
        out.push(kind);
        out.extend(time.to_le_bytes());
    }

    fn take(bytes: &mut Reader<'_>) -> Option<Self> {
        Some(match (bytes.byte()?, bytes.u64()?) {
            (0, 0) => Self::Ever,
            (1, 0) => Self::Keep,
            (2, time) => Self::Until(time),
            (3, time) => Self::For(time),
            _ => return None,
        })
    }
}

impl Only {
    fn take(bytes: &mut Reader<'_>) -> Option<Self> {
        let all = [Self::Always, Self::New, Self::Old];
        all.get(usize::from(bytes.byte()?)).copied()
    }
}

impl OnlyLife {
    fn take(bytes: &mut Reader<'_>) -> Option<Self> {
        let all = [
            Self::Always,
            Self::Ever,
            Self::Limited,
            Self::Longer,
            Self::Shorter,
        ];
        all.get(usize::from(bytes.byte()?)).copied()
    }
}

impl<'a> Action<'a> {
    /// Whether the action changes anything, or might.
    pub const fn writes(&self) -> bool {
        !matches!(
            self,
            Self::Get
                | Self::Length
                | Self::Kind
                | Self::Exists
                | Self::LivesUntil
                | Self::Version
                | Self::Place
                | Self::Fields(_)
                | Self::AllFields
                | Self::CountFields
        )
    }

    /// Whether the key may be larger afterwards.
    pub const fn grows(&self) -> bool {
        matches!(
            self,
            Self::Set { .. } | Self::Append(_) | Self::Add(_) | Self::SetFields(_)
        )
    }

    const fn code(&self) -> u8 {
        match self {
            Self::Get => 1,
            Self::Length => 2,
            Self::Kind => 3,
            Self::Exists => 4,
            Self::LivesUntil => 5,
            Self::Version => 6,
            Self::Take => 7,
            Self::Set { .. } => 8,
            Self::Append(_) => 9,
            Self::Add(_) => 10,
            Self::Delete => 11,
            Self::Lives(..) => 12,
            Self::GetAndLives(_) => 13,
            Self::Fields(_) => 14,
            Self::AllFields => 15,
            Self::CountFields => 16,
            Self::SetFields(_) => 17,
            Self::DeleteFields(_) => 18,
            Self::Place => 19,
        }
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        out.push(self.code());
        match self {
            Self::Set {
                value,
                life,
                only,
                get,
            } => {
                life.put(out);
                out.push(*only as u8);
                out.push(u8::from(*get));
                put_bytes(out, value);
            }
            Self::Append(value) => put_bytes(out, value),
            Self::Add(number) => out.extend(number.to_le_bytes()),
            Self::Lives(life, only) => {
                life.put(out);
                out.push(*only as u8);
            }
            Self::GetAndLives(life) => life.put(out),
            Self::Fields(fields) | Self::DeleteFields(fields) => {
                out.extend((fields.len() as u32).to_le_bytes());
                fields.iter().for_each(|field| put_bytes(out, field));
            }
            Self::SetFields(fields) => {
                out.extend((fields.len() as u32).to_le_bytes());
                for (field, value) in fields {
                    put_bytes(out, field);
                    put_bytes(out, value);
                }
            }
            _ => {}
        }
    }

    pub(super) fn take(bytes: &mut Reader<'a>) -> Option<Self> {
        Some(match bytes.byte()? {
            1 => Self::Get,
            2 => Self::Length,
            3 => Self::Kind,
            4 => Self::Exists,
            5 => Self::LivesUntil,
            6 => Self::Version,
            7 => Self::Take,
            8 => Self::Set {
                life: Life::take(bytes)?,
                only: Only::take(bytes)?,
                get: bytes.flag()?,
                value: take_bytes(bytes)?,
            },
            9 => Self::Append(take_bytes(bytes)?),
            10 => Self::Add(bytes.u64()?.cast_signed()),
            11 => Self::Delete,
            12 => Self::Lives(Life::take(bytes)?, OnlyLife::take(bytes)?),
            13 => Self::GetAndLives(Life::take(bytes)?),
            14 => Self::Fields(take_list(bytes, take_bytes)?),
            15 => Self::AllFields,
            16 => Self::CountFields,
            17 => Self::SetFields(take_list(bytes, |bytes| {
                Some((take_bytes(bytes)?, take_bytes(bytes)?))
            })?),
            18 => Self::DeleteFields(take_list(bytes, take_bytes)?),
            19 => Self::Place,
            _ => return None,
        })
    }
}
