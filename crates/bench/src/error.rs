//! The errors of a benchmark, in words for the person who started it.

use std::fmt;
use std::io;

/// The reason why a benchmark gave no result.
#[derive(Debug)]
pub enum BenchError {
    /// The options do not fit together.
    Usage(String),
    /// The testbed could not be built.
    Testbed(String),
    /// A figure cannot be drawn, or its table not be read.
    Figure(String),
    /// A way that is compared gave no result.
    Compared(String),
    /// A node did not do its part.
    Node {
        /// The node, from 1.
        node: usize,
        /// A sentence about the failure.
        what: String,
    },
    /// The operating system refused something.
    Io {
        /// The operation that was tried.
        what: &'static str,
        /// The refusal.
        error: io::Error,
    },
}

impl BenchError {
    /// Turns an I/O error into one that names the operation.
    pub fn io(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::Io { what, error }
    }
}

impl fmt::Display for BenchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(what) | Self::Testbed(what) | Self::Figure(what) | Self::Compared(what) => {
                f.write_str(what)
            }
            Self::Node { node, what } => write!(f, "node {node}: {what}"),
            Self::Io { what, error } => write!(f, "{what}: {error}"),
        }
    }
}

impl std::error::Error for BenchError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { error, .. } => Some(error),
            _ => None,
        }
    }
}
