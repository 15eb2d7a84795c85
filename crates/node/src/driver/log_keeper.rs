//! The work of the thread of an acceptor's log.
//!
//! The thread takes all requests that wait, which are gathered where the disk can take them from, appends them, makes
//! them durable together, and answers all of them with one word: up to which all are durable (*group commit*). While it
//! waits for the disk the next group gathers. Work that no answer has to wait for is done between groups.
//!
//! After any failure the log has failed: nobody knows what the disk has. No request is answered as durable any more,
//! until the log is given up and opened again ([`open_again`](super::log_opening::open_again)). A log whose disk has
//! only been silent for too long ends in the same way: requests that were under way then are nobody's any more.

use rota_core::contract::{Input, PersistError, PersistId};
use rota_storage::acceptor::{AppendError, DiskLog, Group, LogDisk, SyncDone, Upkeep};
use std::io;
use std::time::{Duration, Instant};

use super::helper::Shared;
use super::log_beside::Beside;
use super::log_thread::{Orders, Requests, Wanted};
use super::votes;

/// The bytes in an answer to a fetch, about: commits wait meanwhile.
pub(super) const FETCH_BYTES: usize = 256 << 10;

/// The time without appends after which the mark is made durable, too.
const SETTLE_AFTER: Duration = Duration::from_millis(100);

/// The time after which a group counts as slow.
pub(super) const SLOW: Duration = Duration::from_millis(500);

/// The time after which it is logged once more that votes cannot be read.
const TOLD_FOR: Duration = Duration::from_secs(10);

/// The pause after an attempt at another segment for which there was no room.
const NO_ROOM: Duration = Duration::from_secs(1);

/// The work that waits for the thread.
#[derive(Debug, Default)]
struct Work {
    requests: Requests,
    fetch: Option<Wanted>,
    synced: Option<SyncDone>,
    spare_written: bool,
    given_up: bool,
    stop: bool,
}

/// Why a log is not kept any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ended {
    /// The node ends.
    Stopped,
    /// The engine has given it up.
    GivenUp(GivenUp),
}

/// Why an engine has given a log up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum GivenUp {
    /// The engine waited too long for the log.
    Silent,
    Failed,
    /// The log has failed for want of room.
    Full,
}

/// The state of the thread itself.
pub(super) struct Keeper<'a, D: LogDisk> {
    log: DiskLog<D>,
    beside: &'a mut Beside<D::File>,
    shared: &'a Shared<Orders>,
    /// Something was appended then, and the mark is not durable yet.
    unsettled: Option<Instant>,
    /// The group in which the next requests are gathered.
    spare: Group,
    /// There is more to be done between groups.
    has_upkeep: bool,
    failed: bool,
    /// The failure was for want of room.
    failed_for_room: bool,
    /// There was no room for another segment then.
    no_room: Option<Instant>,
    /// It was logged then that votes could not be read.
    unread: Option<Instant>,
}

impl<'a, D: LogDisk> Keeper<'a, D> {
    pub(super) fn new(
        log: DiskLog<D>,
        beside: &'a mut Beside<D::File>,
        shared: &'a Shared<Orders>,
    ) -> Self {
        Self {
            log,
            beside,
            shared,
            unsettled: None,
            spare: Group::default(),
            has_upkeep: true,
            failed: false,
            failed_for_room: false,
            no_room: None,
            unread: None,
        }
    }

    pub(super) fn work(mut self) -> Ended {
        loop {
            let work = self.wait();
            if work.given_up && !work.stop {
                return self.give_up(work.synced);
            }
            if let Some(done) = work.synced {
                self.take_synced(done);
            }
            self.has_upkeep |= work.spare_written && !self.failed;
            if let Some(last) = work.requests.last {
                self.keep(work.requests, last);
            }
            if let Some(wanted) = work.fetch {
                self.fetch(wanted);
            }
            if work.stop {
                break;
            }
            self.between_groups();
        }
        if !self.failed
            && let Err(error) = self.log.close()
        {
            tracing::warn!(%error, "the acceptor's log was not closed in order");
        }
        Ended::Stopped
    }

