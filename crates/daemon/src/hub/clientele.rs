//! The clients of a daemon and their groups: what becomes of their requests, and of the events for them.
//!
//! The state is in machines, each of which knows one thing: the sessions, whose turn it is, what was not offered to
//! sockets yet, who waits for whom. This type leads from one to the other. `telling` has the way of requests and events,
//! `slow` what becomes of clients that do not read.

mod slow;
mod telling;

use rota_client::protocol::Code;
use rota_core::contract::{Process, Time};
use rota_core::groups::{Directory, Groups, Limits, RequestError};
use rota_net::monotonic;
use rota_trace::event::ClientSaw;

use super::askers::Askers;
use super::counters::Counter;
use super::credit::Credit;
use super::fanout::Fanout;
use super::journal::Journal;
use super::overfull::Overfull;
use super::policy::QueuePolicy;
use super::report::{client_status, hold_status};
use super::sessions::Sessions;
use super::sums::Sums;
use super::throttle::Throttle;
use super::turns::Turns;
use super::unread::Unread;
use crate::access::Access;
use crate::config::DaemonConfig;
use crate::door::Notice;
use crate::keys::KeyQueue;
use crate::names::Names;
use crate::session::Session;
use crate::speech::Speech;
use crate::status::{ClientStatus, HoldStatus};

/// The clients, and the machines that have their state.
#[derive(Debug)]
pub(super) struct Clientele {
    sessions: Sessions,
    groups: Groups,
    names: Names,
    journal: Journal,
    turns: Turns,
    fanout: Fanout,
    credit: Credit,
    askers: Askers,
    overfull: Overfull,
    /// Sessions that are being made to skip.
    skipping: KeyQueue,
    throttle: Throttle,
    sums: Sums,
    unread: Unread,
    policy: QueuePolicy,
    departures: Departures,
}

/// Sessions that are over or going, for the door and the admission.
#[derive(Debug, Default)]
pub(super) struct Departures {
    /// Sessions have ended, and with them their sockets.
    pub over: bool,
    /// Sessions that are going, by key and number: their clients may still take what they are sent.
    pub going: Vec<(usize, u64)>,
}

impl Clientele {
    /// No clients yet, of daemon `me`.
    pub fn new(me: Process, limits: Limits, config: &DaemonConfig, directory: Directory) -> Self {
        Self {
            sessions: Sessions::default(),
            groups: Groups::new(me, limits),
            names: Names::new(directory),
            journal: Journal::default(),
            turns: Turns::default(),
            fanout: Fanout::default(),
            credit: Credit::default(),
            askers: Askers::default(),
            overfull: Overfull::default(),
            skipping: KeyQueue::default(),
            throttle: Throttle::default(),
            sums: Sums::default(),
            unread: Unread::default(),
            policy: QueuePolicy::of(config),
            departures: Departures::default(),
        }
    }

    /// The groups of the clients.
    pub const fn groups(&self) -> &Groups {
        &self.groups
    }

    /// The groups, to hand their requests to the ring.
    pub const fn groups_mut(&mut self) -> &mut Groups {
        &mut self.groups
    }

    /// What is written down of clients.
    pub const fn journal(&mut self) -> &mut Journal {
        &mut self.journal
    }

    /// The name of this daemon, as clients see it.
    pub fn name(&self) -> String {
        let directory = self.names.directory();
        directory.daemon(self.groups.me().node)
    }

    /// Whether there is something to do without waiting.
    pub fn has_work(&self) -> bool {
        let told = self.fanout.has_work() || self.groups.has_events();
        told || self.turns.has_work() || self.credit.has_work()
    }

    /// The next time at which there is work even without an event.
    pub fn next_wake(&self) -> Option<Time> {
        let wakes = [
            self.turns.next_wake(),
            self.credit.next_wake(),
            self.askers.next_wake(),
            self.overfull.next_wake(),
            self.throttle
                .next_wake(&self.sessions, self.policy.throttle_ms),
            self.unread.next_wake(),
        ];
        wakes.into_iter().flatten().min()
    }

    /// Takes over what the kernel has said of a socket.
    pub fn notice(&mut self, notice: Notice) {
        // The notice may be about a session that has ended since.
        if let Some(session) = self.sessions.get_mut(notice.key) {
            session.notice(notice);
            self.turns.schedule(notice.key);
        }
    }

