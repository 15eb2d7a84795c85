//! A service that says which configuration follows, where one is configured in place of the acceptors' own register.
//!
//! The service only arbitrates: of all nodes that want a configuration with a number, one gets its way, and every node
//! that asks is told the same. Rings that are established do not need it.

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
    /// The configuration that is stored under this number; `wanted`, if none was. Asked again, the service answers the
    /// same, whichever node asks. May take seconds.
    ///
    /// # Errors
    /// [`CoordinationError`]: nothing is known of whether `wanted` was stored.
    fn ask(&mut self, number: u64, wanted: &Bytes) -> Result<Bytes, CoordinationError>;
}

/// Why there is no answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CoordinationError {
    /// The service cannot be reached, or does not answer. With the reply of each part.
    Unreachable(String),
    /// A part of the service is there, and refuses: the node may not ask, or is not the user that it has to be. With
    /// the reply of each part.
    Refused(String),
    /// The stored data are not what they were: this key should be there, and is not. Nothing is stored any more, since
    /// two configurations might get one number.
    Forgotten(String),
    /// There are configurations below this key, and the first one, which a node asks for, is not among them: the
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