    /// Waits for what other threads do with its files: the next beginning is to find nothing of the one before at work.
    fn give_up(self, mut synced: Option<SyncDone>) -> Ended {
        let Self {
            mut log, beside, ..
        } = self;
        if let Some(syncer) = &mut beside.syncer {
            while syncer.is_busy && synced.is_none() {
                let mut desk = self.shared.wait(None, |desk| desk.synced.is_none());
                if desk.stop {
                    return Ended::Stopped;
                }
                synced = desk.synced.take();
            }
            syncer.is_busy = false;
        }
        if let Some(done) = synced {
            // After a failed sync, the log says so when it is opened again.
            let _ = log.finish_sync(done);
        }
        drop(log);
        self.shared.desk().spare_written = false;
        Ended::GivenUp(match (self.failed, self.failed_for_room) {
            (_, true) => GivenUp::Full,
            (true, false) => GivenUp::Failed,
            (false, false) => GivenUp::Silent,
        })
    }

    /// Waits until there is something to do, and takes it.
    fn wait(&mut self) -> Work {
        let mut desk = self.shared.wait(self.rest(), Orders::is_empty);
        let mut requests = Requests::default();
        if desk.requests.last.is_some() {
            let mut next = std::mem::take(&mut self.spare);
            self.log.place_behind(&desk.requests.group, &mut next);
            requests.group = next;
            std::mem::swap(&mut requests, &mut desk.requests);
        }
        // The work between groups may have taken long, too.
        desk.writing = desk.asked.take();
        // What is to be read is read when the log is open again.
        let fetch = match desk.given_up {
            true => None,
            false => desk.fetches.pop_front(),
        };
        Work {
            requests,
            fetch,
            synced: desk.synced.take(),
            spare_written: std::mem::take(&mut desk.spare_written),
            given_up: desk.given_up,
            stop: desk.stop,
        }
    }

    /// The time for which there is nothing to do unless something is asked for.
    fn rest(&self) -> Option<Duration> {
        if self.failed {
            return None;
        }
        if self.has_upkeep {
            return Some(Duration::ZERO);
        }
        let syncer = self.beside.syncer.as_ref();
        let syncer = syncer.filter(|syncer| !syncer.is_busy);
        let sync = syncer.filter(|_| self.log.unsynced_bytes() > 0);
        let sync = sync.map(|syncer| syncer.since + syncer.interval);
        let settle = self.unsettled.filter(|_| self.may_settle());
        let settle = settle.map(|since| since + SETTLE_AFTER);
        let next = [sync, settle].into_iter().flatten().min()?;
        Some(next.saturating_duration_since(Instant::now()))
    }

    /// Makes a group durable, and says so once.
    fn keep(&mut self, mut requests: Requests, last: PersistId) {
        let mut slow = false;
        if !self.failed {
            let started = Instant::now();
            let appended = self.log.append_group(&mut requests.group);
            if let Err(error) = appended.and_then(|_| self.log.commit()) {
                self.fail(&error);
            }
            let took = started.elapsed();
            slow = took > SLOW;
            if slow {
                tracing::warn!(?took, "the disk is slow: this acceptor's votes wait for it");
            }
        }
        if !self.failed {
            self.unsettled = Some(Instant::now());
            self.has_upkeep = true;
        }
        self.spare = requests.group;
        let failed = self.failed;
        let mut desk = self.shared.desk();
        if desk.given_up {
            // Nobody waits for it, and it is not counted any more.
            return;
        }
        desk.bytes -= requests.bytes;
        desk.writing = None;
        if !failed {
            desk.durable = Some(last);
            let [groups, slow_ones] = &mut desk.groups;
            *groups += 1;
            *slow_ones += u64::from(slow);
        }
        drop(desk);
        self.shared.waker.ring();
    }

