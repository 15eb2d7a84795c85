//! The first bytes of a client: its version, its name and its options.
//!
//! | bytes | field |
//! |---|---|
//! | 0, 1 | version of its library: major, minor |
//! | 2 | patch; left out up to 3.14 |
//! | 1 | bit 0: it wants membership messages; high four bits: priority |
//! | 1 | length of its name |
//! | rest | its name |

use std::fmt;

use super::auth::add;
use super::{AuthMethod, MAX_PRIVATE_NAME, PrivateName, Refusal};

/// A version of Spread.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Version {
    /// The first number.
    pub major: u8,
    /// The second.
    pub minor: u8,
    /// The third.
    pub patch: u8,
}

impl Version {
    const fn new(major: u8, minor: u8, patch: u8) -> Self {
        Self {
            major,
            minor,
            patch,
        }
    }

    /// The oldest that is spoken with.
    const OLDEST: Self = Self::new(3, 1, 0);
    /// The last that does not send its patch number.
    const NO_PATCH: Self = Self::new(3, 14, 0);
    /// The first that is told the daemon's patch number.
    const TOLD_PATCH: Self = Self::new(3, 15, 0);
    /// The first that chooses how to authenticate.
    const CHOOSES: Self = Self::new(3, 16, 0);

    /// A client of this version is told the daemon's patch number.
    pub(super) fn is_told_patch(self) -> bool {
        self >= Self::TOLD_PATCH
    }

    /// A client of this version chooses how to authenticate; an older one is not asked.
    pub(super) fn chooses(self) -> bool {
        self >= Self::CHOOSES
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// A client that wants to connect, and what has to be checked before it may.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Connect {
    /// The version of its library.
    pub version: Version,
    /// The client wants membership messages.
    pub membership: bool,
    /// A field that clients send and daemons ignore.
    pub priority: u8,
    /// The name it wants; `None` if the daemon is to invent one.
    pub name: Option<PrivateName>,
    /// The checks it has to pass.
    pub methods: Vec<AuthMethod>,
}

/// The contents of the first bytes.
#[derive(Debug)]
pub(super) enum Greeting {
    /// The greeting is complete. The methods are still empty.
    Whole(Connect),
    /// The greeting has at least this many bytes.
    Needs(usize),
}

/// Reads a greeting from its start; `bytes` hold no more than the number last asked for.
pub(super) fn greeting(bytes: &[u8]) -> Result<Greeting, Refusal> {
    let &[major, minor, ref rest @ ..] = bytes else {
        return Ok(Greeting::Needs(2));
    };
    let mut version = Version::new(major, minor, 0);
    // The bytes are signed for clients: one above 127 is a negative number.
    if version < Version::OLDEST || major > 127 || minor > 127 {
        return Err(Refusal::Version);
    }
    let mut rest = rest;
    let fixed = if version > Version::NO_PATCH {
        let Some((&patch, after)) = rest.split_first() else {
            return Ok(Greeting::Needs(5));
        };
        version.patch = patch;
        rest = after;
        5
    } else {
        4
    };
    let &[flags, length, ref name @ ..] = rest else {
        return Ok(Greeting::Needs(fixed));
    };
    let length = usize::from(length);
    if length > MAX_PRIVATE_NAME {
        return Err(Refusal::IllegalName);
    }
    let Some(name) = name.get(..length) else {
        return Ok(Greeting::Needs(fixed + length));
    };
    Ok(Greeting::Whole(Connect {
        version,
        membership: flags & 1 == 1,
        priority: flags >> 4,
        name: private_name(name)?,
        methods: Vec::new(),
    }))
}

fn private_name(name: &[u8]) -> Result<Option<PrivateName>, Refusal> {
    if name.is_empty() {
        return Ok(None);
    }
    let name = PrivateName::new(name).map_err(|_| Refusal::IllegalName)?;
    Ok(Some(name))
}

/// The checks of a client that cannot choose: by address if that is offered, else none.
pub(super) fn unasked(allowed: &[AuthMethod]) -> Vec<AuthMethod> {
    let preferred = [AuthMethod::Ip, AuthMethod::Null];
    let mut preferred = preferred.into_iter();
    let method = preferred.find(|method| allowed.contains(method));
    method.into_iter().collect()
}

/// All checks of a client: those that it chose and those that are required. At least one has to be made.
pub(super) fn checks(
    mut chosen: Vec<AuthMethod>,
    required: &[AuthMethod],
) -> Result<Vec<AuthMethod>, Refusal> {
    for &method in required {
        add(&mut chosen, method);
    }
    if chosen.is_empty() {
        return Err(Refusal::Auth);
    }
    Ok(chosen)
}
