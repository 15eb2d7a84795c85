//! Clients that read more slowly than frames come for them. `throttle` has the senders that wait for them.

use rota_check::event::ClientSaw;
use rota_core::contract::Time;
use rota_core::groups::{Connection, Member};
use rota_net::monotonic;

use super::Hub;
use crate::lag::{Full, Queue};

/// The time for which too much may wait for a client: the ring may deliver more in one piece than its queue takes,
/// before the client could have read a byte of it, and a host that is busy with all receivers of that piece lets a
/// client wait for a processor.
const FULL_NANOS: u64 = 1_000_000_000;

/// A client that reads this much in that time, in bytes, has as much time again: it reads, and others send more than it
/// can read.
const FULL_READS: usize = 64 << 10;

/// The bytes beyond the limit for which a client has that time; with more it has none.
const FULL_BYTES: usize = 8 << 20;

/// The time between two looks at the clients for which too much waits.
const FULL_LOOK_NANOS: u64 = 50_000_000;

impl Hub {
    /// Looks how much waits for a client: it is warned first, senders wait for it if the policy says so, and then it is
    /// made to skip or disconnected.
    pub(super) fn mind_queue(&mut self, key: usize) {
        let Some(session) = self.sessions.get_mut(key) else {
            return;
        };
        let limit = session.queue_limit(self.config.client_queue_bytes);
        let backlog = session.speech.backlog();
        let mut queue = Queue::of(backlog, limit);
        if queue != Queue::Full {
            session.full = None;
        } else if backlog <= limit + FULL_BYTES && self.is_newly_full(key) {
            queue = Queue::Longer;
        }
        match queue {
            Queue::Short => {
                self.sessions[key].warned = false;
                self.release(key);
            }
            Queue::Fair => {}
            Queue::Long | Queue::Longer => {
                if !std::mem::replace(&mut self.sessions[key].warned, true) {
                    self.warn(key);
                }
                self.throttle(key, queue);
            }
            // A client that does not read its frames would not read the reason of its end, either.
            Queue::Full => self.too_slow(key, "it does not read what it is sent"),
        }
    }

    /// True if too much waits for the client, but it has not had the time to read it, or reads. The next look is soon.
    fn is_newly_full(&mut self, key: usize) -> bool {
        let now = monotonic();
        let session = &mut self.sessions[key];
        let full = session.full.get_or_insert(Full::begin(now));
        if now.since(full.since) >= FULL_NANOS {
            if full.read < FULL_READS {
                return false;
            }
            *full = Full::begin(now);
        }
        if session.unread_nanos(now) >= FULL_NANOS {
            // It has read nothing for as long, whatever has come meanwhile.
            return false;
        }
        if !std::mem::replace(&mut session.listed_as_full, true) {
            if self.overfull.is_empty() {
                self.overfull_at = now.after(FULL_LOOK_NANOS);
            }
            self.overfull.push(key);
        }
        true
    }

    /// Judges the clients for which too much waited and whose time to read is over.
    pub(super) fn judge_overfull(&mut self, now: Time) {
        if self.overfull.is_empty() || now < self.overfull_at {
            return;
        }
        self.overfull_at = now.after(FULL_LOOK_NANOS);
        for key in std::mem::take(&mut self.overfull) {
            if let Some(session) = self.sessions.get_mut(key) {
                session.listed_as_full = false;
            }
            // A queue that is still too long is listed again.
            self.mind_queue(key);
        }
    }

    /// Nothing more can be done for a client that does not read, than that it skips.
    pub(super) fn too_slow(&mut self, key: usize, why: &str) {
        if self.skip(key).is_some() {
            self.release(key);
            return;
        }
        self.counters.slow += 1;
        self.end(key, why);
    }

    /// Once for each time that the queue has been short.
    fn warn(&mut self, key: usize) {
        let Some(name) = self.name_of(key) else {
            return;
        };
        let session = &mut self.sessions[key];
        let limit = session.queue_limit(self.config.client_queue_bytes);
        let waiting = session.speech.backlog();
        session.speech.lag(limit);
        self.counters.lagging += 1;
        tracing::info!(name, waiting, limit, "a client reads too slowly");
    }

    /// Drops the waiting messages of the client, which for everybody else disconnects and joins again. `None` if the
    /// policy forbids that, or it does not help.
    fn skip(&mut self, key: usize) -> Option<()> {
        if !self.config.may_skip() {
            return None;
        }
        let session = self.sessions.get_mut(key)?;
        let before = session.connection?;
        if !session.speech.can_skip() || session.speech.skips() {
            return None;
        }
        let gone = self.groups.member(before).ok()?;
        let next = self.groups.restart(before)?;
        session.before = Some(before);
        session.connection = Some(next);
        self.by_connection.insert(next, key);
        self.skipping.push(key);
        let member = self.groups.member(next).ok()?;
        session.speech.skip(member);
        let backlog = session.speech.backlog();
        let limit = session.queue_limit(self.config.client_queue_bytes);
        self.trace_skip(gone, next);
        // Answers stay, and so do frames that have begun to leave.
        if backlog > limit {
            return None;
        }
        self.counters.skipped += 1;
        let name = member.name.to_string();
        tracing::info!(name, "a client skips what it has not read");
        Some(())
    }

    /// Traces a skip as the end of one client, and another one that comes and joins.
    fn trace_skip(&mut self, gone: Member, next: Connection) {
        let (Some(trace), Ok(member)) = (&mut self.trace, self.groups.member(next)) else {
            return;
        };
        trace.note(&gone, ClientSaw::Disconnect, &mut self.names);
        for group in self.groups.wanted(next) {
            let join = ClientSaw::Join(group.to_string());
            trace.note(&member, join, &mut self.names);
        }
    }

    /// Tells clients what they have missed, as soon as their disconnect has its place in the order: they get all later
    /// events.
    pub(super) fn end_skips(&mut self) {
        for key in std::mem::take(&mut self.skipping) {
            let Some(session) = self.sessions.get_mut(key) else {
                continue;
            };
            let Some(before) = session.before else {
                continue;
            };
            if self.groups.member(before).is_ok() {
                self.skipping.push(key);
                continue;
            }
            session.before = None;
            session.speech.go_on();
            self.by_connection.remove(&before);
            self.offer(key);
        }
    }

    /// The name of a session's client, if it was let in.
    pub(super) fn name_of(&self, key: usize) -> Option<String> {
        let connection = self.sessions.get(key)?.connection?;
        let member = self.groups.member(connection).ok()?;
        Some(member.name.to_string())
    }
}
