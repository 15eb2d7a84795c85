//! Commands that change logs: their operations, and the replies to them.

use bytes::Bytes;
use rota_front::command::error;
use rota_resp::Reply;

use super::ids::id_of;
use crate::machine::{Append, Fault, Keep, Limits, MOST_ENTRY_BYTES, Operation, Outcome};

/// A command that changes logs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    /// `XADD`.
    Add {
        /// The log.
        log: Bytes,
        /// The log is made if there is none.
        makes: bool,
        /// The position that the client wants.
        expected: Option<u64>,
        /// The producer, and its name for this append.
        producer: Option<(Bytes, Bytes)>,
        /// The rule for the entries that are kept then.
        keep: Option<Keep>,
        /// Fields and values, as readers get them.
        fields: Bytes,
    },
    /// `XTRIM`.
    Trim(Bytes, Keep),
    /// `DEL`.
    Delete(Vec<Bytes>),
    /// `ROTA SEAL`.
    Seal(Bytes),
    /// `ROTA CREATE`; `true`: only if there is no such log.
    Make(Bytes, Limits, bool),
}

/// The reply to a command that was not done, by the reason.
pub(super) fn fault(fault: Fault, expected: Option<u64>) -> Reply {
    match fault {
        Fault::Sealed => error("SEALED nothing is appended to this log any more"),
        Fault::Expected(next) if expected.is_none_or(|wanted| wanted < next) => error(
            "ERR The ID specified in XADD is equal or smaller than the target stream top item",
        ),
        Fault::Expected(next) => error(&format!(
            "ERR The ID specified in XADD is not the next one, which is {}: a log has no gaps",
            id_of(next)
        )),
        Fault::TooMany => error("OOM there are too many logs"),
        Fault::Forgotten => error(
            "FORGOTTEN what this producer has appended by later names is not known any more, so nobody knows of this one: nothing was appended",
        ),
        Fault::TooLarge => error(&format!(
            "ERR an entry has {} KiB at most, and a name 1 KiB",
            MOST_ENTRY_BYTES >> 10
        )),
    }
}

impl Change {
    /// The operations to be ordered.
    pub fn operations(&self) -> Vec<Operation<'_>> {
        match self {
            Self::Add {
                log,
                makes,
                expected,
                producer,
                keep,
                fields,
            } => vec![Operation::Append(Append {
                log,
                makes: *makes,
                expected: *expected,
                producer: producer.as_ref().map(|(of, name)| (&of[..], &name[..])),
                keep: *keep,
                entries: vec![fields],
            })],
            Self::Trim(log, keep) => vec![Operation::Trim(log, *keep, None)],
            Self::Delete(logs) => logs.iter().map(|log| Operation::Delete(log)).collect(),
            Self::Seal(log) => vec![Operation::Seal(log)],
            Self::Make(log, limits, is_new) => vec![Operation::Make(log, *limits, *is_new)],
        }
    }

    /// The number of these operations.
    pub fn count(&self) -> usize {
        match self {
            Self::Delete(logs) => logs.len(),
            _ => 1,
        }
    }

    /// The first of its logs.
    pub fn log(&self) -> &[u8] {
        match self {
            Self::Add { log, .. } | Self::Trim(log, _) | Self::Seal(log) | Self::Make(log, ..) => {
                log
            }
            Self::Delete(logs) => logs.first().map_or(&[], |log| log),
        }
    }

    /// The bytes to be ordered, about.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Add { log, fields, .. } => 64 + log.len() + fields.len(),
            Self::Delete(logs) => logs.iter().map(|log| 16 + log.len()).sum(),
            _ => 64 + self.log().len(),
        }
    }

    /// Whether the command needs room on the disk.
    pub const fn grows(&self) -> bool {
        matches!(self, Self::Add { .. })
    }

    /// The reply if the command was not done for this reason.
    pub fn refused(&self, why: Fault) -> Reply {
        match self {
            Self::Add { expected, .. } => fault(why, *expected),
            _ => fault(why, None),
        }
    }

    /// The reply, given the outcomes of the operations.
    pub fn reply(&self, outcomes: &[Outcome]) -> Reply {
        let faults = outcomes.iter().find_map(|outcome| match outcome {
            Outcome::Fault(fault) => Some(*fault),
            _ => None,
        });
        if let Some(fault) = faults {
            return self.refused(fault);
        }
        match (self, outcomes) {
            (Self::Add { .. }, [Outcome::Appended(at) | Outcome::Again(at)]) => {
                Reply::from(id_of(*at))
            }
            (Self::Add { .. }, [Outcome::Nothing]) => Reply::Null,
            (Self::Trim(..), [Outcome::Gone(count)]) => Reply::Integer(*count as i64),
            (Self::Delete(_), outcomes) => {
                let done = outcomes.iter().filter(|outcome| **outcome == Outcome::Done);
                Reply::Integer(done.count() as i64)
            }
            (Self::Seal(_), [Outcome::Nothing]) => error("ERR no such key"),
            (Self::Make(..), [Outcome::Nothing]) => Reply::Null,
            (Self::Seal(_) | Self::Make(..), [Outcome::Done]) => Reply::OK,
            _ => error("ERR the answer is of a version that this one does not know"),
        }
    }
}
