//! The section `[daemon.tls]`, and what is in its files.

use std::fmt;
use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rota_core::contract::NodeId;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, ServerConfig, WebPkiClientVerifier};
use rustls::version::TLS13;
use rustls::{CertificateError, Error, RootCertStore};
use serde::Deserialize;

use rota_net::FileStamps;
use rota_node::path_of;

use super::expiry;
use super::revoked::{Lists, ListsEnd};

/// The least time between two looks at the files.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// The listeners for clients of other hosts, and the certificates of both sides.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsConfig {
    /// Addresses to listen at.
    pub listen: Vec<SocketAddr>,
    /// The daemon's certificate and those between it and its root, as PEM. `{node}` stands for the node's
    /// number, as in the other paths.
    pub certificate: PathBuf,
    /// Its private key, as PEM.
    pub key: PathBuf,
    /// The roots that certificates of clients have to come from, as PEM.
    pub client_ca: Option<PathBuf>,
    /// Lists of revoked certificates, one at least of each of these roots, as PEM.
    pub client_crl: Option<PathBuf>,
    /// Clients need no certificate. Then there has to be a list of who may do what.
    #[serde(default)]
    pub anonymous: bool,
}

/// An error in one of the files.
#[derive(Debug)]
pub struct TlsError {
    path: PathBuf,
    what: String,
}

impl TlsError {
    pub(super) fn new(path: &Path, what: impl fmt::Display) -> Self {
        Self {
            path: path.to_owned(),
            what: what.to_string(),
        }
    }
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "[daemon.tls]: {}: {}",
            rota_net::whole_path(&self.path).display(),
            self.what
        )
    }
}

impl std::error::Error for TlsError {}

/// The check of clients' certificates.
type Verifier = Arc<dyn ClientCertVerifier>;

/// The contents of the files.
#[derive(Debug)]
struct Loaded {
    config: Arc<ServerConfig>,
    verifier: Option<Verifier>,
    lists_end: Option<ListsEnd>,
    /// The time at which the first certificate of the daemon's chain expires, since 1970.
    end: Option<Duration>,
}

impl TlsConfig {
    /// Whether node `me` can use its files, and when its lists of revoked certificates expire.
    ///
    /// # Errors
    /// [`TlsError`]: one of them cannot be used, or is a list that has expired.
    pub fn check_files(&self, me: NodeId) -> Result<Option<ListsEnd>, TlsError> {
        let certificates = Certificates::open(self, me)?;
        certificates.check_lists()?;
        Ok(certificates.lists_end())
    }

    /// Reads the files of node `me`.
    fn load(&self, me: NodeId) -> Result<Loaded, TlsError> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = ServerConfig::builder_with_provider(provider);
        let builder = builder
            .with_protocol_versions(&[&TLS13])
            .map_err(|error| TlsError::new(&self.certificate, error))?;
        let (verifier, lists_end) = match &self.client_ca {
            Some(path) => {
                let (verifier, end) = self.verifier(&path_of(path, me), me)?;
                (Some(verifier), end)
            }
            None => (None, None),
        };
        let builder = match &verifier {
            Some(verifier) => builder.with_client_cert_verifier(Arc::clone(verifier)),
            None => builder.with_no_client_auth(),
        };
        let path = path_of(&self.certificate, me);
        let chain = certificates(&path)?;
        let end = expiry::end_of(&chain);
        if let Some(end) = end {
            expiry::warn_of_end(&path, end);
        }
        let key_path = path_of(&self.key, me);
        warn_of_open(&key_path);
        let key = PrivateKeyDer::from_pem_file(&key_path)
            .map_err(|error| TlsError::new(&key_path, error))?;
        let mut config = builder
            .with_single_cert(chain, key)
            .map_err(|error| TlsError::new(&path, error))?;
        // A session that is resumed would not be asked for a certificate that may have expired meanwhile.
        config.send_tls13_tickets = 0;
        config.session_storage = Arc::new(NoServerSessionStorage {});
        Ok(Loaded {
            config: Arc::new(config),
            verifier,
            lists_end,
            end,
        })
    }

    fn verifier(&self, ca: &Path, me: NodeId) -> Result<(Verifier, Option<ListsEnd>), TlsError> {
        let mut roots = RootCertStore::empty();
        for root in certificates(ca)? {
            let added = roots.add(root);
            added.map_err(|error| TlsError::new(ca, error))?;
        }
        let crl = self.client_crl.as_ref().map(|path| path_of(path, me));
        let lists = crl.map(|path| Lists::load(&path, &roots)).transpose()?;
        let provider = Arc::new(aws_lc_rs::default_provider());
        let mut verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
        if self.anonymous {
            verifier = verifier.allow_unauthenticated();
        }
        let end = lists.as_ref().map(|lists| lists.until);
        if let Some(lists) = lists {
            verifier = verifier
                .with_crls(lists.lists)
                .enforce_revocation_expiration();
        }
        let verifier = verifier.build();
        Ok((verifier.map_err(|error| TlsError::new(ca, error))?, end))
    }
}

