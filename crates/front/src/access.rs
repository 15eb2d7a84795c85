//! Users with passwords and their permissions: a part of Redis' ACL.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use rota_resp::Reply;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::command::{Entry, Reach};

/// A `[[user]]` section of a service.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UserSection {
    /// The name; a client that gives a password alone is the user `default`.
    pub name: String,
    /// The SHA-256 of the password, in hexadecimal: `printf %s PASSWORD | sha256sum`.
    pub password_sha256: String,
    /// The keys that the user may use, with `*` at the end only; all, if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<Vec<String>>,
    /// The user may change nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub read_only: bool,
}

/// An error in a `[[user]]` section.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum UserError {
    /// The user has no name, or the name of another one.
    Name(String),
    /// The hash is no SHA-256.
    Password(String),
    /// A pattern of keys is none.
    Pattern(String, String),
}

impl fmt::Display for UserError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => write!(f, "user {name:?}: each has a name of its own"),
            Self::Password(name) => write!(
                f,
                "user {name:?}: `password_sha256` is 64 hexadecimal digits: `printf %s PASSWORD | sha256sum`"
            ),
            Self::Pattern(name, pattern) => write!(
                f,
                "user {name:?}: {pattern:?}: `*` is at the end of a pattern only"
            ),
        }
    }
}

impl std::error::Error for UserError {}

/// A pattern: keys with one beginning, or one key.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Pattern {
    begins: Vec<u8>,
    is_prefix: bool,
}

/// A user, and its permissions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct User {
    name: String,
    hash: [u8; 32],
    /// The keys that it may use; none: all.
    keys: Option<Vec<Pattern>>,
    read_only: bool,
}

/// All users. Without any, each client may do everything.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Users(BTreeMap<String, Arc<User>>);

impl Users {
    /// The users of a configuration file.
    ///
    /// # Errors
    /// [`UserError`].
    pub fn new(sections: &[UserSection]) -> Result<Self, UserError> {
        let mut users = BTreeMap::new();
        for section in sections {
            let user = Arc::new(User::new(section)?);
            let known = users.insert(section.name.clone(), user);
            if section.name.is_empty() || known.is_some() {
                return Err(UserError::Name(section.name.clone()));
            }
        }
        Ok(Self(users))
    }

    /// Whether there are no users, so that no client has to prove who it is.
    pub fn is_open(&self) -> bool {
        self.0.is_empty()
    }

    /// The user with the name and the password of another one, as it is here.
    pub(crate) fn same(&self, user: &User) -> Option<Arc<User>> {
        let same = self.0.get(&user.name);
        same.filter(|same| same.hash == user.hash).cloned()
    }

    /// The user with this name, if the password is right.
    pub fn login(&self, name: &[u8], password: &[u8]) -> Option<Arc<User>> {
        let user = self.0.get(std::str::from_utf8(name).ok()?)?;
        let hash: [u8; 32] = Sha256::digest(password).into();
        // All bytes are compared in any case, so the time of a comparison reveals nothing.
        let differs = hash.iter().zip(&user.hash);
        let differs = differs.fold(0, |differs, (one, other)| differs | (one ^ other));
        (differs == 0).then(|| Arc::clone(user))
    }
}

impl Pattern {
    fn new(text: &str) -> Option<Self> {
        let (begins, is_prefix) = match text.strip_suffix('*') {
            Some(begins) => (begins, true),
            None => (text, false),
        };
        (!begins.contains('*')).then(|| Self {
            begins: begins.as_bytes().to_vec(),
            is_prefix,
        })
    }

    fn matches(&self, key: &[u8]) -> bool {
        match self.is_prefix {
            true => key.starts_with(&self.begins),
            false => key == self.begins,
        }
    }

    /// Whether all keys that begin so are in the pattern.
    fn has_prefix(&self, prefix: &[u8]) -> bool {
        self.is_prefix && prefix.starts_with(&self.begins)
    }

    /// Whether all keys from one on and before another one are in the pattern.
    fn has_range(&self, from: &[u8], to: &[u8]) -> bool {
        // The first key behind all that begin so.
        let last = self.begins.iter().rposition(|byte| *byte < u8::MAX);
        let behind = last.map(|last| {
            let mut behind = self.begins[..=last].to_vec();
            behind[last] += 1;
            behind
        });
        // `+` is no key, but the end of all.
        let is_last = to == b"+" && !self.begins.is_empty();
        let ends = to.starts_with(&self.begins) || behind.as_deref() == Some(to);
        self.is_prefix && from.starts_with(&self.begins) && ends && !is_last
    }
}

impl User {
    fn new(section: &UserSection) -> Result<Self, UserError> {
        let name = || section.name.clone();
        let hash = hash_of(&section.password_sha256).ok_or_else(|| UserError::Password(name()))?;
        let pattern = |text: &String| {
            Pattern::new(text).ok_or_else(|| UserError::Pattern(name(), text.clone()))
        };
        let keys = section.keys.as_ref();
        let keys = keys.map(|keys| keys.iter().map(pattern).collect());
        Ok(Self {
            name: name(),
            hash,
            keys: keys.transpose()?,
            read_only: section.read_only,
        })
    }

    /// The reason why the user may not run this command, if it may not.
    pub fn refusal(&self, entry: &Entry, arguments: &[Bytes]) -> Option<Reply> {
        let may_not = || {
            let text = format!(
                "NOPERM User {} has no permissions to run the '{}' command",
                self.name, entry.name
            );
            Some(Reply::Error(text))
        };
        if self.read_only && entry.writes() {
            return may_not();
        }
        let patterns = self.keys.as_ref()?;
        let matches = |key: &Bytes| patterns.iter().any(|pattern| pattern.matches(key));
        let may = match (entry.reach, arguments) {
            (Reach::Range, [from, to, ..]) => {
                patterns.iter().any(|pattern| pattern.has_range(from, to))
            }
            (Reach::Prefix, [prefix, ..]) => {
                patterns.iter().any(|pattern| pattern.has_prefix(prefix))
            }
            (Reach::All, _) => return may_not(),
            _ => entry.keys(arguments).all(matches),
        };
        (!may).then(|| Reply::Error("NOPERM No permissions to access a key".to_owned()))
    }
}

fn hash_of(text: &str) -> Option<[u8; 32]> {
    let digits = text.as_bytes();
    if digits.len() != 64 || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let mut hash = [0; 32];
    for (byte, pair) in hash.iter_mut().zip(digits.chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(hash)
}
