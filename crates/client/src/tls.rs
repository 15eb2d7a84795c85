//! TLS without a socket of its own, for both blocking and async clients.

use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::version::TLS13;
use rustls::{ClientConfig, ClientConnection, ConfigBuilder, RootCertStore};

use crate::error::ConnectError;

/// The most bytes that are encrypted before they are written.
const PIECE_BYTES: usize = 64 << 10;

/// The certificates by which a client and a daemon of another host know each other. With the feature `tls`.
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use rota_client::{Client, Tls};
///
/// let tls = Tls::with_certificate("ca.pem", "alice.pem", "alice.key")?;
/// let client = Client::builder().tls(tls).connect("tls:n1.example:4805")?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Tls {
    config: Arc<ClientConfig>,
    server_name: Option<String>,
}

/// An error in a file of certificates or keys.
#[derive(Debug)]
pub struct TlsFileError {
    path: PathBuf,
    what: String,
}

impl TlsFileError {
    fn new(path: &Path, what: impl fmt::Display) -> Self {
        Self {
            path: path.to_owned(),
            what: what.to_string(),
        }
    }
}

impl fmt::Display for TlsFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.what)
    }
}

impl std::error::Error for TlsFileError {}

impl Tls {
    /// The daemon's certificate has to come from one of the roots in the file `ca`, as PEM. The client shows
    /// none, so the daemon has to take clients without.
    ///
    /// # Errors
    /// [`TlsFileError`]: the file has no certificate, or cannot be read.
    pub fn new(ca: impl AsRef<Path>) -> Result<Self, TlsFileError> {
        let builder = trusting(ca.as_ref())?;
        Ok(Self::of(builder.with_no_client_auth()))
    }

    /// As [`Self::new`], and the client shows this certificate, with those between it and its root.
    ///
    /// # Errors
    /// [`TlsFileError`]: one of the files cannot be used, or the key is another one's.
    pub fn with_certificate(
        ca: impl AsRef<Path>,
        certificate: impl AsRef<Path>,
        key: impl AsRef<Path>,
    ) -> Result<Self, TlsFileError> {
        let builder = trusting(ca.as_ref())?;
        let (path, key) = (certificate.as_ref(), key.as_ref());
        let chain = certificates(path)?;
        let key =
            PrivateKeyDer::from_pem_file(key).map_err(|error| TlsFileError::new(key, error))?;
        let config = builder.with_client_auth_cert(chain, key);
        Ok(Self::of(
            config.map_err(|error| TlsFileError::new(path, error))?,
        ))
    }

    fn of(config: ClientConfig) -> Self {
        Self {
            config: Arc::new(config),
            server_name: None,
        }
    }

    /// The name that the daemon's certificate has to be for; the host of the address otherwise.
    #[must_use]
    pub fn server_name(mut self, name: impl Into<String>) -> Self {
        self.server_name = Some(name.into());
        self
    }

    /// One side of a connection to `HOST:PORT`, for a caller with its own reads and writes.
    ///
    /// # Errors
    /// [`ConnectError::Tls`]: no server has such a name.
    pub fn connection(&self, host: &str) -> Result<ClientConnection, ConnectError> {
        let name = match &self.server_name {
            Some(name) => name.clone(),
            None => {
                let host = host.rsplit_once(':').map_or(host, |(host, _)| host);
                host.trim_matches(['[', ']']).to_owned()
            }
        };
        let tls = |error: &dyn fmt::Display| ConnectError::Tls(error.to_string());
        let name = ServerName::try_from(name).map_err(|error| tls(&error))?;
        let connection = ClientConnection::new(Arc::clone(&self.config), name);
        connection.map_err(|error| tls(&error))
    }

    /// The session of a connection to `HOST:PORT`.
    pub(crate) fn session(&self, host: &str) -> Result<Session, ConnectError> {
        let mut connection = self.connection(host)?;
        connection.set_buffer_limit(None);
        Ok(Session(Mutex::new(State {
            connection,
            owed: 0,
            more: false,
            failed: None,
        })))
    }
}

