//! The keys of a cluster, and the file that holds them.
//!
//! A node takes datagrams under all keys of its file and seals with one of them, so that a key can be
//! replaced on one node after the other: `docs/operations/security.md` has the steps.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};

use crate::private::{Owners, read_private};
use crate::sys;

/// Bytes of a key.
const SECRET_BYTES: usize = 32;

/// Keys that a file holds at most.
const MOST_KEYS: usize = 16;

/// Only the owner may read and write.
const MODE: u32 = 0o600;

const TOP: &str = "\
# The keys of a cluster, for all its nodes. Whoever can read this can be any of them.\n";

/// Names a key of a cluster. Not 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct KeyId(u16);

impl KeyId {
    /// `None` for 0.
    pub const fn new(id: u16) -> Option<Self> {
        if id == 0 { None } else { Some(Self(id)) }
    }

    /// The number.
    pub const fn get(self) -> u16 {
        self.0
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A key. It is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret([u8; SECRET_BYTES]);

impl Secret {
    fn draw() -> io::Result<Self> {
        let mut bytes = [0; SECRET_BYTES];
        for word in bytes.as_chunks_mut::<8>().0 {
            *word = sys::random_u64()?.to_ne_bytes();
        }
        Ok(Self(bytes))
    }

    pub(crate) const fn bytes(&self) -> &[u8] {
        &self.0
    }

    fn to_hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn from_hex(text: &str) -> Option<Self> {
        let digit = |digit: u8| (digit as char).to_digit(16);
        let (pairs, rest) = text.as_bytes().as_chunks::<2>();
        let bytes: Option<Vec<u8>> = pairs
            .iter()
            .map(|[high, low]| Some((digit(*high)? * 16 + digit(*low)?) as u8))
            .collect();
        let bytes = bytes.filter(|_| rest.is_empty())?;
        bytes.try_into().ok().map(Self)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// The keys of a cluster, of which one is for sending.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyRing {
    keys: BTreeMap<KeyId, Secret>,
    send: KeyId,
}

/// A key file as it is written.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyText {
    /// The id of the key to send with.
    send: u16,
    #[serde(rename = "key")]
    keys: Vec<KeyLine>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyLine {
    id: u16,
    secret: String,
}

/// The error of a key file, or of a change to it. Never shows a secret.
#[derive(Debug)]
pub enum KeyError {
    /// The file cannot be read or written.
    Io(io::Error),
    /// A file to be made exists.
    Exists,
    /// Another process is changing the file, or was, and left this one.
    Beside(PathBuf),
    /// Users other than the owner may do something with the file: its permissions.
    Open(u32),
    /// The file belongs to this user, who is neither root nor the user of this process.
    Owner(u32),
    /// The path is not that of a file.
    NotAFile,
    /// Not a key file; the line where that shows, if it is known.
    Syntax(Option<usize>),
    /// The id of a key is 0.
    ZeroId,
    /// Two keys have this id.
    Twice(KeyId),
    /// The key with this id is not 64 hexadecimal digits.
    Secret(KeyId),
    /// There is no key with this id.
    NoSuchKey(u16),
    /// The key is the one to send with.
    InUse(KeyId),
    /// More keys than are kept.
    TooMany,
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::Exists => f.write_str("it exists, and a key is not written over"),
            Self::Beside(path) => write!(
                f,
                "{} exists: it is being changed; remove that if nobody does",
                path.display()
            ),
            Self::Open(mode) => write!(
                f,
                "its permissions are {mode:04o}: only its owner may read it; `chmod 600` it, and \
                 think of who may have read it"
            ),
            Self::Owner(uid) => write!(
                f,
                "it belongs to user {uid}, who can read and replace it: it has to be root's or of the user that uses it; as \
                 root, check as the daemon's user (`runuser -u USER`)"
            ),
            Self::NotAFile => f.write_str("it is not a file"),
            Self::Syntax(Some(line)) => write!(f, "it is no key file: see line {line}"),
            Self::Syntax(None) => f.write_str("it is no key file; `rota key new FILE` makes one"),
            Self::ZeroId => f.write_str("ids of keys start at 1"),
            Self::Twice(id) => write!(f, "two keys have the id {id}"),
            Self::Secret(id) => write!(
                f,
                "the secret of key {id} is not {} hexadecimal digits",
                2 * SECRET_BYTES
            ),
            Self::NoSuchKey(id) => write!(f, "there is no key {id} in it"),
            Self::InUse(id) => write!(f, "key {id} is the one to send with: use another first"),
            Self::TooMany => write!(f, "a file holds at most {MOST_KEYS} keys: remove old ones"),
        }
    }
}

impl std::error::Error for KeyError {}

impl From<io::Error> for KeyError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl KeyRing {
    /// One new key, with the id 1.
    ///
    /// # Errors
    /// [`KeyError::Io`] on systems without random numbers.
    pub fn generate() -> Result<Self, KeyError> {
        let send = KeyId(1);
        Ok(Self {
            keys: BTreeMap::from([(send, Secret::draw()?)]),
            send,
        })
    }

    /// The key to send with.
    pub const fn sending(&self) -> KeyId {
        self.send
    }

