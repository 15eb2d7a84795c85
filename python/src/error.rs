//! What is raised: the classes are in `rota/_errors.py`.

use pyo3::prelude::*;
use rota_client::{Code, ConnectError, ConnectionLost, RequestError, SendError};

/// What went wrong, until there is an interpreter to tell.
#[derive(Debug)]
pub enum Failure {
    Connect(ConnectError),
    Send(SendError),
    Request(RequestError),
    Lost(ConnectionLost),
    /// This side has closed the client.
    Closed,
    /// The client is of the process that this one was forked from.
    Forked,
    TimedOut(&'static str),
    /// An argument is none of those that mean something.
    Invalid(String),
}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Self {
        match error {
            ConnectError::Lost(lost) => Self::Lost(lost),
            error => Self::Connect(error),
        }
    }
}

impl From<SendError> for Failure {
    fn from(error: SendError) -> Self {
        match error {
            SendError::Lost(lost) => Self::Lost(lost),
            error => Self::Send(error),
        }
    }
}

impl From<RequestError> for Failure {
    fn from(error: RequestError) -> Self {
        match error {
            RequestError::Lost(lost) => Self::Lost(lost),
            error => Self::Request(error),
        }
    }
}

impl From<ConnectionLost> for Failure {
    fn from(lost: ConnectionLost) -> Self {
        Self::Lost(lost)
    }
}

impl Failure {
    /// Its class, its text, and the daemon's reason.
    fn describe(self) -> (&'static str, String, Option<Code>) {
        match self {
            Self::Connect(error) => match &error {
                ConnectError::Name(_) => ("InvalidError", error.to_string(), None),
                ConnectError::Refused { code, .. } => {
                    ("RefusedError", error.to_string(), Some(*code))
                }
                ConnectError::Tls(_) => ("TlsError", error.to_string(), None),
                ConnectError::TimedOut => ("TimedOutError", error.to_string(), None),
                _ => ("ConnectError", error.to_string(), None),
            },
            Self::Send(error) => match &error {
                SendError::WouldBlock => ("WouldBlockError", error.to_string(), None),
                SendError::Unread { .. } => ("UnreadError", error.to_string(), None),
                _ => ("InvalidError", error.to_string(), None),
            },
            Self::Request(error) => match &error {
                RequestError::Failed { code, .. } => {
                    ("RequestError", error.to_string(), Some(*code))
                }
                RequestError::Unread { .. } => ("UnreadError", error.to_string(), None),
                RequestError::TimedOut => ("TimedOutError", error.to_string(), None),
                _ => ("InvalidError", error.to_string(), None),
            },
            Self::Lost(lost) => {
                let code = match &lost {
                    ConnectionLost::Goodbye { code, .. } => Some(*code),
                    _ => None,
                };
                ("ConnectionLostError", lost.to_string(), code)
            }
            Self::Closed => (
                "ConnectionLostError",
                "this client has been closed".to_owned(),
                None,
            ),
            Self::Forked => (
                "ConnectionLostError",
                "this client is of the process that this one was forked from".to_owned(),
                None,
            ),
            Self::TimedOut(what) => ("TimedOutError", what.to_owned(), None),
            Self::Invalid(what) => ("InvalidError", what, None),
        }
    }

    /// As an exception.
    pub fn raise(self, py: Python<'_>) -> PyErr {
        let (class, text, code) = self.describe();
        let code = code.map_or(0, Code::number);
        let made = py
            .import("rota._errors")
            .and_then(|module| module.getattr(class)?.call1((text, code)));
        made.map_or_else(|error| error, PyErr::from_value)
    }
}

/// Whether it says that the connection has ended.
pub fn is_lost(py: Python<'_>, error: &PyErr) -> PyResult<bool> {
    let class = py.import("rota._errors")?.getattr("ConnectionLostError")?;
    Ok(error.is_instance(py, &class))
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        Python::attach(|py| failure.raise(py))
    }
}
