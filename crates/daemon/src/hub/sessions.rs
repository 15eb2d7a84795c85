//! The sessions of a daemon: by key, and by the connection of their clients.

use std::collections::BTreeMap;

use rota_core::groups::Connection;
use slab::Slab;

use crate::keys::CHECKED;
use crate::session::Session;

/// All sessions. The key of a session is also the token of its socket, and another one may have it later; its number is
/// its own.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    all: Slab<Session>,
    connections: Connections,
    newest: u64,
}

/// The sessions of the connections that clients have, and of those that they are made to skip for.
#[derive(Debug, Default)]
pub(super) struct Connections(BTreeMap<Connection, usize>);

impl Connections {
    /// The client of a session has this connection.
    pub fn insert(&mut self, connection: Connection, key: usize) {
        self.0.insert(connection, key);
    }

    /// The connection is over.
    pub fn remove(&mut self, connection: Connection) {
        self.0.remove(&connection);
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }
}

impl Sessions {
    /// The key of the next session.
    pub fn vacant_key(&self) -> usize {
        self.all.vacant_key()
    }

    /// Adds a session, under the key that was vacant; `make` gets its number.
    pub fn insert(&mut self, make: impl FnOnce(u64) -> Session) -> (usize, u64) {
        self.newest += 1;
        let number = self.newest;
        (self.all.insert(make(number)), number)
    }

    /// The session is over. Its client is not connected any more.
    pub fn remove(&mut self, key: usize) -> Session {
        self.all.remove(key)
    }

    pub fn get(&self, key: usize) -> Option<&Session> {
        self.all.get(key)
    }

    pub fn get_mut(&mut self, key: usize) -> Option<&mut Session> {
        self.all.get_mut(key)
    }

    /// The session with this key, if that is the one with this number.
    pub fn numbered(&mut self, (key, number): (usize, u64)) -> Option<&mut Session> {
        let session = self.all.get_mut(key)?;
        (session.number() == number).then_some(session)
    }

    /// The session of a connection.
    pub fn at(&mut self, connection: Connection) -> Option<(usize, &mut Session)> {
        let key = *self.connections.0.get(&connection)?;
        Some((key, self.all.get_mut(key)?))
    }

    /// A session, and the connections of all.
    pub fn with_connections(&mut self, key: usize) -> Option<(&mut Session, &mut Connections)> {
        let session = self.all.get_mut(key)?;
        Some((session, &mut self.connections))
    }

    pub const fn connections(&self) -> &Connections {
        &self.connections
    }

    pub fn iter(&self) -> impl Iterator<Item = (usize, &Session)> {
        self.all.iter()
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = (usize, &mut Session)> {
        self.all.iter_mut()
    }

    /// All keys.
    pub fn keys(&self) -> Vec<usize> {
        self.all.iter().map(|(key, _)| key).collect()
    }

    /// The bytes that sessions were told and not offered, as far as debug builds look.
    pub fn fresh(&self) -> Option<usize> {
        let all = self.all.iter();
        (self.all.len() <= CHECKED).then(|| all.map(|(_, session)| session.fresh()).sum())
    }

    /// Each connection leads to the session that has it, and each session's connections are there.
    pub fn check(&self) {
        if self.all.len() > CHECKED {
            return;
        }
        for (connection, key) in &self.connections.0 {
            let session = self.all.get(*key);
            let mut its = session.into_iter().flat_map(|one| one.membership().all());
            debug_assert!(its.any(|one| one == *connection));
        }
        let its = self.all.iter();
        let its = its.map(|(_, session)| session.membership().all().count());
        debug_assert_eq!(self.connections.0.len(), its.sum::<usize>());
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use rota_core::contract::Time;

    use super::*;
    use crate::access::{Access, Guest, Peer};
    use crate::speech::{AdminSpeech, Speech};
    use crate::stream::Stream;

    /// A session of a client that says nothing.
    pub(in crate::hub) fn session(number: u64) -> Session {
        let (near, _) = mio::net::UnixStream::pair().expect("descriptors");
        let peer = Peer::at(IpAddr::V4(Ipv4Addr::LOCALHOST));
        let guest = Guest {
            rights: Access::new(&[]).expect("no rules").rights(&peer),
            peer,
            owner: None,
            _seat: None,
            tls: None,
        };
        let speech = Speech::Admin(AdminSpeech::default());
        Session::new(Stream::Unix(near, None), speech, guest, number, Time(0))
    }

    #[test]
    fn a_session_that_is_over_is_not_taken_for_the_next_one_with_its_key() {
        let mut sessions = Sessions::default();
        let key = sessions.vacant_key();
        let first = sessions.insert(session);
        assert_eq!(first.0, key);
        assert!(sessions.numbered(first).is_some());
        sessions.remove(key);
        let second = sessions.insert(session);
        assert_eq!(second.0, key);
        assert!(sessions.numbered(first).is_none());
        assert!(sessions.numbered(second).is_some());
        sessions.check();
    }
}