    /// The key of the next session, which is the token of its socket.
    pub fn vacant_key(&self) -> usize {
        self.sessions.vacant_key()
    }

    /// A session begins, under the key that was vacant; `make` gets its number. Returns both.
    pub fn begin(&mut self, make: impl FnOnce(u64) -> Session) -> (usize, u64) {
        let (key, number) = self.sessions.insert(make);
        self.turns.schedule(key);
        (key, number)
    }

    /// The time at which the client of this session came, or was told to go; `None` if it was let in, or the session is
    /// over.
    pub fn unsettled_since(&self, (key, number): (usize, u64)) -> Option<Time> {
        let session = self.sessions.get(key)?;
        let is_unsettled = session.number() == number && !session.speech().is_open();
        is_unsettled.then(|| session.since())
    }

    /// A client has not said in time who it is, or not gone in time.
    pub fn drop_silent(&mut self, key: usize) {
        self.journal.count(Counter::Silent);
        self.forget(key);
    }

    /// The sessions that are over or going since the last call.
    pub fn take_departures(&mut self) -> Departures {
        std::mem::take(&mut self.departures)
    }

    /// Reads nothing more of a client; the last frames for it, most often with the reason, may still arrive.
    fn give_up(&mut self, key: usize, why: &str, now: Time) {
        self.journal.count(Counter::Garbled);
        self.disconnect(key, why);
        let Some(session) = self.sessions.get_mut(key) else {
            return;
        };
        session.goes(now);
        session.hang_up();
        self.departures.going.push((key, session.number()));
    }

    /// The daemon stops: clients are told, as far as their sockets take it.
    pub fn close(&mut self) {
        for (_, session) in self.sessions.iter_mut() {
            session.speech_mut().goodbye(Code::ShuttingDown);
            session.write_all();
            session.hang_up();
            if let Some(memory) = session.take_unread() {
                memory.leave();
            }
        }
        self.unread.leave();
    }

    /// A session is over.
    fn end(&mut self, key: usize, why: &str) {
        self.disconnect(key, why);
        self.forget(key);
    }

    fn forget(&mut self, key: usize) {
        let mut session = self.sessions.remove(key);
        if let Some(memory) = session.take_unread() {
            self.unread.keep(monotonic(), memory);
        }
        self.fanout.withdraw(&mut session);
        let counted = session.counted();
        self.sums.change(session.guest().owner, counted, 0);
        self.departures.over = true;
    }

    /// A client is not connected any more; all daemons are told in the order.
    fn disconnect(&mut self, key: usize, why: &str) {
        let session = self.sessions.get(key);
        let Some(connection) = session.and_then(Session::connection) else {
            return;
        };
        let client = self.groups.member(connection);
        let name = client.map_or_else(|_| String::new(), |client| client.name.to_string());
        if let Ok(client) = client {
            let saw = ClientSaw::Disconnect;
            self.journal.note(&client, saw, &mut self.names);
        }
        if let Some((session, connections)) = self.sessions.with_connections(key) {
            let ended = session.disconnect();
            ended.all().for_each(|one| connections.remove(one));
        }
        self.release(key);
        self.journal.farewell(&name, why);
        self.groups.disconnect(connection);
    }

    /// Other settings are in force from now on.
    pub fn reconfigure(&mut self, config: &DaemonConfig) {
        self.groups.limit_clients(config.clients);
        self.policy = QueuePolicy::of(config);
    }

    /// Applies other rules to clients that are connected already.
    pub fn obey(&mut self, access: &Access, now: Time) {
        for key in self.sessions.keys() {
            let Some(session) = self.sessions.get_mut(key) else {
                continue;
            };
            session.set_rights(access.rights(&session.guest().peer));
            if session.connection().is_none() {
                continue;
            }
            if session.guest().rights.connect {
                self.leave_forbidden(key);
            } else {
                self.journal.count(Counter::Dismissed);
                let reason = "a client is disconnected: new rules do not let it connect";
                self.journal.complain(reason, &session.guest().peer, &"");
                self.dismiss(key, "rules do not let it connect any more", now);
            }
        }
    }

