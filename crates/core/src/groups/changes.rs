//! The ordered changes and their effects on the clients: messages, the joins, leaves and disconnects of clients, and the
//! exclusion of this daemon.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use bytes::Bytes;

use super::event::{Cause, ClientEvent, Connection, Event, Member, Received, View};
use super::machine::{Groups, Phase};
use super::message::{Request, Told, parse, ring_of_data};
use super::name::{Destination, GroupName};
use crate::contract::Process;
use crate::mutants::{self, Mutant};

impl Groups {
    pub(super) fn apply(&mut self, request: Request) {
        match request {
            Request::Data(data, discard) => {
                let to = self.receivers(&data, discard);
                return self.emit(to, Event::Message(data));
            }
            Request::Join(member, group) => self.on_join(member, group),
            Request::Leave(member, group) => self.on_leave(member, group),
            Request::Disconnect(member) => self.on_disconnect(member),
        }
        self.routes.clear();
    }

    fn on_join(&mut self, member: Member, name: GroupName) {
        if self.knowledge.add(member, name) {
            self.announce(name, Cause::Join(member));
        }
    }

    fn on_leave(&mut self, member: Member, name: GroupName) {
        if !self.knowledge.remove(&member, name) {
            return;
        }
        if member.daemon == self.me {
            let to = self.connected([member.connection]);
            self.emit(to, Event::SelfLeave { group: name });
        }
        self.announce(name, Cause::Leave(member));
        if mutants::on(Mutant::G07) {
            self.knowledge.put_back(member, name);
        }
    }

    fn on_disconnect(&mut self, member: Member) {
        for name in self.knowledge.groups_of(&member) {
            self.knowledge.remove(&member, name);
            self.announce(name, Cause::Disconnect(member));
        }
        if member.daemon == self.me {
            self.clients.ended(&member);
        }
    }

    /// A client has come or gone. If daemons went shortly before, the view says all at once, and is followed by another
    /// signal, as more daemons may go.
    fn announce(&mut self, name: GroupName, cause: Cause) {
        let (Cause::Join(member) | Cause::Leave(member) | Cause::Disconnect(member)) = cause else {
            return;
        };
        let Some(group) = self.knowledge.group(name) else {
            return;
        };
        if group.members.is_empty() {
            self.knowledge.forget_group(name);
            self.views.forget(name);
            return;
        }
        if !group.changed {
            let of = if mutants::on(Mutant::G05) {
                group.members.first().copied().unwrap_or(member)
            } else {
                member
            };
            self.view(name, cause, vec![vec![of]]);
            return;
        }
        let (new, stay): (Vec<Member>, Vec<Member>) = group
            .members
            .iter()
            .partition(|&other| cause == Cause::Join(member) && *other == member);
        let mut sets = Vec::from([stay, new]);
        sets.retain(|set| !set.is_empty());
        self.view(name, Cause::Network, sets);
        self.signal(name);
    }

    /// Daemons have come or gone.
    pub(super) fn announce_network(&mut self, name: GroupName, sets: Vec<Vec<Member>>) {
        if !self.silent {
            self.signal(name);
        }
        self.view(name, Cause::Network, sets);
    }

    /// Tells the local members that their view is about to end, once.
    pub(super) fn signal(&mut self, name: GroupName) {
        let to = self.local_members(name);
        if let Some(view) = self.views.signal(name) {
            self.emit(to, Event::Transitional { group: name, view });
        }
    }

    fn view(&mut self, name: GroupName, cause: Cause, vs_sets: Vec<Vec<Member>>) {
        let next = match self.phase {
            Phase::Transitional(next) => Some(next),
            _ => None,
        };
        let next = next.filter(|_| !mutants::on(Mutant::G02));
        let Some(id) = self.views.name(self.ring, next) else {
            return;
        };
        let to = self.local_members(name);
        if to.is_empty() {
            self.views.forget(name);
            return;
        }
        self.views.on_view(name, id);
        let view = View {
            group: name,
            id,
            cause,
            members: self.list_members(&name),
            vs_sets,
        };
        self.emit(to, Event::View(Box::new(view)));
    }

    /// The clients of this daemon that get a message.
    pub(super) fn receivers(&self, data: &Received, discard: bool) -> Arc<[Connection]> {
        let mut to: Vec<Connection> = Vec::new();
        for destination in data.to.iter() {
            match destination {
                Destination::Group(name) => to.extend(self.local_members(*name)),
                Destination::Client(name, node) if *node == self.me.node => {
                    to.extend(self.clients.named(*name));
                }
                Destination::Client(..) => {}
            }
        }
        if !mutants::on(Mutant::G03) {
            to.sort_unstable();
            to.dedup();
        }
        let mine = data.sender.daemon == self.me;
        let sender = data.sender.connection;
        let discard = discard && mine && !mutants::on(Mutant::G08);
        to.retain(|connection| !(discard && *connection == sender));
        to.into()
    }

