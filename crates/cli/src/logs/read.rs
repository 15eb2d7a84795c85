//! `rota log read`, `tail`.

use std::process::ExitCode;

use rota_resp::Reply;

use crate::service::talk::RpcConnection;
use crate::service::where_to::{Where, line, refused};

/// The number of entries that are asked for at once.
const TOGETHER: u64 = 1_000;
/// The time that a tail waits for something before it asks again, in milliseconds.
const WAITS: &str = "2000";

/// Options of `rota log read`.
#[derive(Clone, Debug, clap::Args)]
pub struct ReadOptions {
    /// The log
    log: String,
    /// From this position on [default: the first that is kept]
    #[arg(long, value_name = "POSITION", value_parser = clap::value_parser!(u64).range(1..))]
    from: Option<u64>,
    /// So many entries at most [default: all]
    #[arg(long, value_name = "ENTRIES")]
    count: Option<u64>,
    #[command(flatten)]
    at: Where,
}

/// Options of `rota log tail`.
#[derive(Clone, Debug, clap::Args)]
pub struct TailOptions {
    /// The logs
    #[arg(required = true)]
    logs: Vec<String>,
    /// From this position on in each [default: what comes from now on]
    #[arg(long, value_name = "POSITION", value_parser = clap::value_parser!(u64).range(1..))]
    from: Option<u64>,
    /// Stop after so many entries
    #[arg(long, value_name = "ENTRIES")]
    count: Option<u64>,
    #[command(flatten)]
    at: Where,
}

/// Fields and values of an entry.
type Fields = Vec<(Vec<u8>, Vec<u8>)>;

/// An entry of one of several logs, in the order of all.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Its log.
    pub log: String,
    /// Its position there.
    pub position: u64,
    /// Fields and values.
    pub fields: Fields,
    /// The place in the order of everything: round, ring, instance and message, with points between.
    pub place: String,
}

impl Entry {
    /// For people: the value where there is only that, or else all fields.
    pub fn text(&self) -> Vec<u8> {
        match &self.fields[..] {
            [(field, value)] if field == b"value" => value.clone(),
            fields => {
                let one = |(field, value): &(Vec<u8>, Vec<u8>)| [field, &b"="[..], value].concat();
                fields.iter().map(one).collect::<Vec<_>>().join(&b' ')
            }
        }
    }
}

fn bytes(reply: &Reply) -> Option<&[u8]> {
    match reply {
        Reply::Bulk(bytes) => Some(bytes),
        _ => None,
    }
}

/// The position that an id is of.
pub fn position(id: &Reply) -> Option<u64> {
    let id = std::str::from_utf8(bytes(id)?).ok()?;
    id.strip_suffix("-0")?.parse().ok()
}

fn fields(reply: &Reply) -> Option<Fields> {
    let Reply::Array(parts) = reply else {
        return None;
    };
    let pair = |pair: &[Reply]| match pair {
        [field, value] => Some((bytes(field)?.to_vec(), bytes(value)?.to_vec())),
        _ => None,
    };
    parts.chunks(2).map(pair).collect()
}

/// The entries in an answer to `XMERGE`. `None`: it cannot be read.
pub fn merged(reply: &Reply) -> Option<Vec<Entry>> {
    let entries = match reply {
        Reply::Array(entries) => entries,
        Reply::Null | Reply::NullArray => return Some(Vec::new()),
        _ => return None,
    };
    let entry = |entry: &Reply| match entry {
        Reply::Array(parts) => match &parts[..] {
            [log, id, of, place] => Some(Entry {
                log: String::from_utf8_lossy(bytes(log)?).into_owned(),
                position: position(id)?,
                fields: fields(of)?,
                place: String::from_utf8_lossy(bytes(place)?).into_owned(),
            }),
            _ => None,
        },
        _ => None,
    };
    entries.iter().map(entry).collect()
}

