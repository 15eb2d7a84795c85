//! Whether files have been written again since they were read.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use crate::paths::handed_over;

/// The time of the last change of a file, in seconds and nanoseconds, its size and its inode.
type Stamp = (i64, i64, u64, u64);

/// Files at one time. Compares equal as long as none of them was written again, replaced, taken away, or given other
/// rights.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FileStamps(Vec<Option<Stamp>>);

impl FileStamps {
    /// These files as they are now. Taken before they are read: so a change meanwhile is seen at the next look.
    pub fn of<P: AsRef<Path>>(files: impl IntoIterator<Item = P>) -> Self {
        let stamp = |file: P| {
            let found = fs::metadata(handed_over(file.as_ref())).ok()?;
            Some((found.ctime(), found.ctime_nsec(), found.len(), found.ino()))
        };
        Self(files.into_iter().map(stamp).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn each_change_of_a_file_is_seen() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = |name: &str| directory.path().join(name);
        let write = |name: &str, text: &str| fs::write(path(name), text).expect("it is ours");
        let (one, other) = (path("one"), path("other"));
        let look = || FileStamps::of([&one, &other]);
        let nothing = look();
        assert_eq!(nothing, look());
        write("one", "a");
        let written = look();
        assert_ne!(written, nothing);
        assert_eq!(written, look());
        write("new", "a");
        fs::rename(path("new"), &one).expect("it is ours");
        let replaced = look();
        assert_ne!(replaced, written, "of the same size");
        fs::set_permissions(&one, fs::Permissions::from_mode(0o400)).expect("it is ours");
        let shut = look();
        assert_ne!(shut, replaced);
        fs::remove_file(&one).expect("it is ours");
        assert_eq!(look(), nothing);
    }
}
