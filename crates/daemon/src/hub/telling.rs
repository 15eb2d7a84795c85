//! The events of the ring, told to clients: in steps, each of a bounded number of bytes, between which the ring has its
//! turn.
//!
//! A change of a large group is long, and goes to all of its members: the frames of one delivery may be a thousand
//! times as large as the delivery, and a new configuration brings a change of every group. So events are taken from the
//! groups only while few bytes wait that were not offered to sockets, sockets are offered a bounded number of bytes at
//! once, and the ring is asked for more when all of that is done.

use rota_core::contract::Delivery;
use rota_core::groups::{ClientEvent, Event};

use super::{Hub, throttle};
use crate::trace;

/// Bytes for clients that are offered to their sockets before the loop rests.
const MUCH_BYTES: usize = 64 << 10;

/// With this many bytes that were not offered to clients, no client is told anything more, and this many are offered at
/// once: about a millisecond's work, for which the ring waits each time that it goes round.
pub(super) const MOST_BYTES: usize = 1 << 20;

/// The cost of telling a client something, or of writing for it, in bytes.
const CLIENT_COST: usize = 256;

impl Hub {
    /// Takes one delivery of the ring.
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
    }

    /// Tells clients the events of the groups, as far as there is room for them.
    pub(super) fn hand_out(&mut self) {
        let mut cost = 0;
        while self.dirty_bytes.max(cost) < MOST_BYTES {
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
        self.encoded.clear();
        let traced = self.trace.as_ref();
        let saw = traced.and_then(|_| trace::saw(&told.event, &mut self.names));
        let mut cost = 0;
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
            session.fresh += more;
            cost += more as u64;
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
        if let Event::View(view) = &told.event {
            self.changes.told(view.group, cost);
        }
    }

    /// Whether the ring may deliver something: the waiting bytes have to be offered to clients before more come. A
    /// client that reads must not be taken for one that does not, and the ring must not wait for long.
    pub fn has_room(&self) -> bool {
        self.dirty_bytes < MOST_BYTES && !self.groups.has_events()
    }

    /// Offers the waiting bytes of clients to their sockets if they are many, or have waited for a turn.
    pub fn flush_if_due(&mut self) {
        if self.dirty_long || self.dirty_bytes >= MUCH_BYTES {
            self.flush();
        }
    }

    /// Offers the waiting bytes of clients to their sockets, as many as can be done at once; the next turn has the
    /// rest.
    pub fn flush(&mut self) {
        if let Some(trace) = &mut self.trace {
            trace.flush();
        }
        let dirty = std::mem::take(&mut self.dirty);
        let (mut done, mut bytes) = (0, 0);
        while done < dirty.len() && bytes < MOST_BYTES {
            bytes += CLIENT_COST + self.write(dirty[done]);
            done += 1;
        }
        self.dirty.extend_from_slice(&dirty[done..]);
        self.dirty_long = !self.dirty.is_empty();
        if self.groups.has_events() {
            self.hand_out();
        }
    }

    /// Offers what waits for a client to its socket; says how much that has taken.
    fn write(&mut self, key: usize) -> usize {
        let Some(session) = self.sessions.get_mut(key) else {
            return 0;
        };
        self.dirty_bytes -= std::mem::take(&mut session.fresh);
        let could = !session.is_deaf();
        let bytes = session.write();
        if could && session.is_deaf() {
            // Bytes that the client sent before it went still count.
            self.schedule(key);
            return bytes;
        }
        let (over, waits) = (session.speech.is_ended(), session.is_stalled());
        if session.can_write() {
            self.offer(key);
        } else if over && session.speech.backlog() == 0 || waits && bytes > 0 {
            // The session hangs up, or has room for the answer to its question.
            self.schedule(key);
        }
        self.mind_queue(key);
        self.count_kept(key);
        bytes
    }
}
