//! The handling of a client's requests.

use rota_core::contract::Time;
use rota_core::groups::{
    ClientName, Connection, Destination, GroupName, Groups, Hold, Owner, RequestError, Send,
};
use rota_trace::event::ClientSaw;

use super::counters::Counter;
use super::journal::Journal;
use super::sessions::Connections;
use super::turns::Turns;
use crate::names::Names;
use crate::session::{Done, Session};
use crate::speech::{Ask, Listed, Refusal};

/// Names tried for a client that leaves it to the daemon.
const TRIES: u32 = 1 << 16;

/// Lists are not answered while more than this waits for a client.
const LIST_BACKLOG_BYTES: usize = 64 << 10;

/// The requests of a session in its turn, and all that they may change.
pub(super) struct Requests<'a> {
    pub key: usize,
    pub groups: &'a mut Groups,
    pub connections: &'a mut Connections,
    pub journal: &'a mut Journal,
    pub turns: &'a mut Turns,
    /// The size of the memory for the frames of a client of this host.
    pub memory_bytes: usize,
    pub now: Time,
}

impl Requests<'_> {
    /// Joins or leaves a group; `None` if the client has to wait. A request that changes nothing enters no order, and
    /// does not wait.
    fn change(
        &mut self,
        connection: Connection,
        group: GroupName,
        joins: bool,
    ) -> Option<Result<(), RequestError>> {
        let changes = self.groups.wants(connection, group) != joins;
        if changes && !self.turns.may_change(group, self.now) {
            return None;
        }
        let done = match joins {
            true => self.groups.join(connection, group),
            false => self.groups.leave(connection, group),
        };
        if changes && done.is_ok() {
            self.turns.change_begins(group, self.now);
        }
        Some(done)
    }

    pub fn act(&mut self, session: &mut Session, names: &mut Names, ask: Ask) -> Done {
        let Some(connection) = session.connection() else {
            if let Ask::Connect(name) = ask {
                self.connect(session, names, name);
            }
            return Done::Yes;
        };
        if let Some(to) = forbidden(session, names, &ask) {
            self.deny(session, names, ask, to);
            return Done::Yes;
        }
        let done = match ask {
            Ask::Send(send) => return self.send(session, names, connection, send),
            Ask::Join(group, _) | Ask::Leave(group, _) => {
                match self.change(connection, group, matches!(ask, Ask::Join(..))) {
                    Some(done) => done,
                    None => return Done::Change(ask),
                }
            }
            // A short question may have a long answer: the next one waits until the last is on its way.
            Ask::List(..) if !has_read(session) => return Done::Later(ask),
            Ask::List(..) if !self.turns.may_list() => return Done::Soon(ask),
            Ask::List(request, group) => {
                let listed = self.list(session, group);
                session.speech_mut().listed(request, listed, names);
                Ok(())
            }
            // The session has noticed by itself.
            Ask::Connect(_) | Ask::Bye => Ok(()),
        };
        match done {
            Ok(()) => {
                self.note(connection, names, &ask);
                Done::Yes
            }
            Err(RequestError::Full) => Done::Later(ask),
            Err(error) => {
                session.speech_mut().failed(&ask, error);
                Done::Yes
            }
        }
    }

    fn list(&mut self, session: &Session, group: Option<GroupName>) -> Listed {
        if let Some(group) = group {
            let members = self.groups.list_members(&group);
            self.turns.listed(members.len());
            return Listed::Members(members);
        }
        let mut groups = self.groups.list_groups();
        self.turns.listed(groups.len());
        let rights = &session.guest().rights;
        if !rights.sees_all() {
            groups.retain(|group, _| rights.may_see(group));
        }
        Listed::Groups(groups)
    }

    fn send(
        &mut self,
        session: &mut Session,
        names: &mut Names,
        connection: Connection,
        mut send: Send,
    ) -> Done {
        if let Some(hold) = self.groups.waits(connection, &send.to, self.now) {
            self.wait_for_slow(session, names, hold);
            return Done::Held(Ask::Send(send));
        }
        if let Some(nanos) = session.let_go(self.now) {
            self.journal.add(Counter::HeldMicros, nanos / 1000);
        }
        if self.groups.has_room(connection, send.payload.len()) == Ok(false) {
            return Done::Later(Ask::Send(send));
        }
        let saw = self.journal.number(&mut send, names);
        match self.groups.send(connection, send) {
            Ok(()) => {
                session.speech_mut().taken();
                if let Some(saw) = saw
                    && let Ok(client) = self.groups.member(connection)
                {
                    self.journal.sent(&client, saw, names);
                }
            }
            Err(error) => session.speech_mut().not_sent(error),
        }
        Done::Yes
    }

    /// A client's message waits for a client, perhaps of another daemon, that reads too slowly.
    fn wait_for_slow(&mut self, session: &mut Session, names: &mut Names, hold: Hold) {
        if session.wait_for_slow(hold, self.now) {
            self.journal.count(Counter::Held);
            let slow = names.client(hold.client, hold.daemon.node);
            let reason = "messages of clients wait for one that reads too slowly";
            self.journal.complain(reason, &slow, &names.told(&hold.to));
        }
    }

    /// A client asks for what it may not.
    fn deny(&mut self, session: &mut Session, names: &mut Names, ask: Ask, to: Destination) {
        self.journal.count(Counter::RequestsNotAllowed);
        let reason = match &ask {
            Ask::Send(_) => "a client may not send what it sends: nothing allows it",
            Ask::List(..) => "a client may not see the group it asks for: nothing allows it",
            _ => "a client may not join the group it asks for: nothing allows it",
        };
        let to = names.told(&to);
        self.journal.complain(reason, &session.guest().peer, &to);
        session.speech_mut().denied(ask, to, names);
    }

    /// A request was taken.
    fn note(&mut self, connection: Connection, names: &mut Names, ask: &Ask) {
        if !self.journal.is_tracing() {
            return;
        }
        let saw = match ask {
            Ask::Join(group, _) => ClientSaw::Join(group.to_string()),
            Ask::Leave(group, _) => ClientSaw::Leave(group.to_string()),
            Ask::Connect(_) | Ask::Send(_) | Ask::List(..) | Ask::Bye => return,
        };
        if let Ok(client) = self.groups.member(connection) {
            self.journal.note(&client, saw, names);
        }
    }

    fn connect(&mut self, session: &mut Session, names: &mut Names, name: Option<ClientName>) {
        if !session.guest().rights.connect {
            self.journal.count(Counter::NotAllowed);
            let reason = "a client is not let in: nothing allows it to connect";
            let name = name.map_or_else(String::new, |name| name.to_string());
            self.journal.complain(reason, &session.guest().peer, &name);
            session.speech_mut().refuse(Refusal::NotAllowed);
            return;
        }
        let connected = match name {
            Some(name) => self.groups.connect_of(session.guest().owner, name),
            None => self.connect_invented(session.guest().owner, names),
        };
        let member = connected.and_then(|connection| self.groups.member(connection));
        match member {
            Ok(member) => {
                self.connections.insert(member.connection, self.key);
                let memory = session.welcome(member, names, self.memory_bytes);
                self.journal.add(Counter::WithMemory, u64::from(memory));
                self.journal.count(Counter::Connected);
            }
            Err(error) => {
                self.journal.count(Counter::Refused);
                session.speech_mut().refuse(match error {
                    RequestError::NotUnique => Refusal::NotUnique,
                    _ => Refusal::Quota,
                });
            }
        }
    }

    /// A name that no client of this daemon has.
    fn connect_invented(
        &mut self,
        owner: Option<Owner>,
        names: &mut Names,
    ) -> Result<Connection, RequestError> {
        for _ in 0..TRIES {
            match self.groups.connect_of(owner, names.invent()) {
                Err(RequestError::NotUnique) => {}
                other => return other,
            }
        }
        Err(RequestError::TooMany)
    }
}

/// The destination of a request that the client may not use, if there is one.
fn forbidden(session: &Session, names: &Names, ask: &Ask) -> Option<Destination> {
    let rights = &session.guest().rights;
    match ask {
        Ask::Join(group, _) if !rights.may_join(group) => Some(Destination::Group(*group)),
        Ask::List(_, Some(group)) if !rights.may_see(group) => Some(Destination::Group(*group)),
        Ask::Send(send) => rights.first_forbidden(&send.to, names),
        _ => None,
    }
}

/// Whether a list can be answered. Waiting bytes are offered to the socket first: if the socket does not take them, it
/// reports when it has room again, and nothing else may wake a daemon at rest.
fn has_read(session: &mut Session) -> bool {
    if session.speech().backlog() > LIST_BACKLOG_BYTES {
        session.write();
    }
    session.speech().backlog() <= LIST_BACKLOG_BYTES
}
