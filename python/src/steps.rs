//! Requests, and the steps of a client of which none waits: what `rota/aio.py` is made of.

use std::sync::{Mutex, PoisonError};

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use rota_client::{GroupSizes, Pending, PrivateName};

use crate::arguments::envelope;
use crate::client::{Client, dictionary};
use crate::error::Failure;
use crate::event::event;

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

/// A request that has not been answered yet.
#[pyclass(frozen, module = "rota._native", name = "_Request")]
pub struct Request {
    ask: Ask,
    pending: Mutex<Option<Pending>>,
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
        let pending = begin(self.0.get().line.inside().client()?, ask, group)?;
        let pending = Mutex::new(Some(pending));
        Ok(Request { ask, pending })
    }

    /// The answer, if it is there: True for joins and leaves.
    fn answer(&self, py: Python<'_>, request: &Request) -> PyResult<Option<Py<PyAny>>> {
        let pending = request.pending.lock();
        let pending = pending.unwrap_or_else(PoisonError::into_inner);
        let Some(pending) = &*pending else {
            return Ok(None);
        };
        let answer = look_for(self.0.get().line.inside().client()?, request.ask, pending)?;
        answer.map(|answer| answer.object(py)).transpose()
    }

    /// Nobody wants the answer any more.
    fn forget(&self, request: &Request) {
        let pending = request.pending.lock();
        let pending = pending.unwrap_or_else(PoisonError::into_inner).take();
        if let (Some(pending), Ok(client)) = (pending, self.0.get().line.inside().client()) {
            client.forget(pending);
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
        payload: PyBackedBytes,
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
        let next = self.0.get().line.inside().client()?.next_read();
        let next = next.map_err(Failure::from)?;
        next.map(|next| event(py, next)).transpose()
    }

    /// Reads once what the socket has now; whether there was anything, the end included.
    fn read(&self) -> PyResult<bool> {
        Ok(self.0.get().line.inside().client()?.try_read())
    }

    /// Writes what the socket takes now; whether that has left something.
    fn flush(&self) -> PyResult<bool> {
        let left = self.0.get().line.inside().client()?.try_flush();
        Ok(left.map_err(Failure::from)?)
    }

    /// Whether more events lie unread than may.
    fn is_full(&self) -> PyResult<bool> {
        let mut inside = self.0.get().line.inside();
        let client = inside.client()?;
        Ok(client.unread() > client.most_unread())
    }

    /// Says bye, behind all that was sent.
    fn begin_close(&self) -> PyResult<()> {
        let mut inside = self.0.get().line.inside();
        inside.closing = true;
        Ok(inside.client()?.begin_close().map_err(Failure::from)?)
    }

    /// Drops the connection.
    fn hang_up(&self) {
        self.0.get().line.inside().closing = true;
        self.0.get().hang_up();
    }
}
