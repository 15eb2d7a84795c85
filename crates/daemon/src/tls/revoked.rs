//! Lists of revoked certificates.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustls::RootCertStore;
use rustls::pki_types::CertificateRevocationListDer;
use rustls::pki_types::pem::PemObject;
use webpki::{CertRevocationList, OwnedCertRevocationList};
use x509_cert::crl::CertificateList;
use x509_cert::der::{DateTime, Decode};

use super::TlsError;

/// The lists of one file: one at least of each root.
#[derive(Debug)]
pub(super) struct Lists {
    pub lists: Vec<CertificateRevocationListDer<'static>>,
    /// The time at which the first of them expires.
    pub until: ListsEnd,
}

/// The time at which lists of revoked certificates expire.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ListsEnd(DateTime);

impl ListsEnd {
    /// In seconds since 1970.
    pub fn unix_seconds(self) -> u64 {
        self.0.unix_duration().as_secs()
    }

    /// True if the lists have expired.
    pub fn is_over(self) -> bool {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        self.0.unix_duration() <= now.unwrap_or(Duration::ZERO)
    }
}

impl std::fmt::Display for ListsEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl Lists {
    /// Reads a file. Whether a root has made its list itself is looked at with each certificate.
    pub fn load(path: &Path, roots: &RootCertStore) -> Result<Self, TlsError> {
        let wrong = |error: &dyn std::fmt::Display| TlsError::new(path, error);
        let found = CertificateRevocationListDer::pem_file_iter(path);
        let found = found.map_err(|error| wrong(&error))?;
        let lists: Vec<_> = found
            .collect::<Result<_, _>>()
            .map_err(|error| wrong(&error))?;
        let mut issuers = Vec::new();
        let mut ends = Vec::new();
        for list in &lists {
            let known = OwnedCertRevocationList::from_der(list).map_err(|error| {
                let text = format!("a list of revoked certificates cannot be used: {error}");
                TlsError::new(path, text)
            })?;
            issuers.push(CertRevocationList::Owned(known).issuer().to_vec());
            ends.push(end_of(list).ok_or_else(|| wrong(&"a list does not say when it expires"))?);
        }
        let until = ends.into_iter().min();
        let until =
            until.ok_or_else(|| wrong(&"there is no list of revoked certificates in it"))?;
        // Without a list of a root, its clients' certificates could not be told to be good.
        let without = roots.roots.iter().filter(|root| {
            let subject: &[u8] = root.subject.as_ref();
            !issuers.iter().any(|issuer| issuer == subject)
        });
        match without.count() {
            0 => Ok(Self { lists, until }),
            count => Err(wrong(&format!(
                "there is no list of {count} of the roots in client_ca, whose clients would all be refused"
            ))),
        }
    }
}

/// The time at which a list expires, by its `nextUpdate`.
fn end_of(list: &[u8]) -> Option<ListsEnd> {
    let list = CertificateList::from_der(list).ok()?;
    let next = list.tbs_cert_list.next_update?;
    Some(ListsEnd(next.to_date_time()))
}
