//! The way of clients' requests into the groups, and of the events of groups to clients: in steps, each of a bounded
//! number of bytes, between which the ring has its turn.
//!
//! A change of a large group is long, and goes to all of its members: the frames of one delivery may be a thousand
//! times as large as the delivery, and a new configuration brings a change of every group. So events are taken from the
//! groups only while few bytes wait that were not offered to sockets, sockets are offered a bounded number of bytes at
//! once, and the ring is asked for more when all of that is done.

use rota_core::contract::{Delivery, Time};
use rota_core::groups::{ClientEvent, Directory, Event};

use super::Clientele;
use crate::hub::askers::UNREAD_NANOS;
use crate::hub::counters::Counter;
use crate::hub::fanout::MOST_BYTES;
use crate::hub::requests::Requests;
use crate::hub::throttle;
use crate::hub::turns::WaitsFor;
use crate::names::Names;
use crate::session::{Session, Standing};

/// The cost of telling a client something, or of writing for it, in bytes.
const CLIENT_COST: usize = 256;

impl Clientele {
    /// Daemons have these names from now on.
    pub fn rename(&mut self, directory: Directory) {
        self.names.rename(directory);
    }

    /// Time has passed: clients that have had time enough are judged, and those that wait have what there is by now.
    pub fn pass(&mut self, now: Time) {
        self.end_patience(now);
        self.judge_overfull(now);
        self.unread.give_back(now);
        self.end_unread(now);
        self.give_credit(now);
        if let Some(count) = self.turns.take_moved() {
            for _ in 0..count {
                if let Some(key) = self.turns.next_leaving() {
                    // Another client may have its place by now, which is as well.
                    self.leave_forbidden(key);
                }
            }
            self.turns.retry_requests();
        }
        self.turns.pass(now);
    }

    /// Gives sessions their turns, as many as may have theirs before the ring.
    pub fn take_turns(&mut self, scratch: &mut [u8], now: Time) {
        for _ in 0..self.turns.count() {
            if let Some(key) = self.turns.next() {
                self.turn(key, scratch, now);
            }
        }
    }

    /// Gives a session its turn: handles its requests.
    fn turn(&mut self, key: usize, scratch: &mut [u8], now: Time) {
        let Some((session, connections)) = self.sessions.with_connections(key) else {
            return;
        };
        let mut requests = Requests {
            key,
            groups: &mut self.groups,
            connections,
            journal: &mut self.journal,
            turns: &mut self.turns,
            memory_bytes: self.policy.memory_bytes,
            now,
        };
        let mut act =
            |session: &mut Session, names: &mut Names, ask| requests.act(session, names, ask);
        let standing = session.take_in(scratch, &mut self.names, &mut act);
        let over = session.speech().is_ended();
        if over {
            session.write();
        }
        let is_connected = session.connection().is_some();
        if over && !is_connected && session.speech().backlog() == 0 {
            session.hang_up();
        }
        match standing {
            Standing::Gone(why) => self.end(key, &why),
            Standing::Garbled(why) => self.give_up(key, &why, now),
            _ if over && is_connected => self.end(key, "it has said so"),
            Standing::More => self.turns.schedule(key),
            Standing::Stalled => {
                self.turns.wait(key, WaitsFor::Room);
                self.await_reader(key, now);
            }
            Standing::Asks => self.turns.wait(key, WaitsFor::Lists),
            Standing::Changes => self.turns.wait(key, WaitsFor::Changes),
            Standing::Held => self.throttle.wait_for_slow(key, now),
            Standing::Idle => {}
        }
        if let Some(session) = self.sessions.get(key) {
            self.credit.owe(key, session.speech(), now);
        }
        self.count_kept(key);
        // The waiting bytes count only after the socket was offered them.
        if let Some(session) = self.sessions.get(key) {
            self.fanout.offer(key, session);
        }
    }

    /// A client has to read before its question is answered.
    fn await_reader(&mut self, key: usize, now: Time) {
        if let Some(session) = self.sessions.get(key)
            && session.is_asking()
        {
            self.askers.watch((key, session.number()), now);
        }
    }

    /// Clients that ask and do not read are disconnected in the end.
    fn end_unread(&mut self, now: Time) {
        while let Some((key, number)) = self.askers.next_due(now) {
            let Some(session) = self.sessions.numbered((key, number)) else {
                continue;
            };
            if session.is_asking() && session.unread_nanos(now) >= UNREAD_NANOS {
                self.journal.count(Counter::Slow);
                self.end(key, "it asks, and does not read what it is answered");
            } else {
                self.await_reader(key, now);
            }
        }
    }

