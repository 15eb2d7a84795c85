//! Exclusion, over engines that order in primary views alone: a daemon that is in no view is *excluded*, gets nothing,
//! and misses the deliveries of the others.
//!
//! Its clients are told of the beginning ([`Event::Excluded`]) and of the end ([`Event::Included`]). Their requests
//! meanwhile wait, within the bounds of each client, and go out afterwards. If views were missed, the daemon comes back
//! like one from another side of a split: the others saw its clients leave by network, and the clients come back by
//! network, in a set of their own, as no other client has got the same; each group with clients of this daemon gets a
//! view.
//!
//! The others may have delivered a part of the requests that the daemon had handed to its engine, while the daemon
//! missed them. The engine says which ([`Delivery::Missed`](crate::contract::Delivery::Missed)):
//!
//! * Messages have been delivered for good, so they are not sent again, and nobody waits for them any more.
//! * A client that disconnected has gone, with all its requests: others must not see it once more.
//! * Joins and leaves ended for the others with the view in which they were ordered, as all clients of this daemon left
//!   by network. Its own clients have been told nothing. So the daemon asks for them again.

use alloc::vec::Vec;

use super::event::{ClientEvent, Connection, Event, Member};
use super::machine::Groups;
use crate::mutants::{self, Mutant};

/// The progress of this daemon's exclusion.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Exclusion {
    /// The engine has said that this daemon is in no view, and it has been in none since.
    pub out: bool,
    /// Clients have been told of the exclusion, and not of its end.
    pub told: bool,
    /// Views have been missed that clients have not been told of yet.
    pub missed: bool,
}

impl Groups {
    /// Whether clients have been told that this daemon is excluded, and not that the exclusion is over.
    pub const fn is_excluded(&self) -> bool {
        self.exclusion.told
    }

    pub(super) fn on_excluded(&mut self) {
        self.exclusion.out = true;
        self.tell_excluded();
    }

    /// The next view follows others that this daemon was not in. All its submissions up to this counter have been
    /// delivered.
    pub(super) fn on_missed(&mut self, own: u64) {
        if !mutants::on(Mutant::G27) {
            self.tell_excluded();
        }
        self.exclusion.missed = true;
        self.routes.clear();
        let (elsewhere, gone) = self.clients.ordered_elsewhere(own);
        self.counters.missed += 1;
        self.counters.elsewhere += elsewhere;
        for gone in gone {
            self.forget_member(&gone);
        }
        let groups = self.parts.iter_mut().flat_map(|part| &mut part.groups);
        for (_, group) in groups {
            group.changed |= !mutants::on(Mutant::G25);
        }
    }

    /// Removes a client whose disconnect was missed: other members of its groups saw it disconnect, or are told by a
    /// view that comes.
    fn forget_member(&mut self, gone: &Member) {
        for part in &mut self.parts {
            part.groups.retain(|_, group| {
                group.members.remove(gone);
                !group.members.is_empty()
            });
        }
        self.clients.ended(gone);
    }

    fn tell_excluded(&mut self) {
        if self.exclusion.told {
            return;
        }
        self.exclusion.told = true;
        let all = self.clients.all_connected();
        self.tell(all, Event::Excluded);
    }

    /// Tells a client that connects while this daemon is excluded of that first.
    pub(super) fn greet(&mut self, connection: Connection) {
        if self.exclusion.told && !mutants::on(Mutant::G29) {
            self.tell(Vec::from([connection]), Event::Excluded);
        }
    }

    /// Deliveries go on: where they stopped, or with a view for each group after what was missed.
    pub(super) fn include(&mut self) {
        let Exclusion { told, missed, out } = self.exclusion;
        self.exclusion = Exclusion {
            out,
            ..Exclusion::default()
        };
        if told {
            let all = self.clients.all_connected();
            self.tell(all, Event::Included { missed });
        }
    }

    /// An event is about to go to clients: then this daemon is not excluded any more, unless its clients have still to
    /// be told of the present views.
    pub(super) fn include_unless_missed(&mut self) {
        if self.exclusion.told && !self.exclusion.missed {
            self.include();
        }
    }

    fn tell(&mut self, to: Vec<Connection>, event: Event) {
        if !to.is_empty() {
            let to = to.into();
            self.events.push_back(ClientEvent { to, event });
        }
    }
}