    /// The connected clients of this daemon that are in a group.
    fn local_members(&self, name: GroupName) -> Vec<Connection> {
        let all = self.knowledge.members_at(self.me, name);
        let mut all = self.connected(all);
        all.sort_unstable();
        all.dedup();
        all
    }

    fn connected(&self, all: impl IntoIterator<Item = Connection>) -> Vec<Connection> {
        let all = all.into_iter();
        all.filter(|connection| self.clients.is_connected(*connection))
            .collect()
    }

    pub(super) fn emit(&mut self, to: impl Into<Arc<[Connection]>>, event: Event) {
        let to = to.into();
        if !to.is_empty() {
            // This daemon is not excluded any more, unless its clients have still to be told of the present views.
            if self.exclusion.is_told() && !self.exclusion.has_missed() {
                self.include();
            }
            self.events.push_back(ClientEvent { to, event });
        }
    }

    /// Takes a message whose head is known; returns whether it is one.
    pub(super) fn on_known(&mut self, from: Process, message: &Bytes) -> bool {
        let Some(ring) = ring_of_data(message) else {
            return false;
        };
        let Some((to, data)) = self.routes.find(from, message) else {
            return false;
        };
        debug_assert!(
            mutants::on(Mutant::G22) || self.is_so(from, message, &to, &data),
            "a stale route"
        );
        if self.has_its_place(from, self.ring == Some(ring)) {
            self.emit(to, Event::Message(data));
        }
        true
    }

    /// Whether reading the head anew gives the same message and receivers.
    fn is_so(&self, from: Process, message: &Bytes, to: &[Connection], data: &Received) -> bool {
        match parse(from, message).map(|stamped| stamped.told) {
            Some(Told::Request(Request::Data(read, discard))) => {
                read == *data && *self.receivers(&read, discard) == *to
            }
            _ => false,
        }
    }

    /// Takes a message whose head is known from now on.
    pub(super) fn on_unknown(
        &mut self,
        from: Process,
        message: &[u8],
        data: Received,
        discard: bool,
    ) {
        let to = self.receivers(&data, discard);
        self.routes.keep(from, message, &data, &to);
        self.emit(to, Event::Message(data));
    }

    /// Whether clients have been told that this daemon is excluded, and not that the exclusion is over.
    pub const fn is_excluded(&self) -> bool {
        self.exclusion.is_told()
    }

    pub(super) fn on_excluded(&mut self) {
        self.exclusion.begin();
        self.tell_excluded();
    }

    /// The next view follows others that this daemon was not in. All its submissions up to this counter have been
    /// delivered.
    pub(super) fn on_missed(&mut self, own: u64) {
        if !mutants::on(Mutant::G27) {
            self.tell_excluded();
        }
        self.exclusion.miss();
        self.routes.clear();
        let (elsewhere, gone) = self.clients.ordered_elsewhere(own);
        self.counters.missed += 1;
        self.counters.elsewhere += elsewhere;
        for gone in gone {
            // Its disconnect was missed: other members of its groups saw it disconnect, or are told by a view that
            // comes.
            self.knowledge.forget_member(&gone);
            self.clients.ended(&gone);
        }
        self.knowledge.change_all();
    }

    fn tell_excluded(&mut self) {
        if self.exclusion.tell() {
            let all = self.clients.all_connected();
            self.tell(all, Event::Excluded);
        }
    }

    /// Tells a client that connects while this daemon is excluded of that first.
    pub(super) fn greet(&mut self, connection: Connection) {
        if self.exclusion.is_told() && !mutants::on(Mutant::G29) {
            self.tell(Vec::from([connection]), Event::Excluded);
        }
    }

    /// Deliveries go on: where they stopped, or with a view for each group after what was missed.
    pub(super) fn include(&mut self) {
        if let Some(missed) = self.exclusion.end() {
            let all = self.clients.all_connected();
            self.tell(all, Event::Included { missed });
        }
    }

    fn tell(&mut self, to: Vec<Connection>, event: Event) {
        if !to.is_empty() {
            let to = to.into();
            self.events.push_back(ClientEvent { to, event });
        }
    }
}
