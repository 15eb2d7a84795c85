//! The requests of other threads to the ring's thread: for the status, for a sign of life, for other settings, for other
//! nodes.
//!
//! The ring's thread never waits for them: it looks at one number after each turn of its loop.

mod asking;
mod phase;

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use mio::Waker;
use rota_net::monotonic;

use crate::access::{Access, Peer};
use crate::members::{MemberReply, MemberRequest};
use crate::reload::NewSettings;
use crate::status::{DaemonStatus, ReloadStatus};
pub(crate) use asking::Answer;
use asking::AskingQueue;
pub(crate) use asking::MemberAsking;
pub use asking::NotAnswered;
pub(crate) use phase::Phase;

/// The time in which the answer comes to a request about the nodes that was given up.
const GIVEN_UP: Duration = Duration::from_secs(5);

const STATUS: u8 = 1;
const SETTINGS: u8 = 2;
const LIFE: u8 = 4;
const MEMBERS: u8 = 8;

#[derive(Debug, Default)]
struct Slot {
    status: Option<Arc<DaemonStatus>>,
    /// Grows with each answer.
    answers: u64,
    signs: u64,
    settings: Option<NewSettings>,
    /// Requests about the nodes of the cluster.
    members: AskingQueue,
    /// Grows each time that the daemon has taken settings.
    taken: u64,
    reload: Option<ReloadStatus>,
    failed_reloads: u64,
}

#[derive(Debug)]
struct Shared {
    waker: Arc<Waker>,
    wanted: AtomicU8,
    slot: Mutex<Slot>,
    answered: Condvar,
    /// The access rules for requests over HTTP.
    access: Mutex<Arc<Access>>,
    /// Requests over HTTP that were not allowed.
    refused: AtomicU64,
    /// A [`Phase`].
    phase: AtomicU8,
}

/// The handle of any thread to ask the daemon, and wait for its answer.
#[derive(Clone, Debug)]
pub struct Control {
    shared: Arc<Shared>,
}

/// The requests that the ring's thread finds at one time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Wanted(u8);

impl Wanted {
    pub const fn status(self) -> bool {
        self.0 & STATUS != 0
    }

    pub const fn members(self) -> bool {
        self.0 & MEMBERS != 0
    }
}

impl Control {
    pub(crate) fn new(waker: Arc<Waker>, access: Arc<Access>) -> Self {
        Self {
            shared: Arc::new(Shared {
                waker,
                wanted: AtomicU8::new(0),
                slot: Mutex::default(),
                answered: Condvar::new(),
                access: Mutex::new(access),
                refused: AtomicU64::new(0),
                phase: AtomicU8::new(Phase::Starting as u8),
            }),
        }
    }

    /// The status of the daemon; `None` if it does not answer within `patience`.
    pub fn status(&self, patience: Duration) -> Option<Arc<DaemonStatus>> {
        let before = self.lock().answers;
        self.want(STATUS);
        let slot = self.wait(patience, |slot| slot.answers > before)?;
        slot.status.clone()
    }

    /// Whether the daemon starts, runs or stops.
    pub(crate) fn phase(&self) -> Phase {
        Phase::of(self.shared.phase.load(Ordering::Relaxed))
    }

    /// The daemon starts, runs or stops from here on.
    pub(crate) fn enter(&self, phase: Phase) {
        self.shared.phase.store(phase as u8, Ordering::Relaxed);
        if phase == Phase::Stopping {
            self.lock().members.close();
        }
    }

    /// Has the daemon look at once whether it is to stop: an idle one sleeps for as long as nothing comes.
    pub fn wake(&self) {
        self.want(0);
    }

    /// Whether the daemon's loop turns: it gives a sign of life within `patience`.
    pub fn is_alive(&self, patience: Duration) -> bool {
        let before = self.lock().signs;
        self.want(LIFE);
        self.wait(patience, |slot| slot.signs > before).is_some()
    }

    /// Gives the daemon other settings; those that cannot change while it runs have to be as they were. `true`
    /// if it has taken them before so much time was over: it will take them in any case.
    pub fn reconfigure(&self, settings: NewSettings, patience: Duration) -> bool {
        let mut slot = self.lock();
        let before = slot.taken;
        slot.settings = Some(settings);
        drop(slot);
        self.want(SETTINGS);
        self.wait(patience, |slot| slot.taken > before).is_some()
    }

