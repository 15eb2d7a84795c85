//! Outcomes as replies.

use std::collections::BTreeMap;

use bytes::Bytes;
use rota_front::place::place_text;
use rota_resp::Reply;

use super::command::{Fold, Shape};
use crate::mutants::{self, Mutant};
use crate::store::{Fault, Found, Kind, MOST_ANSWER_BYTES, MOST_VALUE_BYTES, Outcome, Value};

fn fault(fault: Fault) -> Reply {
    match fault {
        Fault::Kind => {
            Reply::error("WRONGTYPE Operation against a key holding the wrong kind of value")
        }
        Fault::NotANumber => Reply::error("ERR value is not an integer or out of range"),
        Fault::Overflow => Reply::error("ERR increment or decrement would overflow"),
        Fault::Answer => Reply::Error(format!(
            "ERR what is asked for at once is more than {MOST_ANSWER_BYTES} bytes: ask for less"
        )),
        Fault::TooLarge => Reply::Error(format!(
            "ERR string exceeds maximum allowed size ({MOST_VALUE_BYTES} bytes)"
        )),
    }
}

/// A kind, as `TYPE` names it.
pub(super) const fn name_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Text => "string",
        Kind::Fields => "hash",
    }
}

fn unexpected() -> Reply {
    Reply::error("ERR the answer is of a version that this one does not know")
}

impl Shape {
    /// The reply to one operation.
    fn reply(self, outcome: Outcome) -> Reply {
        match (self, outcome) {
            (_, Outcome::Fault(why)) => fault(why),
            (Self::Text, Outcome::Text(bytes)) => Reply::Bulk(bytes),
            (Self::Text | Self::Status, Outcome::Nothing) => Reply::Null,
            (Self::Status, Outcome::Done | Outcome::Number(_)) => Reply::OK,
            (Self::Number, Outcome::Number(number)) => Reply::Integer(number),
            // There is no such key: its life is not changed.
            (Self::Number | Self::Flag, Outcome::Nothing) => Reply::Integer(0),
            (Self::Flag, Outcome::Done) => Reply::Integer(1),
            (Self::List, Outcome::Texts(texts)) => Reply::from(texts),
            (Self::First, Outcome::Texts(texts)) => Reply::from(texts.into_iter().flatten().next()),
            (Self::FirstFlag, Outcome::Texts(texts)) => {
                Reply::Integer(i64::from(texts.iter().any(Option::is_some)))
            }
            (Self::Pairs, Outcome::Pairs(pairs)) => {
                let pair = |(field, value)| (Reply::Bulk(field), Reply::Bulk(value));
                Reply::Map(pairs.into_iter().map(pair).collect())
            }
            (Self::Names, Outcome::Pairs(pairs)) => {
                Reply::Array(pairs.into_iter().map(|pair| Reply::Bulk(pair.0)).collect())
            }
            (Self::Values, Outcome::Pairs(pairs)) => {
                Reply::Array(pairs.into_iter().map(|pair| Reply::Bulk(pair.1)).collect())
            }
            (Self::Life { .. }, Outcome::Nothing) => Reply::Integer(-2),
            (Self::Life { seconds: true }, Outcome::Number(millis @ 0..)) => {
                Reply::Integer(millis.saturating_add(500) / 1000)
            }
            (Self::Life { .. }, Outcome::Number(millis)) => Reply::Integer(millis),
            (Self::Kind, Outcome::Kind(kind)) => Reply::Simple(kind.map_or("none", name_of)),
            (Self::Place, Outcome::Version(Some(place))) => Reply::from(place_text(Some(place))),
            _ => unexpected(),
        }
    }
}

/// Keys, with the data that was asked for.
type Entries = BTreeMap<Bytes, Found>;

/// The keys that several partitions have found in the same range; and the key to go on with, if there may be more.
/// `None`: one partition has answered something else.
pub(super) fn joined(outcomes: Vec<Outcome>) -> Option<(Entries, Option<Bytes>)> {
    let mut all = Entries::new();
    let mut end: Option<Bytes> = None;
    for outcome in outcomes {
        let Outcome::Entries(entries, next) = outcome else {
            return None;
        };
        let ends = [end, next].into_iter().flatten();
        end = match mutants::on(Mutant::T20) {
            true => ends.max(),
            false => ends.min(),
        };
        all.extend(entries);
    }
    // From the key at which a partition goes on there may be more keys of that partition.
    all.retain(|key, _| end.as_ref().is_none_or(|end| key < end));
    Some((all, end))
}

/// The reply to a range.
fn entries(outcomes: Vec<Outcome>, limit: u32) -> Reply {
    let Some((all, _)) = joined(outcomes) else {
        return unexpected();
    };
    let entry = |(key, found): (Bytes, Found)| {
        let value = match found {
            Found::Name | Found::Kind(_) => Reply::Null,
            Found::Value(Value::Text(bytes)) => Reply::Bulk(bytes),
            Found::Value(Value::Fields(fields)) => {
                let pair = |(field, value)| (Reply::Bulk(field), Reply::Bulk(value));
                Reply::Map(fields.into_iter().map(pair).collect())
            }
        };
        Reply::Array(vec![Reply::Bulk(key), value])
    };
    Reply::Array(all.into_iter().take(limit as usize).map(entry).collect())
}

/// The reply to a command. `outcomes`: of each of its operations, those of all partitions that have answered it.
/// `None`: the conditions did not hold.
pub(super) fn reply((shape, fold): (Shape, Fold), outcomes: Option<Vec<Vec<Outcome>>>) -> Reply {
    let Some(outcomes) = outcomes else {
        return match fold {
            Fold::AllOrNone => Reply::Integer(0),
            _ => Reply::NullArray,
        };
    };
    if let Shape::Entries(limit) = shape {
        return entries(outcomes.into_iter().flatten().collect(), limit);
    }
    let mut replies = outcomes
        .into_iter()
        .flatten()
        .map(|outcome| shape.reply(outcome));
    match fold {
        Fold::One => replies.next().unwrap_or_else(unexpected),
        Fold::Texts => {
            let mut texts = Vec::new();
            for reply in replies {
                texts.push(match reply {
                    // The key has another kind of value.
                    Reply::Error(why) if why.starts_with("WRONGTYPE") => Reply::Null,
                    Reply::Error(why) => return Reply::Error(why),
                    reply => reply,
                });
            }
            Reply::Array(texts)
        }
        Fold::Ok | Fold::AllOrNone => {
            let failed = replies.find(Reply::is_error);
            let done = match fold {
                Fold::Ok => Reply::OK,
                _ => Reply::Integer(1),
            };
            failed.unwrap_or(done)
        }
        Fold::Sum => {
            let mut sum = 0;
            for reply in replies {
                match reply {
                    Reply::Integer(number) => sum += number,
                    other => return other,
                }
            }
            Reply::Integer(sum)
        }
    }
}
