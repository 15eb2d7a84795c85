//! The trace of a node, as JSON Lines, for checkers written by anyone.
//!
//! A trace must not lie when the process is killed: the line that says a message got its place in the
//! order reaches the kernel before the message reaches the wire. So lines are gathered and written
//! with one `write` just before each send.

use rota_core::contract::{
    Configuration, ConfigurationKind, Delivery, Message, Process, RingId, Seq, Service, Time,
};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::path::Path;

mod file;

pub use file::TraceFile;

/// Lines gathered beyond this are written without waiting for a send.
const GATHERED_BYTES: usize = 1 << 20;

/// A message that was submitted and has no place in the order yet.
#[derive(Debug)]
struct Submitted {
    service: Service,
    hash: u64,
}

/// Writes a node's trace.
#[derive(Debug)]
pub struct Tracer {
    file: TraceFile,
    me: Process,
    /// The ring or configuration that is current, as it is written in lines.
    current: String,
    lines: String,
    submitted: BTreeMap<u64, Submitted>,
    /// Another node gives messages their places: accepted is broadcast.
    broadcasts: bool,
}

impl Tracer {
    /// Starts a trace in a new file, or appends to the one that an earlier life of this node wrote.
    ///
    /// `broadcasts` says that another node gives messages their places, so that an accepted message counts as broadcast
    /// at once.
    ///
    /// # Errors
    /// The system's own, where the file cannot be opened. If there only is no room in it, the trace has ended.
    pub fn create(path: &Path, me: Process, now: Time, broadcasts: bool) -> io::Result<Self> {
        let mut tracer = Self {
            file: TraceFile::open(path)?,
            me,
            current: String::new(),
            lines: String::new(),
            submitted: BTreeMap::new(),
            broadcasts,
        };
        tracer.line(now, "start", format_args!(""));
        tracer.flush();
        Ok(tracer)
    }

    /// A message was accepted from the application.
    pub fn on_submit(&mut self, now: Time, counter: u64, service: Service, payload: &[u8]) {
        let hash = hash(payload);
        let Process { node, incarnation } = self.me;
        let conf = std::mem::take(&mut self.current);
        let events: &[&str] = if self.broadcasts {
            &["send", "orig"]
        } else {
            &["send"]
        };
        for event in events {
            self.line(
                now,
                event,
                format_args!(
                    r#","msg":"{node}.{}.{counter}","conf":"{conf}","service":"{}","hash":"{hash:016x}""#,
                    incarnation.0,
                    service.name()
                ),
            );
        }
        self.current = conf;
        if !self.broadcasts {
            self.submitted.insert(counter, Submitted { service, hash });
        }
    }

    /// A message of this node got its place in the order.
    pub fn on_originated(&mut self, now: Time, counter: u64, seq: Seq, index: u16) {
        let Some(Submitted { service, hash }) = self.submitted.remove(&counter) else {
            return;
        };
        let Process { node, incarnation } = self.me;
        let conf = std::mem::take(&mut self.current);
        self.line(
            now,
            "orig",
            format_args!(
                r#","msg":"{node}.{}.{counter}","conf":"{conf}","seq":{},"service":"{}","hash":"{hash:016x}""#,
                incarnation.0,
                position(seq, index),
                service.name()
            ),
        );
        self.current = conf;
    }

    /// A delivery was handed to the application.
    pub fn on_delivery(&mut self, now: Time, delivery: &Delivery) {
        match delivery {
            Delivery::Configuration(configuration) => self.on_configuration(now, configuration),
            Delivery::Message(message) => self.on_message(now, message),
            Delivery::Missed { seq, count, own } => {
                let upto = position(seq + count, 0);
                self.line(now, "missed", format_args!(r#","seq":{upto},"own":{own}"#));
            }
            Delivery::Passed { .. } | Delivery::Notice { .. } => {}
            Delivery::Primary(ring) => {
                self.line(now, "primary", format_args!(r#","conf":"{ring}""#));
            }
            Delivery::Excluded(ring) => {
                self.line(now, "excluded", format_args!(r#","conf":"{ring}""#));
            }
        }
    }

    fn on_configuration(&mut self, now: Time, configuration: &Configuration) {
        let mut members = String::new();
        for Process { node, incarnation } in &configuration.members {
            let comma = if members.is_empty() { "" } else { "," };
            let _ = write!(members, "{comma}[{node},{}]", incarnation.0);
        }
        match configuration.kind {
            ConfigurationKind::Regular(id) => {
                self.current = id.to_string();
                let fields = format!(r#","kind":"regular","id":"{id}","members":[{members}]"#);
                self.line(now, "conf", format_args!("{fields}"));
            }
            ConfigurationKind::Transitional { old, new } => {
                self.current = transitional(old, new);
                let fields = format!(
                    r#","kind":"transitional","id":"{old}>{new}","old":"{old}","new":"{new}","members":[{members}]"#
                );
                self.line(now, "conf", format_args!("{fields}"));
            }
        }
    }

    fn on_message(&mut self, now: Time, message: &Message) {
        let conf = std::mem::take(&mut self.current);
        self.line(
            now,
            "deliver",
            format_args!(
                r#","msg":"{}","conf":"{conf}","seq":{},"service":"{}","hash":"{:016x}""#,
                message.id,
                message.position(),
                message.service.name(),
                hash(&message.payload)
            ),
        );
        self.current = conf;
    }

    /// The node leaves of its own will. Ends the trace.
    pub fn on_leave(&mut self, now: Time) {
        self.line(now, "leave", format_args!(""));
        self.flush();
    }

    /// The file, for others that write to it.
    pub const fn file(&self) -> &TraceFile {
        &self.file
    }

    /// Lines that could not be written.
    pub fn lost(&self) -> u64 {
        self.file.lost()
    }

    /// Hands all gathered lines to the kernel.
    pub fn flush(&mut self) {
        self.file.write(self.lines.as_bytes());
        self.lines.clear();
    }

    /// Writes the gathered lines when they have become many.
    pub fn flush_large(&mut self) {
        if self.lines.len() >= GATHERED_BYTES {
            self.flush();
        }
    }

    fn line(&mut self, now: Time, event: &str, fields: std::fmt::Arguments<'_>) {
        put_line(&mut self.lines, (now, self.me), event, fields);
    }
}

/// Adds a line about an event that a process saw.
pub(crate) fn put_line(
    lines: &mut String,
    (now, me): (Time, Process),
    event: &str,
    fields: std::fmt::Arguments<'_>,
) {
    let Process { node, incarnation } = me;
    let (t, inc) = (now.0, incarnation.0);
    // Writing to a string cannot fail.
    let _ = writeln!(
        lines,
        r#"{{"t":{t},"node":{node},"inc":{inc},"ev":"{event}"{fields}}}"#
    );
}

/// See [`Message::position`].
const fn position(seq: Seq, index: u16) -> u64 {
    seq.wrapping_shl(16) | index as u64
}

fn transitional(old: RingId, new: RingId) -> String {
    format!("{old}>{new}")
}

/// The first 64 bits of the payload's SHA-256.
pub fn hash(payload: &[u8]) -> u64 {
    let digest = Sha256::digest(payload);
    digest
        .first_chunk()
        .map_or(0, |bytes| u64::from_be_bytes(*bytes))
}
