//! Commands that read logs.

use bytes::Bytes;
use std::time::Duration;

use super::ids::After;
use crate::machine::Position;

/// A command that reads logs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Read {
    /// `XRANGE` and `XREVRANGE`.
    Range {
        /// The log.
        log: Bytes,
        /// The first position.
        from: Position,
        /// The last position.
        to: Position,
        /// The number of entries, at most.
        count: Option<u64>,
        /// The last entry comes first.
        is_back: bool,
    },
    /// `XREAD` and `XMERGE`.
    Streams(Streams),
    /// `XLEN`.
    Length(Bytes),
    /// `XINFO STREAM`; `Some`: `FULL`, with this number of entries, 0 for all.
    Stream(Bytes, Option<u64>),
    /// `XINFO GROUPS`: there are none.
    Groups(Bytes),
    /// `ROTA ABOUT`.
    About(Bytes),
    /// A command for another kind of value, by its name.
    Foreign(&'static str, Bytes),
    /// `TYPE`.
    Type(Bytes),
    /// `EXISTS`.
    Exist(Vec<Bytes>),
    /// `SCAN` and `KEYS`.
    Names(Names),
    /// `DBSIZE`.
    Size,
}

/// The choice of names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Names {
    /// The number of the log that was told last; 0: none.
    pub cursor: u64,
    /// The number of names at a time; none: all, without a cursor.
    pub count: Option<u64>,
    /// The pattern of names.
    pub pattern: Option<Bytes>,
    /// The kind of the logs, as `TYPE` names it: there is one.
    pub kind: Option<Bytes>,
}

/// Several logs, each from a place on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Streams {
    /// The logs, and the places.
    pub of: Vec<(Bytes, After)>,
    /// The number of entries, at most: of each log, or of all where they are merged.
    pub count: Option<u64>,
    /// The time that the client waits for the first entry; none: not at all.
    pub block: Option<Duration>,
    /// The entries come in the order of all logs, and never with a gap.
    pub is_merged: bool,
}

impl Read {
    /// The logs of the command.
    pub fn logs(&self) -> Vec<&Bytes> {
        match self {
            Self::Range { log, .. }
            | Self::Length(log)
            | Self::Stream(log, _)
            | Self::Groups(log)
            | Self::About(log)
            | Self::Foreign(_, log)
            | Self::Type(log) => vec![log],
            Self::Streams(streams) => streams.of.iter().map(|(log, _)| log).collect(),
            Self::Exist(logs) => logs.iter().collect(),
            Self::Names(_) | Self::Size => Vec::new(),
        }
    }
}
