//! The process that owns a connection.

use std::io;

use rota_memory::process_id;

/// The process that connected.
///
/// A child of it has a copy of everything, bytes that are still to be written included. The connection stays the
/// parent's. The parent would write the child's bytes once more and miss all that the child read, and a goodbye would
/// be the parent's. So in a child each step fails before it does anything, and drops do nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Owner(u32);

impl Owner {
    /// This process.
    pub fn this() -> Self {
        Self(process_id())
    }

    /// Whether this process has connected; false in a process that was forked from it.
    pub fn is_this(self) -> bool {
        self == Self::this()
    }

    /// An error in any other process.
    pub fn check(self) -> io::Result<()> {
        if self.is_this() {
            return Ok(());
        }
        let text = "this client is of the process that this one was forked from";
        Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
    }

    /// A process that this one was forked from.
    #[cfg(test)]
    pub fn parent() -> Self {
        Self(process_id().wrapping_add(1))
    }
}
