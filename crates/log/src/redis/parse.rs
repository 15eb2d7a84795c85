//! Arguments of commands of streams.

use std::time::Duration;

use bytes::Bytes;
use rota_front::command::{Refused, error, is, not_a_number, number, syntax, wrong_count};
use rota_resp::Request;

use super::change::Change;
use super::ids::{after, end, least, start, wanted};
use super::read::{Names, Read, Streams};
use crate::machine::{Keep, Limits};

/// The number of logs that are read at once, at most.
const MOST_LOGS: usize = 1_024;

/// A number that is not negative.
fn count(text: &[u8]) -> Refused<u64> {
    u64::try_from(number(text)?).map_err(|_| not_a_number())
}

/// Reads `MAXLEN|MINID [=|~] threshold [LIMIT count]`; returns the arguments behind it, too.
fn keep<'a>(word: &[u8], rest: &'a [Bytes]) -> Refused<(Keep, &'a [Bytes])> {
    let (is_about, rest) = match rest {
        [sign, rest @ ..] if &sign[..] == b"~" => (true, rest),
        [sign, rest @ ..] if &sign[..] == b"=" => (false, rest),
        _ => (false, rest),
    };
    let (threshold, rest) = rest.split_first().ok_or_else(syntax)?;
    let keep = match is(word, "MAXLEN") {
        true => {
            let count = number(threshold)?;
            let negative = || error("ERR The MAXLEN argument must be >= 0.");
            Keep::Last(u64::try_from(count).map_err(|_| negative())?)
        }
        false => Keep::From(least(threshold)?),
    };
    match rest {
        [word, _, ..] if is(word, "LIMIT") && !is_about => Err(error(
            "ERR syntax error, LIMIT cannot be used without the special ~ option",
        )),
        [word, limit, rest @ ..] if is(word, "LIMIT") => {
            count(limit)?;
            Ok((keep, rest))
        }
        _ => Ok((keep, rest)),
    }
}

/// Reads `key [NOMKSTREAM] [IDMP producer name] [MAXLEN|MINID …] *|id field value …`
pub(super) fn add(arguments: &[Bytes]) -> Refused<Change> {
    let (log, mut rest) = arguments.split_first().ok_or_else(syntax)?;
    let (mut makes, mut producer, mut kept) = (true, None, None);
    loop {
        let (word, behind) = rest.split_first().ok_or_else(syntax)?;
        rest = match behind {
            _ if is(word, "NOMKSTREAM") => {
                makes = false;
                behind
            }
            _ if is(word, "MAXLEN") || is(word, "MINID") => {
                let (keep, behind) = keep(word, behind)?;
                if kept.replace(keep).is_some() {
                    return Err(error(
                        "ERR syntax error, MAXLEN and MINID options at the same time are not compatible",
                    ));
                }
                behind
            }
            [of, name, behind @ ..] if is(word, "IDMP") => {
                producer = Some((of.clone(), name.clone()));
                behind
            }
            // No consumer group refers to entries here.
            _ if ["KEEPREF", "DELREF", "ACKED"].iter().any(|of| is(word, of)) => behind,
            _ => {
                let expected = wanted(word)?;
                if behind.is_empty() || !behind.len().is_multiple_of(2) {
                    return Err(wrong_count("xadd"));
                }
                let mut fields = Vec::new();
                Request::write(behind, &mut fields);
                return Ok(Change::Add {
                    log: log.clone(),
                    makes,
                    expected,
                    producer,
                    keep: kept,
                    fields: fields.into(),
                });
            }
        };
    }
}

/// Reads `key MAXLEN|MINID …`
pub(super) fn trim(arguments: &[Bytes]) -> Refused<Change> {
    match arguments {
        [log, word, rest @ ..] if is(word, "MAXLEN") || is(word, "MINID") => {
            match keep(word, rest)? {
                (keep, []) => Ok(Change::Trim(log.clone(), keep)),
                _ => Err(syntax()),
            }
        }
        _ => Err(syntax()),
    }
}

