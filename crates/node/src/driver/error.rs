//! The errors that end a driver.

use rota_storage::OpenError;
use rota_storage::acceptor::{FetchError, LogOpenError};
use std::fmt;
use std::io;

use crate::coordination::EtcdFileError;

/// Why a driver stopped.
#[derive(Debug)]
pub enum DriverError {
    /// A socket failed for good.
    Socket(io::Error),
    /// The trace cannot be written.
    Trace(io::Error),
    /// The port for links cannot be used.
    Links(io::Error),
    /// A file in the state directory cannot be used.
    State(OpenError),
    /// The acceptor's log cannot be used.
    Votes(LogOpenError),
    /// The acceptor's log cannot be read.
    ReadVotes(FetchError),
    /// Votes are to be kept on disk, and nothing says where.
    NoVotes,
    /// A file that a coordination service needs cannot be used.
    Coordination(EtcdFileError),
    /// The system has no random numbers, threads or descriptors for the node.
    System(io::Error),
}

impl fmt::Display for DriverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(error) => write!(f, "the network failed: {error}"),
            Self::Trace(error) => write!(f, "the trace cannot be written: {error}"),
            Self::Links(error) => write!(
                f,
                "cannot listen for links (TCP, at the token port): {error}"
            ),
            Self::State(error) => error.fmt(f),
            Self::Votes(error) => error.fmt(f),
            Self::ReadVotes(error) => write!(f, "the acceptor's log: {error}"),
            Self::NoVotes => f.write_str("nothing says where votes are kept: set `state_dir`"),
            Self::Coordination(error) => error.fmt(f),
            Self::System(error) => {
                write!(f, "no random numbers or threads from the system: {error}")
            }
        }
    }
}

impl std::error::Error for DriverError {}
