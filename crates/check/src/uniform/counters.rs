//! The numbers of the events that the properties of one order over primary views speak of.

use serde::Serialize;

use super::{Begins, Uniform};
use crate::trace::Step;
use crate::view::End;

/// A campaign in which one of the rare ones stays 0 has not tested what it should.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct UniformCounters {
    /// Views that anybody installed.
    pub views: u64,
    /// Orders that have begun: more than one if memory was lost.
    pub orders: u64,
    /// Of these, such that go back to a view that some remember.
    pub orders_back: u64,
    /// Views that follow another.
    pub view_changes: u64,
    /// Of these, such that not all members are known to have installed: some cases are left out there.
    pub view_changes_uncertain: u64,
    /// Processes that went on from a view to the one that follows it, over all changes.
    pub survivors: u64,
    /// Certain changes that two or more have survived.
    pub survived_by_two: u64,
    /// Processes that came to a view that follows another without having been in that.
    pub joiners: u64,
    /// Of these, such that had been in a view before.
    pub returned: u64,
    /// Members of a view that have delivered less of it than the process that survived it and delivered most.
    pub left_behind: u64,
    /// Reports of a process that it is excluded.
    pub exclusions: u64,
    /// Messages delivered between such a report and the next view.
    pub delivered_while_excluded: u64,
    /// Processes that are alive and excluded at the end.
    pub excluded_at_the_end: u64,
    /// Messages delivered by processes that crashed later.
    pub delivered_by_crashed: u64,
    /// Of these, in their last view.
    pub delivered_last_by_crashed: u64,
    /// Messages sent in one view, or before it, and delivered in a later one.
    pub delivered_in_later_view: u64,
}

impl UniformCounters {
    /// The rare ones, by name: a campaign must have seen each of them.
    pub const fn rare(&self) -> [(&'static str, u64); 9] {
        [
            ("view_changes", self.view_changes),
            ("survived_by_two", self.survived_by_two),
            ("joiners", self.joiners),
            ("returned", self.returned),
            ("left_behind", self.left_behind),
            ("exclusions", self.exclusions),
            ("delivered_while_excluded", self.delivered_while_excluded),
            ("delivered_last_by_crashed", self.delivered_last_by_crashed),
            ("delivered_in_later_view", self.delivered_in_later_view),
        ]
    }

    pub(crate) fn of(uniform: &Uniform<'_>) -> Self {
        let mut counters = Self::default();
        counters.count_views(uniform);
        counters.count_stays(uniform);
        for (_, _, step) in uniform.base.all_steps() {
            counters.exclusions += u64::from(matches!(step, Step::Excluded { .. }));
        }
        counters
    }

    fn count_views(&mut self, uniform: &Uniform<'_>) {
        for (number, view) in (0..).zip(&uniform.views) {
            let again = matches!(view.begins, Begins::Again { .. });
            self.views += u64::from(!again);
            self.orders += u64::from(again || view.begins == Begins::Anew);
            self.orders_back += u64::from(again);
            let changes = uniform.before(number).is_some();
            self.view_changes += u64::from(changes);
            self.view_changes_uncertain += u64::from(changes && !view.certain);
            let survivors = uniform.survivors(number).count();
            self.survivors += survivors as u64;
            let next = uniform.views.get(number as usize + 1);
            let certain = next.is_some_and(|next| next.certain);
            self.survived_by_two += u64::from(survivors >= 2 && certain);
            let most = uniform.survivors(number);
            let most = most.map(|stay| uniform.deliveries(stay).count()).max();
            let stays = view.stays.iter().map(|stay| &uniform.stays[*stay as usize]);
            let behind = stays
                .filter(|stay| most.is_some_and(|most| uniform.deliveries(stay).count() < most));
            self.left_behind += behind.count() as u64;
        }
    }

    fn count_stays(&mut self, uniform: &Uniform<'_>) {
        for stays in &uniform.lives {
            let mut last = None;
            for stay in stays {
                let stay = &uniform.stays[*stay as usize];
                let before = uniform.before(stay.view);
                let joined = before.is_some() && before != last;
                self.joiners += u64::from(joined);
                self.returned += u64::from(joined && last.is_some());
                last = Some(stay.view);
                self.count_deliveries(uniform, stay);
                let alive = uniform.base.end(stay.process) == End::Alive;
                let excluded = stay.next.is_none() && stay.excluded.is_some();
                self.excluded_at_the_end += u64::from(alive && excluded);
            }
        }
    }

    fn count_deliveries(&mut self, uniform: &Uniform<'_>, stay: &super::Stay) {
        let crashed = uniform.base.end(stay.process) == End::Crashed;
        for (at, place) in uniform.deliveries(stay) {
            let excluded = stay.excluded.is_some_and(|excluded| excluded < at);
            self.delivered_while_excluded += u64::from(excluded);
            self.delivered_by_crashed += u64::from(crashed);
            self.delivered_last_by_crashed += u64::from(crashed && stay.next.is_none());
            let broadcast = uniform.broadcasts[place.message as usize];
            let earlier = broadcast.is_some_and(|broadcast| broadcast.view < Some(stay.view));
            self.delivered_in_later_view += u64::from(earlier);
        }
    }
}
