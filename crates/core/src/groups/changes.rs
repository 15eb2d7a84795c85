//! The ordered changes and their effects: messages, and the joins, leaves and disconnects of clients.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use super::event::{Cause, ClientEvent, Connection, Event, Member, Received, View, ViewId};
use super::machine::{Groups, Local, Phase};
use super::message::Request;
use super::name::{Destination, GroupName};
use super::part::Group;
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

    /// Requests of daemons that did not stay may still be ordered behind the transitional configuration. Those daemons
    /// keep count of their clients themselves, and nobody here would hear of the end of such a client.
    fn on_join(&mut self, member: Member, name: GroupName) {
        let Some(part) = self.parts.first_mut() else {
            return;
        };
        if !part.daemons.contains(&member.daemon) && !mutants::on(Mutant::G12) {
            return;
        }
        let group = part.groups.entry(name).or_default();
        if group.members.insert(member) {
            self.announce(name, Cause::Join(member));
        }
    }

    fn on_leave(&mut self, member: Member, name: GroupName) {
        if !self.remove(&member, name) {
            return;
        }
        if member.daemon == self.me {
            let to = self.connected([member.connection]);
            self.emit(to, Event::SelfLeave { group: name });
        }
        self.announce(name, Cause::Leave(member));
        if mutants::on(Mutant::G07)
            && let Some(group) = self.group_mut(name)
        {
            group.members.insert(member);
        }
    }

    fn on_disconnect(&mut self, member: Member) {
        let groups = self.parts.iter().flat_map(|part| &part.groups);
        let of = groups.filter(|(_, group)| group.members.contains(&member));
        let names: Vec<GroupName> = of.map(|(name, _)| *name).collect();
        for name in names {
            self.remove(&member, name);
            self.announce(name, Cause::Disconnect(member));
        }
        if member.daemon == self.me {
            self.clients.ended(&member);
        }
    }

    fn remove(&mut self, member: &Member, name: GroupName) -> bool {
        let group = self.group_mut(name);
        group.is_some_and(|group| group.members.remove(member))
    }

    fn group_mut(&mut self, name: GroupName) -> Option<&mut Group> {
        self.parts.first_mut()?.groups.get_mut(&name)
    }

    /// A client has come or gone. If daemons went shortly before, the view says all at once, and is followed by another
    /// signal, as more daemons may go.
    fn announce(&mut self, name: GroupName, cause: Cause) {
        let (Cause::Join(member) | Cause::Leave(member) | Cause::Disconnect(member)) = cause else {
            return;
        };
        let Some(group) = self.group_mut(name) else {
            return;
        };
        if group.members.is_empty() {
            if let Some(part) = self.parts.first_mut() {
                part.groups.remove(&name);
            }
            self.local.remove(&name);
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
        let Some(local) = self.local.get_mut(&name) else {
            return;
        };
        if local.signaled && !mutants::on(Mutant::G01) {
            return;
        }
        local.signaled = true;
        let view = local.view;
        self.emit(to, Event::Transitional { group: name, view });
    }

    fn view(&mut self, name: GroupName, cause: Cause, vs_sets: Vec<Vec<Member>>) {
        self.issued += 1;
        let Some(ring) = self.ring else { return };
        let next = match self.phase {
            Phase::Transitional(next) => Some(next),
            _ => None,
        };
        let next = next.filter(|_| !mutants::on(Mutant::G02));
        let index = self.issued;
        let id = ViewId { ring, next, index };
        let to = self.local_members(name);
        if to.is_empty() {
            self.local.remove(&name);
            return;
        }
        let signaled = false;
        self.local.insert(name, Local { view: id, signaled });
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
        let from = Member::before_all(self.me);
        let parts = self.parts.iter();
        let groups = parts.filter_map(|part| part.groups.get(&name));
        let mut all = Vec::new();
        for group in groups {
            // Members are ordered by their daemons.
            let mine = group.members.range(from..);
            let mine = mine.take_while(|member| member.daemon == self.me);
            let mine = mine.map(|member| member.connection);
            all.extend(mine.filter(|connection| self.clients.is_connected(*connection)));
        }
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
            self.include_unless_missed();
            self.events.push_back(ClientEvent { to, event });
        }
    }
}
