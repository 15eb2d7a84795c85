//! Clients and their groups: the requests of clients, and the events for each.

mod budget;
mod changes;
mod coming;
mod counters;
mod credit;
mod desk;
mod lists;
mod pace;
mod report;
mod rules;
mod slow;
mod sums;
mod telling;
mod throttle;
mod unread;

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;

use rota_core::contract::{Process, Time};
use rota_core::groups::{Connection, Directory, Groups, Limits};
use slab::Slab;

use crate::access::Access;
use crate::config::DaemonConfig;
use crate::door::{Door, Notice};
use crate::farewells::Farewells;
use crate::names::Names;
use crate::seats::ConnectionLimits;
use crate::session::{READ_BYTES, Session, Standing};
use crate::speech::{Encoded, Terms};
use crate::spread::Settings;
use crate::trace::ClientTrace;
use changes::Changes;
pub(crate) use counters::Counters;
use desk::Desk;
use lists::Lists;
use pace::Pace;
use rota_net::Complaints;
use sums::Sums;
use throttle::Throttle;
use unread::Unread;

/// Sessions that have their turn before the ring has its own: their requests have to take much less than a token-loss
/// time.
const TURNS_AT_ONCE: usize = 64;

/// The time between two sweeps for clients that take too long to come in or to go.
const SWEEP_NANOS: u64 = 500_000_000;

/// All clients of a daemon.
#[derive(Debug)]
pub(crate) struct Hub {
    pub door: Door,
    pub groups: Groups,
    pub access: Arc<Access>,
    names: Names,
    terms: Terms,
    spread: Arc<Settings>,
    sessions: Slab<Session>,
    by_connection: BTreeMap<Connection, usize>,
    /// Sessions whose clients have not said who they are, or that are going, oldest first.
    unsettled: VecDeque<(usize, u64)>,
    lists: Lists,
    changes: Changes,
    sums: Sums,
    unread: Unread,
    /// Sessions that have their turn next.
    work: VecDeque<usize>,
    /// Sessions with requests for which there was no room.
    stalled: Vec<usize>,
    /// Sessions that get credit back next.
    owing: Vec<usize>,
    /// Sessions that get a little credit back, with what else they are told or when it is time.
    owing_little: Vec<usize>,
    credit_at: Time,
    /// Sessions with bytes that were not offered to their sockets.
    dirty: Vec<usize>,
    /// The bytes of the ordered stream that these sessions have for their sockets.
    dirty_bytes: usize,
    /// Some of them have been dirty since before the last turn of the clients.
    dirty_long: bool,
    /// Sessions for which too much waits, and when they are looked at again.
    overfull: Vec<usize>,
    overfull_at: Time,
    /// Sessions that are being made to skip.
    skipping: Vec<usize>,
    /// Sessions that may be in groups that they may not be in, for want of room to have them leave.
    to_leave: Vec<usize>,
    throttle: Throttle,
    /// Sessions that asked for the status of the daemon.
    asked: Vec<(usize, u64)>,
    /// The trace of the events that clients see.
    pub trace: Option<ClientTrace>,
    notices: Vec<Notice>,
    scratch: Vec<u8>,
    /// The ring has delivered something since requests were last tried, so there may be room for more.
    moved: bool,
    encoded: Encoded,
    /// The kernel has just said that no socket is ready.
    pub looked: bool,
    newest: u64,
    invented: u32,
    sweep_at: Time,
    accept_at: Time,
    pace: Pace,
    /// The nodes of the ring's last configuration.
    members: Vec<u16>,
    config: DaemonConfig,
    pub counters: Counters,
    complaints: Complaints,
    farewells: Farewells,
}

impl Hub {
    pub fn new(
        me: Process,
        config: DaemonConfig,
        access: Arc<Access>,
        directory: Directory,
        spread: Arc<Settings>,
    ) -> io::Result<Self> {
        let (limits, terms) = bounds(&config);
        Ok(Self {
            door: Door::new(ConnectionLimits::new(config.per_address, config.per_user))?,
            groups: Groups::new(me, limits),
            access,
            names: Names::new(directory),
            terms,
            spread,
            sessions: Slab::new(),
            by_connection: BTreeMap::new(),
            unsettled: VecDeque::new(),
            lists: Lists::default(),
            changes: Changes::default(),
            sums: Sums::default(),
            unread: Unread::default(),
            work: VecDeque::new(),
            stalled: Vec::new(),
            owing: Vec::new(),
            owing_little: Vec::new(),
            credit_at: Time(0),
            dirty: Vec::new(),
            dirty_bytes: 0,
            dirty_long: false,
            overfull: Vec::new(),
            overfull_at: Time(0),
            skipping: Vec::new(),
            to_leave: Vec::new(),
            throttle: Throttle::default(),
            asked: Vec::new(),
            trace: None,
            notices: Vec::new(),
            scratch: vec![0; READ_BYTES],
            moved: false,
            encoded: Encoded::default(),
            looked: false,
            newest: 0,
            invented: 0,
            sweep_at: Time(0),
            accept_at: Time(0),
            pace: Pace::default(),
            members: Vec::new(),
            config,
            counters: Counters::default(),
            complaints: Complaints::default(),
            farewells: Farewells::default(),
        })
    }

    /// Whether there is something to do without waiting.
    pub fn has_work(&self) -> bool {
        let room = self.moved && !(self.stalled.is_empty() && self.to_leave.is_empty());
        let told = !self.dirty.is_empty() || self.groups.has_events();
        let turns = !self.work.is_empty() || !self.owing.is_empty();
        room || told || turns || self.door.has_work()
    }

