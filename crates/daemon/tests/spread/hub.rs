//! The smallest daemon there can be around [`Session`]: threads, a lock, and groups of one process.
//! Two names do more than a group: `part-and-meet` tells the members of all groups of a change of the network, and a
//! message to `reject-me` comes back as a rejection.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use rota_daemon::spread::{
    ByteOrder, Cause, Connect, Event, GroupId, GroupName, Message, Multicast, Name, Outgoing,
    PrivateName, Refusal, Rejected, Rejection, Request, Session, View,
};

use crate::support::settings;

/// A connection, of whichever kind of socket.
pub trait Socket: Read + Write + Send + Sized + 'static {
    fn again(&self) -> Self;
    fn end(&self);
}

impl Socket for std::net::TcpStream {
    fn again(&self) -> Self {
        self.try_clone().expect("a second handle")
    }
    fn end(&self) {
        // The client may be gone already.
        let _ = self.shutdown(Shutdown::Both);
    }
}

impl Socket for std::os::unix::net::UnixStream {
    fn again(&self) -> Self {
        self.try_clone().expect("a second handle")
    }
    fn end(&self) {
        let _ = self.shutdown(Shutdown::Both);
    }
}

struct Client<S> {
    session: Session,
    socket: S,
}

/// All connections, and who is in which group.
struct Hub<S> {
    order: ByteOrder,
    clients: BTreeMap<u32, Client<S>>,
    groups: BTreeMap<GroupName, Vec<Name>>,
    changes: u32,
}

fn locked<S>(hub: &Mutex<Hub<S>>) -> MutexGuard<'_, Hub<S>> {
    hub.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Serves these connections, each in a thread, for as long as there are any.
pub fn serve<S: Socket>(order: ByteOrder, sockets: impl Iterator<Item = S>) {
    let hub = Arc::new(Mutex::new(Hub {
        order,
        clients: BTreeMap::new(),
        groups: BTreeMap::new(),
        changes: 0,
    }));
    for (id, socket) in (0..).zip(sockets) {
        let hub = Arc::clone(&hub);
        thread::spawn(move || serve_one(&hub, id, socket));
    }
}

fn serve_one<S: Socket>(hub: &Mutex<Hub<S>>, id: u32, mut socket: S) {
    let client = Client {
        session: Session::new(settings(locked(hub).order)),
        socket: socket.again(),
    };
    locked(hub).clients.insert(id, client);
    let mut buffer = [0; 1000];
    loop {
        let length = socket.read(&mut buffer).unwrap_or(0);
        let goes_on = length > 0 && locked(hub).take(id, &buffer[..length]);
        if !goes_on {
            break;
        }
    }
    locked(hub).gone(id);
    socket.end();
}

impl<S: Socket> Hub<S> {
    /// Bytes of a client. False if its session is over.
    fn take(&mut self, id: u32, mut input: &[u8]) -> bool {
        loop {
            let session = &mut self.clients.get_mut(&id).expect("it is connected").session;
            let own = session.name().copied();
            match session.pull(&mut input) {
                Ok(Some(Event::Connect(connect))) => self.connect(id, &connect),
                Ok(Some(Event::Request(request))) => self.request(id, own, request),
                Ok(None) | Err(_) => break,
            }
        }
        self.write();
        !self.clients[&id].session.is_ended()
    }

    fn connect(&mut self, id: u32, connect: &Connect) {
        let invented = PrivateName::new(format!("r{id}").as_bytes());
        let name = connect.name.unwrap_or(invented.expect("a legal name"));
        let taken = self.clients.values().any(|client| {
            let parts = client.session.name().and_then(Name::private_parts);
            parts.is_some_and(|(client, _)| client == name.as_bytes())
        });
        let session = &mut self.clients.get_mut(&id).expect("it is connected").session;
        if taken {
            session.refuse(Refusal::NotUnique).expect("it waits");
        } else {
            session.accept(name).expect("it waits");
        }
    }

