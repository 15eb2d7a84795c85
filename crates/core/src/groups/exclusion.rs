//! Engines that order in primary views alone: a daemon that is in none is *excluded*, gets nothing, and misses what
//! the others go on with.
//!
//! Its clients are told when that begins ([`Event::Excluded`]) and when it is over ([`Event::Included`]). What they ask
//! for meanwhile waits, within the bounds of each client, and goes out afterwards. If views were missed, the daemon comes
//! back like one from another side of a split: the others saw its clients leave by network, and they come back so, in a
//! set of their own, as nobody else has got the same; each group with clients of this daemon gets a view.
//!
//! Of what the daemon had handed to its engine, the others may have delivered a part that it missed itself. The engine
//! says which ([`Delivery::Missed`](crate::contract::Delivery::Missed)):
//!
//! * Messages have been delivered for good, so they are not sent again, and nobody waits for them any more.
//! * Who disconnected has gone, with all it had asked for: others must not see it once more.
//! * Joins and leaves ended for the others with the view in which they were ordered, as all clients of this daemon left
//!   by network. Its own clients have been told nothing. So they are asked for again.

use alloc::vec::Vec;

use super::event::{ClientEvent, Connection, Event, Member};
use super::machine::Groups;
use crate::mutants::{self, Mutant};

/// How far this daemon is with being excluded.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Exclusion {
    /// The engine has said that it is in no view, and has been in none since.
    pub out: bool,
    /// Clients have been told so, and not that it is over.
    pub told: bool,
    /// Views have been missed that clients have not been told of yet.
    pub missed: bool,
}

impl Groups {
    /// Whether clients have been told that this daemon is excluded, and not that it is over.
    pub const fn is_excluded(&self) -> bool {
        self.exclusion.told
    }

    pub(super) fn on_excluded(&mut self) {
        self.exclusion.out = true;
        self.tell_excluded();
    }

    /// The view that comes next follows others that this daemon was not in. Of what it has submitted, all up to this
    /// counter has been delivered.
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

    /// Whoever shared groups with this client saw it disconnect, or is told by a view that comes.
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

    /// Whoever comes while this daemon is excluded is told so first.
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

    /// Something is delivered: then this daemon is not excluded any more, unless it has still to be told what there is
    /// now.
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
