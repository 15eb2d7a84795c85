//! The parts of logs that a reader wants.

use bytes::Bytes;
use rota_resp::Reply;

use crate::machine::{Log, Position};
use crate::redis::{After, id_of};

/// The entries of a log from a position on and before another one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Part {
    pub(super) log: u64,
    pub(super) from: Position,
    pub(super) to: Position,
}

impl Part {
    pub(super) const fn len(&self) -> u64 {
        self.to.saturating_sub(self.from)
    }
}

/// The position at which a reader goes on in a log.
pub(super) fn begin(((_, after), head): (&(Bytes, After), &Option<Log>)) -> Position {
    let next = head.as_ref().map_or(1, |head| head.next);
    let first = head.as_ref().map_or(1, |head| head.first);
    match after {
        After::Position(position) => position.saturating_add(1),
        After::Last => next,
        After::BeforeLast => next.saturating_sub(1).max(first),
    }
}

/// The parts of logs that a reader has not seen.
pub(super) fn parts(begins: &[Position], heads: &[Option<Log>]) -> Vec<Part> {
    let part = |(from, head): (&Position, &Option<Log>)| match head {
        Some(head) => Part {
            log: head.id,
            from: (*from).max(head.first),
            to: head.next,
        },
        None => Part {
            log: 0,
            from: *from,
            to: *from,
        },
    };
    begins.iter().zip(heads).map(part).collect()
}

/// The error of a reader before which entries were trimmed that it has not seen.
pub(super) fn trimmed(
    logs: &[&Bytes],
    begins: &[Position],
    heads: &[Option<Log>],
) -> Option<Reply> {
    let mut all = logs.iter().zip(begins).zip(heads);
    all.find_map(|((log, from), head)| {
        let first = head.as_ref()?.first;
        (*from < first).then(|| {
            Reply::Error(format!(
                "TRIMMED the first entry of {} that is kept is {}",
                String::from_utf8_lossy(log),
                id_of(first)
            ))
        })
    })
}
