//! The names of a client, and the reasons for a refusal.

use rustls::CertificateError;
use rustls::pki_types::CertificateDer;

/// The names that a certificate is for: of hosts, and URIs. A reader tells them apart by the colon, which every URI has
/// and no name of a host: webpki takes any text for a URI, and no authority's constraints on names of hosts bind those,
/// so that one without a colon would pass for a host's.
pub(super) fn names_of(chain: Option<&[CertificateDer<'_>]>) -> Vec<String> {
    let own = chain.and_then(<[_]>::first);
    let own = own.and_then(|own| webpki::EndEntityCert::try_from(own).ok());
    own.map_or_else(Vec::new, |own| {
        let hosts = own.valid_dns_names().filter(|name| !name.contains(':'));
        let uris = own.valid_uri_names().filter(|name| name.contains(':'));
        let names = hosts.chain(uris);
        // Names go into the log.
        let plain = |name: &&str| name.bytes().all(|byte| byte.is_ascii_graphic());
        names.filter(plain).map(str::to_owned).collect()
    })
}

/// Its certificate has been revoked.
pub(super) fn is_revoked(error: &rustls::Error) -> bool {
    *error == rustls::Error::InvalidCertificate(CertificateError::Revoked)
}

/// The line for the log.
pub(super) fn reason_of(error: &rustls::Error) -> &'static str {
    use CertificateError as Certificate;
    use rustls::Error;
    match error {
        Error::NoCertificatesPresented => "a TLS client is refused: it shows no certificate",
        Error::InvalidCertificate(Certificate::Expired | Certificate::ExpiredContext { .. }) => {
            "a TLS client is refused: its certificate has expired"
        }
        Error::InvalidCertificate(
            Certificate::NotValidYet | Certificate::NotValidYetContext { .. },
        ) => "a TLS client is refused: its certificate is not valid yet",
        Error::InvalidCertificate(Certificate::UnknownIssuer) => {
            "a TLS client is refused: its certificate does not come from client_ca"
        }
        Error::InvalidCertificate(Certificate::Revoked) => {
            "a TLS client is refused: its certificate has been revoked"
        }
        Error::InvalidCertificate(
            Certificate::ExpiredRevocationList | Certificate::ExpiredRevocationListContext { .. },
        ) => "a TLS client is refused: the list of revoked certificates has expired",
        Error::InvalidCertificate(Certificate::UnknownRevocationStatus) => {
            "a TLS client is refused: there is no list of revoked certificates of its issuer"
        }
        Error::InvalidCertRevocationList(_) => {
            "a TLS client is refused: the list of revoked certificates is not its issuer's"
        }
        Error::InvalidCertificate(_) => "a TLS client is refused: its certificate is no good",
        Error::AlertReceived(_) => "a TLS client does not go on with this daemon",
        Error::PeerIncompatible(_) => "a TLS client is refused: it does not speak TLS 1.3",
        _ => "a TLS client is refused: what it sends is not TLS",
    }
}