/// Reads `key from to [COUNT count]`; `is_back`: `key to from`.
pub(super) fn range(arguments: &[Bytes], is_back: bool) -> Refused<Read> {
    let (log, first, second, rest) = match arguments {
        [log, first, second, rest @ ..] => (log, first, second, rest),
        _ => return Err(syntax()),
    };
    let (from, to) = if is_back {
        (second, first)
    } else {
        (first, second)
    };
    let (from, to) = (start(from)?, end(to)?);
    let count = match rest {
        [] => None,
        [word, text] if is(word, "COUNT") => Some(number(text)?),
        _ => return Err(syntax()),
    };
    Ok(Read::Range {
        log: log.clone(),
        from,
        to,
        // A negative count asks for no entry.
        count: count.map(|count| u64::try_from(count).unwrap_or(0)),
        is_back,
    })
}

/// Reads `[COUNT count] [BLOCK milliseconds] STREAMS key … id …`
pub(super) fn streams(arguments: &[Bytes], name: &str) -> Refused<Read> {
    let (mut rest, mut most, mut block) = (arguments, None, None);
    loop {
        rest = match rest {
            [word, text, rest @ ..] if is(word, "COUNT") => {
                most = u64::try_from(number(text)?).ok().filter(|count| *count > 0);
                rest
            }
            [word, text, rest @ ..] if is(word, "BLOCK") => {
                let millis = number(text)
                    .map_err(|_| error("ERR timeout is not an integer or out of range"))?;
                let millis = u64::try_from(millis).map_err(|_| error("ERR timeout is negative"))?;
                // A time of 0 is for ever, as with Redis.
                let millis = if millis == 0 {
                    u64::from(u32::MAX) * 1_000
                } else {
                    millis
                };
                block = Some(Duration::from_millis(
                    millis.min(u64::from(u32::MAX) * 1_000),
                ));
                rest
            }
            [word, of @ ..] if is(word, "STREAMS") => {
                let of = pairs(of, name)?;
                return Ok(Read::Streams(Streams {
                    of,
                    count: most,
                    block,
                    is_merged: name == "xmerge",
                }));
            }
            _ => return Err(syntax()),
        };
    }
}

fn pairs(of: &[Bytes], name: &str) -> Refused<Vec<(Bytes, super::After)>> {
    if of.is_empty() || !of.len().is_multiple_of(2) {
        return Err(error(&format!(
            "ERR Unbalanced '{name}' list of streams: for each stream key an ID, '+', or '$' must be specified."
        )));
    }
    let (logs, ids) = of.split_at(of.len() / 2);
    if logs.len() > MOST_LOGS {
        return Err(error("ERR no more than 1024 logs are read at once"));
    }
    let pair = |(log, id): (&Bytes, &Bytes)| Ok((log.clone(), after(id)?));
    logs.iter().zip(ids).map(pair).collect()
}

/// Reads `STREAM key [FULL [COUNT count]]`, `GROUPS key`
pub(super) fn info(arguments: &[Bytes]) -> Refused<Read> {
    match arguments {
        [word, log] if is(word, "STREAM") => Ok(Read::Stream(log.clone(), None)),
        [word, log, full] if is(word, "STREAM") && is(full, "FULL") => {
            Ok(Read::Stream(log.clone(), Some(10)))
        }
        [word, log, full, by, text]
            if is(word, "STREAM") && is(full, "FULL") && is(by, "COUNT") =>
        {
            let count = u64::try_from(number(text)?).unwrap_or(10);
            Ok(Read::Stream(log.clone(), Some(count)))
        }
        [word, log] if is(word, "GROUPS") => Ok(Read::Groups(log.clone())),
        [word, log, group] if is(word, "CONSUMERS") => Err(error(&format!(
            "NOGROUP No such consumer group '{}' for key name '{}'",
            String::from_utf8_lossy(group),
            String::from_utf8_lossy(log)
        ))),
        [word] if is(word, "STREAM") => Err(wrong_count("xinfo|stream")),
        [word] if is(word, "GROUPS") => Err(wrong_count("xinfo|groups")),
        [word, ..] if is(word, "CONSUMERS") => Err(wrong_count("xinfo|consumers")),
        [word, ..] if is(word, "STREAM") => Err(syntax()),
        _ => {
            let word = arguments.first().map(|word| String::from_utf8_lossy(word));
            Err(error(&format!(
                "ERR unknown subcommand '{}'. Try XINFO HELP.",
                word.unwrap_or_default()
            )))
        }
    }
}

