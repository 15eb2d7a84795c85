//! Paths: those that service managers hand over, and as messages to people show them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A path with its directory: a relative one goes by the directory that the process was started in, not by that of the
/// file that names it, and the reader of a message may be in neither.
pub fn whole_path(path: &Path) -> PathBuf {
    if path.starts_with(CREDENTIALS) {
        return path.to_owned();
    }
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// The beginning of a path below the directory in which systemd gives a service what is secret (`LoadCredential=`). Each
/// service has another.
const CREDENTIALS: &str = "$CREDENTIALS_DIRECTORY";

/// The path of a file with a secret, where a service manager has said in which directory that is.
pub(crate) fn handed_over(path: &Path) -> PathBuf {
    below(path, std::env::var_os(&CREDENTIALS[1..]))
}

fn below(path: &Path, directory: Option<OsString>) -> PathBuf {
    match (path.strip_prefix(CREDENTIALS), directory) {
        (Ok(name), Some(directory)) => PathBuf::from(directory).join(name),
        _ => path.to_owned(),
    }
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
        let handed_over = Path::new("$CREDENTIALS_DIRECTORY/a");
        assert_eq!(whole_path(handed_over), handed_over);
    }

    #[test]
    fn a_secret_may_be_where_the_service_manager_says() {
        let at = |path: &str, directory: Option<&str>| {
            let found = below(Path::new(path), directory.map(OsString::from));
            found.display().to_string()
        };
        let directory = Some("/run/credentials/rota.service");
        let path = "$CREDENTIALS_DIRECTORY/cluster.key";
        assert_eq!(
            at(path, directory),
            "/run/credentials/rota.service/cluster.key"
        );
        // Nobody has set it: the message about the missing file says how it was called.
        assert_eq!(at(path, None), path);
        for other in [
            "/etc/rota/cluster.key",
            "a/$CREDENTIALS_DIRECTORY/b",
            "$CREDENTIALS_DIRECTORYS/b",
        ] {
            assert_eq!(at(other, directory), other);
        }
    }
}
