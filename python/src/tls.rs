//! How a client and a daemon of another host know each other.

use std::path::PathBuf;

use pyo3::prelude::*;

use crate::error::Failure;

/// How a client and a daemon of another host know each other.
#[pyclass(frozen, module = "rota")]
pub struct Tls(rota_client::Tls);

#[pymethods]
impl Tls {
    #[new]
    #[pyo3(signature = (ca, *, certificate=None, key=None, server_name=None))]
    fn new(
        ca: PathBuf,
        certificate: Option<PathBuf>,
        key: Option<PathBuf>,
        server_name: Option<String>,
    ) -> Result<Self, Failure> {
        let read = match (certificate, key) {
            (None, None) => rota_client::Tls::new(ca),
            (Some(certificate), Some(key)) => {
                rota_client::Tls::with_certificate(ca, certificate, key)
            }
            _ => {
                let text = "a certificate needs its key, and a key its certificate";
                return Err(Failure::Invalid(text.to_owned()));
            }
        };
        let tls = read.map_err(|error| Failure::Invalid(error.to_string()))?;
        Ok(Self(match server_name {
            Some(name) => tls.server_name(name),
            None => tls,
        }))
    }
}

impl Tls {
    pub fn told(&self) -> rota_client::Tls {
        self.0.clone()
    }
}
