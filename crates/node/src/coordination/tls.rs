//! TLS between this node and etcd.

use rota_core::contract::NodeId;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use ureq::tls::{Certificate, ClientCert, PrivateKey, RootCerts, TlsConfig, TlsProvider};

use super::file::{EtcdFileError, Purpose};
use crate::config::path_of;

/// Files for TLS to etcd, as PEM. They are read when a node starts, and again when they have changed. `{node}` stands for its number.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EtcdTls {
    /// Certificates of members have to come from one of these roots.
    pub ca: PathBuf,
    /// The certificate that this node shows, with those between it and its root; without a value, none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<PathBuf>,
    /// The key of `certificate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<PathBuf>,
}

impl EtcdTls {
    /// The files of this node: its number in place of `{node}`.
    pub(crate) fn of(&self, node: NodeId) -> Self {
        let own = |path: &PathBuf| path_of(path, node);
        Self {
            ca: own(&self.ca),
            certificate: self.certificate.as_ref().map(own),
            key: self.key.as_ref().map(own),
        }
    }

    /// The files.
    pub(super) fn files(&self) -> impl Iterator<Item = &PathBuf> {
        let own = self.certificate.iter().chain(&self.key);
        std::iter::once(&self.ca).chain(own)
    }

    /// Reads the files; all that could go wrong with them later does so here.
    pub(crate) fn load(&self) -> Result<TlsConfig, EtcdFileError> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let roots = certificates(&self.ca)?;
        let mut config = TlsConfig::builder()
            .provider(TlsProvider::Rustls)
            .unversioned_rustls_crypto_provider(Arc::clone(&provider))
            .root_certs(RootCerts::new_with_certs(&taken_over(&roots)));
        if let (Some(certificate), Some(key)) = (&self.certificate, &self.key) {
            let chain = certificates(certificate)?;
            let wrong = |error| wrong(key, error);
            let private = PrivateKeyDer::from_pem_file(key).map_err(wrong)?;
            try_out(provider, &chain, private, key)?;
            let text = std::fs::read(key).map_err(|error| self::wrong(key, error))?;
            let private = PrivateKey::from_pem(&text).map_err(|error| self::wrong(key, error))?;
            let own = ClientCert::new_with_certs(&taken_over(&chain), private);
            config = config.client_cert(Some(own));
        }
        Ok(config.build())
    }
}

fn wrong(path: &Path, what: impl fmt::Display) -> EtcdFileError {
    EtcdFileError::new(Purpose::Tls, path, what)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, EtcdFileError> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
    let found: Vec<CertificateDer<'static>> = read.map_err(|error| wrong(path, error))?;
    if found.is_empty() {
        return Err(wrong(path, "no certificate in it"));
    }
    let mut store = RootCertStore::empty();
    for one in &found {
        let added = store.add(one.clone());
        added.map_err(|error| wrong(path, error))?;
    }
    Ok(found)
}

fn taken_over(certificates: &[CertificateDer<'static>]) -> Vec<Certificate<'static>> {
    let all = certificates.iter();
    all.map(|one| Certificate::from_der(one).to_owned())
        .collect()
}

/// The client would panic over a key that is another one's.
fn try_out(
    provider: Arc<CryptoProvider>,
    chain: &[CertificateDer<'static>],
    private: PrivateKeyDer<'static>,
    key: &Path,
) -> Result<(), EtcdFileError> {
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| wrong(key, error))?;
    let builder = builder.with_root_certificates(RootCertStore::empty());
    let tried = builder.with_client_auth_cert(chain.to_vec(), private);
    tried.map(|_| ()).map_err(|error| wrong(key, error))
}
