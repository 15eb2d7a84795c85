//! `rota log append`, `trim`, `seal`, `create`, `delete`, `list`.

use std::io::{self, BufRead as _};
use std::process::ExitCode;
use std::time::Duration;

use rota_resp::Reply;

use crate::say::complain;
use crate::service::where_to::{Where, line, refused};

/// The number of lines of standard input that are appended at once.
const TOGETHER: usize = 256;

/// Options of `rota log append`.
#[derive(Clone, Debug, clap::Args)]
pub struct AppendOptions {
    /// The log
    log: String,
    /// The entries, each with this value
    values: Vec<String>,
    /// The first one has to get this position
    #[arg(long, value_name = "POSITION")]
    expect: Option<u64>,
    /// Who appends: what it has appended by the same name is not appended again
    #[arg(long, value_name = "PRODUCER", requires = "name")]
    producer: Option<String>,
    /// How the producer calls the first of these entries; the others are NAME.1, NAME.2 and so on
    #[arg(long, value_name = "NAME", requires = "producer")]
    name: Option<String>,
    #[command(flatten)]
    at: Where,
}

/// Options of commands with a name.
#[derive(Clone, Debug, clap::Args)]
pub struct NameOptions {
    /// The log
    log: String,
    #[command(flatten)]
    at: Where,
}

/// Options of `rota log trim`.
#[derive(Clone, Debug, clap::Args)]
pub struct TrimOptions {
    /// The log
    log: String,
    /// Entries before this position go
    #[arg(
        long,
        value_name = "POSITION",
        required_unless_present = "keep",
        conflicts_with = "keep"
    )]
    before: Option<u64>,
    /// All but the last so many go
    #[arg(long, value_name = "ENTRIES")]
    keep: Option<u64>,
    #[command(flatten)]
    at: Where,
}

/// Options of `rota log create`.
#[derive(Clone, Debug, clap::Args)]
pub struct CreateOptions {
    /// The log
    log: String,
    /// It keeps so many entries [default: all]
    #[arg(long, value_name = "ENTRIES")]
    entries: Option<u64>,
    /// It keeps about so many bytes [default: all]
    #[arg(long, value_name = "BYTES")]
    bytes: Option<u64>,
    /// It keeps what is no older [default: all]
    #[arg(long, value_name = "DURATION", value_parser = age)]
    age: Option<Duration>,
    /// Only if there is none
    #[arg(long)]
    new: bool,
    #[command(flatten)]
    at: Where,
}

/// Options of `rota log list`.
#[derive(Clone, Debug, clap::Args)]
pub struct ListOptions {
    /// Names like this, with `*` and `?`
    #[arg(default_value = "*")]
    pattern: String,
    #[command(flatten)]
    at: Where,
}

/// The greatest age of something: `90s`, `15m`, `12h`, `7d`.
fn age(text: &str) -> Result<Duration, String> {
    let (number, unit) = text.split_at(text.len() - text.chars().last().map_or(0, char::len_utf8));
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        _ => return Err("write it like 90s, 15m, 12h or 7d".to_owned()),
    };
    let number: u64 = number
        .parse()
        .map_err(|_| "write it like 90s, 15m, 12h or 7d")?;
    number
        .checked_mul(seconds)
        .map(Duration::from_secs)
        .ok_or_else(|| "that is too long".to_owned())
}

impl AppendOptions {
    fn command(&self, number: usize, value: &str) -> Vec<Vec<u8>> {
        let mut words: Vec<Vec<u8>> = vec![b"XADD".to_vec(), self.log.clone().into()];
        if let (Some(producer), Some(name)) = (&self.producer, &self.name) {
            let name = match number {
                0 => name.clone(),
                number => format!("{name}.{number}"),
            };
            words.extend([b"IDMP".to_vec(), producer.clone().into(), name.into()]);
        }
        let position = self.expect.map(|first| first + number as u64);
        words.push(position.map_or_else(|| b"*".to_vec(), |at| format!("{at}-0").into()));
        words.extend([b"value".to_vec(), value.into()]);
        words
    }
}

/// The position at which an entry was appended.
fn position(reply: &Reply) -> Option<&[u8]> {
    match reply {
        Reply::Bulk(id) => id.strip_suffix(b"-0"),
        _ => None,
    }
}

/// Appends entries.
pub fn append(options: &AppendOptions) -> ExitCode {
    match append_all(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => refused(&error),
    }
}

fn append_all(options: &AppendOptions) -> Result<(), String> {
    let mut talk = options.at.connect()?;
    let mut number = 0;
    let mut say = |values: &[String]| {
        let commands: Vec<Vec<Vec<u8>>> = values
            .iter()
            .enumerate()
            .map(|(at, value)| options.command(number + at, value))
            .collect();
        number += values.len();
        let replies = talk.say(&commands).map_err(|error| error.to_string())?;
        for reply in &replies {
            match (position(reply), reply) {
                (Some(position), _) => line(&[position]),
                (None, Reply::Error(why)) => return Err(why.clone()),
                (None, _) => return Err("the answer cannot be read".to_owned()),
            }
        }
        Ok(())
    };
    if !options.values.is_empty() {
        return options.values.chunks(TOGETHER).try_for_each(say);
    }
    let mut lines = io::stdin().lock().lines();
    loop {
        let some: Result<Vec<String>, _> = lines.by_ref().take(TOGETHER).collect();
        let some = some.map_err(|error| format!("standard input: {error}"))?;
        if some.is_empty() {
            return Ok(());
        }
        say(&some)?;
    }
}

