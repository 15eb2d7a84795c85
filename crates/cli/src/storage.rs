//! `rota storage`: what nodes keep on disk.

mod merge;
mod recover;
mod report;
mod state;

use std::fmt::Write as _;
use std::ops::Range;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Subcommand;
use rota_storage::acceptor::{Kind, LogOpenError, Record, RecordSeen, Seen, SegmentSeen, inspect};
use serde::Serialize;

use crate::say::{complain, print, print_json};

/// Commands about what is on disk.
#[derive(Debug, Subcommand)]
pub enum Storage {
    /// Look at an acceptor's log and verify all of it; nothing is written, and it may be in use
    #[command(
        after_help = "Examples:\n  rota storage inspect /var/lib/rota/ring-1\n  \
        rota storage inspect copy-of-ring-1 --records 1000..1010 --json\n\n\
        Exit status: 0 if it is sound, 1 if something that was durable is damaged or missing, 2 for wrong use or \
        if it\ncannot be read."
    )]
    Inspect(InspectOptions),
    /// Go on from what is left when a majority of the acceptors is lost for good
    #[command(
        after_help = "Examples:\n  rota storage recover --config rota.toml --dry-run copy-of-node-1.votes\n  \
        rota storage recover --config rota.toml --into recovered n1/node-1.votes n3/node-3.votes\n\n\
        It reads the logs that are left (give all of them), says what may be lost, asks, and writes a new log for each \
        acceptor:\nthe same order, with the same places, as far as it is there. The logs that it reads stay as they are. \
        Put the new ones in the\nplace of the old ones on *all* acceptors, and start the nodes. What must be true then, it \
        says before it asks; docs/operations.md has more.\n\n\
        Exit status: 0 if it was done, 1 if the answer was not yes, 2 for wrong use or if it cannot be done."
    )]
    Recover(recover::RecoverOptions),
}

