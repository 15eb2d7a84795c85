//! Names of logs.

use bytes::Bytes;
use rota_front::command::error;
use rota_front::glob;
use rota_resp::Reply;

use crate::machine::Logs;
use crate::redis::Names;

/// The number of names that `KEYS` tells, at most.
const MOST: usize = 100_000;

/// Answers `SCAN` and `KEYS`. A cursor is the number of the log that was told last: a log that is there all the time is
/// told once, whichever others come and go, by any process, and however many there are before it.
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
    let count = usize::try_from(count).unwrap_or(MOST).clamp(1, MOST);
    let mut rest = logs.after(wanted.cursor).peekable();
    let some: Vec<(&u64, &Bytes)> = rest.by_ref().take(count).collect();
    let next = match (rest.peek(), some.last()) {
        (Some(_), Some((id, _))) => **id,
        _ => 0,
    };
    let names = some.into_iter().map(|(_, name)| name).collect();
    Reply::Array(vec![Reply::from(next.to_string()), reply(names)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::{Batch, Limits, Operation, Pack};
    use rota_multiring::{Place, Rank};
    use std::collections::BTreeSet;

    fn apply(logs: &mut Logs, operations: Vec<Operation<'_>>) {
        let batch = Batch {
            operations,
            ..Batch::default()
        };
        let place = Place {
            round: 1,
            rank: Rank(1),
            instance: 1,
            index: 0,
        };
        let message = Pack(vec![batch.encode()]).encode();
        logs.apply(place, &message).expect("a message");
    }

    /// The names of a part, and the cursor for the next one.
    fn scan(logs: &Logs, cursor: u64) -> (Vec<String>, u64) {
        let wanted = Names {
            cursor,
            count: Some(3),
            pattern: None,
            kind: None,
        };
        let Reply::Array(parts) = names(logs, &wanted) else {
            panic!("two parts");
        };
        let text = |reply: &Reply| match reply {
            Reply::Bulk(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            other => panic!("{other:?}"),
        };
        let Reply::Array(told) = &parts[1] else {
            panic!("names");
        };
        let next = text(&parts[0]).parse().expect("a number");
        (told.iter().map(text).collect(), next)
    }

    /// With places for cursors, each log that went moved all behind it, and one of them was not told.
    #[test]
    fn a_log_that_stays_is_told_once_whichever_others_come_and_go() {
        let mut logs = Logs::default();
        let name = |number: u32| format!("log{number:02}");
        for number in 0..20 {
            let name = name(number);
            let make = Operation::Make(name.as_bytes(), Limits::default(), true);
            apply(&mut logs, vec![make]);
        }
        let (mut told, mut cursor) = (Vec::new(), 0);
        for round in 0.. {
            let (names, next) = scan(&logs, cursor);
            told.extend(names);
            cursor = next;
            if next == 0 {
                break;
            }
            let [old, new] = [name(round), format!("a{round}")];
            let operations = vec![
                Operation::Delete(old.as_bytes()),
                Operation::Make(new.as_bytes(), Limits::default(), true),
            ];
            apply(&mut logs, operations);
        }
        let stayed = (10..20).map(name);
        let seen: BTreeSet<&String> = told.iter().collect();
        assert!(stayed.into_iter().all(|name| seen.contains(&name)));
        assert_eq!(seen.len(), told.len(), "once: {told:?}");
        assert!(told.len() > 15);
        assert_eq!(scan(&logs, 1 << 60), (Vec::new(), 0));
    }
}
