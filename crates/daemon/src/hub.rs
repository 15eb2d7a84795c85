//! Clients and their groups: who asked for what, and who is told what.

mod coming;
mod desk;
mod report;

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::Arc;

use rota_core::contract::{Delivery, Process, Time};
use rota_core::groups::{ClientEvent, Connection, Directory, Event, Groups, Limits};
use slab::Slab;

use crate::config::DaemonConfig;
use crate::door::{Door, Notice};
use crate::names::Names;
use crate::session::{READ_BYTES, Session, Standing};
use crate::speech::{Encoded, Terms};
use crate::spread::Settings;
use crate::trace::{self, ClientTrace};
use desk::Desk;

/// Sessions that have their turn before the ring has its own: what they ask for has to take much less than
/// a token-loss time.
const TURNS_AT_ONCE: usize = 64;

/// How often it is looked whether somebody takes too long to come in or to go.
const SWEEP_NANOS: u64 = 500_000_000;

/// Counters, for people.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counters {
    /// Clients let in.
    pub connected: u64,
    /// Clients not let in: for their name, or for want of room.
    pub refused: u64,
    /// Clients that did not say in time who they are.
    pub silent: u64,
    /// Clients that sent what is no request.
    pub garbled: u64,
    /// Clients disconnected because they did not read.
    pub slow: u64,
}

/// All clients of a daemon.
#[derive(Debug)]
pub(crate) struct Hub {
    pub door: Door,
    pub groups: Groups,
    names: Names,
    terms: Terms,
    spread: Arc<Settings>,
    sessions: Slab<Session>,
    by_connection: HashMap<Connection, usize>,
    /// Sessions whose clients have not said who they are, or that are going, oldest first.
    unsettled: VecDeque<(usize, u64)>,
    /// Sessions that have their turn next.
    work: VecDeque<usize>,
    /// Sessions with requests for which there was no room.
    stalled: Vec<usize>,
    /// Sessions that get credit back.
    owing: Vec<usize>,
    /// Sessions with bytes that were not offered to their sockets.
    dirty: Vec<usize>,
    /// Who wants to know how the daemon is.
    asked: Vec<(usize, u64)>,
    /// What clients see is written down.
    pub trace: Option<ClientTrace>,
    notices: Vec<Notice>,
    scratch: Vec<u8>,
    /// The ring has delivered something since requests were last tried: there may be room for more.
    moved: bool,
    encoded: Encoded,
    /// It was just looked which sockets are ready.
    pub looked: bool,
    newest: u64,
    invented: u32,
    sweep_at: Time,
    accept_at: Time,
    config: DaemonConfig,
    pub counters: Counters,
}

impl Hub {
    pub fn new(
        me: Process,
        config: DaemonConfig,
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
            door: Door::new()?,
            groups: Groups::new(me, limits),
            names: Names::new(directory),
            terms,
            spread,
            sessions: Slab::new(),
            by_connection: HashMap::new(),
            unsettled: VecDeque::new(),
            work: VecDeque::new(),
            stalled: Vec::new(),
            owing: Vec::new(),
            dirty: Vec::new(),
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
            config,
            counters: Counters::default(),
        })
    }

    /// Whether there is something to do without waiting.
    pub fn has_work(&mut self) -> io::Result<bool> {
        let room = self.moved && !self.stalled.is_empty();
        let mine = room || !self.work.is_empty() || !self.owing.is_empty();
        self.looked = true;
        Ok(self.door.look()? || mine)
    }

    /// When something is to be done though nothing happens.
    pub fn next_wake(&self) -> Option<Time> {
        let sweep = (!self.unsettled.is_empty()).then_some(self.sweep_at);
        let accept = self.door.is_held.then_some(self.accept_at);
        [sweep, accept].into_iter().flatten().min()
    }

    /// Takes in what clients ask for.
    pub fn serve(&mut self, now: Time) -> io::Result<()> {
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
        self.give_credit();
        if std::mem::take(&mut self.moved) {
            for key in std::mem::take(&mut self.stalled) {
                if let Some(session) = self.sessions.get_mut(key) {
                    session.parked = false;
                }
                self.schedule(key);
            }
        }
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
        self.flush();
        self.trace.as_mut().map_or(Ok(()), ClientTrace::check)
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

    /// Credit goes back a turn after it was earned: what a client sends at once is one frame of credit.
    fn give_credit(&mut self) {
        for key in std::mem::take(&mut self.owing) {
            if let Some(session) = self.sessions.get_mut(key) {
                session.speech.give_credit();
                self.offer(key);
            }
        }
    }

    /// Bytes of the session are offered to its socket with the next [`Self::flush`].
    fn offer(&mut self, key: usize) {
        if let Some(session) = self.sessions.get_mut(key)
            && !std::mem::replace(&mut session.dirty, true)
        {
            self.dirty.push(key);
        }
    }

    /// What the ring has delivered.
    pub fn deliver(&mut self, delivery: Delivery) {
        self.moved = true;
        self.groups.deliver(delivery);
        self.hand_out();
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
        for connection in &told.to {
            let Some(&key) = self.by_connection.get(connection) else {
                continue;
            };
            let Some(session) = self.sessions.get_mut(key) else {
                continue;
            };
            session.messages += u64::from(matches!(told.event, Event::Message(_)));
            session
                .speech
                .tell(&told.event, &mut self.encoded, &mut self.names);
            if let (Some(trace), Some(saw)) = (&mut self.trace, &saw)
                && let Ok(client) = self.groups.member(*connection)
            {
                trace.note(&client, saw.clone(), &mut self.names);
            }
            self.offer(key);
        }
    }

    /// Offers what waits for clients to their sockets.
    pub fn flush(&mut self) {
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
                self.end_if_slow(key);
            }
        }
    }

    /// Who does not read what it is sent would not read why it is disconnected, either.
    fn end_if_slow(&mut self, key: usize) {
        let session = self.sessions.get(key);
        let waits = session.map_or(0, |session| session.speech.backlog());
        if waits > self.config.client_queue_bytes {
            self.counters.slow += 1;
            self.end(key, "it does not read what it is sent");
        }
    }

    /// A session's turn: what it asks for, then what it is told.
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
        };
        let mut act = |session: &mut Session, names: &mut Names, ask| desk.act(session, names, ask);
        let standing = session.take_in(&mut self.scratch, &mut self.names, &mut act);
        session.write();
        if session.speech.owes() {
            self.owing.push(key);
        }
        let over = session.speech.is_ended();
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
            Standing::Idle => {}
        }
        self.end_if_slow(key);
    }
}