    /// The next time at which there is work even without an event.
    pub fn next_wake(&self) -> Option<Time> {
        let sweep = (!self.unsettled.is_empty()).then_some(self.sweep_at);
        let accept = self.door.is_held.then_some(self.accept_at);
        let credit = (!self.owing_little.is_empty()).then_some(self.credit_at);
        let throttle = self.throttle_wake();
        let overfull = (!self.overfull.is_empty()).then_some(self.overfull_at);
        let lists = self.lists_wake();
        let changes = self.changes_wake();
        let unread = self.unread_wake();
        [
            sweep, accept, credit, throttle, overfull, lists, changes, unread,
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Takes in what clients ask for.
    pub fn serve(&mut self, now: Time) -> io::Result<()> {
        // A turn may also write what a client was told before.
        if let Some(trace) = &mut self.trace {
            trace.flush();
        }
        if !std::mem::take(&mut self.looked) {
            self.door.look()?;
        }
        self.door.take_notices(&mut self.notices);
        let mut notices = std::mem::take(&mut self.notices);
        for notice in notices.drain(..) {
            // The notice may be about a session that has ended since.
            if let Some(session) = self.sessions.get_mut(notice.key) {
                session.notice(notice);
                self.schedule(notice.key);
            }
        }
        self.notices = notices;
        self.end_patience(now);
        self.judge_overfull(now);
        self.give_memory_back(now);
        self.end_unread(now);
        self.give_credit(now);
        if std::mem::take(&mut self.moved) {
            self.go_on_leaving();
            for key in std::mem::take(&mut self.stalled) {
                if let Some(session) = self.sessions.get_mut(key) {
                    session.parked = false;
                }
                self.schedule(key);
            }
        }
        self.go_on_listing(now);
        self.go_on_changing(now);
        for _ in 0..self.work.len().min(TURNS_AT_ONCE) {
            if let Some(key) = self.work.pop_front() {
                self.turn(key, now);
            }
        }
        self.let_some_in(now);
        if now >= self.sweep_at {
            self.sweep(now);
        }
        self.hand_out();
        // A token that waits leaves before clients are woken.
        if self.dirty_long {
            self.flush();
        }
        self.dirty_long = !self.dirty.is_empty();
        if let Some(trace) = &mut self.trace {
            trace.flush();
        }
        Ok(())
    }

    /// The session has its turn with the next [`Self::serve`].
    fn schedule(&mut self, key: usize) {
        if let Some(session) = self.sessions.get_mut(key)
            && !std::mem::replace(&mut session.scheduled, true)
        {
            self.work.push_back(key);
        }
    }

    /// The session has its turn once the ring has delivered something.
    fn park(&mut self, key: usize) {
        if let Some(session) = self.sessions.get_mut(key)
            && !std::mem::replace(&mut session.parked, true)
        {
            self.stalled.push(key);
        }
    }

    /// Bytes of the session, if there are any, are offered to its socket with the next [`Self::flush`].
    fn offer(&mut self, key: usize) {
        if let Some(session) = self.sessions.get_mut(key)
            && session.speech.backlog() > 0
            && !std::mem::replace(&mut session.dirty, true)
        {
            self.dirty.push(key);
        }
    }

    /// Gives a session its turn: handles its requests.
    fn turn(&mut self, key: usize, now: Time) {
        let Some(session) = self.sessions.get_mut(key) else {
            return;
        };
        session.scheduled = false;
        let mut desk = Desk {
            key,
            groups: &mut self.groups,
            by_connection: &mut self.by_connection,
            invented: &mut self.invented,
            trace: self.trace.as_mut(),
            counters: &mut self.counters,
            complaints: &mut self.complaints,
            lists: &mut self.lists,
            changes: &mut self.changes,
            memory_bytes: self.config.client_memory_bytes,
            now,
        };
        let mut act = |session: &mut Session, names: &mut Names, ask| desk.act(session, names, ask);
        let standing = session.take_in(&mut self.scratch, &mut self.names, &mut act);
        let over = session.speech.is_ended();
        if over {
            session.write();
        }
        if over && session.connection.is_none() && session.speech.backlog() == 0 {
            session.hang_up();
        }
        let bye = over && session.connection.is_some();
        match standing {
            Standing::Gone(why) => self.end(key, &why),
            Standing::Garbled(why) => self.give_up(key, &why, now),
            _ if bye => self.end(key, "it has said so"),
            Standing::More => self.schedule(key),
            Standing::Stalled => {
                self.park(key);
                self.await_reader(key, now);
            }
            Standing::Asks => self.lists.asking.push(key),
            Standing::Changes => self.changes.waiting.push_back(key),
            Standing::Held => self.hold_back(key, now),
            Standing::Idle => {}
        }
        self.owe(key, now);
        self.count_kept(key);
        // The waiting bytes count only after the socket was offered them.
        self.offer(key);
    }
}

#[cfg(test)]
mod tests;

/// The limits of clients, and the part of them that clients are told.
fn bounds(config: &DaemonConfig) -> (Limits, Terms) {
    let limits = Limits {
        clients: config.clients,
        payload_bytes: config.message_bytes,
        client_memberships: config.client_memberships,
        ..Limits::default()
    };
    let number = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX);
    let terms = Terms {
        credit: number(limits.backlog_bytes),
        largest_payload: number(limits.payload_bytes),
    };
    (limits, terms)
}
