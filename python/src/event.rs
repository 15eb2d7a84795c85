//! What a client is told, for Python.

use bytes::Bytes;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use rota_client::{Cause, Destination, Event, PrivateName};

/// A message, once, however many of its destinations the client matches.
#[pyclass(frozen, module = "rota")]
pub struct Message {
    told: rota_client::Message,
    /// Its own copy: the memory it arrived in has been given back.
    payload: Py<PyBytes>,
}

#[pymethods]
impl Message {
    #[classattr]
    #[pyo3(name = "__match_args__")]
    const MATCH: (&'static str, &'static str) = ("sender", "payload");

    /// The private name of who sent it; not necessarily a member of anything.
    #[getter]
    fn sender(&self) -> String {
        self.told.sender.to_string()
    }

    /// All the destinations that it was sent to.
    #[getter]
    fn to<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.told.to.iter().map(Destination::to_string))
    }

    /// The application's bytes.
    #[getter]
    fn payload<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        self.payload.bind(py).clone()
    }

    /// The guarantee it was sent with.
    #[getter]
    fn service(&self) -> &'static str {
        self.told.service.name()
    }

    /// The application's number for this kind of message.
    #[getter]
    fn kind(&self) -> u16 {
        self.told.kind
    }

    /// Its sender did not want it back.
    #[getter]
    fn self_discard(&self) -> bool {
        self.told.self_discard
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let payload = self.payload.bind(py).repr()?;
        Ok(format!(
            "Message(sender='{}', payload={payload})",
            self.told.sender
        ))
    }
}

/// Who is in a group from here on.
#[pyclass(frozen, module = "rota")]
pub struct View(rota_client::View);

fn tuple<'a, 'py>(
    py: Python<'py>,
    names: impl IntoIterator<Item = &'a PrivateName>,
) -> PyResult<Bound<'py, PyTuple>> {
    let names: Vec<String> = names.into_iter().map(ToString::to_string).collect();
    PyTuple::new(py, names)
}

#[pymethods]
impl View {
    #[classattr]
    #[pyo3(name = "__match_args__")]
    const MATCH: (&'static str, &'static str) = ("group", "members");

    /// The group.
    #[getter]
    fn group(&self) -> &str {
        self.0.group.as_str()
    }

    /// Names the view: equal ids are equal views.
    #[getter]
    fn id(&self) -> String {
        self.0.id.to_string()
    }

    /// Private names, in an order that is the same for all members.
    #[getter]
    fn members<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        tuple(py, &self.0.members)
    }

    /// The receiver itself.
    #[getter]
    fn me(&self) -> String {
        self.0.me().map(ToString::to_string).unwrap_or_default()
    }

    /// Why there is a new view.
    #[getter]
    fn cause(&self) -> &'static str {
        match self.0.cause {
            Cause::Join(_) => "join",
            Cause::Leave(_) => "leave",
            Cause::Disconnect(_) => "disconnect",
            Cause::Network(_) => "network",
        }
    }

    /// Who joined, left or disconnected; None if the cause is the network.
    #[getter]
    fn changed(&self) -> Option<String> {
        match &self.0.cause {
            Cause::Join(name) | Cause::Leave(name) | Cause::Disconnect(name) => {
                Some(name.to_string())
            }
            Cause::Network(_) => None,
        }
    }

    /// If the cause is the network: members by who came together. Those of one set had the same view before
    /// this one, and have got the same messages in it. Otherwise empty.
    #[getter]
    fn sets<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let Cause::Network(sets) = &self.0.cause else {
            return Ok(PyTuple::empty(py));
        };
        let members = |set: &Vec<u32>| {
            let members = set.iter().filter_map(|at| self.0.members.get(*at as usize));
            tuple(py, members)
        };
        let sets: PyResult<Vec<_>> = sets.iter().map(members).collect();
        PyTuple::new(py, sets?)
    }

    /// Those who came here from the receiver's last view with the same messages in it, the receiver
    /// included.
    #[getter]
    fn came_with_me<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        tuple(py, self.0.came_with_me())
    }

    fn __repr__(&self) -> String {
        let members: Vec<String> = self.0.members.iter().map(ToString::to_string).collect();
        format!(
            "View(group='{}', cause='{}', members={members:?})",
            self.0.group,
            self.cause()
        )
    }
}

/// Until the next view of the group, delivery is only with respect to those who stay with this client's
/// daemon.
#[pyclass(frozen, get_all, module = "rota")]
pub struct Transitional {
    /// The group.
    group: String,
    /// The id of the view that ends.
    view_id: String,
}

#[pymethods]
impl Transitional {
    #[classattr]
    #[pyo3(name = "__match_args__")]
    const MATCH: (&'static str, &'static str) = ("group", "view_id");

    fn __repr__(&self) -> String {
        let Self { group, view_id } = self;
        format!("Transitional(group='{group}', view_id='{view_id}')")
    }
}

/// The client has left the group: it gets nothing more of it. Without membership this comes only if it has
/// not asked to: the daemon's rules do not let it be there any more.
#[pyclass(frozen, get_all, module = "rota")]
pub struct SelfLeave {
    /// The group.
    group: String,
}