    /// The certificate of a client was revoked: of the one with this number among those that came by TLS.
    pub fn revoke(&mut self, number: u64, now: Time) {
        let is_its = |session: &Session| session.guest().tls == Some(number);
        let its = self.sessions.iter().find(|(_, session)| is_its(session));
        if let Some(key) = its.map(|(key, _)| key) {
            self.dismiss(key, "its certificate has been revoked", now);
        }
    }

    /// A client may not be one any more, and is told so, if its protocol has words for that.
    fn dismiss(&mut self, key: usize, why: &str, now: Time) {
        let Some(session) = self.sessions.get_mut(key) else {
            return;
        };
        session.speech_mut().goodbye(Code::NotAllowed);
        session.write_all();
        session.goes(now);
        let (number, can_wait) = (session.number(), session.speech().is_ended());
        if !can_wait {
            // Its protocol has no words for it, or it has not said who it is.
            return self.end(key, why);
        }
        self.disconnect(key, why);
        // It hangs up when its client has been sent everything.
        self.departures.going.push((key, number));
        self.turns.schedule(key);
    }

    /// The client leaves the groups that it may not be in. They are told in the order, and so is the client.
    fn leave_forbidden(&mut self, key: usize) {
        let Some(session) = self.sessions.get_mut(key) else {
            return;
        };
        let Some(connection) = session.connection() else {
            return;
        };
        for group in self.groups.wanted(connection) {
            if session.guest().rights.may_join(&group) {
                continue;
            }
            match self.groups.leave(connection, group) {
                Ok(()) => {}
                Err(RequestError::Full) => {
                    self.turns.leave_later(key);
                    return;
                }
                Err(_) => return,
            }
            self.journal.count(Counter::MembershipsEnded);
            let reason = "a client is made to leave a group: new rules do not let it be there";
            self.journal.complain(reason, &session.guest().peer, &group);
            session.speech_mut().expel(group);
            if self.journal.is_tracing()
                && let Ok(client) = self.groups.member(connection)
            {
                let leave = ClientSaw::Leave(group.to_string());
                self.journal.note(&client, leave, &mut self.names);
            }
        }
    }

    /// The number of connections that clients have.
    pub fn connections(&self) -> usize {
        self.sessions.connections().len()
    }

    /// The status of each client, by name.
    pub fn clients(&mut self) -> Vec<ClientStatus> {
        let Self {
            sessions,
            groups,
            names,
            ..
        } = self;
        let now = monotonic();
        let mut clients: Vec<ClientStatus> = sessions
            .iter()
            .filter_map(|(_, session)| {
                let member = groups.member(session.connection()?).ok()?;
                Some(client_status(session, &member, names, now))
            })
            .collect();
        clients.sort_by(|a, b| a.name.cmp(&b.name));
        clients
    }

    /// The destinations whose senders wait, of all daemons.
    pub fn holds(&mut self) -> Vec<HoldStatus> {
        let names = &mut self.names;
        let holds = self.groups.holds();
        holds.map(|hold| hold_status(hold, names)).collect()
    }

    /// Answers one that asked for the status.
    pub fn answer(&mut self, asked: (usize, u64), line: &str) {
        let session = self.sessions.numbered(asked);
        if let Some(Speech::Admin(speech)) = session.map(Session::speech_mut) {
            speech.answer(line);
            self.turns.schedule(asked.0);
        }
    }

    /// What holds between inputs; for debug builds.
    pub fn check(&self) {
        self.sessions.check();
        self.turns.check();
        if let Some(fresh) = self.sessions.fresh() {
            self.fanout.check(fresh);
        }
        self.credit.check();
        self.askers.check();
        self.overfull.check();
        self.skipping.check();
        self.throttle.check();
        self.sums.check();
    }

    #[cfg(test)]
    pub const fn sessions(&self) -> &Sessions {
        &self.sessions
    }

    #[cfg(test)]
    pub const fn told_bytes(&self) -> usize {
        self.fanout.bytes()
    }

    #[cfg(test)]
    pub fn has_waiting_changes(&self) -> bool {
        self.turns.has_waiting_changes()
    }

    #[cfg(test)]
    pub fn watches_askers(&self) -> bool {
        self.askers.next_wake().is_some()
    }
}
