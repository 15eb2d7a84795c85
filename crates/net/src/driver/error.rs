//! What ends a driver.

use std::fmt;
use std::io;

/// Why a driver stopped.
#[derive(Debug)]
pub enum DriverError {
    /// A socket failed for good.
    Socket(io::Error),
    /// The trace cannot be written.
    Trace(io::Error),
    /// The node's own clock or random numbers are not available.
    System(io::Error),
}

impl fmt::Display for DriverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(error) => write!(f, "the network failed: {error}"),
            Self::Trace(error) => write!(f, "the trace cannot be written: {error}"),
            Self::System(error) => write!(f, "no random numbers from the system: {error}"),
        }
    }
}

impl std::error::Error for DriverError {}