    /// Asks about the nodes of the cluster, or has them changed: that is not begun when `patience` is over, and given up then.
    ///
    /// # Errors
    /// [`NotAnswered`].
    pub fn members(
        &self,
        request: MemberRequest,
        patience: Duration,
    ) -> Result<MemberReply, NotAnswered> {
        let (answer, answered) = channel();
        let now = monotonic();
        let nanos = u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX);
        let asking = MemberAsking {
            request,
            answer,
            until: now.after(nanos),
        };
        self.lock().members.push(asking, now)?;
        self.look_at_members();
        let told = answered.recv_timeout(patience + GIVEN_UP);
        told.unwrap_or_else(|_| {
            Err(match self.lock().members.is_closed() {
                true => NotAnswered::Stops,
                false => NotAnswered::Silent,
            })
        })
    }

    /// Something about the nodes of the cluster has happened in another thread.
    pub(crate) fn look_at_members(&self) {
        self.want(MEMBERS);
    }

    /// The next request about the nodes of the cluster.
    pub(crate) fn next_about_members(&self) -> Option<MemberAsking> {
        self.lock().members.next(monotonic())
    }

    /// Whether a peer may ask for the status; a peer that may not is counted.
    pub(crate) fn may_ask(&self, peer: &Peer) -> bool {
        let access = self.shared.access.lock();
        let may = access
            .unwrap_or_else(PoisonError::into_inner)
            .rights(peer)
            .admin;
        let refused = u64::from(!may);
        self.shared.refused.fetch_add(refused, Ordering::Relaxed);
        may
    }

    /// The number of requests over HTTP that were not allowed.
    pub(crate) fn refused(&self) -> u64 {
        self.shared.refused.load(Ordering::Relaxed)
    }

    /// Replaces the access rules for requests over HTTP.
    pub(crate) fn set_access(&self, access: Arc<Access>) {
        let slot = self.shared.access.lock();
        *slot.unwrap_or_else(PoisonError::into_inner) = access;
    }

    /// Keeps the outcome of a reload, in words, for the status.
    pub fn reloaded(&self, outcome: Result<String, String>) {
        let mut slot = self.lock();
        let count = slot.reload.as_ref().map_or(0, |reload| reload.count) + 1;
        let done = outcome.is_ok();
        slot.failed_reloads += u64::from(!done);
        let text = outcome.unwrap_or_else(|text| text);
        slot.reload = Some(ReloadStatus { count, done, text });
    }

    fn lock(&self) -> MutexGuard<'_, Slot> {
        let slot = self.shared.slot.lock();
        slot.unwrap_or_else(PoisonError::into_inner)
    }

    fn want(&self, what: u8) {
        self.shared.wanted.fetch_or(what, Ordering::Release);
        // A loop that cannot be woken is awake, or has stopped.
        let _ = self.shared.waker.wake();
    }

    fn wait(
        &self,
        patience: Duration,
        is_there: impl Fn(&Slot) -> bool,
    ) -> Option<MutexGuard<'_, Slot>> {
        let until = Instant::now() + patience;
        let mut slot = self.lock();
        while !is_there(&slot) {
            let left = until.checked_duration_since(Instant::now())?;
            let waited = self.shared.answered.wait_timeout(slot, left);
            slot = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        Some(slot)
    }

    /// Whether there are requests for the ring's thread.
    #[inline]
    pub(crate) fn is_asked(&self) -> bool {
        self.shared.wanted.load(Ordering::Relaxed) != 0
    }

    /// Takes the pending requests, for the ring's thread.
    #[inline]
    pub(crate) fn take_wanted(&self) -> Option<Wanted> {
        let wanted = &self.shared.wanted;
        self.is_asked()
            .then(|| Wanted(wanted.swap(0, Ordering::Acquire)))
    }

    /// Answers the requests; with the status of the daemon, if that was one of them.
    pub(crate) fn answer(&self, wanted: Wanted, status: Option<DaemonStatus>) {
        let mut slot = self.lock();
        if let Some(status) = status {
            slot.status = Some(Arc::new(status));
            slot.answers += 1;
        }
        slot.signs += u64::from(wanted.0 & LIFE != 0);
        slot.taken += u64::from(wanted.0 & SETTINGS != 0);
        self.shared.answered.notify_all();
    }

    pub(crate) fn take_settings(&self) -> Option<NewSettings> {
        self.lock().settings.take()
    }

    pub(crate) fn last_reload(&self) -> Option<ReloadStatus> {
        self.lock().reload.clone()
    }

    pub(crate) fn failed_reloads(&self) -> u64 {
        self.lock().failed_reloads
    }
}

#[cfg(test)]
mod tests {
    use mio::{Poll, Token};

    use super::*;

    #[test]
    fn whoever_asks_for_nodes_is_answered_by_the_loop_or_told_that_it_stops() {
        let poll = Poll::new().expect("descriptors");
        let waker = Waker::new(poll.registry(), Token(0)).expect("descriptors");
        let access = Access::new(&[]).expect("no rules");
        let control = Control::new(Arc::new(waker), Arc::new(access));
        let long = Duration::from_secs(60);
        let ask = || {
            let control = control.clone();
            std::thread::spawn(move || control.members(MemberRequest::List, long))
        };
        let asking = || loop {
            if let Some(asking) = control.next_about_members() {
                return asking;
            }
            std::thread::yield_now();
        };
        let asked = ask();
        let reply = MemberReply {
            number: 7,
            ..MemberReply::default()
        };
        let answered = asking().answer.send(Ok(reply.clone()));
        answered.expect("it waits");
        assert_eq!(asked.join().expect("no panic"), Ok(reply));

        let turned_away = ask();
        let late = asking().answer.send(Err(NotAnswered::Late));
        late.expect("it waits");
        assert_eq!(
            turned_away.join().expect("no panic"),
            Err(NotAnswered::Late)
        );

        let begun = ask();
        let its = asking();
        control.enter(Phase::Stopping);
        drop(its);
        assert_eq!(begun.join().expect("no panic"), Err(NotAnswered::Stops));
        let late = control.members(MemberRequest::List, long);
        assert_eq!(late, Err(NotAnswered::Stops));
    }
}
