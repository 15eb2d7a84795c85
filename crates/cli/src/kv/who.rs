//! Who asks a store, and by TLS or not.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rota_resp::Reply;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};

use super::talk::Talk;

/// What a store with users, or with TLS, wants of its clients.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Who {
    /// The user, where the store has some [default: default]
    #[arg(long, value_name = "NAME", requires = "password_file")]
    user: Option<String>,
    /// Its password is the first line of this file
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// Speak TLS: the roots that the store's certificate has to come from, as PEM
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// The certificate that is shown, as PEM
    #[arg(long, value_name = "FILE", requires = "ca", requires = "own_key")]
    certificate: Option<PathBuf>,
    /// Its private key, as PEM
    #[arg(
        id = "own_key",
        long = "key",
        value_name = "FILE",
        requires = "certificate"
    )]
    own_key: Option<PathBuf>,
    /// The name that the store's certificate has to be for [default: the address]
    #[arg(long, value_name = "NAME", requires = "ca")]
    server_name: Option<String>,
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let all = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
    all.map_err(|error| format!("{}: {error}", path.display()))
}

impl Who {
    /// A connection on which who asks has said who it is.
    pub fn connect(&self, address: SocketAddr, patience: Duration) -> Result<Talk, String> {
        let failed = |error| format!("{address}: {error}");
        let sealed = self.sealed(address)?;
        let mut talk = Talk::open(address, patience, sealed).map_err(failed)?;
        let Some(file) = &self.password_file else {
            return Ok(talk);
        };
        let text = fs::read_to_string(file);
        let text = text.map_err(|error| format!("{}: {error}", file.display()))?;
        let password = text.lines().next().unwrap_or_default();
        let user = self.user.as_deref().unwrap_or("default");
        let told = talk.say(&[vec!["AUTH", user, password]]).map_err(failed)?;
        match told.first() {
            Some(Reply::Error(why)) => Err(why.clone()),
            _ => Ok(talk),
        }
    }

    fn sealed(&self, address: SocketAddr) -> Result<Option<ClientConnection>, String> {
        let Some(ca) = &self.ca else {
            return Ok(None);
        };
        let of = |error: rustls::Error| error.to_string();
        let mut roots = RootCertStore::empty();
        for root in certificates(ca)? {
            roots.add(root).map_err(of)?;
        }
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider);
        let builder = builder.with_protocol_versions(&[&rustls::version::TLS13]);
        let builder = builder.map_err(of)?.with_root_certificates(roots);
        let config = match (&self.certificate, &self.own_key) {
            (Some(certificate), Some(key)) => {
                let own = PrivateKeyDer::from_pem_file(key);
                let own = own.map_err(|error| format!("{}: {error}", key.display()))?;
                let shown = builder.with_client_auth_cert(certificates(certificate)?, own);
                shown.map_err(of)?
            }
            _ => builder.with_no_client_auth(),
        };
        let name = self.server_name.clone();
        let name = name.unwrap_or_else(|| address.ip().to_string());
        let server = ServerName::try_from(name.clone());
        let server = server.map_err(|_| format!("{name:?} is no name of a server"))?;
        let connection = ClientConnection::new(Arc::new(config), server);
        connection.map(Some).map_err(of)
    }
}