/// Some of several logs, behind these positions.
pub fn some(
    talk: &mut RpcConnection,
    of: &[(String, String)],
    (count, block): (u64, Option<&str>),
) -> Result<Vec<Entry>, String> {
    let mut words = vec!["XMERGE".to_owned(), "COUNT".to_owned(), count.to_string()];
    words.extend(
        block
            .into_iter()
            .flat_map(|block| ["BLOCK".to_owned(), block.to_owned()]),
    );
    words.push("STREAMS".to_owned());
    words.extend(of.iter().map(|(log, _)| log.clone()));
    words.extend(of.iter().map(|(_, after)| after.clone()));
    let told = talk.say(&[words]).map_err(|error| error.to_string())?;
    match told.first() {
        Some(Reply::Error(why)) => Err(why.clone()),
        Some(reply) => merged(reply).ok_or_else(|| "the answer cannot be read".to_owned()),
        None => Err("no answer".to_owned()),
    }
}

/// The first position that is kept of a log.
fn first(talk: &mut RpcConnection, log: &str) -> Result<u64, String> {
    let told = talk.say(&[vec!["XRANGE", log, "-", "+", "COUNT", "1"]]);
    let told = told.map_err(|error| error.to_string())?;
    match told.first() {
        Some(Reply::Array(entries)) => match entries.first() {
            None => Ok(1),
            Some(Reply::Array(entry)) => entry
                .first()
                .and_then(position)
                .ok_or_else(|| "the answer cannot be read".to_owned()),
            Some(_) => Err("the answer cannot be read".to_owned()),
        },
        Some(Reply::Error(why)) => Err(why.clone()),
        _ => Err("the answer cannot be read".to_owned()),
    }
}

/// Says what a log has.
pub fn read(options: &ReadOptions) -> ExitCode {
    match read_all(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => refused(&error),
    }
}

fn read_all(options: &ReadOptions) -> Result<(), String> {
    let mut talk = options.at.connect()?;
    let mut left = options.count.unwrap_or(u64::MAX);
    let mut after = match options.from {
        Some(from) => from - 1,
        None => first(&mut talk, &options.log)? - 1,
    };
    while left > 0 {
        let of = [(options.log.clone(), format!("{after}-0"))];
        let found = some(&mut talk, &of, (left.min(TOGETHER), None))?;
        let Some(last) = found.last() else { break };
        (after, left) = (last.position, left - found.len() as u64);
        for entry in &found {
            line(&[entry.position.to_string().as_bytes(), b"\t", &entry.text()]);
        }
    }
    Ok(())
}

/// Says what is appended as it comes.
pub fn tail(options: &TailOptions) -> ExitCode {
    match tail_all(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => refused(&error),
    }
}

fn tail_all(options: &TailOptions) -> Result<(), String> {
    let mut talk = options.at.connect()?;
    let mut left = options.count.unwrap_or(u64::MAX);
    let begin = match options.from {
        Some(from) => format!("{}-0", from - 1),
        None => "$".to_owned(),
    };
    let logs = options.logs.iter();
    let mut of: Vec<(String, String)> = logs.map(|log| (log.clone(), begin.clone())).collect();
    if options.from.is_none() {
        now(&mut talk, &mut of)?;
    }
    while left > 0 {
        let found = some(&mut talk, &of, (left.min(TOGETHER), Some(WAITS)))?;
        left -= found.len() as u64;
        for entry in &found {
            let position = entry.position.to_string();
            line(&[
                entry.log.as_bytes(),
                b"\t",
                position.as_bytes(),
                b"\t",
                &entry.text(),
            ]);
            let behind = of.iter_mut().filter(|(log, _)| *log == entry.log);
            behind.for_each(|(_, after)| *after = format!("{position}-0"));
        }
    }
    Ok(())
}

/// From where logs end now: what comes while nobody asks is not to be left out.
fn now(talk: &mut RpcConnection, of: &mut [(String, String)]) -> Result<(), String> {
    let asked: Vec<Vec<&str>> = of
        .iter()
        .map(|(log, _)| vec!["XREVRANGE", log, "+", "-", "COUNT", "1"])
        .collect();
    let told = talk.say(&asked).map_err(|error| error.to_string())?;
    for ((_, after), reply) in of.iter_mut().zip(&told) {
        let last = match reply {
            Reply::Array(entries) => match entries.first() {
                Some(Reply::Array(entry)) => entry.first().and_then(position),
                _ => Some(0),
            },
            Reply::Error(why) => return Err(why.clone()),
            _ => None,
        };
        let last = last.ok_or_else(|| "the answer cannot be read".to_owned())?;
        *after = format!("{last}-0");
    }
    Ok(())
}
