//! The error of a file that a node needs for etcd.

use std::fmt;
use std::path::{Path, PathBuf};

use rota_net::whole_path;

/// The error of a file of `etcd_tls` or `etcd_login`. Shows no password and no key.
#[derive(Debug)]
pub struct EtcdFileError {
    purpose: Purpose,
    path: PathBuf,
    what: String,
}

/// The setting that names the file.
#[derive(Clone, Copy, Debug)]
pub(super) enum Purpose {
    Tls,
    Login,
}

impl EtcdFileError {
    pub(super) fn new(purpose: Purpose, path: &Path, what: impl fmt::Display) -> Self {
        Self {
            purpose,
            path: path.to_owned(),
            what: what.to_string(),
        }
    }
}

impl fmt::Display for EtcdFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let setting = match self.purpose {
            Purpose::Tls => "etcd_tls",
            Purpose::Login => "etcd_login",
        };
        write!(
            f,
            "{setting}: {}: {}",
            whole_path(&self.path).display(),
            self.what
        )
    }
}

impl std::error::Error for EtcdFileError {}
