//! The blocking client.

use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use rota_client::{ConnectError, Envelope, RequestError, SendError};

use crate::arguments::{address, deadline, duration, envelope, service, when_slow};
use crate::connect::connect;
use crate::error::{Failure, is_lost};
use crate::event::event;
use crate::line::Line;
use crate::payload::Payload;
use crate::steps::{Ask, begin, drain, look_for, put};
use crate::tls::Tls;

/// Payloads of so many bytes are copied while other threads run.
const LARGE: usize = 64 << 10;

/// A connection to a daemon. Several threads may use it at once.
#[pyclass(frozen, module = "rota")]
pub struct Client {
    pub line: Line,
    name: String,
    largest_payload: usize,
    timeout: Duration,
}

#[pymethods]
impl Client {
    #[new]
    #[pyo3(signature = (address, *, name=None, membership=false, service="agreed", insecure=false,
        timeout=30.0, unread_bytes=16_777_216, when_slow=None, tls=None))]
    #[expect(clippy::too_many_arguments, reason = "Python names them")]
    fn new(
        py: Python<'_>,
        address: PathBuf,
        name: Option<String>,
        membership: bool,
        service: &str,
        insecure: bool,
        timeout: f64,
        unread_bytes: usize,
        when_slow: Option<&str>,
        tls: Option<&Tls>,
    ) -> PyResult<Self> {
        let timeout = duration(timeout)?;
        let mut builder = rota_client::Client::builder()
            .membership(membership)
            .service(self::service(service)?)
            .insecure(insecure)
            .timeout(timeout)
            .unread_bytes(unread_bytes);
        if let Some(name) = name {
            builder = builder.name(name);
        }
        if let Some(policy) = when_slow {
            builder = builder.when_slow(self::when_slow(policy)?);
        }
        if let Some(tls) = tls {
            builder = builder.tls(tls.told());
        }
        let client = connect(py, builder, self::address(&address))?;
        Ok(Self {
            name: client.name().to_string(),
            largest_payload: client.largest_payload(),
            timeout,
            line: Line::new(client).map_err(|error| Failure::from(ConnectError::Io(error)))?,
        })
    }

    /// What others call this client: `#client#daemon`. Messages to it come to this client alone.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// The most bytes of one payload.
    #[getter]
    fn largest_payload(&self) -> usize {
        self.largest_payload
    }

    /// Bytes of messages, with their frames, of which the daemon has not said that it took them.
    fn unsettled_bytes(&self) -> PyResult<u64> {
        Ok(self.line.with(|client| Ok(client.unsettled_bytes()))?)
    }

    /// The descriptor of the connection, to wait for and for nothing else.
    fn fileno(&self) -> i32 {
        self.line.socket().as_raw_fd()
    }

    /// Joins a group, and waits until that has taken effect in the order. With membership, the view is
    /// among the events. A group that the client is in already is fine.
    fn join(&self, py: Python<'_>, group: &str) -> PyResult<()> {
        self.ask(py, Ask::Join, group).map(drop)
    }

    /// Leaves a group, and waits until that has taken effect in the order: messages of the group that were
    /// ordered before are still among the events. A group that the client is not in is fine.
    fn leave(&self, py: Python<'_>, group: &str) -> PyResult<()> {
        self.ask(py, Ask::Leave, group).map(drop)
    }

    /// All groups that the daemon knows of, and how many members each has.
    fn groups(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.ask(py, Ask::Groups, "")
    }

    /// The members of a group as far as the daemon knows, in the order of views; none if there is no such
    /// group. The client need not be in it.
    fn members(&self, py: Python<'_>, group: &str) -> PyResult<Py<PyAny>> {
        self.ask(py, Ask::Members, group)
    }

    /// Sends a message to a group or a client (`"orders"`, `"#alice#n1"`), or to several. Waits while there
    /// is no credit: until the daemon has taken enough of what this client sent before.
    #[pyo3(signature = (to, payload, *, service=None, kind=0, self_discard=false))]
    fn send(
        &self,
        py: Python<'_>,
        to: &Bound<'_, PyAny>,
        payload: Payload,
        service: Option<&str>,
        kind: u16,
        self_discard: bool,
    ) -> PyResult<()> {
        let envelope = envelope(to, service, kind, self_discard)?;
        self.put(py, &envelope, &payload, false)?;
        self.flush(py)
    }

    /// As `send`, but leaves it to a later call to write the message, together with others.
    #[pyo3(signature = (to, payload, *, service=None, kind=0, self_discard=false))]
    fn feed(
        &self,
        py: Python<'_>,
        to: &Bound<'_, PyAny>,
        payload: Payload,
        service: Option<&str>,
        kind: u16,
        self_discard: bool,
    ) -> PyResult<()> {
        let envelope = envelope(to, service, kind, self_discard)?;
        self.put(py, &envelope, &payload, true)
    }

    /// As `send`, but does not wait: raises `WouldBlockError` if there is no credit now.
    #[pyo3(signature = (to, payload, *, service=None, kind=0, self_discard=false))]
    fn try_send(
        &self,
        py: Python<'_>,
        to: &Bound<'_, PyAny>,
        payload: Payload,
        service: Option<&str>,
        kind: u16,
        self_discard: bool,
    ) -> PyResult<()> {
        let envelope = envelope(to, service, kind, self_discard)?;
        if self.try_put(py, &envelope, &payload, false)? {
            Ok(())
        } else {
            Err(Failure::from(SendError::WouldBlock).into())
        }
    }

    /// Writes all that was fed.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        if !self.line.with(|client| Ok(client.wants_write()))? {
            return Ok(());
        }
        let written = self.line.wait(py, None, |client| {
            // What is unread is taken first, and this is written then.
            let over = client.unread() > client.most_unread();
            Ok((!client.try_flush()? || over).then_some(()))
        });
        written.map(drop)
    }

    /// The next event; waits until there is one, at most so many seconds: then it raises `TimedOutError`.
    /// When the connection is lost, the events that arrived before come first.
    #[pyo3(signature = (timeout=None))]
    fn recv(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Py<PyAny>> {
        // Most find one without any waiting.
        let ready = self.line.with(|client| Ok(client.next_read()?))?;
        let next = match ready {
            Some(next) => Some(next),
            None => self.line.wait(py, deadline(timeout), |client| {
                let next = client.next_read()?;
                // Before it waits, what was fed is written. Where that says that the connection is lost, it has
                // read what arrived before, and that comes first.
                if next.is_none() && client.try_flush().is_err() {
                    return Ok(client.next_read()?);
                }
                Ok(next)
            })?,
        };
        match next {
            Some(next) => event(py, next),
            None => Err(Failure::TimedOut("no event in time").into()),
        }
    }

    /// The next event, if there is one now.
    fn try_recv(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let next = self.line.with_all(|inside| {
            let is_mine = !inside.reading;
            let client = inside.client()?;
            Ok(if is_mine {
                client.try_recv()?
            } else {
                client.next_read()?
            })
        });
        // Perhaps with what others wait for.
        self.line.wake();
        next?.map(|next| event(py, next)).transpose()
    }

    /// Writes what was fed, says bye, and waits until the daemon has read all that. Events that nobody has
    /// taken are dropped. A program that sends and ends should close: a client that is just dropped hangs
    /// up, and what the daemon has not read by then may be lost. Closing again is fine.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let begun = self.line.with_all(|inside| {
            if inside.closing {
                return Ok(false);
            }
            inside.closing = true;
            let said = inside.client()?.begin_close();
            if said.is_err() {
                inside.hang_up();
            }
            said?;
            Ok(true)
        });
        if !begun? {
            return Ok(());
        }
        let deadline = Instant::now().checked_add(self.timeout);
        let ended = self.line.wait(py, deadline, |client| {
            let ended = drain(client)?;
            Ok(ended.then_some(()))
        });
        self.hang_up();
        match ended? {
            Some(()) => Ok(()),
            None => Err(Failure::TimedOut("the daemon did not read everything in time").into()),
        }
    }

    fn __enter__(this: Py<Self>) -> Py<Self> {
        this
    }

    /// Closes; after an exception it hangs up.
    #[pyo3(signature = (kind, value, traceback))]
    fn __exit__(
        &self,
        py: Python<'_>,
        kind: Option<&Bound<'_, PyAny>>,
        value: Option<&Bound<'_, PyAny>>,
        traceback: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let _ = (value, traceback);
        if kind.is_none() {
            return self.close(py);
        }
        self.hang_up();
        Ok(())
    }

    fn __iter__(this: Py<Self>) -> Py<Self> {
        this
    }

    /// Ends when this side has closed; raises when the connection is lost otherwise.
    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        match self.recv(py, None) {
            Ok(event) => Ok(Some(event)),
            // A signal may have come while another thread closed.
            Err(error) if self.is_closing() && is_lost(py, &error)? => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn __repr__(&self) -> String {
        format!("<rota.Client {}>", self.name)
    }
}

