//! Clients that come in, and the rules for them.

use std::sync::Arc;

use rota_core::contract::Time;

use super::Hub;
use super::admission::AT_ONCE;
use super::counters::Counter;
use crate::access::Guest;
use crate::door::{Accepted, Comer, Port};
use crate::reload::NewSettings;
use crate::session::Session;
use crate::speech::{AdminSpeech, NativeSpeech, Speech, SpreadSpeech};
use crate::tls::Terms;

impl Hub {
    /// Lets in some of the waiting clients, now and then.
    pub(super) fn let_some_in(&mut self, now: Time) {
        if !self.admission.begins(now) {
            return;
        }
        for count in 0..AT_ONCE {
            match self.door.accept() {
                Accepted::Nobody => return self.admission.came(count, now),
                Accepted::NotNow => return self.admission.try_later(now),
                Accepted::Refused => {}
                Accepted::Revoked(number) => self.clientele.revoke(number, now),
                Accepted::Comes(comer) => self.let_in(comer, now),
            }
            self.mind_departures();
        }
        self.admission.came(AT_ONCE, now);
    }

    pub(super) fn let_in(&mut self, comer: Comer, now: Time) {
        let Comer {
            port,
            mut stream,
            peer,
            seat,
            tls,
        } = comer;
        let clientele = &self.clientele;
        let is_unsettled = |session| clientele.unsettled_since(session).is_some();
        if let Some(oldest) = self.admission.make_room(is_unsettled) {
            self.clientele.drop_silent(oldest);
        }
        let token = mio::Token(self.clientele.vacant_key());
        if let Err(error) = stream.register(self.door.registry(), token) {
            let what = "a client cannot be let in";
            self.clientele.journal().complain(what, &peer, &error);
            return;
        }
        let rights = self.access.rights(&peer);
        let is_told = port == Port::Admin && rights.admin;
        if port == Port::Admin && !is_told {
            let journal = self.clientele.journal();
            journal.count(Counter::AdminsNotAllowed);
            let reason = "somebody is not told how the daemon is: nothing allows it";
            journal.complain(reason, &peer, &"");
        }
        let speech = match port {
            Port::Admin if is_told => Speech::Admin(AdminSpeech::default()),
            Port::Admin => Speech::Admin(AdminSpeech::refused()),
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
        let make = |number| Session::new(stream, speech, guest, number, now);
        let session = self.clientele.begin(make);
        if is_told {
            self.asked.push(session);
        }
        self.admission.begin(session, now);
    }

    /// Drops sessions that have taken too long to come in or to go.
    pub(super) fn sweep(&mut self, now: Time) {
        let clientele = &self.clientele;
        let since = |session| clientele.unsettled_since(session);
        for session in self.admission.sweep(now, since) {
            // A client that was given up is named twice if it had not been let in.
            if self.clientele.unsettled_since(session).is_some() {
                self.clientele.drop_silent(session.0);
            }
        }
    }

    /// Replaces the settings that can change while clients are connected. Connected clients stay, except those that the
    /// new rules do not let connect.
    pub fn reconfigure(&mut self, settings: NewSettings, now: Time) {
        let NewSettings {
            config,
            access,
            certificates,
        } = settings;
        let spread = config.spread.clone().unwrap_or_default();
        self.door.allow(Port::Spread, &spread.allow);
        if let Some(certificates) = certificates {
            self.door.change_tls(Terms::new(&config, certificates));
        }
        self.admission.reconfigure(&config);
        self.clientele.reconfigure(&config);
        let before = std::mem::replace(&mut self.access, Arc::new(access));
        // The modes of the sockets change last: a peer that can open a socket only now finds the new rules in force.
        self.clientele.obey(&self.access, now);
        self.after_input();
        self.door.open_as(&before, &self.access);
    }
}
