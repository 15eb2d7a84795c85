//! Clients' connections, by TLS where the file says so.

use std::cell::RefCell;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::{Duration, Instant};

use rota_core::contract::NodeId;
use rota_net::FileStamps;
use rota_resp::Requests;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::version::TLS13;
use rustls::{RootCertStore, ServerConfig};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncWriteExt as _, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::lock;

/// The bytes that are read at once, at most.
const READ_BYTES: usize = 32 << 10;
/// The time that a handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// The time between two looks at the files, at least.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// The `[tls]` section of a service. In all paths `{node}` stands for the node's number.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsSection {
    /// The process's certificate and the intermediate ones up to its root, as PEM.
    pub certificate: PathBuf,
    /// Its private key, as PEM.
    pub key: PathBuf,
    /// The roots that clients' certificates have to come from, as PEM; without this, clients need none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_ca: Option<PathBuf>,
}

impl TlsSection {
    /// The section of one node.
    pub fn of(&self, node: NodeId) -> Self {
        let of = |path: &PathBuf| rota_node::path_of(path, node);
        Self {
            certificate: of(&self.certificate),
            key: of(&self.key),
            client_ca: self.client_ca.as_ref().map(of),
        }
    }
}

/// An error in one of the files.
#[derive(Debug)]
pub struct SealError {
    path: PathBuf,
    what: String,
}

impl fmt::Display for SealError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.what)
    }
}

impl std::error::Error for SealError {}

fn wrong(path: &Path, what: impl fmt::Display) -> SealError {
    SealError {
        path: path.to_owned(),
        what: what.to_string(),
    }
}

struct Loaded {
    acceptor: TlsAcceptor,
    stamps: FileStamps,
    looked: Instant,
}

/// Certificates. They are read again when their files have changed.
pub struct Sealer {
    section: TlsSection,
    loaded: Mutex<Loaded>,
}

impl Sealer {
    /// Reads the files.
    pub fn open(section: &TlsSection) -> Result<Self, SealError> {
        let stamps = stamps(section);
        let loaded = Loaded {
            acceptor: load(section)?,
            stamps,
            looked: Instant::now(),
        };
        Ok(Self {
            section: section.clone(),
            loaded: Mutex::new(loaded),
        })
    }

    fn acceptor(&self) -> TlsAcceptor {
        let mut loaded = lock(&self.loaded);
        if loaded.looked.elapsed() > LOOK_AGAIN {
            loaded.looked = Instant::now();
            let now = stamps(&self.section);
            if now != loaded.stamps {
                loaded.stamps = now;
                match load(&self.section) {
                    Ok(acceptor) => loaded.acceptor = acceptor,
                    Err(error) => tracing::warn!(%error, "the certificate of before is used on"),
                }
            }
        }
        loaded.acceptor.clone()
    }
}

fn stamps(section: &TlsSection) -> FileStamps {
    let files = [&section.certificate, &section.key];
    FileStamps::of(files.into_iter().chain(section.client_ca.as_ref()))
}

fn load(section: &TlsSection) -> Result<TlsAcceptor, SealError> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&TLS13])
        .map_err(|error| wrong(&section.certificate, error))?;
    let builder = match &section.client_ca {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let mut roots = RootCertStore::empty();
            for root in certificates(path)? {
                roots.add(root).map_err(|error| wrong(path, error))?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider);
            let verifier = verifier.build().map_err(|error| wrong(path, error))?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let chain = certificates(&section.certificate)?;
    let key = PrivateKeyDer::from_pem_file(&section.key);
    let key = key.map_err(|error| wrong(&section.key, error))?;
    let config = builder.with_single_cert(chain, key);
    let mut config = config.map_err(|error| wrong(&section.certificate, error))?;
    // Each connection shows its certificate: there is no resumption.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, SealError> {
    let all = CertificateDer::pem_file_iter(path).map_err(|error| wrong(path, error))?;
    let all: Result<Vec<_>, _> = all.collect();
    let all = all.map_err(|error| wrong(path, error))?;
    match all.is_empty() {
        true => Err(wrong(path, "there is no certificate in it")),
        false => Ok(all),
    }
}

/// A connection.
pub enum Stream {
    /// Not encrypted.
    Plain(TcpStream),
    /// Encrypted by TLS.
    Sealed(Box<TlsStream<TcpStream>>),
}

thread_local! {
    /// The one buffer for all clients of the thread.
    static BUFFER: RefCell<Box<[u8]>> = RefCell::new(vec![0; READ_BYTES].into());
}

impl Stream {
    /// A connection that has come. `sealer`: the client has to shake hands.
    ///
    /// # Errors
    /// The client does not shake hands, or not in time.
    pub async fn of(stream: TcpStream, sealer: Option<&Sealer>) -> io::Result<Self> {
        let Some(sealer) = sealer else {
            return Ok(Self::Plain(stream));
        };
        let shaken = timeout(HANDSHAKE, sealer.acceptor().accept(stream)).await;
        let shaken = shaken.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?;
        Ok(Self::Sealed(Box::new(shaken?)))
    }

    /// Reads some bytes of the client's requests, and returns their number; 0: the connection has ended.
    pub async fn read(&mut self, requests: &mut Requests) -> io::Result<usize> {
        poll_fn(|context| {
            BUFFER.with_borrow_mut(|buffer| {
                let mut read = ReadBuf::new(buffer);
                let polled = match self {
                    Self::Plain(stream) => Pin::new(stream).poll_read(context, &mut read),
                    Self::Sealed(stream) => Pin::new(stream).poll_read(context, &mut read),
                };
                match polled {
                    Poll::Ready(Ok(())) => {
                        requests.push(read.filled());
                        Poll::Ready(Ok(read.filled().len()))
                    }
                    Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
                    Poll::Pending => Poll::Pending,
                }
            })
        })
        .await
    }

    /// Writes all bytes.
    pub async fn write(&mut self, out: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(stream) => stream.write_all(out).await,
            Self::Sealed(stream) => {
                stream.write_all(out).await?;
                stream.flush().await
            }
        }
    }
}
