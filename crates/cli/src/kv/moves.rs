//! `rota kv move`: slots get another partition while clients go on.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use rota_kv::{KvConfig, Slots};
use rota_resp::Reply;
use serde::Serialize;

use super::status::read;
use crate::say::{complain, print, print_json};
use crate::service::who::Who;

/// A process that is there says sooner what it has.
const PATIENCE: Duration = Duration::from_secs(3);
/// Much takes long to be copied.
const LONG: Duration = Duration::from_hours(1);

/// Options of `rota kv move`.
#[derive(Clone, Debug, clap::Args)]
pub struct MoveOptions {
    /// The store's file
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// The partition that is to have them
    #[arg(long, value_name = "PARTITION")]
    to: u16,
    /// Which slots, as in `0-4095,5000`
    #[arg(long, value_name = "SLOTS", value_parser = slots)]
    slots: Slots,
    #[command(flatten)]
    who: Who,
    /// Print one JSON object on the last line
    #[arg(long)]
    json: bool,
}

fn slots(text: &str) -> Result<Slots, String> {
    let slots = Slots::parse(text).filter(|slots| !slots.is_empty());
    slots.ok_or_else(|| "slots are numbers and ranges from 0 to 16383, as in 0-99,105".to_owned())
}

/// The outcome of a partition's part.
#[derive(Clone, Debug, Serialize)]
pub struct Part {
    from: u16,
    to: u16,
    /// The number of slots that have moved.
    pub slots: i64,
    keys: i64,
    bytes: i64,
    groups: i64,
    /// The longest time that writes to a group waited, in microseconds.
    pub longest_freeze_us: i64,
    took_us: i64,
}

/// Moves the slots.
pub fn main(options: &MoveOptions) -> ExitCode {
    let config = match read(&options.config) {
        Ok(config) => config,
        Err(error) => {
            complain(&error);
            return ExitCode::from(2);
        }
    };
    match run(&config, options) {
        Ok(parts) => {
            if parts.is_empty() {
                print(&format!("partition {} has them already", options.to));
            }
            if options.json {
                print_json(&parts);
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            complain(&error);
            ExitCode::FAILURE
        }
    }
}

fn run(config: &KvConfig, options: &MoveOptions) -> Result<Vec<Part>, String> {
    let map = map(config, &options.who)?;
    let mut parts = Vec::new();
    for (from, has) in map {
        let own: Slots = options.slots.iter().filter(|slot| has.has(*slot)).collect();
        if from == options.to || own.is_empty() {
            continue;
        }
        let part = shift(config, &options.who, (from, options.to, &own))?;
        print(&format!(
            "{} slots of partition {from} are of partition {} now: {} keys and {} bytes copied in {:.1} s; writes to {} groups waited \
             {:.1} ms at most",
            part.slots,
            part.to,
            part.keys,
            part.bytes,
            part.took_us as f64 / 1e6,
            part.groups,
            part.longest_freeze_us as f64 / 1e3,
        ));
        parts.push(part);
    }
    Ok(parts)
}

/// The addresses for clients of the processes, of one partition or all.
pub fn addresses(config: &KvConfig, of: Option<u16>) -> impl Iterator<Item = SocketAddr> {
    let all = config.kv.process.iter();
    let own = all.filter(move |process| of.is_none_or(|of| of == process.partition));
    own.filter_map(|process| config.clients_of(process))
}

/// The slots of each partition, as the first process that answers knows them.
fn map(config: &KvConfig, who: &Who) -> Result<Vec<(u16, Slots)>, String> {
    let mut last = "no process has a port for clients".to_owned();
    for address in addresses(config, None) {
        match map_at(address, who) {
            Ok(map) => return Ok(map),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// The slots of each partition, as a process knows them.
///
/// # Errors
/// In words.
pub fn map_at(address: SocketAddr, who: &Who) -> Result<Vec<(u16, Slots)>, String> {
    let map = match who.ask(address, PATIENCE, &["ROTA", "MAP"])? {
        Reply::Array(partitions) => partitions.iter().map(partition).collect(),
        _ => None,
    };
    map.ok_or_else(|| format!("{address}: it says nothing of slots"))
}

fn partition(reply: &Reply) -> Option<(u16, Slots)> {
    match reply {
        Reply::Array(parts) => match &parts[..] {
            [Reply::Integer(number), Reply::Bulk(text)] => {
                let text = std::str::from_utf8(text).ok()?;
                Some((u16::try_from(*number).ok()?, Slots::parse(text)?))
            }
            _ => None,
        },
        _ => None,
    }
}

/// A process of the partition that has them moves them: the first one that is there.
fn shift(
    config: &KvConfig,
    who: &Who,
    (from, to, slots): (u16, u16, &Slots),
) -> Result<Part, String> {
    let mut last = format!("no process of partition {from} has a port for clients");
    for address in addresses(config, Some(from)) {
        if let Err(error) = who.ask(address, PATIENCE, &["PING"]) {
            last = error;
            continue;
        }
        return shift_at(address, who, (from, to, slots));
    }
    Err(last)
}

/// The same, by this process.
///
/// # Errors
/// In words.
pub fn shift_at(
    address: SocketAddr,
    who: &Who,
    (from, to, slots): (u16, u16, &Slots),
) -> Result<Part, String> {
    let (number, text) = (to.to_string(), slots.to_string());
    let words = ["ROTA", "MOVE", &number, &text];
    let reply = who.ask(address, LONG, &words)?;
    let fields = match reply {
        Reply::Map(pairs) => pairs,
        Reply::Array(all) => {
            let pairs = all.as_chunks::<2>().0.iter().cloned();
            pairs.map(|[name, value]| (name, value)).collect()
        }
        _ => return Err(format!("{address}: it does not say what it has done")),
    };
    let of = |name: &str| {
        let found = fields.iter().find(|(key, _)| *key == Reply::from(name));
        match found {
            Some((_, Reply::Integer(number))) => *number,
            _ => 0,
        }
    };
    Ok(Part {
        from,
        to,
        slots: of("slots"),
        keys: of("keys"),
        bytes: of("bytes"),
        groups: of("groups"),
        longest_freeze_us: of("longest_freeze_us"),
        took_us: of("took_us"),
    })
}
