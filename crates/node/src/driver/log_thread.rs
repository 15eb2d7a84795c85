//! The thread of an acceptor's log.
//!
//! Requests and fetches lie on a desk until the thread takes them ([`Keeper`]), and their results until the ring's
//! thread does. Requests are copied right away to where the disk takes them from: the ring's thread has just had them.
//! Nothing on the desk grows without bound.
//!
//! A log that is given up is opened again in the same thread, as soon as that is free: it may be waiting for the disk.

use rota_core::contract::{Input, LogId, PersistError, PersistId};
use rota_storage::acceptor::{DiskLog, Group, LogDisk, Mode, SyncDone};
use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::helper::{Helper, Shared};
use super::log_beside::Beside;
use super::log_keeper::{Ended, Keeper};
use super::log_opening::{Found, Opener, Past, open_again};
use super::votes::{Change, Step};
use super::waker::Waker;
use rota_net::ask_not_to_interrupt;

/// Bytes of requests that may be without an answer. An engine has to have less under way.
pub(super) const WAITING_LIMIT: usize = 64 << 20;

/// Fetches that may be without an answer.
pub(super) const FETCH_LIMIT: usize = 256;

/// A fetch that waits: which log, from which position on, and the one behind the last.
pub(super) type Wanted = (LogId, u64, u64);

/// Requests that are made durable together.
#[derive(Debug, Default)]
pub(super) struct Requests {
    pub(super) group: Group,
    /// The last of them; `None` if there are none.
    pub(super) last: Option<PersistId>,
    /// Their bytes, as [`WAITING_LIMIT`] counts them.
    pub(super) bytes: usize,
}

/// The exchange between the ring's thread and the log's.
#[derive(Debug, Default)]
pub(super) struct Orders {
    /// The requests that the log's thread has not taken yet.
    pub(super) requests: Requests,
    /// The bytes of those requests and of those that are being written.
    pub(super) bytes: usize,
    /// The time since which the oldest of `requests` waits, and the same of the requests that are being written.
    pub(super) asked: Option<Instant>,
    pub(super) writing: Option<Instant>,
    /// Groups that were made durable, and those of them that took long.
    pub(super) groups: [u64; 2],
    pub(super) fetches: VecDeque<Wanted>,
    /// The time since which a sync beside the commits is under way.
    pub(super) syncing: Option<Instant>,
    /// A sync beside the commits has ended.
    pub(super) synced: Option<SyncDone>,
    /// A portion of a new segment is written.
    pub(super) spare_written: bool,
    /// All requests up to this one are durable.
    pub(super) durable: Option<PersistId>,
    pub(super) failed: Option<PersistError>,
    pub(super) fetched: Vec<Input>,
    /// The log is given up, and not open again yet: its earlier results count for nothing.
    pub(super) given_up: bool,
    /// The contents of the log when it was opened again.
    pub(super) reopened: Option<Found>,
    /// The number of those openings.
    pub(super) openings: u64,
}

impl Orders {
    /// Whether the log's thread has nothing to do.
    pub(super) fn is_empty(&self) -> bool {
        self.requests.last.is_none()
            && self.fetches.is_empty()
            && self.synced.is_none()
            && !self.spare_written
            && !self.given_up
    }
}

impl Requests {
    fn add(&mut self, id: PersistId, changes: &[Change], bytes: usize) {
        for change in changes {
            match change.step() {
                Step::Put(record) => self.group.put(record),
                Step::Trim(first) => self.group.trim(first),
            }
        }
        self.last = Some(id);
        self.bytes += bytes;
    }
}

/// The results of requests and fetches.
#[derive(Debug, Default)]
pub(super) struct Taken {
    /// All up to this one are durable.
    pub(super) durable: Option<PersistId>,
    /// No later one will be, until the log is open again.
    pub(super) failed: Option<PersistError>,
    pub(super) fetched: Vec<Input>,
    /// The log is open again, with these contents.
    pub(super) reopened: Option<Found>,
}

/// The state of a log: whether it is of use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Use {
    Works,
    /// Nothing is made durable any more.
    Failed,
    /// The log is to be opened again.
    GivenUp,
}

