//! Clients and their groups: who asked for what, and who is told what.

mod coming;
mod counters;
mod credit;
mod desk;
mod pace;
mod report;
mod rules;
mod slow;
mod throttle;

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;

use rota_core::contract::{Delivery, Process, Time};
use rota_core::groups::{ClientEvent, Connection, Directory, Event, Groups, Limits};
use slab::Slab;

use crate::access::Access;
use crate::complaints::{Complaints, Farewells};
use crate::config::DaemonConfig;
use crate::door::{Door, Notice};
use crate::names::Names;
use crate::session::{READ_BYTES, Session, Standing};
use crate::speech::{Encoded, Terms};
use crate::spread::Settings;
use crate::trace::{self, ClientTrace};
pub(crate) use counters::Counters;
use desk::Desk;
use pace::Pace;
use throttle::Throttle;

/// Sessions that have their turn before the ring has its own: what they ask for has to take much less than
/// a token-loss time.
const TURNS_AT_ONCE: usize = 64;

/// Bytes for clients that are offered to their sockets before the loop rests.
const MUCH_BYTES: usize = 64 << 10;

/// With so much that was not offered to clients nothing more is taken of the ring.
const MOST_BYTES: usize = 4 << 20;

/// How often it is looked whether somebody takes too long to come in or to go.
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
    /// What lists have cost since the ring had its turn.
    listed: usize,
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
    /// About how many bytes these are.
    dirty_bytes: usize,
    /// Some have been so since before the last turn of the clients.
    dirty_long: bool,
    /// Sessions that are being made to skip.
    skipping: Vec<usize>,
    /// Sessions that may be in groups that they may not be in, for want of room to have them leave.
    to_leave: Vec<usize>,
    throttle: Throttle,
    /// Who wants to know how the daemon is.
    asked: Vec<(usize, u64)>,
    /// What clients see is written down.
    pub trace: Option<ClientTrace>,
    notices: Vec<Notice>,
    scratch: Vec<u8>,
    /// The ring has delivered something since requests were last tried: there may be room for more.
    moved: bool,
    encoded: Encoded,
    /// The kernel has just said that no socket is ready.
    pub looked: bool,
    newest: u64,
    invented: u32,
    sweep_at: Time,
    accept_at: Time,
    pace: Pace,
    /// Who is on the ring, as of the last configuration.
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
        let limits = Limits {
            clients: config.clients,
            payload_bytes: config.message_bytes,
            ..Limits::default()
        };
        let number = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX);
        let terms = Terms {
            credit: number(limits.backlog_bytes),
            largest_payload: number(limits.payload_bytes),
        };
        Ok(Self {
            door: Door::new(config.per_address)?,
            groups: Groups::new(me, limits),
            access,
            names: Names::new(directory),
            terms,
            spread,
            sessions: Slab::new(),
            by_connection: BTreeMap::new(),
            unsettled: VecDeque::new(),
            listed: 0,
            work: VecDeque::new(),
            stalled: Vec::new(),
            owing: Vec::new(),
            owing_little: Vec::new(),
            credit_at: Time(0),
            dirty: Vec::new(),
            dirty_bytes: 0,
            dirty_long: false,
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
        room || self.door.has_work() || !self.work.is_empty() || !self.owing.is_empty()
    }

    /// When something is to be done though nothing happens.
    pub fn next_wake(&self) -> Option<Time> {
        let sweep = (!self.unsettled.is_empty()).then_some(self.sweep_at);
        let accept = self.door.is_held.then_some(self.accept_at);
        let credit = (!self.owing_little.is_empty()).then_some(self.credit_at);
        let throttle = self.throttle_wake();
        [sweep, accept, credit, throttle]
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
            // It may be about a session that has ended since.
            if let Some(session) = self.sessions.get_mut(notice.key) {
                session.notice(notice);
                self.schedule(notice.key);
            }
        }
        self.notices = notices;
        self.end_patience(now);
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
        self.listed = 0;
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
        self.trace.as_mut().map_or(Ok(()), ClientTrace::write)
    }

    /// Offers what waits for clients to their sockets if it is much, or has waited for a turn.
    pub fn flush_if_due(&mut self) {
        if self.dirty_long || self.dirty_bytes >= MUCH_BYTES {
            self.flush();
        }
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

    /// What the ring has delivered.
    pub fn deliver(&mut self, delivery: Delivery) {
        self.moved = true;
        if let Delivery::Configuration(now) = &delivery {
            self.members = now.members.iter().map(|member| member.node.get()).collect();
        }
        self.groups.deliver(delivery);
        self.hand_out();
        if self.groups.holds_changed() {
            self.look_at_holds();
        }
        if !self.skipping.is_empty() {
            self.end_skips();
        }
    }

    fn hand_out(&mut self) {
        while let Some(event) = self.groups.poll_event() {
            self.tell(&event);
        }
    }

    fn tell(&mut self, told: &ClientEvent) {
        self.encoded.clear();
        let traced = self.trace.as_ref();
        let saw = traced.and_then(|_| trace::saw(&told.event, &mut self.names));
        for connection in told.to.iter() {
            let Some(&key) = self.by_connection.get(connection) else {
                continue;
            };
            let Some(session) = self.sessions.get_mut(key) else {
                continue;
            };
            if session.before == Some(*connection) {
                session.speech.miss(&told.event);
                self.offer(key);
                continue;
            }
            session.messages += u64::from(matches!(told.event, Event::Message(_)));
            let before = session.speech.backlog();
            session
                .speech
                .tell(&told.event, &mut self.encoded, &mut self.names);
            let backlog = session.speech.backlog();
            let more = backlog.saturating_sub(before);
            self.dirty_bytes += more;
            session.largest = session.largest.max(more);
            if self.config.may_throttle()
                && backlog > session.queue_limit(self.config.client_queue_bytes) / 4
                && let Event::Message(message) = &told.event
            {
                throttle::count(&self.groups, session, *connection, (message, more));
            }
            if let (Some(trace), Some(saw)) = (&mut self.trace, &saw)
                && let Ok(client) = self.groups.member(*connection)
            {
                trace.note(&client, saw.clone(), &mut self.names);
            }
            self.offer(key);
        }
    }

    /// Whether clients should be offered what waits for them before there is more: who reads must not be taken for one that does
    /// not, and the ring must not wait for long.
    pub const fn has_room(&self) -> bool {
        self.dirty_bytes < MOST_BYTES
    }

    /// Offers what waits for clients to their sockets.
    pub fn flush(&mut self) {
        self.dirty_bytes = 0;
        self.dirty_long = false;
        if let Some(trace) = &mut self.trace {
            trace.flush();
        }
        for key in std::mem::take(&mut self.dirty) {
            let Some(session) = self.sessions.get_mut(key) else {
                continue;
            };
            let could = !session.is_deaf();
            session.write();
            if could && session.is_deaf() {
                // What it sent before it went still counts.
                self.schedule(key);
            } else {
                self.mind_queue(key);
            }
        }
    }

    /// A session's turn: what it asks for.
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
            listed: &mut self.listed,
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
            Standing::Stalled => self.park(key),
            Standing::Held => self.hold_back(key, now),
            Standing::Idle => {}
        }
        self.owe(key, now);
        // How much waits for it counts when its socket has been offered that.
        self.offer(key);
    }
}
