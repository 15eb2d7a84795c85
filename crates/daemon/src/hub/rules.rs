//! Other settings and rules, while clients are connected.

use std::sync::Arc;

use rota_check::event::ClientSaw;
use rota_client::protocol::Code;
use rota_core::contract::Time;
use rota_core::groups::RequestError;

use super::Hub;
use crate::door::Port;
use crate::reload::NewSettings;
use crate::tls::Terms;

impl Hub {
    /// Replaces the settings that can change while clients are connected. Connected clients stay, except those that the
    /// new rules do not let connect.
    pub fn reconfigure(&mut self, settings: NewSettings, now: Time) {
        let NewSettings {
            config,
            access,
            certificates,
        } = settings;
        self.groups.limit_clients(config.clients);
        let spread = config.spread.clone().unwrap_or_default();
        self.door.allow(Port::Spread, &spread.allow);
        if let Some(certificates) = certificates {
            self.door.change_tls(Terms::new(&config, certificates));
        }
        self.config = config;
        let before = std::mem::replace(&mut self.access, Arc::new(access));
        // The modes of the sockets change last: a peer that can open a socket only now finds the new rules in force.
        self.obey(now);
        self.door.open_as(&before, &self.access);
    }

    /// Applies the rules to clients that are connected already.
    fn obey(&mut self, now: Time) {
        let keys: Vec<usize> = self.sessions.iter().map(|(key, _)| key).collect();
        for key in keys {
            let session = &mut self.sessions[key];
            session.guest.rights = self.access.rights(&session.guest.peer);
            if session.connection.is_none() {
                continue;
            }
            if session.guest.rights.connect {
                self.leave_forbidden(key);
            } else {
                self.counters.dismissed += 1;
                let reason = "a client is disconnected: new rules do not let it connect";
                self.complaints.say(reason, &session.guest.peer, &"");
                self.dismiss(key, "rules do not let it connect any more", now);
            }
        }
    }

    /// The certificate of a client was revoked.
    pub(super) fn revoke(&mut self, number: u64, now: Time) {
        let mut all = self.sessions.iter();
        let its = all.find(|(_, session)| session.guest.tls == Some(number));
        if let Some((key, _)) = its {
            self.dismiss(key, "its certificate has been revoked", now);
        }
    }

    /// A client may not be one any more, and is told so, if its protocol has words for that.
    fn dismiss(&mut self, key: usize, why: &str, now: Time) {
        let session = &mut self.sessions[key];
        session.speech.goodbye(Code::NotAllowed);
        session.write_all();
        session.since = now;
        let (number, can_wait) = (session.number, session.speech.is_ended());
        if !can_wait {
            // Its protocol has no words for it, or it has not said who it is.
            return self.end(key, why);
        }
        self.disconnect(key, why);
        // It hangs up when its client has been sent everything.
        self.unsettled.push_back((key, number));
        self.schedule(key);
    }

    /// The client leaves the groups that it may not be in. They are told in the order, and so is the client.
    fn leave_forbidden(&mut self, key: usize) {
        let session = &mut self.sessions[key];
        let Some(connection) = session.connection else {
            return;
        };
        for group in self.groups.wanted(connection) {
            if session.guest.rights.may_join(&group) {
                continue;
            }
            match self.groups.leave(connection, group) {
                Ok(()) => {}
                Err(RequestError::Full) => {
                    self.to_leave.push(key);
                    return;
                }
                Err(_) => return,
            }
            self.counters.memberships_ended += 1;
            let reason = "a client is made to leave a group: new rules do not let it be there";
            self.complaints.say(reason, &session.guest.peer, &group);
            session.speech.expel(group);
            if let (Some(trace), Ok(client)) = (&mut self.trace, self.groups.member(connection)) {
                let leave = ClientSaw::Leave(group.to_string());
                trace.note(&client, leave, &mut self.names);
            }
        }
    }

    /// There may be room now for leaves that did not fit.
    pub(super) fn go_on_leaving(&mut self) {
        for key in std::mem::take(&mut self.to_leave) {
            // Another client may have its place by now, which is as well.
            if self.sessions.contains(key) {
                self.leave_forbidden(key);
            }
        }
    }
}
