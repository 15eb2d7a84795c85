//! Paths as messages to people show them.

use std::path::{Path, PathBuf};

/// A path with its directory: a relative one goes by the directory that the process was started in, not by that of the
/// file that names it, and the reader of a message may be in neither.
pub fn whole_path(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relative_path_is_said_with_its_directory() {
        let here = std::env::current_dir().expect("a directory");
        assert_eq!(whole_path("a/b".as_ref()), here.join("a/b"));
        assert_eq!(whole_path("/a/b".as_ref()), Path::new("/a/b"));
        assert_eq!(whole_path("".as_ref()), Path::new(""));
    }
}