    fn request(&mut self, id: u32, own: Option<Name>, request: Request) {
        let own = own.expect("it is open");
        match request {
            Request::Multicast(multicast) => self.multicast(id, own, multicast),
            Request::Join(group) => {
                let members = self.groups.entry(group).or_default();
                if !members.contains(&own) {
                    members.push(own);
                    members.sort_unstable();
                    self.tell_view(group, Cause::Join(own));
                }
            }
            Request::Leave(group) => {
                if self.remove(group, own) {
                    self.tell(&[own], &Outgoing::SelfLeave(group));
                    self.tell_view(group, Cause::Leave(own));
                }
            }
            Request::Disconnect => self.disconnected(own),
        }
    }

    fn multicast(&mut self, id: u32, own: Name, multicast: Multicast) {
        if multicast
            .groups
            .iter()
            .any(|to| to.as_bytes() == b"part-and-meet")
        {
            return self.part_and_meet();
        }
        if multicast
            .groups
            .iter()
            .any(|to| to.as_bytes() == b"reject-me")
        {
            return self.reject(id, multicast);
        }
        let mut receivers: Vec<Name> = multicast.groups.clone();
        for to in &multicast.groups {
            let members = GroupName::try_from(*to).ok();
            let members = members.and_then(|group| self.groups.get(&group));
            receivers.extend(members.into_iter().flatten());
        }
        receivers.retain(|receiver| !(multicast.self_discard && *receiver == own));
        let message = Message {
            sender: own,
            service: multicast.service,
            self_discard: multicast.self_discard,
            groups: multicast.groups,
            hint: multicast.hint,
            data: multicast.data,
        };
        self.tell(&receivers, &Outgoing::Message(message));
    }

    fn reject(&mut self, id: u32, multicast: Multicast) {
        let rejection = Rejection {
            what: Rejected::Message {
                service: multicast.service,
                self_discard: multicast.self_discard,
            },
            groups: multicast.groups,
            hint: multicast.hint,
            data: multicast.data,
        };
        let client = self.clients.get_mut(&id).expect("it is connected");
        let told = client.session.send(&Outgoing::Rejected(rejection));
        assert_eq!(told, Ok(true));
    }

    fn part_and_meet(&mut self) {
        for (group, members) in self.groups.clone() {
            let old = self.id();
            self.tell(&members, &Outgoing::Transition { group, old });
            let sets = members.iter().map(|member| vec![*member]).collect();
            self.tell_view(group, Cause::Network(sets));
        }
    }

    fn id(&self) -> GroupId {
        GroupId {
            leader: 1,
            time: 2,
            index: self.changes,
        }
    }

    fn tell_view(&mut self, group: GroupName, cause: Cause) {
        self.changes += 1;
        let members = self.groups.get(&group).cloned().unwrap_or_default();
        let view = View {
            group,
            id: self.id(),
            members: members.clone(),
            cause,
        };
        self.tell(&members, &Outgoing::View(view));
    }

    fn tell(&mut self, receivers: &[Name], outgoing: &Outgoing) {
        for client in self.clients.values_mut() {
            let name = client.session.name();
            if name.is_some_and(|name| receivers.contains(name)) {
                client.session.send(outgoing).expect("it can be told");
            }
        }
    }

    fn remove(&mut self, group: GroupName, own: Name) -> bool {
        let members = self.groups.entry(group).or_default();
        let before = members.len();
        members.retain(|member| *member != own);
        members.len() < before
    }

    fn disconnected(&mut self, own: Name) {
        let groups: Vec<GroupName> = self.groups.keys().copied().collect();
        for group in groups {
            if self.remove(group, own) {
                self.tell_view(group, Cause::Disconnect(own));
            }
        }
    }

    fn gone(&mut self, id: u32) {
        if let Some(client) = self.clients.remove(&id)
            && let Some(own) = client.session.name()
        {
            self.disconnected(*own);
        }
        self.write();
    }

    fn write(&mut self) {
        for client in self.clients.values_mut() {
            let bytes = crate::support::written(&mut client.session);
            // The reader of a client notices that the client is gone.
            let _ = client.socket.write_all(&bytes);
        }
    }
}
