//! The users of a process, which may change while it runs.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

use crate::access::{UserError, UserSection, Users};
use crate::lock;

/// The reason why other users are not put into force.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ReloadError {
    /// A user is wrong.
    User(UserError),
    /// There are no users any more, so everybody could do everything: what else the file says of clients, which may
    /// make good for that, counts at the next start only.
    Open,
}

impl fmt::Display for ReloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User(error) => error.fmt(f),
            Self::Open => f.write_str("it has no users any more: that counts at the next start"),
        }
    }
}

impl std::error::Error for ReloadError {}

/// The users of a process, as they are now.
#[derive(Debug, Default)]
pub struct Roster {
    /// Grows with each change, so that connections notice it without a lock.
    number: AtomicU64,
    users: Mutex<Arc<Users>>,
}

impl Roster {
    /// These users.
    pub fn new(users: Users) -> Self {
        Self {
            number: AtomicU64::new(0),
            users: Mutex::new(Arc::new(users)),
        }
    }

    /// The number of the last change.
    pub fn number(&self) -> u64 {
        self.number.load(SeqCst)
    }

    /// The users as they are now.
    pub fn now(&self) -> Arc<Users> {
        Arc::clone(&lock(&self.users))
    }

    /// Puts the users of a configuration file into force, also for clients that are connected. `false`: they are the
    /// same.
    ///
    /// # Errors
    /// [`ReloadError`]: then the users are those of before.
    pub fn reload(&self, sections: &[UserSection]) -> Result<bool, ReloadError> {
        let users = Users::new(sections).map_err(ReloadError::User)?;
        match users.is_open() && !self.now().is_open() {
            true => Err(ReloadError::Open),
            false => Ok(self.replace(users)),
        }
    }

    /// Puts other users into force. `false`: they are the same.
    pub(crate) fn replace(&self, users: Users) -> bool {
        let mut now = lock(&self.users);
        let is_other = **now != users;
        if is_other {
            *now = Arc::new(users);
            self.number.fetch_add(1, SeqCst);
        }
        is_other
    }
}
