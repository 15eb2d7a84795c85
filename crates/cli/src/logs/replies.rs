//! The answers to clients of the load.

use rota_check::history::Place;
use rota_resp::Reply;

use super::read::{Entry, position};
use crate::service::place;

/// The outcome of an append.
pub enum Told {
    /// These positions.
    Positions(Vec<u64>),
    /// It was not done.
    Refused,
    /// It may be done or not.
    Nothing,
}

/// Log, position, value and place.
pub fn placed(entry: &Entry) -> Option<(String, u64, String, Place)> {
    let place = place::of(entry.place.as_bytes())?;
    let value = String::from_utf8_lossy(&entry.text()).into_owned();
    Some((entry.log.clone(), entry.position, value, place))
}

/// The outcome of commands that append `count` values, by the answers.
pub fn told(replies: &[Reply], count: usize) -> Told {
    let positions = match (count, replies.last()) {
        (1, Some(reply)) => position(reply).map(|at| vec![at]),
        (_, Some(Reply::Array(replies))) => replies.iter().map(position).collect(),
        _ => None,
    };
    match (positions, replies.last()) {
        (Some(positions), _) if positions.len() == count => Told::Positions(positions),
        (_, Some(Reply::Error(why))) if !why.contains("unknown") => Told::Refused,
        _ => Told::Nothing,
    }
}

/// Positions and values of entries.
pub fn entries(reply: &Reply) -> Option<Vec<(u64, String)>> {
    let Reply::Array(entries) = reply else {
        return None;
    };
    let value = |fields: &Reply| match fields {
        Reply::Array(fields) => match &fields[..] {
            [_, Reply::Bulk(value)] => Some(String::from_utf8_lossy(value).into_owned()),
            _ => None,
        },
        _ => None,
    };
    let entry = |entry: &Reply| match entry {
        Reply::Array(parts) => match &parts[..] {
            [id, fields] => Some((position(id)?, value(fields)?)),
            _ => None,
        },
        _ => None,
    };
    entries.iter().map(entry).collect()
}
