//! Requests, and the steps of a client of which none waits: what `rota/aio.py` is made of.

use std::sync::{Mutex, PoisonError};

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rota_client::{ConnectionLost, Envelope, GroupSizes, Pending, PrivateName, SendError};

use crate::arguments::envelope;
use crate::client::Client;
use crate::error::Failure;
use crate::event::event;
use crate::line::Line;
use crate::payload::Payload;

/// What can be asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    Join,
    Leave,
    Groups,
    Members,
}

/// What comes of it.
pub enum Answer {
    Done,
    Groups(GroupSizes),
    Members(Vec<PrivateName>),
}

impl Answer {
    pub fn object(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        match self {
            Self::Done => true.into_py_any(py),
            Self::Groups(groups) => dictionary(py, groups),
            Self::Members(members) => {
                let names: Vec<String> = members.iter().map(ToString::to_string).collect();
                names.into_py_any(py)
            }
        }
    }
}

pub fn begin(client: &mut rota_client::Client, ask: Ask, group: &str) -> Result<Pending, Failure> {
    Ok(match ask {
        Ask::Join => client.begin_join(group),
        Ask::Leave => client.begin_leave(group),
        Ask::Groups => client.begin_groups(),
        Ask::Members => client.begin_members(group),
    }?)
}

pub fn look_for(
    client: &mut rota_client::Client,
    ask: Ask,
    pending: &Pending,
) -> Result<Option<Answer>, Failure> {
    Ok(match ask {
        Ask::Join | Ask::Leave => client.try_done(pending)?.then_some(Answer::Done),
        Ask::Groups => client.try_groups(pending)?.map(Answer::Groups),
        Ask::Members => client.try_members(pending)?.map(Answer::Members),
    })
}

/// Takes a message if there is credit for it now; whether there was.
pub fn put(
    client: &mut rota_client::Client,
    envelope: &Envelope,
    payload: &[u8],
    gather: bool,
) -> Result<bool, Failure> {
    let taken = if gather {
        client.try_feed(envelope, payload)
    } else {
        client.try_send(envelope, payload)
    };
    match taken {
        Ok(()) => Ok(true),
        Err(SendError::WouldBlock) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Drops events that have been read, after a bye; whether the daemon has closed because of that.
pub fn drain(client: &mut rota_client::Client) -> Result<bool, Failure> {
    loop {
        match client.next_read() {
            Ok(Some(_)) => {}
            Ok(None) => return Ok(false),
            Err(ConnectionLost::Ended) => return Ok(true),
            Err(lost) => return Err(lost.into()),
        }
    }
}

/// Groups with their sizes, as a dictionary.
fn dictionary(py: Python<'_>, groups: rota_client::GroupSizes) -> PyResult<Py<PyAny>> {
    let made = PyDict::new(py);
    for (group, members) in groups {
        made.set_item(group.as_str(), members)?;
    }
    Ok(made.into_any().unbind())
}

/// A request that has not been answered yet.
#[pyclass(frozen, module = "rota._native", name = "_Request")]
pub struct Request {
    ask: Ask,
    pending: Mutex<Option<Pending>>,
}

impl Request {
    /// The answer, if it is there and has not been given.
    fn look(&self, line: &Line) -> Result<Option<Answer>, Failure> {
        let pending = self.pending.lock();
        let pending = pending.unwrap_or_else(PoisonError::into_inner);
        let Some(pending) = &*pending else {
            return Ok(None);
        };
        line.with(|client| look_for(client, self.ask, pending))
    }
}

/// A client step by step. None of these calls waits.
#[pyclass(frozen, module = "rota._native", name = "_Steps")]
pub struct Steps(Py<Client>);

#[pymethods]
impl Steps {
    #[new]
    fn new(client: Py<Client>) -> Self {
        Self(client)
    }

    /// Asks: `join`, `leave`, `groups` or `members`.
    fn begin(&self, what: &str, group: &str) -> PyResult<Request> {
        let ask = match what {
            "join" => Ask::Join,
            "leave" => Ask::Leave,
            "groups" => Ask::Groups,
            "members" => Ask::Members,
            other => return Err(Failure::Invalid(format!("'{other}' is no request")).into()),
        };
        let pending = self.line().with(|client| begin(client, ask, group))?;
        let pending = Mutex::new(Some(pending));
        Ok(Request { ask, pending })
    }

    /// The answer, if it is there: True for joins and leaves.
    fn answer(&self, py: Python<'_>, request: &Request) -> PyResult<Option<Py<PyAny>>> {
        let answer = request.look(self.line())?;
        answer.map(|answer| answer.object(py)).transpose()
    }

    /// Nobody wants the answer any more.
    fn forget(&self, request: &Request) {
        let pending = request.pending.lock();
        let pending = pending.unwrap_or_else(PoisonError::into_inner).take();
        if let Some(pending) = pending {
            // Of a client that is gone nobody waits for an answer.
            let _ = self.line().with(|client| {
                client.forget(pending);
                Ok(())
            });
        }
    }

    /// Takes a message if there is credit for it now; whether there was.
    #[pyo3(signature = (to, payload, service, kind, self_discard, gather))]
    #[expect(
        clippy::too_many_arguments,
        reason = "an envelope, and what to do with it"
    )]
    fn put(
        &self,
        py: Python<'_>,
        to: &Bound<'_, PyAny>,
        payload: Payload,
        service: Option<&str>,
        kind: u16,
        self_discard: bool,
        gather: bool,
    ) -> PyResult<bool> {
        let envelope = envelope(to, service, kind, self_discard)?;
        self.0.get().try_put(py, &envelope, &payload, gather)
    }

    /// The next event of those that have been read.
    fn take(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let next = self.line().with(|client| Ok(client.next_read()?))?;
        next.map(|next| event(py, next)).transpose()
    }

    /// Reads once what the socket has now; whether there was anything, the end included.
    fn read(&self) -> PyResult<bool> {
        Ok(self.line().with(|client| Ok(client.try_read()))?)
    }

    /// Writes what the socket takes now; whether that has left something.
    fn flush(&self) -> PyResult<bool> {
        Ok(self.line().with(|client| Ok(client.try_flush()?))?)
    }

    /// Whether more events lie unread than may.
    fn is_full(&self) -> PyResult<bool> {
        let line = self.line();
        Ok(line.with(|client| Ok(client.unread() > client.most_unread()))?)
    }

    /// Sets how many bytes of events may lie unread, and returns how many that were.
    fn bound_unread(&self, bytes: usize) -> PyResult<usize> {
        let line = self.line();
        Ok(line.with(|client| Ok(client.set_most_unread(bytes)))?)
    }

    /// Drops events; whether the daemon has closed behind all that was sent. What ended otherwise raises.
    fn drain(&self) -> PyResult<bool> {
        Ok(self.line().with(drain)?)
    }

    /// Says bye, behind all that was sent.
    fn begin_close(&self) -> PyResult<()> {
        Ok(self.line().with_all(|inside| {
            inside.closing = true;
            Ok(inside.client()?.begin_close()?)
        })?)
    }

    /// Drops the connection.
    fn hang_up(&self) {
        self.0.get().hang_up();
    }
}

impl Steps {
    fn line(&self) -> &Line {
        &self.0.get().line
    }
}
