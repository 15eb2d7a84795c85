//! Clients that read more slowly than frames come for them: they are warned, senders wait for them, they skip, or they
//! are disconnected. The decision about one queue is [`Lag`](crate::lag::Lag)'s.

use rota_core::contract::Time;
use rota_core::groups::{Connection, Member, Owner};
use rota_net::monotonic;
use rota_trace::event::ClientSaw;

use super::Clientele;
use crate::hub::counters::Counter;
use crate::hub::sums::Whose;
use crate::lag::{Queue, Throttled};

impl Clientele {
    /// Looks how much waits for a client: it is warned first, senders wait for it if the policy says so, and then it is
    /// made to skip or disconnected.
    pub(super) fn mind_queue(&mut self, key: usize) {
        let Some(session) = self.sessions.get_mut(key) else {
            return;
        };
        let queue = session.judge_queue(self.policy.queue_bytes);
        match queue {
            Queue::Short => {
                session.lag_mut().caught_up();
                self.release(key);
            }
            Queue::Fair => {}
            Queue::Long | Queue::Longer | Queue::Overfull => {
                if queue == Queue::Overfull {
                    self.overfull.watch(key, monotonic());
                }
                if session.lag_mut().warn() {
                    self.warn(key);
                }
                self.throttle(key, queue != Queue::Long);
            }
            // A client that does not read its frames would not read the reason of its end, either.
            Queue::Full => self.too_slow(key, "it does not read what it is sent"),
        }
    }

    /// Judges the clients for which too much waited and whose time to read is over.
    pub(super) fn judge_overfull(&mut self, now: Time) {
        for _ in 0..self.overfull.pass(now) {
            if let Some(key) = self.overfull.next() {
                // A queue that is still too long is watched again.
                self.mind_queue(key);
            }
        }
    }

    /// Nothing more can be done for a client that does not read, than that it skips.
    fn too_slow(&mut self, key: usize, why: &str) {
        if self.skip(key).is_some() {
            self.release(key);
            return;
        }
        self.journal.count(Counter::Slow);
        self.end(key, why);
    }

    fn warn(&mut self, key: usize) {
        let Some(name) = self.name_of(key) else {
            return;
        };
        let Some(session) = self.sessions.get_mut(key) else {
            return;
        };
        let limit = session.lag().limit(self.policy.queue_bytes);
        let waiting = session.speech().backlog();
        session.speech_mut().lag(limit);
        self.journal.count(Counter::Lagging);
        tracing::info!(name, waiting, limit, "a client reads too slowly");
    }

    /// Drops the waiting messages of the client, which for everybody else disconnects and joins again. `None` if the
    /// policy forbids that, or it does not help.
    fn skip(&mut self, key: usize) -> Option<()> {
        if !self.policy.may_skip {
            return None;
        }
        let (session, connections) = self.sessions.with_connections(key)?;
        let before = session.connection()?;
        if !session.speech().can_skip() || session.speech().skips() {
            return None;
        }
        let gone = self.groups.member(before).ok()?;
        let next = self.groups.restart(before)?;
        let member = self.groups.member(next).ok()?;
        session.skip(member);
        connections.insert(next, key);
        self.skipping.push(key);
        let backlog = session.speech().backlog();
        let limit = session.lag().limit(self.policy.queue_bytes);
        self.trace_skip(gone, next);
        // Answers stay, and so do frames that have begun to leave.
        if backlog > limit {
            return None;
        }
        self.journal.count(Counter::Skipped);
        let name = member.name.to_string();
        tracing::info!(name, "a client skips what it has not read");
        Some(())
    }

    /// Traces a skip as the end of one client, and another one that comes and joins.
    fn trace_skip(&mut self, gone: Member, next: Connection) {
        if !self.journal.is_tracing() {
            return;
        }
        let Ok(member) = self.groups.member(next) else {
            return;
        };
        let saw = ClientSaw::Disconnect;
        self.journal.note(&gone, saw, &mut self.names);
        for group in self.groups.wanted(next) {
            let join = ClientSaw::Join(group.to_string());
            self.journal.note(&member, join, &mut self.names);
        }
    }

    /// Tells clients what they have missed, as soon as their disconnect has its place in the order: they get all later
    /// events.
    pub(super) fn end_skips(&mut self) {
        for _ in 0..self.skipping.len() {
            let Some(key) = self.skipping.pop() else {
                return;
            };
            let Some((session, connections)) = self.sessions.with_connections(key) else {
                continue;
            };
            let Some(before) = session.membership().before() else {
                continue;
            };
            if self.groups.member(before).is_ok() {
                self.skipping.push(key);
                continue;
            }
            session.go_on();
            connections.remove(before);
            self.fanout.offer(key, session);
        }
    }

