//! Who may do what: users with passwords, as Redis' ACL has them, of which this is a part.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use rota_resp::Reply;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::redis::Entry;

/// A `[[kv.user]]` section.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UserSection {
    /// Its name; `default` is who gives a password alone.
    pub name: String,
    /// The SHA-256 of its password, in hexadecimal: `printf %s PASSWORD | sha256sum`.
    pub password_sha256: String,
    /// The keys it may use, with `*` at the end only; all, if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<Vec<String>>,
    /// It changes nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub read_only: bool,
}

/// What is wrong with a user.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum UserError {
    /// It has no name, or one that another has, too.
    Name(String),
    /// What should be a SHA-256 is none.
    Password(String),
    /// A pattern of keys is none.
    Pattern(String, String),
}

impl fmt::Display for UserError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => write!(f, "`[[kv.user]]` {name:?}: each has a name of its own"),
            Self::Password(name) => write!(
                f,
                "`[[kv.user]]` {name:?}: `password_sha256` is 64 hexadecimal digits: `printf %s PASSWORD | sha256sum`"
            ),
            Self::Pattern(name, pattern) => write!(
                f,
                "`[[kv.user]]` {name:?}: {pattern:?}: `*` is at the end of a pattern only"
            ),
        }
    }
}

impl std::error::Error for UserError {}

/// Keys that begin so, or one key.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Pattern {
    begins: Vec<u8>,
    is_prefix: bool,
}

/// Somebody, and what it may do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct User {
    name: String,
    hash: [u8; 32],
    /// None: all.
    keys: Option<Vec<Pattern>>,
    read_only: bool,
}

/// All of them. Without any, everybody may do everything.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Users(BTreeMap<String, Arc<User>>);

impl Users {
    /// Those of a file.
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

    /// Nobody has to say who it is.
    pub fn is_open(&self) -> bool {
        self.0.is_empty()
    }

    /// The user with this name, if that is its password.
    pub fn login(&self, name: &[u8], password: &[u8]) -> Option<Arc<User>> {
        let user = self.0.get(std::str::from_utf8(name).ok()?)?;
        let hash: [u8; 32] = Sha256::digest(password).into();
        // All bytes are compared in any case: how long it takes says nothing.
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

    /// Whether all keys from one on and before another one begin so.
    fn has_range(&self, from: &[u8], to: &[u8]) -> bool {
        // The first that stands behind all that begin so.
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

    /// Why it may not have this done, if it may not.
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
        let may = match (entry.name, arguments) {
            ("range", [from, to, ..]) => patterns.iter().any(|pattern| pattern.has_range(from, to)),
            // They are of all keys.
            ("scan" | "dbsize" | "flushall" | "flushdb" | "rota", _) => return may_not(),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redis::find;

    /// Of "secret".
    const HASH: &str = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b";

    fn section(name: &str, keys: Option<&[&str]>, read_only: bool) -> UserSection {
        UserSection {
            name: name.to_owned(),
            password_sha256: HASH.to_owned(),
            keys: keys.map(|keys| keys.iter().map(ToString::to_string).collect()),
            read_only,
        }
    }

    fn refused(user: &User, line: &str) -> bool {
        let mut words = line.split(' ').map(|word| Bytes::from(word.to_owned()));
        let name = words.next().expect("a name");
        let words: Vec<Bytes> = words.collect();
        user.refusal(find(&name).expect("a command"), &words)
            .is_some()
    }

    #[test]
    fn only_the_right_password_opens() {
        let users = Users::new(&[section("app", None, false)]).expect("a user");
        assert!(users.login(b"app", b"secret").is_some());
        for (name, password) in [
            ("app", "Secret"),
            ("app", ""),
            ("default", "secret"),
            ("", ""),
        ] {
            assert!(users.login(name.as_bytes(), password.as_bytes()).is_none());
        }
        assert!(!users.is_open() && Users::default().is_open());
    }

    #[test]
    fn a_user_has_its_keys_and_no_others() {
        let users = Users::new(&[section("app", Some(&["app:*", "one"]), false)]);
        let users = users.expect("a user");
        let user = users.login(b"app", b"secret").expect("it is");
        for line in [
            "GET app:1",
            "SET one 1",
            "MSET app:1 x app:2 y",
            "DEL app:1 one",
            "PING",
            "RANGE app: app;",
            "RANGE app:1 app:2 LIMIT 3",
            "WATCH one",
        ] {
            assert!(!refused(&user, line), "{line}");
        }
        for line in [
            "GET apple",
            "GET oneself",
            "MSET app:1 x other y",
            "MGET app:1 other",
            "HSET other f v",
            "WATCH other",
            "PLACE other",
            "RANGE app: +",
            "RANGE a app;",
            "RANGE one one",
            "SCAN 0",
            "DBSIZE",
            "FLUSHALL",
            "ROTA MOVE 2 0-9",
        ] {
            assert!(refused(&user, line), "{line}");
        }
    }

    #[test]
    fn a_range_to_the_last_key_is_of_all_keys_that_follow() {
        let plus = Users::new(&[section("app", Some(&["+*"]), false)]).expect("a user");
        let plus = plus.login(b"app", b"secret").expect("it is");
        assert!(refused(&plus, "RANGE + + LIMIT 9") && !refused(&plus, "RANGE +a +b"));
        let all = Users::new(&[section("app", Some(&["*"]), false)]).expect("a user");
        let all = all.login(b"app", b"secret").expect("it is");
        assert!(!refused(&all, "RANGE a +"));
    }

    #[test]
    fn who_only_reads_changes_nothing() {
        let users = Users::new(&[section("eye", None, true)]).expect("a user");
        let user = users.login(b"eye", b"secret").expect("it is");
        for entry in crate::redis::TABLE {
            let refusal = user.refusal(entry, &[]).is_some();
            assert_eq!(refusal, entry.writes(), "{}", entry.name);
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        let same = [section("app", None, false), section("app", None, true)];
        assert!(matches!(Users::new(&same), Err(UserError::Name(_))));
        assert!(Users::new(&[section("", None, false)]).is_err());
        let pattern = Users::new(&[section("app", Some(&["a*b"]), false)]);
        assert!(matches!(pattern, Err(UserError::Pattern(..))));
        let mut short = section("app", None, false);
        short.password_sha256.pop();
        assert!(matches!(Users::new(&[short]), Err(UserError::Password(_))));
    }
}