/// The files of a section as they were last read, and read again when they have changed.
#[derive(Debug)]
pub(crate) struct Certificates {
    section: TlsConfig,
    me: NodeId,
    current: Loaded,
    stamps: FileStamps,
    look_at: Instant,
}

impl Certificates {
    /// Reads the files of node `me`.
    pub fn open(section: &TlsConfig, me: NodeId) -> Result<Self, TlsError> {
        let stamps = section.stamps(me);
        Ok(Self {
            section: section.clone(),
            me,
            current: section.load(me)?,
            stamps,
            look_at: Instant::now() + LOOK_AGAIN,
        })
    }

    /// The TLS settings for clients that come now.
    pub fn current(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.current.config)
    }

    /// The time at which the first certificate of the daemon's chain expires, in seconds since 1970; 0 if it is
    /// unknown.
    pub fn end(&self) -> u64 {
        self.current.end.map_or(0, |end| end.as_secs())
    }

    /// The time at which the lists of revoked certificates expire, if there are any.
    pub fn lists_end(&self) -> Option<ListsEnd> {
        self.current.lists_end
    }

    /// # Errors
    /// The lists of revoked certificates have expired: no certificate of a client would pass any more.
    pub fn check_lists(&self) -> Result<(), TlsError> {
        self.section.check_lists(&self.current, self.me)
    }

    /// Whether a certificate of a client, the first of these, or one between it and its root is revoked; by
    /// `then`, when they were good otherwise.
    pub fn are_revoked(&self, chain: &[CertificateDer<'_>], then: UnixTime) -> bool {
        let (Some(verifier), Some((own, between))) = (&self.current.verifier, chain.split_first())
        else {
            return false;
        };
        let verified = verifier.verify_client_cert(own, between, then);
        let revoked = Error::InvalidCertificate(CertificateError::Revoked);
        verified.is_err_and(|error| error == revoked)
    }

    /// Reads the files again if they have changed: then `true`. After an error the old ones hold, until the
    /// files change once more.
    pub fn refresh(&mut self, now: Instant) -> Result<bool, TlsError> {
        if now < self.look_at {
            return Ok(false);
        }
        self.look_at = now + LOOK_AGAIN;
        let stamps = self.section.stamps(self.me);
        if stamps == self.stamps {
            return Ok(false);
        }
        self.stamps = stamps;
        let loaded = self.section.load(self.me)?;
        self.section.check_lists(&loaded, self.me)?;
        self.current = loaded;
        Ok(true)
    }
}

impl TlsConfig {
    fn check_lists(&self, loaded: &Loaded, me: NodeId) -> Result<(), TlsError> {
        match (loaded.lists_end, &self.client_crl) {
            (Some(end), Some(path)) if end.is_over() => {
                let what = format!("a list of revoked certificates has expired on {end}");
                Err(TlsError::new(&path_of(path, me), what))
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn stamps(&self, me: NodeId) -> FileStamps {
        let files = [
            Some(&self.certificate),
            Some(&self.key),
            self.client_ca.as_ref(),
            self.client_crl.as_ref(),
        ];
        FileStamps::of(files.into_iter().flatten().map(|path| path_of(path, me)))
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let wrong = |error| TlsError::new(path, error);
    let found = CertificateDer::pem_file_iter(path).map_err(wrong)?;
    let found: Vec<_> = found.collect::<Result<_, _>>().map_err(wrong)?;
    if found.is_empty() {
        return Err(TlsError::new(path, "there is no certificate in it"));
    }
    Ok(found)
}

/// Says in the log that others than its owner and its group may read a private key: they can pass for this daemon.
fn warn_of_open(key: &Path) {
    let mode = fs::metadata(key).map_or(0, |found| found.mode() & 0o7777);
    if mode & 0o007 != 0 {
        let (path, mode) = (key.display(), format!("{mode:04o}"));
        tracing::warn!(%path, mode, "others than its owner and its group may use the private key: only the daemon's user should");
    }
}
