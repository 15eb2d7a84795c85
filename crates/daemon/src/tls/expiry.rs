//! The time at which the daemon's own certificate expires: clients refuse it from then on, and an operator would not
//! notice before.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustls::pki_types::CertificateDer;
use x509_cert::Certificate;
use x509_cert::der::Decode;

/// The time before the end from which on the log has a warning.
const SOON: Duration = Duration::from_secs(14 * 86_400);

/// The time at which the first certificate of a chain expires, since 1970; `None` if none can be parsed.
pub(super) fn end_of(chain: &[CertificateDer<'_>]) -> Option<Duration> {
    let ends = chain.iter().filter_map(|certificate| {
        let certificate = Certificate::from_der(certificate).ok()?;
        let validity = certificate.tbs_certificate.validity;
        Some(validity.not_after.to_date_time().unix_duration())
    });
    ends.min()
}

/// Says in the log that a certificate has expired, or will soon.
pub(super) fn warn_of_end(path: &Path, end: Duration) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let left = end.checked_sub(now.unwrap_or(Duration::ZERO));
    let path = path.display();
    match left {
        None => {
            tracing::error!(%path, "the certificate for TLS has expired: clients refuse it; renew it");
        }
        Some(left) if left < SOON => {
            let days = left.as_secs() / 86_400;
            tracing::warn!(%path, days, "the certificate for TLS expires soon: renew it");
        }
        Some(_) => {}
    }
}
