//! Writes trace files.

use std::io::{self, Write};

use rota_core::contract::{ConfigurationKind, MessageId, Process, Service, Time};
use rustc_hash::FxHashMap;

use crate::event::{Conf, Event, EventKind, Placed, Sent};
use crate::name::Name;

/// Writes events as lines, the same that a node writes. It writes often and little at a time: give it a
/// [`std::io::BufWriter`].
#[derive(Debug)]
pub struct TraceWriter<W> {
    out: W,
    /// The configuration that is current at each process: a `send` line names it.
    current: FxHashMap<Process, ConfigurationKind>,
}

impl<W: Write> TraceWriter<W> {
    /// Writes to `out`.
    pub fn new(out: W) -> Self {
        Self {
            out,
            current: FxHashMap::default(),
        }
    }

    /// Writes one event.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn event(&mut self, event: &Event) -> io::Result<()> {
        let Process { node, incarnation } = event.process;
        let (t, inc) = (event.time.0, incarnation.0);
        write!(self.out, r#"{{"t":{t},"node":{node},"inc":{inc},"ev":"#)?;
        match &event.kind {
            EventKind::Start => self.out.write_all(b"\"start\"")?,
            EventKind::Configuration(conf) => {
                self.current.insert(event.process, conf.id);
                self.configuration(conf)?;
            }
            EventKind::Send(sent) => self.sent("send", event.process, sent)?,
            EventKind::Broadcast(sent) => self.sent("orig", event.process, sent)?,
            EventKind::Originated(placed) => self.placed("orig", placed)?,
            EventKind::Delivered(placed) => self.placed("deliver", placed)?,
            EventKind::Primary(ring) => write!(self.out, r#""primary","conf":"{ring}""#)?,
            EventKind::Excluded(ring) => write!(self.out, r#""excluded","conf":"{ring}""#)?,
            EventKind::Missed { upto, own } => {
                write!(self.out, r#""missed","seq":{upto},"own":{own}"#)?;
            }
            EventKind::Client(event) => {
                write!(self.out, "\"{}\"{}", event.name(), event.fields())?;
            }
            EventKind::Crash => self.out.write_all(b"\"crash\"")?,
            EventKind::Leave => self.out.write_all(b"\"leave\"")?,
        }
        self.out.write_all(b"}\n")
    }

    /// Writes that the whole run has come to rest.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn quiesce(&mut self, time: Time) -> io::Result<()> {
        writeln!(self.out, r#"{{"t":{},"ev":"quiesce"}}"#, time.0)
    }

    /// The writer.
    pub const fn out(&mut self) -> &mut W {
        &mut self.out
    }

    /// Hands everything on and gives the writer back.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }

    fn configuration(&mut self, conf: &Conf) -> io::Result<()> {
        let id = Name(conf.id);
        match conf.id {
            ConfigurationKind::Regular(_) => {
                write!(self.out, r#""conf","kind":"regular","id":"{id}""#)?;
            }
            ConfigurationKind::Transitional { old, new } => write!(
                self.out,
                r#""conf","kind":"transitional","id":"{id}","old":"{old}","new":"{new}""#
            )?,
        }
        self.out.write_all(b",\"members\":[")?;
        for (place, member) in conf.members.iter().enumerate() {
            let comma = if place == 0 { "" } else { "," };
            let Process { node, incarnation } = member;
            write!(self.out, "{comma}[{node},{}]", incarnation.0)?;
        }
        self.out.write_all(b"]")
    }

    fn sent(&mut self, event: &str, process: Process, sent: &Sent) -> io::Result<()> {
        let conf = self.current.get(&process).copied();
        self.message(event, sent.message, conf)?;
        self.payload(sent.service, sent.hash)
    }

    fn placed(&mut self, event: &str, placed: &Placed) -> io::Result<()> {
        self.message(event, placed.message, Some(placed.conf))?;
        write!(self.out, r#","seq":{}"#, placed.position)?;
        self.payload(placed.service, placed.hash)
    }

    fn message(
        &mut self,
        event: &str,
        message: MessageId,
        conf: Option<ConfigurationKind>,
    ) -> io::Result<()> {
        write!(self.out, r#""{event}","msg":"{message}","conf":""#)?;
        if let Some(conf) = conf {
            write!(self.out, "{}", Name(conf))?;
        }
        self.out.write_all(b"\"")
    }

    fn payload(&mut self, service: Service, hash: u64) -> io::Result<()> {
        let service = service.name();
        write!(self.out, r#","service":"{service}","hash":"{hash:016x}""#)
    }
}