/// Reads `cursor [MATCH pattern] [COUNT count] [TYPE kind]`
pub(super) fn scan(arguments: &[Bytes]) -> Refused<Read> {
    let (cursor, mut rest) = arguments.split_first().ok_or_else(syntax)?;
    let cursor = count(cursor).map_err(|_| error("ERR invalid cursor"))?;
    let (mut most, mut pattern, mut kind) = (10, None, None);
    while let [word, text, behind @ ..] = rest {
        if is(word, "MATCH") {
            pattern = Some(text.clone());
        } else if is(word, "COUNT") {
            most = count(text)?;
            if most == 0 {
                return Err(syntax());
            }
        } else if is(word, "TYPE") {
            kind = Some(text.clone());
        } else {
            return Err(syntax());
        }
        rest = behind;
    }
    match rest {
        [] => Ok(Read::Names(Names {
            cursor,
            count: Some(most),
            pattern,
            kind,
        })),
        _ => Err(syntax()),
    }
}

/// Reads `CREATE log [NX] [MAXLEN count] [MAXBYTES bytes] [MAXAGE milliseconds]`, `SEAL log`, `ABOUT log`
pub(super) fn rota(arguments: &[Bytes]) -> Refused<Result<Change, Read>> {
    match arguments {
        [word, log] if is(word, "SEAL") => Ok(Ok(Change::Seal(log.clone()))),
        [word, log] if is(word, "ABOUT") => Ok(Err(Read::About(log.clone()))),
        [word, log, rest @ ..] if is(word, "CREATE") => make(log, rest).map(Ok),
        [word, ..] => Err(error(&format!(
            "ERR unknown subcommand or wrong number of arguments for '{}': there are ROTA CREATE, ROTA SEAL and ROTA ABOUT",
            String::from_utf8_lossy(word)
        ))),
        [] => Err(wrong_count("rota")),
    }
}

fn make(log: &Bytes, mut rest: &[Bytes]) -> Refused<Change> {
    let (mut limits, mut is_new) = (Limits::default(), false);
    loop {
        rest = match rest {
            [] => return Ok(Change::Make(log.clone(), limits, is_new)),
            [word, rest @ ..] if is(word, "NX") => {
                is_new = true;
                rest
            }
            [word, text, rest @ ..] => {
                let limit = match () {
                    () if is(word, "MAXLEN") => &mut limits.entries,
                    () if is(word, "MAXBYTES") => &mut limits.bytes,
                    () if is(word, "MAXAGE") => &mut limits.millis,
                    () => return Err(syntax()),
                };
                *limit = Some(count(text)?);
                rest
            }
            _ => return Err(syntax()),
        };
    }
}

/// Commands for other kinds of values, whose first argument is a key.
const FOREIGN: &[&str] = &[
    "append",
    "decr",
    "decrby",
    "get",
    "getdel",
    "getex",
    "getrange",
    "getset",
    "hdel",
    "hexists",
    "hget",
    "hgetall",
    "hincrby",
    "hkeys",
    "hlen",
    "hmget",
    "hmset",
    "hscan",
    "hset",
    "hsetnx",
    "hvals",
    "incr",
    "incrby",
    "lindex",
    "linsert",
    "llen",
    "lpop",
    "lpush",
    "lrange",
    "lrem",
    "lset",
    "ltrim",
    "rpop",
    "rpush",
    "sadd",
    "scard",
    "setrange",
    "sismember",
    "smembers",
    "spop",
    "srem",
    "strlen",
    "zadd",
    "zcard",
    "zcount",
    "zincrby",
    "zrange",
    "zrank",
    "zrem",
    "zscore",
];

/// The name of such a command.
pub(super) fn foreign(name: &[u8]) -> Option<&'static str> {
    FOREIGN.iter().find(|word| is(name, word)).copied()
}

/// The error for a command of streams that is not supported, with the replacement.
pub(super) fn missing(name: &[u8]) -> Option<&'static str> {
    let groups = "ERR consumer groups are not supported: each reader keeps its own position";
    [
        ("XGROUP", groups),
        ("XREADGROUP", groups),
        ("XACK", groups),
        ("XCLAIM", groups),
        ("XAUTOCLAIM", groups),
        ("XPENDING", groups),
        (
            "XDEL",
            "ERR entries are not deleted one by one: XTRIM, or DEL of the log",
        ),
        ("XSETID", "ERR the positions of a log have no gaps"),
        (
            "WATCH",
            "ERR nothing is watched: give XADD the position that it has to get",
        ),
        (
            "UNWATCH",
            "ERR nothing is watched: give XADD the position that it has to get",
        ),
    ]
    .into_iter()
    .find_map(|(word, why)| is(name, word).then_some(why))
}
