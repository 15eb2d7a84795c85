//! One line of a trace file.

mod client;

use std::borrow::Cow;

use rota_core::contract::{ConfigurationKind, Process, Time};
use serde::Deserialize;

use crate::event::{Conf, Event, EventKind, Placed, Sent, nowhere};
use crate::name;

/// The content of a line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Line {
    Event(Event),
    /// The whole run has come to rest.
    Quiesce,
}

/// A string, borrowed from the line where no escapes stand in the way.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl Text<'_> {
    fn read<T>(&self, parse: fn(&str) -> Option<T>) -> Option<T> {
        parse(&self.0)
    }
}

/// One text or several.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Texts<'a> {
    #[serde(borrow)]
    One(Text<'a>),
    #[serde(borrow)]
    Several(Vec<Text<'a>>),
}

/// Members of a configuration, or of a group.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Members<'a> {
    Processes(Vec<(u64, u64)>),
    #[serde(borrow)]
    Clients(Vec<Text<'a>>),
}

/// The fields of a line, as they are written.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Fields<'a> {
    t: Option<u64>,
    node: Option<u64>,
    inc: Option<u64>,
    #[serde(borrow)]
    ev: Text<'a>,
    #[serde(borrow)]
    kind: Option<Text<'a>>,
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    old: Option<Text<'a>>,
    #[serde(borrow)]
    new: Option<Text<'a>>,
    #[serde(borrow)]
    members: Option<Members<'a>>,
    #[serde(borrow)]
    msg: Option<Text<'a>>,
    #[serde(borrow)]
    conf: Option<Text<'a>>,
    seq: Option<u64>,
    #[serde(borrow)]
    service: Option<Text<'a>>,
    #[serde(borrow)]
    hash: Option<Text<'a>>,
    ring: Option<serde::de::IgnoredAny>,
    #[serde(borrow)]
    client: Option<Text<'a>>,
    #[serde(borrow)]
    group: Option<Texts<'a>>,
    #[serde(borrow)]
    gid: Option<Text<'a>>,
    #[serde(borrow)]
    cause: Option<Text<'a>>,
    #[serde(borrow)]
    vs_sets: Option<Vec<Vec<Text<'a>>>>,
    discard: bool,
    missed: Option<bool>,
    own: Option<u64>,
}

/// The mistake in the fields of a line, as a sentence.
type Wrong = String;

impl Fields<'_> {
    pub(super) fn line(&self) -> Result<Line, Wrong> {
        if self.ring.is_some() {
            return Err("a trace of several rings, of which nothing can be checked yet".into());
        }
        let time = Time(self.t.ok_or("\"t\" is missing")?);
        if self.ev.0 == "quiesce" {
            return Ok(Line::Quiesce);
        }
        let process = self.node.zip(self.inc);
        let process = process.and_then(|(node, inc)| name::process(node, inc));
        let process = process.ok_or("\"node\" and \"inc\" have to name a process")?;
        Ok(Line::Event(Event {
            time,
            process,
            kind: match &self.client {
                Some(client) => EventKind::Client(self.client_event(client)?),
                None => self.event_kind(process)?,
            },
        }))
    }

    fn event_kind(&self, process: Process) -> Result<EventKind, Wrong> {
        Ok(match &*self.ev.0 {
            "start" => EventKind::Start,
            "conf" => EventKind::Configuration(self.configuration()?),
            "send" => EventKind::Send(self.sent()?),
            // Another process gives the message its place. The sender may not have been in a configuration yet.
            "orig" if self.seq.is_none() => EventKind::Broadcast(self.sent()?),
            "orig" => EventKind::Originated(self.placed(process)?),
            "deliver" => EventKind::Delivered(self.placed(process)?),
            "primary" => EventKind::Primary(read("conf", self.conf.as_ref(), name::ring)?),
            "excluded" => EventKind::Excluded(read("conf", self.conf.as_ref(), name::ring)?),
            "missed" => EventKind::Missed {
                upto: self.seq.ok_or("\"seq\" is missing")?,
                own: self.own.ok_or("\"own\" is missing")?,
            },
            "crash" => EventKind::Crash,
            "leave" => EventKind::Leave,
            "" => return Err("\"ev\" is missing".into()),
            other => return Err(format!("no event is called {other:?}")),
        })
    }

    fn sent(&self) -> Result<Sent, Wrong> {
        Ok(Sent {
            message: read("msg", self.msg.as_ref(), name::message)?,
            service: read("service", self.service.as_ref(), name::service)?,
            hash: read("hash", self.hash.as_ref(), name::hash)?,
        })
    }

    /// The configuration that is current. A process that has missed the last one knows of none.
    fn current(&self, process: Process) -> Result<ConfigurationKind, Wrong> {
        if self.conf.as_ref().is_some_and(|conf| conf.0.is_empty()) {
            return Ok(nowhere(process));
        }
        read("conf", self.conf.as_ref(), name::configuration)
    }

    fn placed(&self, process: Process) -> Result<Placed, Wrong> {
        Ok(Placed {
            message: read("msg", self.msg.as_ref(), name::message)?,
            conf: self.current(process)?,
            position: self.seq.ok_or("\"seq\" is missing")?,
            service: read("service", self.service.as_ref(), name::service)?,
            hash: read("hash", self.hash.as_ref(), name::hash)?,
        })
    }

    fn configuration(&self) -> Result<Conf, Wrong> {
        let id = read("id", self.id.as_ref(), name::configuration)?;
        let kind = self.kind.as_ref().map(|kind| &*kind.0);
        let as_written = match id {
            ConfigurationKind::Regular(_) => kind == Some("regular"),
            ConfigurationKind::Transitional { old, new } => {
                let ring = |text: &Option<Text<'_>>| text.as_ref()?.read(name::ring);
                kind == Some("transitional")
                    && ring(&self.old) == Some(old)
                    && ring(&self.new) == Some(new)
            }
        };
        if !as_written {
            return Err("\"kind\", \"old\" and \"new\" do not fit to \"id\"".into());
        }
        let members = match &self.members {
            Some(Members::Processes(members)) => members.as_slice(),
            _ => &[],
        };
        let members = members.iter().map(|(node, inc)| name::process(*node, *inc));
        let members: Option<Vec<_>> = members.collect();
        let members = members.filter(|members| !members.is_empty());
        let members = members.ok_or("\"members\" have to be pairs of a node and an incarnation")?;
        Ok(Conf { id, members })
    }
}

fn read<T>(key: &str, text: Option<&Text<'_>>, parse: fn(&str) -> Option<T>) -> Result<T, Wrong> {
    let text = text.ok_or_else(|| format!("{key:?} is missing"))?;
    let value = text.read(parse);
    value.ok_or_else(|| format!("{key:?} cannot be {:?}", text.0))
}