/// Options of `rota storage inspect`.
#[derive(Clone, Debug, clap::Args)]
pub struct InspectOptions {
    /// The log's directory
    directory: PathBuf,
    /// List votes and skips of instances from A on, before B, as they were written
    #[arg(long, value_name = "A..B", value_parser = range)]
    records: Option<Range<u64>>,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

fn range(text: &str) -> Result<Range<u64>, String> {
    let read = |(from, to): (&str, &str)| Some(from.parse().ok()?..to.parse().ok()?);
    let range = text.split_once("..").and_then(read);
    range.ok_or_else(|| "two numbers with .. between them, as in 1000..1010".to_owned())
}

/// Runs the command.
pub fn main(command: &Storage) -> ExitCode {
    match command {
        Storage::Inspect(options) => look(options),
        Storage::Recover(options) => recover::main(options),
    }
}

fn look(options: &InspectOptions) -> ExitCode {
    let list = options.records.clone().unwrap_or(0..0);
    let seen = match inspect(options.directory.clone(), list) {
        Ok(seen) => seen,
        Err(LogOpenError::Lost(path)) => {
            complain(&format!("{}: there is no acceptor's log", path.display()));
            return ExitCode::from(2);
        }
        Err(error) => {
            complain(&error);
            // Files of two logs in one directory are no sound log; what cannot be read may be one.
            let mixed = matches!(error, LogOpenError::WrongOwner { .. });
            return ExitCode::from(if mixed { 1 } else { 2 });
        }
    };
    if options.json {
        print_json(&Json::of(&seen));
    } else {
        print(&text(&seen).trim_end());
    }
    ExitCode::from(u8::from(!seen.damage.is_empty()))
}

/// The words on a log that may lack records that it has answered.
const LOST: &str = "something that was answered may be missing; its node has not begun anew since";

fn text(seen: &Seen) -> String {
    let mut out = String::new();
    let mut line = |what: &str, said: String| {
        let _ = writeln!(out, "{what:<10} {said}");
    };
    if let Some(identity) = seen.identity {
        line("log", format!("of {identity}"));
    }
    let end = if seen.closed {
        "closed in order"
    } else {
        "not closed"
    };
    line("opened", format!("{} times, {end}", seen.life));
    if seen.lost_some {
        line("LOST", LOST.to_owned());
    }
    line(
        "durable",
        format!(
            "up to segment {}, offset {}",
            seen.durable.segment, seen.durable.offset
        ),
    );
    let last = match seen.last {
        Some(last) => format!("{} kept, the last is {last}", seen.instances),
        None => "none kept".to_owned(),
    };
    line(
        "instances",
        format!("{last}; trimmed before {}", seen.first),
    );
    for record in &seen.state {
        line(&record.kind.to_string(), of_state(record));
    }
    for segment in &seen.segments {
        line("segment", of_segment(segment));
    }
    if seen.leftovers > 0 {
        line(
            "leftover",
            format!("{} segments that are not needed", seen.leftovers),
        );
    }
    line("spare", format!("{} files", seen.spares));
    for record in &seen.listed {
        line("record", of_record(record));
    }
    for damage in &seen.damage {
        line("DAMAGE", damage.to_string());
    }
    let verdict = if seen.damage.is_empty() {
        "sound"
    } else {
        "damaged"
    };
    line("verdict", verdict.to_owned());
    out
}

fn of_state(record: &Record) -> String {
    let about = match record.kind {
        Kind::State => "key",
        _ => "from",
    };
    format!("{about} {}, {} bytes", record.first, record.bytes.len())
}

fn of_segment(segment: &SegmentSeen) -> String {
    let records = segment.records.iter();
    let records: Vec<String> = records.map(|(kind, n)| format!("{n} {kind}")).collect();
    format!(
        "{}, made in life {}, {} of {} bytes: {}",
        segment.name,
        segment.life,
        segment.end,
        segment.bytes,
        records.join(", ")
    )
}

fn of_record(record: &RecordSeen) -> String {
    let RecordSeen {
        at,
        kind,
        first,
        last,
        bytes,
    } = record;
    format!("{at} {kind} {first} to {last}, {bytes} bytes")
}

#[derive(Serialize)]
struct Json {
    sound: bool,
    cluster: Option<u32>,
    node: Option<u16>,
    ring: Option<u16>,
    opened: u64,
    closed: bool,
    lost_some: bool,
    durable: Place,
    first: u64,
    last: Option<u64>,
    instances: u64,
    state: Vec<JsonRecord>,
    segments: Vec<JsonSegment>,
    leftovers: usize,
    spares: usize,
    records: Vec<JsonRecord>,
    damage: Vec<JsonDamage>,
}

#[derive(Serialize)]
struct Place {
    segment: u64,
    offset: u64,
}

#[derive(Serialize)]
struct JsonSegment {
    name: String,
    number: u64,
    life: u64,
    bytes: u64,
    end: u64,
    records: std::collections::BTreeMap<String, u64>,
}

#[derive(Serialize)]
struct JsonRecord {
    kind: String,
    first: u64,
    last: u64,
    bytes: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<Place>,
}

#[derive(Serialize)]
struct JsonDamage {
    file: String,
    offset: u64,
    what: &'static str,
}

impl Json {
    fn of(seen: &Seen) -> Self {
        let place = |at: rota_storage::acceptor::Position| Place {
            segment: at.segment,
            offset: at.offset,
        };
        let state = seen.state.iter().map(|record| JsonRecord {
            kind: record.kind.to_string(),
            first: record.first,
            last: record.last,
            bytes: record.bytes.len(),
            at: None,
        });
        let segments = seen.segments.iter().map(|segment| {
            let records = segment.records.iter();
            JsonSegment {
                name: segment.name.clone(),
                number: segment.number,
                life: segment.life,
                bytes: segment.bytes,
                end: segment.end,
                records: records.map(|(kind, n)| (kind.to_string(), *n)).collect(),
            }
        });
        let listed = seen.listed.iter().map(|record| JsonRecord {
            kind: record.kind.to_string(),
            first: record.first,
            last: record.last,
            bytes: record.bytes,
            at: Some(place(record.at)),
        });
        let damage = seen.damage.iter().map(|damage| JsonDamage {
            file: damage.file.display().to_string(),
            offset: damage.offset,
            what: damage.what,
        });
        Self {
            sound: seen.damage.is_empty(),
            cluster: seen.identity.map(|identity| identity.cluster),
            node: seen.identity.map(|identity| identity.node.get()),
            ring: seen.identity.map(|identity| identity.log.0),
            opened: seen.life,
            closed: seen.closed,
            lost_some: seen.lost_some,
            durable: place(seen.durable),
            first: seen.first,
            last: seen.last,
            instances: seen.instances,
            state: state.collect(),
            segments: segments.collect(),
            leftovers: seen.leftovers,
            spares: seen.spares,
            records: listed.collect(),
            damage: damage.collect(),
        }
    }
}
