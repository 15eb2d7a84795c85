//! Names of groups and clients, in the 32 bytes they have on the wire.

use std::fmt;

use super::{MAX_PRIVATE_NAME, NAME_BYTES};

/// Starts the private name of a client, and parts it from its daemon's.
const SEPARATOR: u8 = b'#';

/// Whether a byte may stand in a name that a client chooses.
pub(super) const fn is_legal(byte: u8) -> bool {
    matches!(byte, 0x24..=0x7e)
}

/// Any name on the wire: up to 31 bytes, none of them 0. It may be empty.
///
/// Messages may be sent to names that no group and no client can have; they reach nobody, but other
/// receivers of the same message see them. [`GroupName`] and [`PrivateName`] are the legal ones.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name([u8; NAME_BYTES]);

impl Name {
    /// Takes a name as it is.
    pub fn new(name: &[u8]) -> Result<Self, NameError> {
        let mut slot = [0; NAME_BYTES];
        if name.contains(&0) {
            return Err(NameError::Character);
        }
        if name.len() >= NAME_BYTES {
            return Err(NameError::Length);
        }
        slot[..name.len()].copy_from_slice(name);
        Ok(Self(slot))
    }

    /// Reads 32 bytes of a message: the name ends at the first 0, what comes after it is dropped.
    pub fn from_slot(slot: &[u8; NAME_BYTES]) -> Result<Self, NameError> {
        let end = slot.iter().position(|&byte| byte == 0);
        Self::new(&slot[..end.ok_or(NameError::Length)?])
    }

    /// The 32 bytes of a message.
    pub const fn slot(&self) -> &[u8; NAME_BYTES] {
        &self.0
    }

    /// The name without its padding.
    pub fn as_bytes(&self) -> &[u8] {
        let end = self.0.iter().position(|&byte| byte == 0);
        &self.0[..end.unwrap_or(NAME_BYTES)]
    }

    /// The name is one of a client, not of a group that can be joined.
    pub const fn is_private(&self) -> bool {
        self.0[0] == SEPARATOR
    }

    /// The client's and the daemon's part of `#name#daemon`.
    pub fn private_parts(&self) -> Option<(&[u8], &[u8])> {
        let rest = self.as_bytes().strip_prefix(&[SEPARATOR])?;
        let at = rest.iter().position(|&byte| byte == SEPARATOR)?;
        Some((&rest[..at], &rest[at + 1..]))
    }

    /// The private group of a client of this daemon: by the limits of both names it always fits.
    pub(super) fn private(name: PrivateName, daemon: &[u8]) -> Self {
        let text = [&[SEPARATOR], name.as_bytes(), &[SEPARATOR], daemon].concat();
        let mut slot = [0; NAME_BYTES];
        for (to, from) in slot[..NAME_BYTES - 1].iter_mut().zip(text) {
            *to = from;
        }
        Self(slot)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.as_bytes().escape_ascii())
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

/// The name of a group that can be joined: 1 to 31 characters from `$` to `~`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct GroupName(Name);

impl GroupName {
    /// Takes a name if it is legal for a group.
    pub fn new(name: &[u8]) -> Result<Self, NameError> {
        Self::try_from(Name::new(name)?)
    }

    /// The name as messages carry it.
    pub const fn name(&self) -> &Name {
        &self.0
    }
}

impl TryFrom<Name> for GroupName {
    type Error = NameError;

    fn try_from(name: Name) -> Result<Self, NameError> {
        match name.as_bytes() {
            [] => Err(NameError::Length),
            bytes if bytes.iter().all(|&byte| is_legal(byte)) => Ok(Self(name)),
            _ => Err(NameError::Character),
        }
    }
}

/// The name a client has at its daemon: 1 to 10 characters from `$` to `~`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PrivateName(GroupName);

impl PrivateName {
    /// Takes a name if it is legal for a client.
    pub fn new(name: &[u8]) -> Result<Self, NameError> {
        if name.len() > MAX_PRIVATE_NAME {
            return Err(NameError::Length);
        }
        GroupName::new(name).map(Self)
    }

    /// The name without padding.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.name().as_bytes()
    }
}

/// Why a name is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NameError {
    /// The name is too long for its kind, or empty where that is not allowed.
    Length,
    /// The name has a character its kind may not have.
    Character,
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Length => "the name is empty or too long",
            Self::Character => "the name has a character outside `$` to `~`",
        })
    }
}

impl std::error::Error for NameError {}
