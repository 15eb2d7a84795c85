//! Clients that come and go.

use std::sync::Arc;

use rota_check::event::ClientSaw;
use rota_client::protocol::Code;
use rota_core::contract::Time;
use rota_net::monotonic;

use super::pace::AT_ONCE;
use super::{Hub, SWEEP_NANOS};
use crate::access::Guest;
use crate::door::{Accepted, Comer, Port};
use crate::session::Session;
use crate::speech::{AdminSpeech, NativeSpeech, Speech, SpreadSpeech};

/// The pause before another attempt to let clients in, after one that could not be let in.
const AGAIN_NANOS: u64 = 50_000_000;

impl Hub {
    /// Lets in some of the waiting clients, now and then.
    pub(super) fn let_some_in(&mut self, now: Time) {
        if now < self.accept_at {
            return;
        }
        self.door.is_held = false;
        for count in 0..AT_ONCE {
            match self.door.accept() {
                Accepted::Nobody => {
                    self.hold(now, count);
                    return;
                }
                Accepted::NotNow => {
                    self.accept_at = now.after(AGAIN_NANOS);
                    self.door.is_held = true;
                    return;
                }
                Accepted::Refused => {}
                Accepted::Revoked(number) => self.revoke(number, now),
                Accepted::Comes(comer) => self.let_in(comer, now),
            }
        }
        self.hold(now, AT_ONCE);
    }

    /// Notes that this number of clients have come in: the next ones wait if that was much.
    fn hold(&mut self, now: Time, count: u64) {
        self.accept_at = self.pace.take(now, count);
        self.door.is_held = self.accept_at > now;
    }

    pub(super) fn let_in(&mut self, comer: Comer, now: Time) {
        let Comer {
            port,
            mut stream,
            peer,
            seat,
            tls,
        } = comer;
        if self.unsettled.len() >= self.config.handshakes {
            self.forget_settled();
        }
        if self.unsettled.len() >= self.config.handshakes {
            self.drop_oldest_unsettled();
        }
        let entry = self.sessions.vacant_entry();
        let key = entry.key();
        if let Err(error) = stream.register(self.door.registry(), mio::Token(key)) {
            let what = "a client cannot be let in";
            self.complaints.say(what, &peer, &error);
            return;
        }
        self.newest += 1;
        let rights = self.access.rights(&peer);
        let speech = match port {
            Port::Admin if rights.admin => {
                self.asked.push((key, self.newest));
                Speech::Admin(AdminSpeech::default())
            }
            Port::Admin => {
                self.counters.admins_not_allowed += 1;
                let reason = "somebody is not told how the daemon is: nothing allows it";
                self.complaints.say(reason, &peer, &"");
                Speech::Admin(AdminSpeech::refused())
            }
            Port::Native => Speech::Native(Box::new(NativeSpeech::new(self.terms))),
            Port::Spread => Speech::Spread(Box::new(SpreadSpeech::new(Arc::clone(&self.spread)))),
        };
        let guest = Guest {
            owner: peer.owner(),
            peer,
            rights,
            _seat: seat,
            tls,
        };
        entry.insert(Session::new(stream, speech, guest, self.newest, now));
        if self.unsettled.is_empty() {
            self.sweep_at = now.after(SWEEP_NANOS);
        }
        self.unsettled.push_back((key, self.newest));
        self.schedule(key);
    }

    /// Removes clients that were let in, or have gone, since the last sweep.
    fn forget_settled(&mut self) {
        let mut unsettled = std::mem::take(&mut self.unsettled);
        unsettled.retain(|&(key, number)| self.is_unsettled(key, number));
        self.unsettled = unsettled;
    }

    fn drop_oldest_unsettled(&mut self) {
        if let Some((key, _)) = self.unsettled.pop_front() {
            self.counters.silent += 1;
            self.forget(key);
        }
    }

    fn is_unsettled(&self, key: usize, number: u64) -> bool {
        let session = self.sessions.get(key);
        session.is_some_and(|session| session.number == number && !session.speech.is_open())
    }

    /// Drops sessions that have taken too long to come in or to go.
    pub(super) fn sweep(&mut self, now: Time) {
        self.sweep_at = now.after(SWEEP_NANOS);
        let patience = self.config.handshake_ms.saturating_mul(1_000_000);
        self.forget_settled();
        for _ in 0..self.unsettled.len() {
            let Some((key, number)) = self.unsettled.pop_front() else {
                break;
            };
            // A client that was given up is listed twice if it had not been let in.
            if !self.is_unsettled(key, number) {
                continue;
            }
            if now.since(self.sessions[key].since) < patience {
                self.unsettled.push_back((key, number));
                continue;
            }
            self.counters.silent += 1;
            self.forget(key);
        }
    }

    /// Reads nothing more of a client; the last frames for it, most often with the reason, may still arrive.
    pub(super) fn give_up(&mut self, key: usize, why: &str, now: Time) {
        self.counters.garbled += 1;
        self.disconnect(key, why);
        let Some(session) = self.sessions.get_mut(key) else {
            return;
        };
        session.since = now;
        session.hang_up();
        let number = session.number;
        self.unsettled.push_back((key, number));
    }

    /// The daemon stops: clients are told, as far as their sockets take it.
    pub fn close(&mut self) {
        for (_, session) in &mut self.sessions {
            session.speech.goodbye(Code::ShuttingDown);
            session.write_all();
            session.hang_up();
            if let Some(memory) = session.take_unread() {
                memory.leave();
            }
        }
        self.unread.leave();
    }

    /// A session is over.
    pub(super) fn end(&mut self, key: usize, why: &str) {
        self.disconnect(key, why);
        self.forget(key);
    }

    fn forget(&mut self, key: usize) {
        let mut session = self.sessions.remove(key);
        if let Some(memory) = session.take_unread() {
            self.unread.keep(monotonic(), memory);
        }
        self.dirty_bytes -= session.fresh;
        self.sums.change(session.guest.owner, session.counted, 0);
        // A client may have waited for this descriptor.
        self.door.try_again();
    }

    /// A client is not connected any more; all daemons are told in the order.
    pub(super) fn disconnect(&mut self, key: usize, why: &str) {
        let session = self.sessions.get_mut(key);
        let Some(connection) = session.and_then(|session| session.connection.take()) else {
            return;
        };
        let client = self.groups.member(connection);
        let name = client.map_or_else(|_| String::new(), |client| client.name.to_string());
        if let (Some(trace), Ok(client)) = (&mut self.trace, client) {
            trace.note(&client, ClientSaw::Disconnect, &mut self.names);
        }
        self.release(key);
        if let Some(before) = self.sessions[key].before.take() {
            self.by_connection.remove(&before);
        }
        self.farewells.say(&name, why);
        self.groups.disconnect(connection);
        self.by_connection.remove(&connection);
    }
}