fn trusting(
    ca: &Path,
) -> Result<ConfigBuilder<ClientConfig, rustls::client::WantsClientCert>, TlsFileError> {
    let mut roots = RootCertStore::empty();
    for root in certificates(ca)? {
        let added = roots.add(root);
        added.map_err(|error| TlsFileError::new(ca, error))?;
    }
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = builder.with_protocol_versions(&[&TLS13]);
    let builder = builder.map_err(|error| TlsFileError::new(ca, error))?;
    Ok(builder.with_root_certificates(roots))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsFileError> {
    let wrong = |error| TlsFileError::new(path, error);
    let found = CertificateDer::pem_file_iter(path).map_err(wrong)?;
    let found: Vec<_> = found.collect::<Result<_, _>>().map_err(wrong)?;
    if found.is_empty() {
        return Err(TlsFileError::new(path, "there is no certificate in it"));
    }
    Ok(found)
}

/// The next event that a handshake waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    Done,
    Read,
    Write,
}

/// One connection. Both halves of a client use it, and neither waits while it holds the lock.
#[derive(Debug)]
pub struct Session(Mutex<State>);

#[derive(Debug)]
struct State {
    connection: ClientConnection,
    /// Bytes of the application that are encrypted and not written whole. The caller offers the same bytes again, and
    /// only then learns that they are written.
    owed: usize,
    /// The connection may hold data to read without the socket being ready.
    more: bool,
    /// The error that ended the connection behind bytes that are still to be read.
    failed: Option<io::Error>,
}

impl Session {
    /// No step panics half-way.
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next part of the handshake.
    pub fn shake(&self, socket: &mut (impl Read + Write)) -> io::Result<Step> {
        let mut state = self.state();
        loop {
            if !state.flush(socket)? {
                return Ok(Step::Write);
            }
            if !state.connection.is_handshaking() {
                return Ok(Step::Done);
            }
            match state.take_in(socket)? {
                None => return Ok(Step::Read),
                Some(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Some(_) => {}
            }
        }
    }

    /// Reads what is there: `None` if there is nothing yet, 0 where the daemon has closed. A connection that
    /// was cut off is an error.
    pub fn read(
        &self,
        socket: &mut (impl Read + Write),
        buffer: &mut [u8],
    ) -> io::Result<Option<usize>> {
        let mut state = self.state();
        state.more = false;
        loop {
            match state.connection.reader().read(buffer) {
                Ok(bytes) => {
                    state.more = bytes == buffer.len() || state.failed.is_some();
                    return Ok(Some(bytes));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
            // All bytes that came in one piece with the error are read before it.
            if let Some(error) = state.failed.take() {
                return Err(error);
            }
            match state.take_in(socket) {
                Ok(Some(_)) => {}
                Ok(None) => return Ok(None),
                Err(error) => state.failed = Some(error),
            }
            // Bytes that were read may need an answer; a socket that takes nothing more says so when it is read.
            let _ = state.flush(socket);
        }
    }

    /// Writes some of these bytes; `None` if the socket does not take them yet: then the caller has to offer the same
    /// bytes again.
    pub fn write(
        &self,
        socket: &mut (impl Read + Write),
        bytes: &[u8],
    ) -> io::Result<Option<usize>> {
        let mut state = self.state();
        if state.owed == 0 {
            let piece = &bytes[..bytes.len().min(PIECE_BYTES)];
            state.connection.writer().write_all(piece)?;
            state.owed = piece.len();
        }
        if !state.flush(socket)? {
            return Ok(None);
        }
        Ok(Some(std::mem::take(&mut state.owed)))
    }

    /// Whether the connection may hold data to read without the socket being ready.
    pub fn has_more(&self) -> bool {
        self.state().more
    }

    /// Announces the end of this side's bytes, as far as the socket takes that.
    pub fn close(&self, socket: &mut (impl Read + Write)) {
        let mut state = self.state();
        state.connection.send_close_notify();
        let _ = state.flush(socket);
    }
}

impl State {
    /// Writes all encrypted bytes; false if the socket did not take all of them.
    fn flush(&mut self, socket: &mut impl Write) -> io::Result<bool> {
        while self.connection.wants_write() {
            match self.connection.write_tls(socket) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Reads from the socket. Returns the number of bytes, 0 at the end of the stream; `None` if there is nothing yet.
    fn take_in(&mut self, socket: &mut (impl Read + Write)) -> io::Result<Option<usize>> {
        let bytes = loop {
            match self.connection.read_tls(socket) {
                Ok(bytes) => break bytes,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        };
        if let Err(error) = self.connection.process_new_packets() {
            // This alert tells the daemon the reason.
            let _ = self.flush(socket);
            return Err(io::Error::new(ErrorKind::InvalidData, error));
        }
        Ok(Some(bytes))
    }
}
