//! Writes what the processes of a run saw as JSON Lines, one file a node.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rota_check::event::{Conf, Event, EventKind, Placed, Sent};
use rota_core::contract::{ConfigurationKind, NodeId, Process, Time};

use crate::observe::{Finding, Observer};

/// Bytes gathered before they are written.
const GATHERED_BYTES: usize = 1 << 20;

/// A node's file, and what is not in it yet.
#[derive(Debug)]
struct File {
    node: NodeId,
    file: fs::File,
    lines: String,
    /// The configuration that is current, as it is written.
    conf: String,
}

/// The trace files of one run: `node-1.jsonl` and so on, and `run.jsonl` for what concerns all.
#[derive(Debug)]
pub struct Traces {
    directory: PathBuf,
    files: Vec<File>,
    error: Option<io::Error>,
}

impl Traces {
    /// Traces in a new or an empty directory; files of the same names are replaced.
    ///
    /// # Errors
    /// The system's own.
    pub fn create(directory: &Path) -> io::Result<Self> {
        fs::create_dir_all(directory)?;
        for entry in fs::read_dir(directory)? {
            let path = entry?.path();
            if path
                .extension()
                .is_some_and(|extension| extension == "jsonl")
            {
                fs::remove_file(path)?;
            }
        }
        Ok(Self {
            directory: directory.to_path_buf(),
            files: Vec::new(),
            error: None,
        })
    }

    /// Writes the rest.
    ///
    /// # Errors
    /// The system's own, also of earlier writes.
    pub fn finish(mut self) -> io::Result<()> {
        for file in &mut self.files {
            file.flush()?;
        }
        self.error.map_or(Ok(()), Err)
    }

    fn file(&mut self, node: NodeId) -> io::Result<&mut File> {
        let known = self.files.iter().position(|file| file.node == node);
        let at = match known {
            Some(at) => at,
            None => {
                let path = self.directory.join(format!("node-{node}.jsonl"));
                self.files.push(File {
                    node,
                    file: fs::File::create(path)?,
                    lines: String::new(),
                    conf: String::new(),
                });
                self.files.len() - 1
            }
        };
        Ok(&mut self.files[at])
    }

    fn write(&mut self, event: &Event) -> io::Result<()> {
        let file = self.file(event.process.node)?;
        file.line(event);
        if file.lines.len() > GATHERED_BYTES {
            file.flush()?;
        }
        Ok(())
    }
}

impl Observer for Traces {
    fn observe(&mut self, event: &Event) -> Result<(), Finding> {
        if let Err(error) = self.write(event) {
            self.error.get_or_insert(error);
        }
        Ok(())
    }

    fn quiesce(&mut self, now: Time) -> Result<(), Finding> {
        let line = format!("{{\"t\":{},\"ev\":\"quiesce\"}}\n", now.0);
        if let Err(error) = fs::write(self.directory.join("run.jsonl"), line) {
            self.error.get_or_insert(error);
        }
        Ok(())
    }
}

impl File {
    fn flush(&mut self) -> io::Result<()> {
        use io::Write as _;
        self.file.write_all(self.lines.as_bytes())?;
        self.lines.clear();
        Ok(())
    }

    fn line(&mut self, event: &Event) {
        let Process { node, incarnation } = event.process;
        let (t, inc) = (event.time.0, incarnation.0);
        // Writing to a string cannot fail.
        let _ = write!(self.lines, r#"{{"t":{t},"node":{node},"inc":{inc},"ev":""#);
        match &event.kind {
            EventKind::Start => {
                self.conf.clear();
                self.lines += r#"start""#;
            }
            EventKind::Configuration(conf) => self.configuration(conf),
            EventKind::Send(sent) => self.sent("send", sent),
            EventKind::Broadcast(sent) => self.sent("orig", sent),
            EventKind::Originated(placed) => self.placed("orig", placed),
            EventKind::Delivered(placed) => self.placed("deliver", placed),
            EventKind::Primary(ring) => {
                let _ = write!(self.lines, r#"primary","conf":"{ring}""#);
            }
            EventKind::Excluded(ring) => {
                let _ = write!(self.lines, r#"excluded","conf":"{ring}""#);
            }
            EventKind::Missed { upto, own } => {
                let _ = write!(self.lines, r#"missed","seq":{upto},"own":{own}"#);
            }
            EventKind::Client(event) => {
                self.lines += event.name();
                self.lines.push('"');
                self.lines += &event.fields();
            }
            EventKind::Crash => self.lines += r#"crash""#,
            EventKind::Leave => self.lines += r#"leave""#,
        }
        self.lines += "}\n";
    }

    fn configuration(&mut self, conf: &Conf) {
        self.conf = name(conf.id);
        let id = &self.conf;
        let _ = match conf.id {
            ConfigurationKind::Regular(_) => {
                write!(self.lines, r#"conf","kind":"regular","id":"{id}""#)
            }
            ConfigurationKind::Transitional { old, new } => write!(
                self.lines,
                r#"conf","kind":"transitional","id":"{id}","old":"{old}","new":"{new}""#
            ),
        };
        self.lines += r#","members":["#;
        for (place, Process { node, incarnation }) in conf.members.iter().enumerate() {
            let comma = if place == 0 { "" } else { "," };
            let _ = write!(self.lines, "{comma}[{node},{}]", incarnation.0);
        }
        self.lines.push(']');
    }

    fn sent(&mut self, event: &str, sent: &Sent) {
        let (message, service) = (sent.message, sent.service.name());
        let _ = write!(
            self.lines,
            r#"{event}","msg":"{message}","conf":"{}","service":"{service}","hash":"{:016x}""#,
            self.conf, sent.hash
        );
    }

    fn placed(&mut self, event: &str, placed: &Placed) {
        let (message, service) = (placed.message, placed.service.name());
        let conf = name(placed.conf);
        let _ = write!(
            self.lines,
            r#"{event}","msg":"{message}","conf":"{conf}","seq":{},"service":"{service}","hash":"{:016x}""#,
            placed.position, placed.hash
        );
    }
}

fn name(id: ConfigurationKind) -> String {
    match id {
        ConfigurationKind::Regular(ring) => ring.to_string(),
        ConfigurationKind::Transitional { old, new } => format!("{old}>{new}"),
    }
}