impl Client {
    /// Drops the connection; all that wait are told. In a child of the process that connected it is not the
    /// child's to drop.
    pub fn hang_up(&self) {
        let dropped = self.line.with_all(|inside| {
            inside.closing = true;
            inside.hang_up();
            Ok(())
        });
        if dropped.is_ok() {
            self.line.wake();
        }
    }

    /// Whether this side has said bye.
    fn is_closing(&self) -> bool {
        let closing = self.line.with_all(|inside| Ok(inside.closing));
        closing.unwrap_or(false)
    }

    /// Takes a message if there is credit for it now; whether there was.
    pub fn try_put(
        &self,
        py: Python<'_>,
        envelope: &Envelope,
        payload: &[u8],
        gather: bool,
    ) -> PyResult<bool> {
        let put = || {
            let put = |client: &mut _| put(client, envelope, payload, gather);
            self.line.with(put)
        };
        Ok(if payload.len() < LARGE {
            put()
        } else {
            py.detach(put)
        }?)
    }

    fn put(
        &self,
        py: Python<'_>,
        envelope: &Envelope,
        payload: &[u8],
        gather: bool,
    ) -> PyResult<()> {
        if self.try_put(py, envelope, payload, gather)? {
            return Ok(());
        }
        let taken = self.line.wait(py, None, |client| {
            if put(client, envelope, payload, gather)? {
                return Ok(Some(()));
            }
            let limit = client.most_unread();
            if client.unread() > limit {
                return Err(SendError::Unread { limit }.into());
            }
            Ok(None)
        });
        taken.map(drop)
    }

    fn ask(&self, py: Python<'_>, ask: Ask, group: &str) -> PyResult<Py<PyAny>> {
        let pending = self.line.with(|client| begin(client, ask, group))?;
        let deadline = Instant::now().checked_add(self.timeout);
        let answer = self.line.wait(py, deadline, |client| {
            let answer = look_for(client, ask, &pending)?;
            let limit = client.most_unread();
            if answer.is_none() && client.unread() > limit {
                return Err(RequestError::Unread { limit }.into());
            }
            Ok(answer)
        });
        if !matches!(answer, Ok(Some(_))) {
            // Of a client that is gone nobody waits for an answer.
            let _ = self.line.with(|client| {
                client.forget(pending);
                Ok(())
            });
        }
        match answer? {
            Some(answer) => answer.object(py),
            None => Err(Failure::from(RequestError::TimedOut).into()),
        }
    }
}