/// The state of a log, for people.
#[derive(Debug)]
pub(super) struct LogHealth {
    /// Groups that were made durable.
    pub(super) groups: u64,
    /// The groups among these that took long.
    pub(super) slow: u64,
    /// Bytes of requests without an answer.
    pub(super) waiting_bytes: usize,
    /// The time for which the oldest of them waits.
    pub(super) waits: Duration,
    /// The time for which a sync that no answer waits for is under way.
    pub(super) syncs: Duration,
    pub(super) is: Use,
    /// The number of times that the log was opened again.
    pub(super) openings: u64,
}

/// A log, and the thread that it is in.
#[derive(Debug)]
pub(super) struct LogThread(Helper<Orders>);

impl LogThread {
    pub(super) fn start<D: LogDisk + 'static>(
        log: DiskLog<D>,
        mut opener: Opener<D>,
        mode: Mode,
        waker: Arc<Waker>,
    ) -> io::Result<Self> {
        let shared = Shared::new(waker);
        let mut beside = Beside::start(&shared, mode)?;
        let work = move |shared: &Shared<Orders>| {
            // A group with all requests of the ring's thread costs less than two halves of it.
            ask_not_to_interrupt();
            let (mut log, mut past) = (Some(log), Past::default());
            while let Some(open) = log.take() {
                if let Ended::GivenUp(end) = Keeper::new(open, &mut beside, shared).work() {
                    log = open_again(&mut opener, &mut past, shared, end);
                }
            }
        };
        let late = "the disk does not answer; the acceptor's log is still in use";
        Helper::start(shared, "rota-votes", late, work).map(Self)
    }

    /// Starts a request, unless there are too many.
    pub(super) fn request(&self, id: PersistId, changes: &[Change]) -> Result<(), PersistError> {
        let bytes = changes.iter().map(Change::bytes).sum();
        let mut fits = true;
        self.0.put(|desk| {
            fits = desk.bytes.saturating_add(bytes) <= WAITING_LIMIT;
            if fits {
                desk.bytes += bytes;
                desk.asked.get_or_insert_with(Instant::now);
                desk.requests.add(id, changes, bytes);
            }
        });
        match fits {
            true => Ok(()),
            false => Err(PersistError::Io(format!(
                "more than {WAITING_LIMIT} bytes wait for the disk"
            ))),
        }
    }

    pub(super) fn health(&self) -> LogHealth {
        let desk = self.0.desk();
        let [groups, slow] = desk.groups;
        let for_how_long = |since: Option<Instant>| since.map_or(Duration::ZERO, |at| at.elapsed());
        LogHealth {
            groups,
            slow,
            waiting_bytes: desk.bytes,
            waits: for_how_long(desk.writing.or(desk.asked)),
            syncs: for_how_long(desk.syncing),
            is: match desk.failed.is_some() || desk.ended {
                true => Use::Failed,
                false if desk.given_up => Use::GivenUp,
                false => Use::Works,
            },
            openings: desk.openings,
        }
    }

    /// Gives the log up, and has it opened again. Requests that are not durable yet are nobody's any more, also those
    /// that are being written.
    pub(super) fn reopen(&self) {
        self.0.put(|desk| {
            desk.given_up = true;
            desk.requests = Requests::default();
            desk.bytes = 0;
            (desk.asked, desk.writing) = (None, None);
            (desk.durable, desk.failed) = (None, None);
        });
    }

    /// Starts a fetch, unless there are too many.
    pub(super) fn fetch(&self, log: LogId, range: &Range<u64>) -> bool {
        let mut fits = true;
        self.0.put(|desk| {
            fits = desk.fetches.len() < FETCH_LIMIT;
            if fits {
                desk.fetches.push_back((log, range.start, range.end));
            }
        });
        fits
    }

    /// Takes the results of requests and fetches.
    pub(super) fn take(&self) -> Taken {
        let mut desk = self.0.desk();
        if desk.ended && desk.failed.is_none() {
            // The thread panicked, and that was shown.
            desk.failed = Some(PersistError::Io("the log's thread has ended".to_owned()));
        }
        Taken {
            durable: desk.durable,
            failed: desk.failed.clone(),
            fetched: std::mem::take(&mut desk.fetched),
            reopened: desk.reopened.take(),
        }
    }
}
