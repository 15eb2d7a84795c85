//! The files that a node needs for etcd, and what is wrong with one.

use std::fmt;
use std::path::{Path, PathBuf};

use rota_net::{FileStamps, whole_path};
use ureq::tls::TlsConfig;

use super::login::Login;
use super::{EtcdLogin, EtcdTls};

/// The content of the files.
type Content = (TlsConfig, Option<Login>);

/// Files of `etcd_tls` and `etcd_login`, and how they were when they were read last.
#[derive(Debug, Default)]
pub(super) struct EtcdFiles {
    tls: Option<EtcdTls>,
    login: Option<EtcdLogin>,
    stamps: FileStamps,
}

impl EtcdFiles {
    /// Files that were not read yet.
    pub(super) fn new(tls: Option<&EtcdTls>, login: Option<&EtcdLogin>) -> Self {
        Self {
            tls: tls.cloned(),
            login: login.cloned(),
            stamps: FileStamps::default(),
        }
    }

    /// Reads them.
    pub(super) fn read(&mut self) -> Result<Content, EtcdFileError> {
        self.stamps = self.now();
        let tls = self.tls.as_ref();
        let tls = tls.map_or_else(|| Ok(TlsConfig::default()), EtcdTls::load)?;
        let login = self.login.as_ref().map(EtcdLogin::load).transpose()?;
        Ok((tls, login))
    }

    /// Reads them if one has changed since. `None`: none has.
    pub(super) fn read_again(&mut self) -> Option<Result<Content, EtcdFileError>> {
        (self.now() != self.stamps).then(|| self.read())
    }

    fn now(&self) -> FileStamps {
        let tls = self.tls.iter().flat_map(EtcdTls::files);
        let login = self.login.iter().map(|login| &login.password_file);
        FileStamps::of(tls.chain(login))
    }
}

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
