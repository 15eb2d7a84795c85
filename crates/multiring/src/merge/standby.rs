//! Rings on standby: those of which a learner keeps what it hears, since a hold was ordered there, and delivers nothing
//! before it subscribes.

use super::lane::Lane;
use super::{Merge, PushError};
use crate::mutants::{self, Mutant};
use crate::order::{Constants, Instance, Rank, Round};

impl<T> Merge<T> {
    /// A hold was ordered in this instance of a ring: what comes of the ring from there on is kept, until the learner
    /// subscribes or lets go.
    pub fn stand_by(&mut self, of: Constants, hold: Instance) {
        if let Some(lane) = self.lanes.get_mut(&of.rank)
            && !lane.has_ended_before(hold)
        {
            // What is not delivered of it when the learner leaves is kept then.
            lane.on_hold(hold);
            return;
        }
        let lane = self.standby.entry(of.rank);
        lane.or_insert_with(|| Lane::new(of, hold)).on_hold(hold);
    }

    /// The last hold from which on, or from before it on, what comes of a ring is kept.
    pub fn hold(&self, rank: Rank) -> Option<Instance> {
        self.standby.get(&rank)?.hold()
    }

    /// The rings on standby, each with its last hold.
    pub fn held(&self) -> impl Iterator<Item = (Rank, Instance)> {
        let lanes = self.standby.iter();
        lanes.filter_map(|(rank, lane)| Some((*rank, lane.hold()?)))
    }

    /// Keeps nothing of a ring any more, but what is delivered. Returns the first instance of which nothing has come.
    pub fn let_go(&mut self, rank: Rank) -> Option<Instance> {
        Some(self.standby.remove(&rank)?.untold())
    }

    /// Delivers a ring, too, from a round on: what was kept of it since a hold, and what comes. `told`: without a hold,
    /// the first instance of which nothing has come.
    ///
    /// # Errors
    /// The learner needs instances that have come and were not kept, before this one. Then nothing is kept of the ring
    /// any more.
    pub fn subscribe_held(
        &mut self,
        of: Constants,
        (from, told): (Round, Instance),
    ) -> Result<(), Instance> {
        let first = of.first_of(from);
        let held = self.standby.remove(&of.rank);
        let held = held.filter(|_| !mutants::on(Mutant::A32));
        match held {
            Some(lane) if lane.has_all_from(from) || mutants::on(Mutant::A33) => {
                self.lanes.insert(of.rank, lane.from(from));
                self.run = None;
                Ok(())
            }
            None if told <= first || mutants::on(Mutant::A33) => {
                let added = self.subscribe(of, from, told);
                added.map_err(|_: PushError| told)
            }
            Some(lane) => Err(lane.start()),
            None => Err(told),
        }
    }

    /// Whether a ring is known up to where the learner begins to deliver it: whatever the ring orders from now on is
    /// behind that.
    pub fn has_begun(&self, rank: Rank) -> bool {
        let lane = self.lanes.get(&rank);
        lane.is_some_and(Lane::has_begun) || mutants::on(Mutant::A44)
    }

    /// The learner has left a ring. Returns the first instance of which nothing has come.
    pub fn remove(&mut self, rank: Rank) -> Instance {
        self.run = None;
        let lane = self.lanes.remove(&rank);
        lane.map_or(1, |lane| lane.untold())
    }

    /// Whether some instances of a ring are delivered here: from `first` up to `next`.
    pub fn wants(&self, rank: Rank, (first, next): (Instance, Instance)) -> bool {
        let lane = self.lanes.get(&rank);
        lane.is_some_and(|lane| lane.wants(first, next))
    }
}
