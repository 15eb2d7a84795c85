//! Connections that end, and clients that go on under another connection.

use super::{Client, Clients};
use crate::contract::Service;
use crate::groups::event::{Connection, Member};
use crate::groups::message::Request;
use crate::mutants::{self, Mutant};

impl Clients {
    /// The client goes and comes back under its name, into the groups that it wants to be in: others see a disconnect
    /// and joins. The earlier connection has events up to its disconnect's place in the order. `None` if the disconnect
    /// of the last time has not come yet, or there is no such connection.
    pub fn restart(&mut self, connection: Connection) -> Option<Connection> {
        let member = self.member(connection).ok()?;
        let client = self.connected.get_mut(&connection)?;
        if client.follows.is_some() {
            return None;
        }
        let wants = core::mem::take(&mut client.wants);
        let owner = client.owner;
        if !mutants::on(Mutant::G15) {
            self.push(member, Service::Agreed, &Request::Disconnect(member));
        }
        let next = self.admit((owner, member.name), Some(connection));
        self.followed += 1;
        if self.next_large == Some(connection) {
            self.next_large = Some(next);
        }
        // Its old requests may fill all its room: these requests come once for each restart.
        for group in &wants {
            let member = Member {
                connection: next,
                ..member
            };
            self.push(member, Service::Agreed, &Request::Join(member, *group));
        }
        if let Some(client) = self.connected.get_mut(&next) {
            client.wants = wants;
        }
        Some(next)
    }

    /// A connection of this daemon has come to its end in the order.
    pub fn ended(&mut self, member: &Member) {
        if self.followed == 0 || mutants::on(Mutant::G16) {
            return;
        }
        let ended = member.connection;
        let mut follow = self.connected.iter_mut();
        let Some((&next, client)) = follow.find(|(_, client)| client.follows == Some(ended)) else {
            return;
        };
        client.follows = None;
        self.followed -= 1;
        self.forget(ended);
        self.names.insert(member.name, next);
    }

    /// Forgets the connection; its requests stay on their way.
    pub(super) fn forget(&mut self, connection: Connection) -> Option<Client> {
        let client = self.connected.remove(&connection)?;
        if client.backlog > 0 {
            self.busy -= 1;
            self.gone.owes(connection, client.name, client.backlog);
        }
        Some(client)
    }
}
