//! Commands that read.

use bytes::Bytes;
use std::time::Duration;

use super::ids::After;
use crate::machine::Position;

/// See the module's page.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Read {
    /// `XRANGE` and `XREVRANGE`.
    Range {
        /// The log.
        log: Bytes,
        /// From here.
        from: Position,
        /// To here.
        to: Position,
        /// So many at most.
        count: Option<u64>,
        /// The last one first.
        is_back: bool,
    },
    /// `XREAD` and `XMERGE`.
    Streams(Streams),
    /// `XLEN`.
    Length(Bytes),
    /// `XINFO STREAM`; `Some`: `FULL`, with so many entries, 0 for all.
    Stream(Bytes, Option<u64>),
    /// `XINFO GROUPS`: there are none.
    Groups(Bytes),
    /// `ROTA ABOUT`.
    About(Bytes),
    /// A command of what is no stream, by its name.
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

/// Which names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Names {
    /// Behind so many.
    pub cursor: u64,
    /// So many at a time; none: all, without a cursor.
    pub count: Option<u64>,
    /// Only those like this.
    pub pattern: Option<Bytes>,
    /// Only logs of this kind: there is one.
    pub kind: Option<Bytes>,
}

/// Several logs from a place in each.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Streams {
    /// Which, and from where.
    pub of: Vec<(Bytes, After)>,
    /// So many entries at most: of each, or of all where they are merged.
    pub count: Option<u64>,
    /// So long it waits for the first one; none: not at all.
    pub block: Option<Duration>,
    /// In the order of everything, and never with a gap.
    pub is_merged: bool,
}

impl Read {
    /// The logs it is about.
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
