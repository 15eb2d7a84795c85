//! Connecting, which a signal can end.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;
use rota_client::{Builder, ConnectError, ConnectionLost};

use crate::error::Failure;

/// Connects in a thread of its own, so that a signal can end the wait.
pub fn connect(
    py: Python<'_>,
    builder: Builder,
    address: rota_client::Address,
) -> PyResult<rota_client::Client> {
    let (tell, mut told) = mpsc::channel();
    let connecting = thread::Builder::new().spawn(move || {
        // Nobody listens any more after a signal: then this hangs up.
        let _ = tell.send(builder.connect(address));
    });
    connecting.map_err(|error| Failure::from(ConnectError::Io(error)))?;
    loop {
        // Only this thread has it; a shared reference could not leave the interpreter.
        let told = &mut told;
        let next = py.detach(move || told.recv_timeout(Duration::from_millis(50)));
        match next {
            Ok(connected) => return Ok(connected.map_err(Failure::from)?),
            Err(RecvTimeoutError::Timeout) => py.check_signals()?,
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Failure::Lost(ConnectionLost::Ended).into());
            }
        }
    }
}
