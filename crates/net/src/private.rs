//! Files with secrets, which are their owner's alone.

use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use crate::keys::KeyError;
use crate::paths::handed_over;
use crate::sys;

/// No such file is larger, in bytes.
const MOST_BYTES: u64 = 1 << 16;

/// The owners that such a file may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Owners {
    /// Root, or the user of this process: anybody else could read it, and put another into its place.
    Trusted,
    /// Any user.
    Any,
}

impl Owners {
    const fn include(self, owner: u32, me: u32) -> bool {
        matches!(self, Self::Any) || owner == 0 || owner == me
    }
}

/// Whether a file with these permissions is its owner's alone. One of root's that is for another user may be readable to
/// a group: so are secrets that a container or a service manager mounts, where nobody can change that.
const fn is_private(mode: u32, owner: u32, me: u32) -> bool {
    let lent = owner == 0 && me != 0 && mode & 0o037 == 0;
    lent || mode & 0o077 == 0
}

/// The contents of a file that is its owner's alone.
pub fn read_private(path: &Path, owners: Owners) -> Result<Vec<u8>, KeyError> {
    let flags = libc::O_NONBLOCK | libc::O_CLOEXEC;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(handed_over(path))?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(KeyError::NotAFile);
    }
    let (owner, me) = (metadata.uid(), sys::effective_user());
    let mode = metadata.mode() & 0o7777;
    if !is_private(mode, owner, me) {
        return Err(KeyError::Open(mode));
    }
    if !owners.include(owner, me) {
        return Err(KeyError::Owner(owner));
    }
    let mut bytes = Vec::new();
    file.take(MOST_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_may_lend_a_secret_to_a_group_and_to_nobody_else() {
        for mode in [0o400, 0o600, 0o700] {
            assert!(is_private(mode, 7, 7) && is_private(mode, 0, 0) && is_private(mode, 0, 7));
        }
        for mode in [0o440, 0o640] {
            assert!(is_private(mode, 0, 7), "{mode:o}");
            assert!(
                !is_private(mode, 7, 7) && !is_private(mode, 0, 0),
                "{mode:o}"
            );
        }
        for mode in [0o444, 0o604, 0o460, 0o450, 0o660, 0o644, 0o441] {
            assert!(!is_private(mode, 0, 7), "{mode:o}");
        }
    }

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
