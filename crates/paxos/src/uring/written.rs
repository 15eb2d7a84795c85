//! Records of an acceptor, as they are written.

use alloc::vec::Vec;

use super::codec::cast;
use crate as paxos;
use crate::state_key::{FLOOR, PROMISED};
use crate::{STATE_LOG, VOTES_LOG, Vote};
use rota_core::contract::LogRecord;

/// The bytes of a record.
pub fn bytes_of(record: &LogRecord) -> usize {
    match record {
        LogRecord::Put { bytes, .. } => bytes.len(),
        LogRecord::Trim { .. } => 0,
    }
}

/// A record of the state, written so.
pub fn state(key: u64, write: impl FnOnce(&mut Vec<u8>)) -> LogRecord {
    let mut bytes = Vec::new();
    write(&mut bytes);
    LogRecord::Put {
        log: STATE_LOG,
        position: key,
        bytes: bytes.into(),
    }
}

/// A record of the state that is a number.
pub fn number(key: u64, number: u64) -> LogRecord {
    state(key, |out| out.extend(number.to_le_bytes()))
}

/// A vote.
pub fn voted(vote: &Vote) -> LogRecord {
    LogRecord::Put {
        log: VOTES_LOG,
        position: vote.first,
        bytes: cast(vote),
    }
}

/// An acceptor's record as it is on the disk; `None` for a trim, which is written elsewhere.
pub fn encode(record: paxos::Record) -> Option<LogRecord> {
    match record {
        paxos::Record::Promised(round) => Some(number(PROMISED, round)),
        paxos::Record::Voted(vote) => Some(voted(&vote)),
        paxos::Record::Floor(floor) => Some(number(FLOOR, floor)),
        paxos::Record::Trimmed(_) => None,
    }
}
