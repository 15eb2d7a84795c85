//! `ROTA.CHANGES`: the changes of keys with a prefix, from a place of the order on.

use std::time::Duration;

use bytes::Bytes;
use rota_front::command::{Refused, error, is, number, syntax};
use rota_front::place::{place_of, place_text};
use rota_multiring::Place;
use rota_resp::Reply;

use crate::changes::{Part, Prefix, Trimmed};
use crate::map::Partition;
use crate::store::{Change, Told};

/// The bytes of a prefix, at most: those of each length are looked up for each change.
const MOST_PREFIX_BYTES: usize = 256;
/// The number of changes that are told at once, if the client names none, and at most; a place is never cut in two.
const USUAL_COUNT: usize = 1_000;
const MOST_COUNT: i64 = 10_000;
/// A time of 0 is for ever, as with Redis: 136 years, in milliseconds.
const EVER: u64 = 4_294_967_295_000;

/// The place that changes are asked for from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Behind {
    /// Behind this place; `None`: from the beginning.
    Place(Option<Place>),
    /// From now on.
    Now,
}

/// A question for changes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Watching {
    /// The keys.
    pub prefix: Prefix,
    /// The place.
    pub behind: Behind,
    /// The number of changes at once, about.
    pub count: usize,
    /// The time to wait for changes if there are none; `None`: the client does not wait.
    pub block: Option<Duration>,
    /// The partition that the client takes this process's for.
    pub partition: Option<Partition>,
}

/// Reads `ROTA.CHANGES prefix FROM place [COUNT n] [BLOCK milliseconds] [PARTITION number]`.
pub(super) fn changes(arguments: &[Bytes]) -> Refused<Watching> {
    let (prefix, mut rest) = arguments.split_first().ok_or_else(syntax)?;
    if prefix.len() > MOST_PREFIX_BYTES {
        return Err(error("ERR the prefix is too long: 256 bytes at most"));
    }
    let (mut behind, mut count, mut block, mut partition) = (None, None, None, None);
    while let [word, value, more @ ..] = rest {
        let is_first = if is(word, "FROM") {
            behind.replace(from(value)?).is_none()
        } else if is(word, "COUNT") {
            count.replace(counted(value)?).is_none()
        } else if is(word, "BLOCK") {
            block.replace(time(value)?).is_none()
        } else if is(word, "PARTITION") {
            partition.replace(of(value)?).is_none()
        } else {
            false
        };
        if !is_first {
            return Err(syntax());
        }
        rest = more;
    }
    match (rest, behind) {
        ([], Some(behind)) => Ok(Watching {
            prefix: Prefix::new(prefix.clone()),
            behind,
            count: count.unwrap_or(USUAL_COUNT),
            block,
            partition,
        }),
        _ => Err(syntax()),
    }
}

fn from(text: &[u8]) -> Refused<Behind> {
    if text == b"$" {
        return Ok(Behind::Now);
    }
    let place = place_of(text).map(Behind::Place);
    place.ok_or_else(|| error("ERR a place is four numbers with points between, 0, or $ for now"))
}

fn counted(text: &[u8]) -> Refused<usize> {
    match number(text)? {
        count @ 1.. => Ok(count.min(MOST_COUNT) as usize),
        _ => Err(error("ERR COUNT is 1 at least")),
    }
}

fn time(text: &[u8]) -> Refused<Duration> {
    let millis =
        number(text).map_err(|_| error("ERR timeout is not an integer or out of range"))?;
    match u64::try_from(millis) {
        Ok(0) => Ok(Duration::from_millis(EVER)),
        Ok(millis) => Ok(Duration::from_millis(millis.min(EVER))),
        Err(_) => Err(error("ERR timeout is negative")),
    }
}

fn of(text: &[u8]) -> Refused<Partition> {
    let number = u16::try_from(number(text)?).ok().filter(|of| *of > 0);
    let partition = number.map(Partition);
    partition.ok_or_else(|| error("ERR partitions have numbers from 1 to 65535"))
}

/// The reply to a question: the partition, the place to go on from, and the changes at each place.
pub fn told(of: Partition, part: Part) -> Reply {
    let place = |(place, changes): (Place, Vec<Change>)| {
        let changes = changes.into_iter().map(change).collect();
        let place = Reply::from(place_text(Some(place)));
        Reply::Array(vec![place, Reply::Array(changes)])
    };
    Reply::Array(vec![
        Reply::Integer(i64::from(of.0)),
        Reply::from(place_text(part.next)),
        Reply::Array(part.told.into_iter().map(place).collect()),
    ])
}

/// The error reply to a watcher that cannot go on from where it was.
pub fn trimmed(trimmed: Trimmed) -> Reply {
    let first = place_text(Some(trimmed.first));
    Reply::Error(format!(
        "TRIMMED {first} is the first place to go on from: read the keys, and go on from there"
    ))
}

fn change(change: Change) -> Reply {
    let slots = |word: &str, slots: String, other: Partition| {
        vec![
            Reply::from(word),
            Reply::from(slots),
            Reply::Integer(i64::from(other.0)),
        ]
    };
    Reply::Array(match change {
        Change::Set(key, value) => vec![Reply::from("set"), Reply::Bulk(key), shown(value)],
        Change::Deleted(key) => vec![Reply::from("deleted"), Reply::Bulk(key)],
        Change::Expired(key) => vec![Reply::from("expired"), Reply::Bulk(key)],
        Change::Cleared => vec![Reply::from("cleared")],
        Change::Left(of, to) => slots("left", of.to_string(), to),
        Change::Arrived(of, from) => slots("arrived", of.to_string(), from),
    })
}

fn shown(value: Told) -> Reply {
    match value {
        Told::Text(bytes) => Reply::Bulk(bytes),
        Told::Fields(fields) => {
            let pair = |(field, value)| (Reply::Bulk(field), Reply::Bulk(value));
            Reply::Map(fields.into_iter().map(pair).collect())
        }
        Told::ManyFields(fields) => {
            let pair = |(field, value)| (Reply::Bulk(field), Reply::Bulk(value));
            Reply::Map(fields.into_iter().map(pair).collect())
        }
        // The client reads the key.
        Told::Large(_) => Reply::Null,
    }
}
