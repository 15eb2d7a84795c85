//! Senders that wait for clients that read too slowly: the slow clients of this daemon, and its clients that wait.

use rota_core::contract::Time;
use rota_core::groups::{Connection, Destination, Groups, HoldFor, Received};
use rota_net::monotonic;

use super::Hub;
use crate::lag::{HeldFor, Queue, Throttling};
use crate::session::Session;

/// The time between two looks of waiting senders whether they have waited long enough; otherwise they wait for news of
/// the ring.
const LOOK_NANOS: u64 = 100_000_000;

/// The sessions on both sides of a throttle.
#[derive(Debug, Default)]
pub(super) struct Throttle {
    /// Sessions for whose clients others wait, those that began first ahead. Some of them may have ended.
    slow: Vec<usize>,
    /// Sessions whose clients wait.
    held: Vec<usize>,
    look_at: Time,
}

impl Hub {
    /// The next time at which senders have waited long enough, or waiting senders are to look.
    pub(super) fn throttle_wake(&self) -> Option<Time> {
        let look = (!self.throttle.held.is_empty()).then_some(self.throttle.look_at);
        let slow = self.throttle.slow.iter();
        let ends = slow.filter_map(|&key| self.patience_ends(key));
        ends.chain(look).min()
    }

    /// The time at which senders have waited long enough for the client of a session.
    fn patience_ends(&self, key: usize) -> Option<Time> {
        let throttling = self.sessions.get(key)?.throttling()?;
        let nanos = u64::from(self.config.throttle_ms) * 1_000_000;
        Some(throttling.since.after(nanos))
    }

    /// Makes the senders to the destinations that fill a client's queue wait, if the policy says so.
    pub(super) fn throttle(&mut self, key: usize, queue: Queue) {
        let may = self.config.may_throttle();
        let Some(session) = self.sessions.get_mut(key) else {
            return;
        };
        if !may || !session.speech.can_throttle() || session.speech.skips() {
            return;
        }
        let Some(lag) = &mut session.lag else {
            return;
        };
        let all = queue == Queue::Longer;
        let before = lag.throttling.as_ref();
        if before.is_some_and(|before| before.all || !all) {
            return;
        }
        let since = before.map(|before| before.since);
        let to = lag.filled_by(all);
        if to.is_empty() {
            return;
        }
        lag.throttling = Some(Throttling {
            since: since.unwrap_or_else(monotonic),
            to,
            all,
        });
        if since.is_none() {
            self.throttle.slow.push(key);
            self.counters.throttling += 1;
            self.say_throttling(key);
        }
        self.announce_holds();
    }

    fn say_throttling(&mut self, key: usize) {
        let Some(name) = self.name_of(key) else {
            return;
        };
        let to = self.throttles(key).join(" ");
        let most_ms = self.config.throttle_ms;
        tracing::info!(name, to, most_ms, "senders wait for a client");
    }

    /// The destinations whose senders wait for the client of a session.
    pub(super) fn throttles(&mut self, key: usize) -> Vec<String> {
        let session = self.sessions.get(key);
        let Some(throttling) = session.and_then(Session::throttling) else {
            return Vec::new();
        };
        let names = &mut self.names;
        let to = throttling.to.iter();
        to.map(|to| names.told(to).to_string()).collect()
    }

    /// Ends all waits for the client; the bytes that fill its queue are counted anew.
    pub(super) fn release(&mut self, key: usize) {
        let session = self.sessions.get_mut(key);
        let Some(lag) = session.and_then(|session| session.lag.take()) else {
            return;
        };
        if let Some(throttling) = lag.throttling {
            let micros = monotonic().since(throttling.since) / 1000;
            self.counters.throttling_us += micros;
            self.announce_holds();
        }
    }

    /// Announces the destinations whose senders wait, each with the client for which they have waited longest.
    fn announce_holds(&mut self) {
        let Self {
            throttle,
            sessions,
            groups,
            config,
            ..
        } = self;
        let throttling = |key: &usize| sessions.get(*key).and_then(Session::throttling);
        throttle.slow.retain(|key| throttling(key).is_some());
        let mut to = HoldFor::new();
        for key in &throttle.slow {
            let connection = sessions.get(*key).and_then(|session| session.connection);
            let client = connection.and_then(|connection| groups.member(connection).ok());
            if let (Some(throttling), Some(client)) = (throttling(key), client) {
                for held in &throttling.to {
                    to.entry(*held).or_insert(client.name);
                }
            }
        }
        groups.hold(to, config.throttle_ms);
    }

    /// Clients for whom senders have waited long enough skip or are disconnected; and waiting senders look now and
    /// then.
    pub(super) fn end_patience(&mut self, now: Time) {
        if !self.throttle.held.is_empty() && now >= self.throttle.look_at {
            self.look_at_holds();
        }
        if self.throttle.slow.is_empty() {
            return;
        }
        for key in self.throttle.slow.clone() {
            if self.patience_ends(key).is_some_and(|end| now >= end) {
                self.counters.throttled_long += 1;
                self.too_slow(key, "others have waited for it long enough");
            }
        }
    }

    /// The client of a session waits until something else is held.
    pub(super) fn hold_back(&mut self, key: usize, now: Time) {
        if self.throttle.held.is_empty() {
            self.throttle.look_at = now.after(LOOK_NANOS);
        }
        if let Some(session) = self.sessions.get_mut(key)
            && !std::mem::replace(&mut session.listed_as_held, true)
        {
            self.throttle.held.push(key);
        }
    }

    /// The waiting senders look again whether they still have to wait.
    pub(super) fn look_at_holds(&mut self) {
        for key in std::mem::take(&mut self.throttle.held) {
            if let Some(session) = self.sessions.get_mut(key) {
                session.listed_as_held = false;
            }
            self.schedule(key);
        }
    }
}

/// Counts a message for a client that is behind, by the destinations through which the client gets it.
pub(super) fn count(
    groups: &Groups,
    session: &mut Session,
    connection: Connection,
    (message, bytes): (&Received, usize),
) {
    let lag = session.lag.get_or_insert_default();
    if let [to] = message.to[..] {
        return lag.count(to, bytes);
    }
    let Ok(member) = groups.member(connection) else {
        return;
    };
    let mine = |to: &&Destination| match to {
        Destination::Group(group) => groups.is_wanted(connection, *group),
        Destination::Client(name, node) => *name == member.name && *node == member.daemon.node,
    };
    for to in message.to.iter().filter(mine) {
        lag.count(*to, bytes);
    }
}

impl Session {
    /// The destinations whose senders wait because of this client.
    pub fn throttling(&self) -> Option<&Throttling> {
        self.lag.as_ref()?.throttling.as_ref()
    }

    /// Lets a message of the client go on. Returns the time for which it has waited for another client, in nanoseconds.
    pub fn let_go(&mut self, now: Time) -> Option<u64> {
        let HeldFor { since, .. } = self.held_for.take()?;
        Some(now.since(since))
    }
}
