//! A service that says which configuration follows, where one is configured in place of the acceptors' own register.
//!
//! It only arbitrates: of all who want a configuration with a number, one gets its way, and everybody who asks is told
//! the same. Rings that are established do not need it.

pub(crate) mod etcd;
mod file;
mod login;
mod reply;
mod tls;

pub use etcd::Etcd;
pub use file::EtcdFileError;
pub use login::EtcdLogin;
pub use tls::EtcdTls;

use bytes::Bytes;
use std::fmt;

/// Such a service, as the thread that waits for it has it.
pub trait Coordination: Send {
    /// What is stored under this number; `wanted`, if nothing was. Asked again, it answers the same, whoever asks. May
    /// take seconds.
    ///
    /// # Errors
    /// [`CoordinationError`]: nothing is known of whether `wanted` was stored.
    fn ask(&mut self, number: u64, wanted: &Bytes) -> Result<Bytes, CoordinationError>;
}

/// Why there is no answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CoordinationError {
    /// The service cannot be reached, or does not answer. What each part of it said.
    Unreachable(String),
    /// A part of the service is there, and does not do this: who asks may not, or is not who it has to be. What each part
    /// of it said.
    Refused(String),
    /// What is stored there is not what was: this key should be there, and is not. Nothing is stored any more, since two
    /// configurations might get one number.
    Forgotten(String),
    /// There are configurations below this key, and the first one, which somebody wants to be, is not among them: the
    /// cluster was founded before, and then its oldest keys were deleted.
    Founded(String),
}

impl fmt::Display for CoordinationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(said) | Self::Refused(said) => f.write_str(said),
            Self::Forgotten(key) => write!(
                f,
                "`{key}`, the configuration before the next one, is not there: the service has lost its data or somebody \
                 has deleted it"
            ),
            Self::Founded(prefix) => write!(
                f,
                "`{prefix}` has configurations, and not the first one any more: this cluster was founded before, or another \
                 one has its number"
            ),
        }
    }
}

impl std::error::Error for CoordinationError {}
