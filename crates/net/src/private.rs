//! Files with secrets, which are their owner's alone.

use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use crate::keys::KeyError;
use crate::sys;

/// No such file is larger, in bytes.
const MOST_BYTES: u64 = 1 << 16;

/// Whose such a file may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Owners {
    /// Root's, or that of whom this process runs as: anybody else could read it, and put another into its place.
    Trusted,
    /// Anybody's.
    Any,
}

impl Owners {
    const fn include(self, owner: u32, me: u32) -> bool {
        matches!(self, Self::Any) || owner == 0 || owner == me
    }
}

/// What is in a file that is its owner's alone.
pub(crate) fn read_private(path: &Path, owners: Owners) -> Result<Vec<u8>, KeyError> {
    let flags = libc::O_NONBLOCK | libc::O_CLOEXEC;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(KeyError::NotAFile);
    }
    let mode = metadata.mode() & 0o7777;
    if mode & 0o077 != 0 {
        return Err(KeyError::Open(mode));
    }
    if !owners.include(metadata.uid(), sys::effective_user()) {
        return Err(KeyError::Owner(metadata.uid()));
    }
    let mut bytes = Vec::new();
    file.take(MOST_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_roots_or_of_whom_it_is_for() {
        for (owner, me, is_trusted) in [
            (0, 0, true),
            (0, 7, true),
            (7, 7, true),
            (7, 0, false),
            (7, 8, false),
        ] {
            assert_eq!(
                Owners::Trusted.include(owner, me),
                is_trusted,
                "{owner} {me}"
            );
            assert!(Owners::Any.include(owner, me));
        }
    }
}