#[pymethods]
impl SelfLeave {
    #[classattr]
    #[pyo3(name = "__match_args__")]
    const MATCH: (&'static str,) = ("group",);

    fn __repr__(&self) -> String {
        format!("SelfLeave(group='{}')", self.group)
    }
}

/// A warning: the client takes its events more slowly than they come.
#[pyclass(frozen, get_all, module = "rota")]
pub struct Lagging {
    /// Bytes that waited for it at the daemon.
    waiting: u64,
    /// At so many the daemon does what `when_slow` says.
    limit: u64,
}

#[pymethods]
impl Lagging {
    #[classattr]
    #[pyo3(name = "__match_args__")]
    const MATCH: (&'static str, &'static str) = ("waiting", "limit");

    fn __repr__(&self) -> String {
        format!("Lagging(waiting={}, limit={})", self.waiting, self.limit)
    }
}

/// A message of this client, sent before, went to nobody.
#[pyclass(frozen, get_all, module = "rota")]
pub struct NotSent {
    /// The first of its destinations that it may not go to.
    to: String,
    /// Why, for people.
    reason: String,
    /// The number that the application gave it.
    kind: u16,
}

#[pymethods]
impl NotSent {
    #[classattr]
    #[pyo3(name = "__match_args__")]
    const MATCH: (&'static str, &'static str) = ("to", "reason");

    fn __repr__(&self) -> String {
        format!("NotSent(to='{}', reason='{}')", self.to, self.reason)
    }
}

/// The client has missed something, because it took its events too slowly. For everybody else it has
/// disconnected and joined its groups again, here in the order; with membership the views of that follow.
#[pyclass(frozen, module = "rota")]
pub struct Skipped {
    messages: u64,
    bytes: u64,
    groups: Vec<String>,
}

#[pymethods]
impl Skipped {
    #[classattr]
    #[pyo3(name = "__match_args__")]
    const MATCH: (&'static str, &'static str) = ("messages", "groups");

    /// So many messages.
    #[getter]
    fn messages(&self) -> u64 {
        self.messages
    }

    /// Bytes of their payloads.
    #[getter]
    fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Those of the client's groups that they went to, ascending.
    #[getter]
    fn groups<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.groups)
    }

    fn __repr__(&self) -> String {
        let Self {
            messages, groups, ..
        } = self;
        format!("Skipped(messages={messages}, groups={groups:?})")
    }
}

/// The client's daemon is in no view of the daemons: until `Included` there are no messages and no views, and what the
/// client sends waits. Only where the daemons order in primary views alone.
#[pyclass(frozen, module = "rota")]
pub struct Excluded;

#[pymethods]
impl Excluded {
    #[classattr]
    #[pyo3(name = "__match_args__")]
    const MATCH: () = ();

    fn __repr__(&self) -> &'static str {
        "Excluded()"
    }
}

/// The daemon is in a view again.
#[pyclass(frozen, get_all, module = "rota")]
pub struct Included {
    /// What was delivered meanwhile is missing; otherwise everything goes on where it stopped.
    missed: bool,
}

#[pymethods]
impl Included {
    #[classattr]
    #[pyo3(name = "__match_args__")]
    const MATCH: (&'static str,) = ("missed",);

    fn __repr__(&self) -> &'static str {
        if self.missed {
            "Included(missed=True)"
        } else {
            "Included(missed=False)"
        }
    }
}

/// An event as Python sees it.
pub fn event(py: Python<'_>, event: Event) -> PyResult<Py<PyAny>> {
    Ok(match event {
        Event::Message(mut told) => {
            let payload = PyBytes::new(py, &told.payload).unbind();
            told.payload = Bytes::new();
            Py::new(py, Message { told, payload })?.into_any()
        }
        Event::View(view) => Py::new(py, View(*view))?.into_any(),
        Event::Transitional { group, view } => {
            let (group, view_id) = (group.to_string(), view.to_string());
            Py::new(py, Transitional { group, view_id })?.into_any()
        }
        Event::SelfLeave { group } => {
            let group = group.to_string();
            Py::new(py, SelfLeave { group })?.into_any()
        }
        Event::Lagging { waiting, limit } => Py::new(py, Lagging { waiting, limit })?.into_any(),
        Event::NotSent { kind, to, code, .. } => {
            let (to, reason) = (to.to_string(), code.to_string());
            Py::new(py, NotSent { to, reason, kind })?.into_any()
        }
        Event::Skipped {
            messages,
            bytes,
            groups,
        } => {
            let groups = groups.iter().map(ToString::to_string).collect();
            let skipped = Skipped {
                messages,
                bytes,
                groups,
            };
            Py::new(py, skipped)?.into_any()
        }
        Event::Excluded => Py::new(py, Excluded)?.into_any(),
        Event::Included { missed } => Py::new(py, Included { missed })?.into_any(),
        // Of clients that connect again, which this is not.
        other => {
            let text = format!("unknown to this version: {other:?}");
            return Err(pyo3::exceptions::PyNotImplementedError::new_err(text));
        }
    })
}
