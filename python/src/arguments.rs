//! What Python hands over.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use pyo3::types::PyString;
use rota_client::{Address, Envelope, SendError, Service, SlowPolicy};

use crate::error::Failure;

/// A path may be anything, a host is a text.
pub fn address(path: &Path) -> Address {
    let bytes: &OsStr = path.as_os_str();
    match std::str::from_utf8(bytes.as_bytes()) {
        Ok(text) => Address::from(text),
        Err(_) => Address::from(path),
    }
}

/// A service by its name.
pub fn service(name: &str) -> Result<Service, Failure> {
    use Service::{Agreed, Causal, Fifo, Reliable, Safe};
    let all = [Reliable, Fifo, Causal, Agreed, Safe];
    let found = all.into_iter().find(|service| service.name() == name);
    found.ok_or_else(|| Failure::Invalid(format!("'{name}' is not a service")))
}

/// What becomes of a slow client, by its name.
pub fn when_slow(name: &str) -> Result<SlowPolicy, Failure> {
    match name {
        "disconnect" => Ok(SlowPolicy::Disconnect),
        "skip" => Ok(SlowPolicy::Skip),
        "throttle-then-disconnect" => Ok(SlowPolicy::ThrottleThenDisconnect),
        "throttle-then-skip" => Ok(SlowPolicy::ThrottleThenSkip),
        _ => Err(Failure::Invalid(format!(
            "'{name}' is no policy for slow clients"
        ))),
    }
}

/// One destination, or several.
pub fn envelope(
    to: &Bound<'_, PyAny>,
    service_name: Option<&str>,
    kind: u16,
    self_discard: bool,
) -> PyResult<Envelope> {
    let to = if let Ok(one) = to.cast::<PyString>() {
        Envelope::to(one.to_str()?)
    } else {
        Envelope::to_all(to.extract::<Vec<String>>()?)
    };
    let mut envelope = to
        .map_err(|error| Failure::from(SendError::from(error)))?
        .kind(kind);
    if let Some(name) = service_name {
        envelope = envelope.service(service(name)?);
    }
    if self_discard {
        envelope = envelope.self_discard();
    }
    Ok(envelope)
}

/// So many seconds from now; none is never. More than can be counted is never, too.
pub fn deadline(seconds: Option<f64>) -> Option<Instant> {
    let seconds = seconds?;
    let Ok(left) = Duration::try_from_secs_f64(seconds.max(0.0)) else {
        return None;
    };
    Instant::now().checked_add(left)
}

/// A time-out of so many seconds.
pub fn duration(seconds: f64) -> Result<Duration, Failure> {
    Duration::try_from_secs_f64(seconds)
        .map_err(|error| Failure::Invalid(format!("not a time-out: {error}")))
}