    /// The name of a session's client, if it was let in.
    fn name_of(&self, key: usize) -> Option<String> {
        let connection = self.sessions.get(key)?.connection()?;
        let member = self.groups.member(connection).ok()?;
        Some(member.name.to_string())
    }

    /// Makes the senders to the destinations that fill a client's queue wait, or to all, if the policy says so.
    fn throttle(&mut self, key: usize, all: bool) {
        let Some(session) = self.sessions.get_mut(key) else {
            return;
        };
        if !self.policy.may_throttle || !session.can_throttle() {
            return;
        }
        match session.lag_mut().throttle(all, monotonic) {
            Throttled::Unchanged => return,
            Throttled::Grows => {}
            Throttled::Begins => {
                self.throttle.begin(key);
                self.journal.count(Counter::Throttling);
                self.say_throttling(key);
            }
        }
        self.announce_holds();
    }

    fn say_throttling(&mut self, key: usize) {
        let Some(name) = self.name_of(key) else {
            return;
        };
        let session = self.sessions.get(key);
        let throttling = session.and_then(|session| session.lag().throttling());
        let names = &mut self.names;
        let to = throttling.into_iter().flat_map(|one| &one.to);
        let to: Vec<String> = to.map(|to| names.told(to).to_string()).collect();
        let (to, most_ms) = (to.join(" "), self.policy.throttle_ms);
        tracing::info!(name, to, most_ms, "senders wait for a client");
    }

    /// Ends all waits for the client; the bytes that fill its queue are counted anew.
    pub(super) fn release(&mut self, key: usize) {
        let session = self.sessions.get_mut(key);
        let released = session.and_then(|session| session.lag_mut().release());
        if let Some(throttling) = released {
            let micros = monotonic().since(throttling.since) / 1000;
            self.journal.add(Counter::ThrottlingMicros, micros);
            self.announce_holds();
        }
    }

    /// Announces the destinations whose senders wait.
    fn announce_holds(&mut self) {
        let to = self.throttle.holds(&self.sessions, &self.groups);
        self.groups.hold(to, self.policy.throttle_ms);
    }

    /// Clients for whom senders have waited long enough skip or are disconnected; and waiting senders look now and
    /// then.
    pub(super) fn end_patience(&mut self, now: Time) {
        if self.throttle.is_due(now) {
            self.look_at_holds();
        }
        let most_ms = self.policy.throttle_ms;
        for key in self.throttle.over(&self.sessions, most_ms, now) {
            // One that has skipped or gone meanwhile lets them go on.
            let session = self.sessions.get(key);
            if session.is_some_and(|session| session.lag().throttling().is_some()) {
                self.journal.count(Counter::ThrottledLong);
                self.too_slow(key, "others have waited for it long enough");
            }
        }
    }

    /// The waiting senders look again whether they still have to wait.
    pub(super) fn look_at_holds(&mut self) {
        while let Some(key) = self.throttle.next_held() {
            self.turns.schedule(key);
        }
    }

    /// Counts the bytes that are kept for a client. If the sum is too large, the client that has most of it has to do
    /// with less.
    pub(super) fn count_kept(&mut self, key: usize) {
        let Some(session) = self.sessions.get_mut(key) else {
            return;
        };
        let owner = session.guest().owner;
        let (before, now) = session.count_kept();
        self.sums.change(owner, before, now);
        if now <= before {
            return;
        }
        let most = self.policy.queues_bytes;
        while let Some(whose) = self.sums.is_too_much(owner, most) {
            if !self.cut_largest(whose) {
                return;
            }
        }
    }

    /// The client for which most is kept, of those of an owner or of all, is made to skip, or is disconnected.
    fn cut_largest(&mut self, whose: Whose) -> bool {
        let all = self.sessions.iter();
        let its = all.filter(|(_, session)| whose.is_none() || session.guest().owner == whose);
        let largest = its.max_by_key(|(_, session)| session.counted());
        let Some((key, before)) = largest.map(|(key, session)| (key, session.counted())) else {
            return false;
        };
        let why = match whose {
            Some(Owner::User(_)) => "too much waits for all clients of its user together",
            Some(_) => "too much waits for all clients of its address together",
            None => "too much waits for all clients together",
        };
        self.too_slow(key, why);
        let Some(session) = self.sessions.get_mut(key) else {
            return true;
        };
        let owner = session.guest().owner;
        let (counted, now) = session.count_kept();
        self.sums.change(owner, counted, now);
        if now > before / 2 {
            // The client was disconnected, or the skip did not help.
            self.end(key, why);
        }
        before > 0
    }
}