    /// Gives credit back that was earned before this turn.
    fn give_credit(&mut self, now: Time) {
        for _ in 0..self.credit.pass(now) {
            if let Some(key) = self.credit.next()
                && let Some(session) = self.sessions.get_mut(key)
            {
                session.speech_mut().give_credit();
                self.fanout.offer(key, session);
            }
        }
    }

    /// Takes one delivery of the ring.
    pub fn deliver(&mut self, delivery: Delivery) {
        self.turns.moved();
        self.groups.deliver(delivery);
        self.hand_out();
        if self.groups.holds_changed() {
            self.look_at_holds();
        }
    }

    /// Tells clients the events of the groups, as far as there is room for them.
    fn hand_out(&mut self) {
        let mut cost = 0;
        while self.fanout.has_room() && cost < MOST_BYTES {
            let Some(event) = self.groups.poll_event() else {
                break;
            };
            cost += CLIENT_COST * (1 + event.to.len());
            self.tell(&event);
        }
        if !self.skipping.is_empty() && !self.groups.has_events() {
            self.end_skips();
        }
    }

    fn tell(&mut self, told: &ClientEvent) {
        self.fanout.begin();
        let saw = self.journal.saw(&told.event, &mut self.names);
        let mut cost = 0;
        for connection in told.to.iter() {
            let Some((key, session)) = self.sessions.at(*connection) else {
                continue;
            };
            let to = (key, &mut *session);
            let more = self
                .fanout
                .tell(to, *connection, &told.event, &mut self.names);
            let Some(more) = more else {
                continue;
            };
            cost += more.bytes as u64;
            if self.policy.may_throttle
                && more.waiting > session.lag().limit(self.policy.queue_bytes) / 4
                && let Event::Message(message) = &told.event
            {
                let message = (message, more.bytes);
                throttle::count(&self.groups, session, *connection, message);
            }
            if let Some(saw) = &saw
                && let Ok(client) = self.groups.member(*connection)
            {
                self.journal.note(&client, saw.clone(), &mut self.names);
            }
        }
        if let Event::View(view) = &told.event {
            self.turns.change_told(view.group, cost);
        }
    }

    /// Whether the ring may deliver something: the waiting bytes have to be offered to clients before more come.
    pub fn has_room(&self) -> bool {
        self.fanout.has_room() && !self.groups.has_events()
    }

    /// The turns are over: clients are told what is left. A token that waits leaves before clients are woken, so their
    /// sockets are offered only what has waited since the turn before.
    pub fn end_turns(&mut self) {
        self.hand_out();
        if self.fanout.is_late() {
            self.flush();
        }
        self.fanout.age();
        self.journal.flush();
    }

    /// Offers the waiting bytes of clients to their sockets if they are many, or have waited for a turn.
    pub fn flush_if_due(&mut self) {
        if self.fanout.is_due() {
            self.flush();
        }
    }

    /// Offers the waiting bytes of clients to their sockets, as many as can be done at once; the next turn has the
    /// rest.
    pub fn flush(&mut self) {
        self.journal.flush();
        let (mut left, mut bytes) = (self.fanout.len(), 0);
        while left > 0
            && bytes < MOST_BYTES
            && let Some(key) = self.fanout.next()
        {
            bytes += CLIENT_COST + self.write(key);
            left -= 1;
        }
        self.fanout.age();
        if self.groups.has_events() {
            self.hand_out();
        }
    }

    /// Offers what waits for a client to its socket; says how much that has taken.
    fn write(&mut self, key: usize) -> usize {
        let Some(session) = self.sessions.get_mut(key) else {
            return 0;
        };
        self.fanout.withdraw(session);
        let could = !session.is_deaf();
        let bytes = session.write();
        if could && session.is_deaf() {
            // Bytes that the client sent before it went still count.
            self.turns.schedule(key);
            return bytes;
        }
        let (over, waits) = (session.speech().is_ended(), session.is_stalled());
        if session.can_write() {
            self.fanout.offer(key, session);
        } else if over && session.speech().backlog() == 0 || waits && bytes > 0 {
            // The session hangs up, or has room for the answer to its question.
            self.turns.schedule(key);
        }
        self.mind_queue(key);
        self.count_kept(key);
        bytes
    }
}
