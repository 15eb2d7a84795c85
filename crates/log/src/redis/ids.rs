//! Ids of entries, as Redis' clients write them.

use rota_front::command::{Refused, error};
use rota_resp::Reply;

use crate::machine::Position;

/// The id of a position.
pub fn id_of(position: Position) -> String {
    format!("{position}-0")
}

/// The place from which a reader goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum After {
    /// Behind this position.
    Position(Position),
    /// Behind the last entry that is there now.
    Last,
    /// With the last entry that is there now.
    BeforeLast,
}

/// The numbers before the hyphen and behind it.
struct Id {
    position: u64,
    behind: Option<u64>,
}

pub(super) fn invalid() -> Reply {
    error("ERR Invalid stream ID specified as stream command argument")
}

fn digits(text: &[u8]) -> Option<u64> {
    let is_number = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    let text = std::str::from_utf8(text).ok().filter(|_| is_number)?;
    text.parse().ok()
}

fn id(text: &[u8]) -> Refused<Id> {
    let at = text.iter().position(|byte| *byte == b'-');
    let (position, behind) = match at {
        None => (digits(text), Some(None)),
        Some(at) => (digits(&text[..at]), digits(&text[at + 1..]).map(Some)),
    };
    match (position, behind) {
        (Some(position), Some(behind)) => Ok(Id { position, behind }),
        _ => Err(invalid()),
    }
}

/// The first position that is not before an id: `-`, an id, or `(` and an id that the position has to be behind.
pub(super) fn start(text: &[u8]) -> Refused<Position> {
    match text {
        b"-" => Ok(1),
        b"+" => Ok(Position::MAX),
        [b'(', rest @ ..] => id(rest)?
            .position
            .checked_add(1)
            .ok_or_else(|| error("ERR invalid start ID for the interval")),
        _ => {
            let id = id(text)?;
            // The second number of each entry is 0.
            let is_behind = id.behind.is_some_and(|behind| behind > 0);
            Ok(id.position.saturating_add(u64::from(is_behind)).max(1))
        }
    }
}

/// The last position that is not behind an id: `+`, an id, or `(` and an id that the position has to be before.
pub(super) fn end(text: &[u8]) -> Refused<Position> {
    match text {
        b"+" => Ok(Position::MAX),
        b"-" => Ok(0),
        [b'(', rest @ ..] => {
            let id = id(rest)?;
            match id.behind {
                Some(0) => id
                    .position
                    .checked_sub(1)
                    .ok_or_else(|| error("ERR invalid end ID for the interval")),
                _ => Ok(id.position),
            }
        }
        _ => Ok(id(text)?.position),
    }
}

/// The place from which `XREAD` goes on.
pub(super) fn after(text: &[u8]) -> Refused<After> {
    match text {
        b"$" => Ok(After::Last),
        b"+" => Ok(After::BeforeLast),
        _ => Ok(After::Position(id(text)?.position)),
    }
}

/// The position that `XADD` wants; none: any.
pub(super) fn wanted(text: &[u8]) -> Refused<Option<Position>> {
    if text == b"*" {
        return Ok(None);
    }
    let (position, behind) = match text.strip_suffix(b"-*") {
        Some(position) => (digits(position).ok_or_else(invalid)?, None),
        None => {
            let id = id(text)?;
            (id.position, id.behind)
        }
    };
    match (position, behind.unwrap_or(0)) {
        (0, 0) => Err(error(
            "ERR The ID specified in XADD must be greater than 0-0",
        )),
        (position, 0) => Ok(Some(position)),
        _ => Err(error(
            "ERR The ID specified in XADD must end in -0: the entries of a log have positions, one behind the other",
        )),
    }
}

/// The first position that `MINID` keeps.
pub(super) fn least(text: &[u8]) -> Refused<Position> {
    match text {
        b"-" | b"+" => Err(invalid()),
        _ => start(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is<T: PartialEq + std::fmt::Debug>(found: &Refused<T>, expected: Option<T>) -> bool {
        found.as_ref().ok() == expected.as_ref()
    }

    #[test]
    fn ids_are_positions() {
        for (text, from, to) in [
            ("-", Some(1), Some(0)),
            ("+", Some(u64::MAX), Some(u64::MAX)),
            ("0", Some(1), Some(0)),
            ("5", Some(5), Some(5)),
            ("5-0", Some(5), Some(5)),
            ("5-3", Some(6), Some(5)),
            ("(5", Some(6), Some(5)),
            ("(5-0", Some(6), Some(4)),
            ("(5-1", Some(6), Some(5)),
            ("(0-0", Some(1), None),
            ("18446744073709551615", Some(u64::MAX), Some(u64::MAX)),
            ("(18446744073709551615", None, Some(u64::MAX)),
            ("", None, None),
            ("5-", None, None),
            ("-5", None, None),
            ("+5", None, None),
            ("5-*", None, None),
            ("18446744073709551616", None, None),
            ("(", None, None),
            ("(-", None, None),
            ("x", None, None),
        ] {
            assert!(is(&start(text.as_bytes()), from), "from {text}");
            assert!(is(&end(text.as_bytes()), to), "to {text}");
        }
        for (text, expected) in [
            ("*", Some(None)),
            ("7-0", Some(Some(7))),
            ("7", Some(Some(7))),
            ("7-*", Some(Some(7))),
            ("7-1", None),
            ("0-0", None),
            ("0-*", None),
            ("0-1", None),
            ("*-0", None),
            ("-*", None),
        ] {
            assert!(is(&wanted(text.as_bytes()), expected), "{text}");
        }
    }
}