fn number(reply: &Reply) -> Option<i64> {
    match reply {
        Reply::Integer(number) => Some(*number),
        _ => None,
    }
}

/// Takes old entries away.
pub fn trim(options: &TrimOptions) -> ExitCode {
    let (word, number_of) = match (options.before, options.keep) {
        (Some(before), _) => ("MINID", before),
        (None, keep) => ("MAXLEN", keep.unwrap_or(0)),
    };
    let words = ["XTRIM", &options.log, word, &number_of.to_string()];
    match options.at.ask_one(&words).map(|reply| number(&reply)) {
        Ok(Some(gone)) => {
            line(&[gone.to_string().as_bytes()]);
            ExitCode::SUCCESS
        }
        Ok(None) => refused("the answer cannot be read"),
        Err(error) => refused(&error),
    }
}

fn done(told: Result<Reply, String>, none: &str) -> ExitCode {
    match told {
        Ok(Reply::Simple(_)) => ExitCode::SUCCESS,
        Ok(reply) if number(&reply).is_some_and(|number| number > 0) => ExitCode::SUCCESS,
        Ok(_) => refused(none),
        Err(error) => refused(&error),
    }
}

/// Has nothing appended any more.
pub fn seal(options: &NameOptions) -> ExitCode {
    let told = options.at.ask_one(&["ROTA", "SEAL", &options.log]);
    done(told, "the answer cannot be read")
}

/// Makes a log.
pub fn create(options: &CreateOptions) -> ExitCode {
    let mut words = vec!["ROTA".to_owned(), "CREATE".to_owned(), options.log.clone()];
    words.extend(options.new.then(|| "NX".to_owned()));
    let age = options.age.map(|age| age.as_millis() as u64);
    for (word, limit) in [
        ("MAXLEN", options.entries),
        ("MAXBYTES", options.bytes),
        ("MAXAGE", age),
    ] {
        words.extend(
            limit
                .into_iter()
                .flat_map(|limit| [word.to_owned(), limit.to_string()]),
        );
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let none = format!("there is a log {:?} already", options.log);
    done(options.at.ask_one(&words), &none)
}

/// Takes a log away.
pub fn delete(options: &NameOptions) -> ExitCode {
    let none = format!("there is no log {:?}", options.log);
    done(options.at.ask_one(&["DEL", &options.log]), &none)
}

/// Lists logs.
pub fn list(options: &ListOptions) -> ExitCode {
    match list_all(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&error);
            ExitCode::FAILURE
        }
    }
}

fn list_all(options: &ListOptions) -> Result<(), String> {
    let mut talk = options.at.connect()?;
    let mut cursor = "0".to_owned();
    loop {
        let words = ["SCAN", &cursor, "MATCH", &options.pattern, "COUNT", "1000"];
        let told = talk
            .say(&[words.to_vec()])
            .map_err(|error| error.to_string())?;
        let (next, names) = match told.first() {
            Some(Reply::Array(parts)) => match &parts[..] {
                [Reply::Bulk(next), Reply::Array(names)] => (next.clone(), names.clone()),
                _ => return Err("the answer cannot be read".to_owned()),
            },
            Some(Reply::Error(why)) => return Err(why.clone()),
            _ => return Err("the answer cannot be read".to_owned()),
        };
        let names: Vec<_> = names
            .into_iter()
            .filter_map(|name| match name {
                Reply::Bulk(name) => Some(name),
                _ => None,
            })
            .collect();
        let about: Vec<Vec<&[u8]>> = names
            .iter()
            .map(|name| vec![&b"ROTA"[..], b"ABOUT", name])
            .collect();
        let told = talk.say(&about).map_err(|error| error.to_string())?;
        for (name, about) in names.iter().zip(&told) {
            let of = |field: &str| found(about, field).unwrap_or_default();
            let (first, next) = (of("first"), of("next"));
            let short = |id: &str| id.strip_suffix("-0").unwrap_or(id).to_owned();
            let text = format!("\t{}\t{}\t{}", short(&first), short(&next), of("length"));
            line(&[name, text.as_bytes()]);
        }
        cursor = String::from_utf8_lossy(&next).into_owned();
        if cursor == "0" {
            return Ok(());
        }
    }
}

/// A field of what is said about a log.
fn found(about: &Reply, field: &str) -> Option<String> {
    let text = |reply: &Reply| match reply {
        Reply::Bulk(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        Reply::Integer(number) => Some(number.to_string()),
        _ => None,
    };
    let Reply::Array(parts) = about else {
        return None;
    };
    let mut pairs = parts.chunks(2);
    let pair = pairs.find(|pair| pair.first().and_then(text).as_deref() == Some(field))?;
    text(pair.get(1)?)
}