    fn fail(&mut self, error: &AppendError) {
        self.failed = true;
        self.failed_for_room = is_for_room(error);
        self.has_upkeep = false;
        let told = match error {
            AppendError::NoSpace(_) => PersistError::NoSpace,
            AppendError::Io(_) | AppendError::TooLong { .. } | AppendError::Failed => {
                PersistError::Io(error.to_string())
            }
        };
        let mut desk = self.shared.desk();
        if desk.given_up {
            drop(desk);
            tracing::info!(%error, "what the acceptor's log did when it was given up has failed");
            return;
        }
        desk.failed = Some(told);
        drop(desk);
        tracing::error!(
            %error,
            "the acceptor's log has failed: this node votes for nothing until it has been opened again"
        );
        self.shared.waker.ring();
    }

    fn fetch(&mut self, (log, from, to): Wanted) {
        let read = votes::read_some(&mut self.log, log, &(from..to), FETCH_BYTES);
        let records = read.unwrap_or_else(|error| {
            // The failure of a log was reported already, and damage is found with each read.
            let told = self.unread.is_some_and(|told| told.elapsed() < TOLD_FOR);
            if !self.failed && !told {
                tracing::error!(%error, "votes could not be read back");
                self.unread = Some(Instant::now());
            }
            Vec::new()
        });
        let mut desk = self.shared.desk();
        desk.fetched.push(Input::Fetched {
            log,
            from,
            to,
            records,
        });
        drop(desk);
        self.shared.waker.ring();
    }

    /// The work that no answer has to wait for.
    fn between_groups(&mut self) {
        if self.failed {
            return;
        }
        if let Err(error) = self.sync_beside().and_then(|()| self.settle()) {
            self.fail(&error);
            return;
        }
        let pause = self.no_room.is_some_and(|at| at.elapsed() < NO_ROOM);
        if std::mem::take(&mut self.has_upkeep) && !pause {
            self.upkeep();
        }
    }

    fn upkeep(&mut self) {
        match self.log.start_upkeep() {
            // If the thread has ended, the log hears of that with the next group.
            Ok(Upkeep::Job(job)) => drop(self.beside.spares.send(job)),
            Ok(Upkeep::UnderWay) => {}
            Ok(Upkeep::Done) => self.no_room = None,
            // Another attempt follows behind a later group.
            Err(AppendError::NoSpace(error)) => {
                if self.no_room.replace(Instant::now()).is_none() {
                    tracing::error!(%error, "no room to get the next segment of the acceptor's log ready");
                }
            }
            Err(error) => self.fail(&error),
        }
    }

    fn sync_beside(&mut self) -> Result<(), AppendError> {
        let syncer = self.beside.syncer.as_mut();
        let Some(syncer) = syncer.filter(|syncer| !syncer.is_busy) else {
            return Ok(());
        };
        if !self.log.sync_due(syncer.since.elapsed()) {
            return Ok(());
        }
        if let Some(job) = self.log.start_sync()? {
            let ended = |_| AppendError::Io(io::Error::other("the thread for syncs has ended"));
            self.shared.desk().syncing = Some(Instant::now());
            syncer.jobs.send(job).map_err(ended)?;
            syncer.is_busy = true;
        }
        Ok(())
    }

    fn take_synced(&mut self, done: SyncDone) {
        if let Some(syncer) = &mut self.beside.syncer {
            syncer.is_busy = false;
            syncer.since = Instant::now();
        }
        let finished = self.log.finish_sync(done);
        if let Err(error) = finished
            && !self.failed
        {
            self.fail(&error);
        }
    }

    fn settle(&mut self) -> Result<(), AppendError> {
        let is_due = |since: &mut Instant| since.elapsed() >= SETTLE_AFTER;
        if self.may_settle() && self.unsettled.take_if(is_due).is_some() {
            self.log.settle()?;
        }
        Ok(())
    }

    /// Whether the mark may be written: it covers nothing that is not synced.
    fn may_settle(&self) -> bool {
        self.beside.syncer.is_none() || self.log.unsynced_bytes() == 0
    }
}

/// Whether there would have been no error with more room.
fn is_for_room(error: &AppendError) -> bool {
    let is_full = |error: &io::Error| {
        let kind = error.kind();
        matches!(
            kind,
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
        )
    };
    match error {
        AppendError::NoSpace(_) => true,
        AppendError::Io(error) => is_full(error),
        AppendError::TooLong { .. } | AppendError::Failed => false,
    }
}
