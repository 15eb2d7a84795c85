//! Names of logs.

use bytes::Bytes;
use rota_front::command::error;
use rota_front::glob;
use rota_resp::Reply;

use crate::machine::Logs;
use crate::redis::Names;

/// The number of names that `KEYS` tells, at most.
const MOST: usize = 100_000;

/// Answers `SCAN` and `KEYS`. A cursor is the number of names before it: a log that is there all the time is told at
/// least once if no log before it goes.
pub(super) fn names(logs: &Logs, wanted: &Names) -> Reply {
    let is_like = |name: &Bytes| {
        let pattern = wanted.pattern.as_ref();
        pattern.is_none_or(|pattern| glob::matches(pattern, name))
    };
    let is_of_kind = wanted
        .kind
        .as_ref()
        .is_none_or(|kind| kind.eq_ignore_ascii_case(b"stream"));
    let reply = |names: Vec<&Bytes>| {
        let names = names.into_iter().filter(|name| is_of_kind && is_like(name));
        Reply::Array(names.cloned().map(Reply::Bulk).collect())
    };
    let Some(count) = wanted.count else {
        let names: Vec<&Bytes> = logs.iter().map(|(name, _)| name).collect();
        return match names.len() > MOST {
            true => error("ERR there are too many: SCAN tells them in parts"),
            false => reply(names),
        };
    };
    let from = usize::try_from(wanted.cursor).unwrap_or(usize::MAX);
    let count = usize::try_from(count).unwrap_or(MOST).min(MOST);
    let names: Vec<&Bytes> = logs
        .iter()
        .skip(from)
        .take(count)
        .map(|(name, _)| name)
        .collect();
    let next = match names.len() == count && from + count < logs.len() {
        true => from + count,
        false => 0,
    };
    Reply::Array(vec![Reply::from(next.to_string()), reply(names)])
}
