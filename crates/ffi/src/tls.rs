//! The certificates by which a client and a daemon of another host know each other.

use std::ffi::{OsStr, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rota_client::TlsFileError;

use crate::arguments::{bytes_of, text};
use crate::status::{Failure, Status};

/// How a client and a daemon at a tls: address know each other: files with certificates, as PEM. They are
/// read by rota_connect. A field that is NULL means its default.
#[repr(C)]
pub struct Tls {
    /// The roots that the daemon's certificate has to come from; not NULL.
    pub ca: *const c_char,
    /// The certificate that the client shows, and those between it and its root; NULL if it shows none, as
    /// only some daemons take it.
    pub certificate: *const c_char,
    /// Its private key; NULL without certificate.
    pub key: *const c_char,
    /// The name that the daemon's certificate has to be for; the host of the address.
    pub server_name: *const c_char,
}

impl Tls {
    /// Reads the files.
    ///
    /// # Safety
    ///
    /// Its fields are NULL, or texts.
    pub(crate) unsafe fn load(&self) -> Result<rota_client::Tls, Failure> {
        // SAFETY: as this function asks for.
        let ca = unsafe { path(self.ca) }?;
        let tls = match (self.certificate.is_null(), self.key.is_null()) {
            (true, true) => rota_client::Tls::new(ca)?,
            (false, false) => {
                // SAFETY: as this function asks for.
                let (certificate, key) = unsafe { (path(self.certificate)?, path(self.key)?) };
                rota_client::Tls::with_certificate(ca, certificate, key)?
            }
            _ => {
                return Err(Failure::argument(
                    c"a certificate needs its key, and a key its certificate",
                ));
            }
        };
        if self.server_name.is_null() {
            return Ok(tls);
        }
        // SAFETY: as this function asks for.
        Ok(tls.server_name(unsafe { text(self.server_name) }?))
    }
}

/// # Safety
///
/// `text` is NULL, or ends with a zero and lives as long as `'a`.
unsafe fn path<'a>(text: *const c_char) -> Result<&'a Path, Failure> {
    // SAFETY: as this function asks for.
    let bytes = unsafe { bytes_of(text) }?;
    Ok(Path::new(OsStr::from_bytes(bytes)))
}

impl From<TlsFileError> for Failure {
    fn from(error: TlsFileError) -> Self {
        Self::told(Status::BadFile, &error)
    }
}