    /// The ids of all keys, ascending.
    pub fn ids(&self) -> impl Iterator<Item = KeyId> {
        self.keys.keys().copied()
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = (KeyId, &Secret)> {
        self.keys.iter().map(|(id, secret)| (*id, secret))
    }

    pub(crate) fn get(&self, id: KeyId) -> Option<&Secret> {
        self.keys.get(&id)
    }

    /// Adds a new key, and does not send with it yet. Its id is one above the largest.
    ///
    /// # Errors
    /// [`KeyError::TooMany`], or no random numbers.
    pub fn add(&mut self) -> Result<KeyId, KeyError> {
        let largest = self.keys.last_key_value().map_or(0, |(id, _)| id.get());
        let next = largest.checked_add(1).and_then(KeyId::new);
        let next = next.filter(|_| self.keys.len() < MOST_KEYS);
        let next = next.ok_or(KeyError::TooMany)?;
        self.keys.insert(next, Secret::draw()?);
        Ok(next)
    }

    /// Sends with this key.
    ///
    /// # Errors
    /// [`KeyError::NoSuchKey`].
    pub fn send_with(&mut self, id: u16) -> Result<(), KeyError> {
        let known = KeyId::new(id).filter(|id| self.keys.contains_key(id));
        self.send = known.ok_or(KeyError::NoSuchKey(id))?;
        Ok(())
    }

    /// Takes a key out.
    ///
    /// # Errors
    /// [`KeyError::InUse`] for the one to send with, [`KeyError::NoSuchKey`].
    pub fn remove(&mut self, id: u16) -> Result<(), KeyError> {
        if id == self.send.get() {
            return Err(KeyError::InUse(self.send));
        }
        let removed = KeyId::new(id).and_then(|id| self.keys.remove(&id));
        removed.map(drop).ok_or(KeyError::NoSuchKey(id))
    }

    /// Reads keys from the text of a key file.
    ///
    /// # Errors
    /// [`KeyError`].
    pub fn from_toml(text: &str) -> Result<Self, KeyError> {
        let read: KeyText = toml::from_str(text).map_err(|error| {
            // The error itself would show the line, and with it perhaps a secret.
            let at = error.span().map(|span| span.start.min(text.len()));
            KeyError::Syntax(at.map(|at| text.as_bytes()[..at].split(|b| *b == b'\n').count()))
        })?;
        let mut keys = BTreeMap::new();
        for KeyLine { id, secret } in &read.keys {
            let id = KeyId::new(*id).ok_or(KeyError::ZeroId)?;
            let secret = Secret::from_hex(secret).ok_or(KeyError::Secret(id))?;
            if keys.insert(id, secret).is_some() {
                return Err(KeyError::Twice(id));
            }
        }
        if keys.len() > MOST_KEYS {
            return Err(KeyError::TooMany);
        }
        let send = KeyId::new(read.send).filter(|id| keys.contains_key(id));
        let send = send.ok_or(KeyError::NoSuchKey(read.send))?;
        Ok(Self { keys, send })
    }

    fn to_toml(&self) -> Result<String, KeyError> {
        let line = |(id, secret): (KeyId, &Secret)| KeyLine {
            id: id.get(),
            secret: secret.to_hex(),
        };
        let text = toml::to_string(&KeyText {
            send: self.send.get(),
            keys: self.keys().map(line).collect(),
        });
        let text = text.map_err(|error| KeyError::Io(io::Error::other(error)))?;
        Ok(format!("{TOP}{text}"))
    }

    /// Reads a key file to use its keys. The file must be its owner's alone, and the owner must be root or the user of
    /// this process.
    ///
    /// # Errors
    /// [`KeyError`].
    pub fn load(path: &Path) -> Result<Self, KeyError> {
        Self::from_bytes(read_private(path, Owners::Trusted)?)
    }

    /// Reads a key file to change or show it. The file must be its owner's alone, whoever the owner is: root changes
    /// the file of the user that a daemon runs as.
    ///
    /// # Errors
    /// [`KeyError`].
    pub fn load_of_anybody(path: &Path) -> Result<Self, KeyError> {
        Self::from_bytes(read_private(path, Owners::Any)?)
    }

    fn from_bytes(bytes: Vec<u8>) -> Result<Self, KeyError> {
        let text = String::from_utf8(bytes).map_err(|_| KeyError::Syntax(None))?;
        Self::from_toml(&text)
    }

    /// Writes a new key file, which only its owner may read.
    ///
    /// # Errors
    /// [`KeyError::Exists`] where there is something; the file is then as it was.
    pub fn create(&self, path: &Path) -> Result<(), KeyError> {
        let file = new_file(path).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => KeyError::Exists,
            _ => KeyError::Io(error),
        })?;
        let written = self.write(file);
        if written.is_err() {
            // The rest is no key file, and would be in the way of one.
            let _ = std::fs::remove_file(path);
        }
        written
    }

    /// Puts these keys into the place of those in a file, all at once. The file keeps its owner, and a path that is a
    /// link stays one.
    ///
    /// # Errors
    /// [`KeyError::Io`], [`KeyError::Beside`]; the file is then as it was.
    pub fn replace(&self, path: &Path) -> Result<(), KeyError> {
        let path = std::fs::canonicalize(path)?;
        let before = std::fs::metadata(&path)?;
        let mut beside = path.clone().into_os_string();
        beside.push(".new");
        let beside = PathBuf::from(beside);
        let made = new_file(&beside).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => KeyError::Beside(beside.clone()),
            _ => KeyError::Io(error),
        });
        let written = made.and_then(|file| {
            // A daemon could not read a file that belongs to the user who runs this.
            if file.metadata()?.uid() != before.uid() {
                fchown(&file, Some(before.uid()), Some(before.gid()))?;
            }
            self.write(file)?;
            std::fs::rename(&beside, &path).map_err(KeyError::Io)
        });
        if let Err(KeyError::Io(_)) = &written {
            // Half a file is of no use; that it was never made is as good.
            let _ = std::fs::remove_file(&beside);
        }
        written
    }

    fn write(&self, mut file: File) -> Result<(), KeyError> {
        file.write_all(self.to_toml()?.as_bytes())?;
        file.sync_all()?;
        Ok(())
    }
}

fn new_file(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(MODE)
        .open(path)
}

#[cfg(test)]
#[path = "keys_tests.rs"]
mod tests;
