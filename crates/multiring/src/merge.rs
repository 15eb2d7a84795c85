//! The merge: delivery of several rings in the one order of all.
//!
//! A message may be delivered when no other ring can bring anything before it any more: when every other ring is known
//! up to there. It does not matter whether known instances carry messages or are skipped. Messages of a ring that is
//! ahead wait.

mod lane;
mod load;
mod standby;

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::mutants::{self, Mutant};
use crate::order::{Constants, Instance, Place, Point, Rank, Round};
use lane::Lane;

/// The bytes of one ring, at most, that wait for other rings.
const WAITING_BYTES: usize = 8 << 20;

/// A message, and its place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Merged<T> {
    /// The place.
    pub place: Place,
    /// The message.
    pub message: T,
}

/// The reason why something of a ring is not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PushError {
    /// This learner does not subscribe to the ring.
    NotSubscribed(Rank),
    /// This learner subscribes to the ring already.
    Subscribed(Rank),
    /// The message stands before something that is known already: the ring's own order is broken.
    Behind {
        /// The ring.
        rank: Rank,
        /// Its instance.
        instance: Instance,
        /// Everything before this one is known.
        next: Instance,
    },
}

/// A ring that something waits for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Need {
    /// The ring.
    pub rank: Rank,
    /// The ring has to be known up to the end of this round.
    pub round: Round,
}

/// A learner's merge.
#[derive(Clone, Debug)]
pub struct Merge<T> {
    lanes: BTreeMap<Rank, Lane<T>>,
    /// Rings that are not delivered, and kept from a hold on.
    standby: BTreeMap<Rank, Lane<T>>,
    /// The ring whose message was delivered last, and the place up to which it may go on: no other ring has anything
    /// before that.
    run: Option<(Rank, Place)>,
    /// The round until which something else waits: a change of the subscriptions, or a read.
    until: Option<Round>,
}

impl<T> Merge<T> {
    /// A merge that delivers these rings from their beginning.
    pub fn new(rings: impl IntoIterator<Item = Constants>) -> Self {
        let lane = |of: Constants| (of.rank, Lane::new(of, 1));
        Self {
            lanes: rings.into_iter().map(lane).collect(),
            standby: BTreeMap::new(),
            run: None,
            until: None,
        }
    }

    /// A merge that goes on from a point. The merge has to be told everything of each ring from [`Point::next_of`] on.
    pub fn at(point: Point, rings: impl IntoIterator<Item = Constants>) -> Self {
        let point = match mutants::on(Mutant::A04) {
            true => Point { used: 0, ..point },
            false => point,
        };
        let lane = |of: Constants| (of.rank, Lane::new(anew(of, point), point.next_of(&of)));
        Self {
            lanes: rings.into_iter().map(lane).collect(),
            standby: BTreeMap::new(),
            run: None,
            until: None,
        }
    }

    /// The rings it delivers, in the order of their ranks.
    pub fn rings(&self) -> impl Iterator<Item = &Constants> {
        self.lanes.values().map(|lane| &lane.of)
    }

    /// Delivers a ring, too, from a round on. Everything from `next` on has to be told; instances before that round are
    /// not delivered. To be called before anything of that round is delivered, and not of a ring that has not ended.
    ///
    /// # Errors
    /// [`PushError::Subscribed`]: then nothing has changed.
    pub fn subscribe(
        &mut self,
        of: Constants,
        from: Round,
        next: Instance,
    ) -> Result<(), PushError> {
        if self.lanes.contains_key(&of.rank) {
            return Err(PushError::Subscribed(of.rank));
        }
        let lane = Lane::new(of, next).from(from);
        self.lanes.insert(of.rank, lane);
        self.run = None;
        Ok(())
    }

    /// Delivers nothing of a ring from a round on.
    pub fn unsubscribe(&mut self, rank: Rank, until: Round) {
        if let Some(lane) = self.lanes.get_mut(&rank)
            && let Some(rest) = lane.end(until)
        {
            self.standby.insert(rank, rest);
        }
        self.run = None;
    }

    /// The rings that have ended by now: nothing of them is needed any more.
    pub fn take_ended(&mut self) -> Vec<Rank> {
        let Some(round) = self.point().map(|point| point.round) else {
            return Vec::new();
        };
        let has_ended = |lane: &Lane<T>| lane.until.is_some_and(|until| until <= round);
        let ended = self.lanes.iter().filter(|(_, lane)| has_ended(lane));
        let ended: Vec<Rank> = ended.map(|(rank, _)| *rank).collect();
        for rank in &ended {
            self.lanes.remove(rank);
        }
        ended
    }

    /// Takes a message of a ring: everything of that ring before it is known by now. `bytes`: those that it takes while
    /// it waits.
    ///
    /// # Errors
    /// [`PushError`]: then nothing has changed.
    pub fn push(
        &mut self,
        rank: Rank,
        (instance, index): (Instance, u32),
        (message, bytes): (T, usize),
    ) -> Result<(), PushError> {
        if let Some(standby) = self.standby.get_mut(&rank) {
            match self.lanes.get_mut(&rank) {
                Some(lane) if !lane.has_ended_before(instance) => {}
                active => {
                    // A ring of which much is kept is told no more, and the rest of what is delivered may not wait for
                    // that.
                    active.into_iter().for_each(|lane| lane.pass(instance, 0));
                    return standby.push((instance, index), (message, bytes));
                }
            }
        }
        let lane = self.lanes.get_mut(&rank);
        let lane = lane.ok_or(PushError::NotSubscribed(rank))?;
        lane.push((instance, index), (message, bytes))
    }

    /// Everything of a ring before an instance is known: instances that were not pushed carry no message. `records`:
    /// the number of votes that say so.
    ///
    /// # Errors
    /// [`PushError::NotSubscribed`].
    pub fn passed(&mut self, rank: Rank, next: Instance, records: u32) -> Result<(), PushError> {
        let lane = self.lanes.get_mut(&rank);
        let is_delivered = lane.map(|lane| lane.pass(next, records)).is_some();
        let lane = self.standby.get_mut(&rank);
        let is_kept = lane.map(|lane| lane.pass(next, records)).is_some();
        let is_taken = is_delivered || is_kept;
        is_taken.then_some(()).ok_or(PushError::NotSubscribed(rank))
    }

    /// The next message; `None` if it is not known yet.
    pub fn poll(&mut self) -> Option<Merged<T>> {
        if let Some((rank, limit)) = self.run
            && let Some(merged) = self.take_before(rank, limit)
        {
            return Some(merged);
        }
        let (rank, head) = self.least_head()?;
        let limit = self.limit(rank);
        if limit.is_some_and(|limit| head >= limit) {
            return None;
        }
        let limit = limit.unwrap_or(Place::MAX);
        self.run = Some((rank, limit));
        self.take_before(rank, limit)
    }

    fn take_before(&mut self, rank: Rank, limit: Place) -> Option<Merged<T>> {
        let lane = self.lanes.get_mut(&rank)?;
        lane.head().filter(|head| *head < limit)?;
        lane.take()
    }

    /// The first message that waits.
    fn least_head(&self) -> Option<(Rank, Place)> {
        let heads = self.lanes.iter();
        let heads = heads.filter_map(|(rank, lane)| Some((*rank, lane.head()?)));
        heads.min_by_key(|(_, head)| *head)
    }

    /// The place before which only messages of one ring can be next.
    fn limit(&self, but: Rank) -> Option<Place> {
        let others = self.lanes.iter().filter(|(rank, _)| **rank != but);
        others.filter_map(|(_, lane)| lane.first_open()).min()
    }

    /// The point up to which it has delivered; `None` between two messages of one instance, and of a merge without
    /// rings.
    pub fn point(&self) -> Option<Point> {
        let firsts = self.lanes.values();
        let firsts = firsts.filter_map(|lane| Some((lane, lane.first_open()?)));
        let (lane, place) = firsts.min_by_key(|(_, place)| *place)?;
        let is_inside = lane.is_inside(place.instance);
        (!is_inside).then(|| Point::before(&lane.of, place.instance))
    }

    /// The bytes of a ring's messages that wait, or are kept from a hold on.
    pub fn waiting_bytes(&self, rank: Rank) -> usize {
        let lanes = [self.lanes.get(&rank), self.standby.get(&rank)];
        lanes.into_iter().flatten().map(Lane::bytes).sum()
    }

    /// Whether more of a ring may wait.
    pub fn has_room(&self, rank: Rank) -> bool {
        self.waiting_bytes(rank) < WAITING_BYTES
    }

    /// Something waits until this round is reached: a change of the subscriptions, or a read. `None`: nothing does.
    pub const fn wait_until(&mut self, round: Option<Round>) {
        self.until = round;
    }

    /// The rings that are waited for, and the round up to which each is needed. A ring may be asked again and again: a
    /// repeated need changes nothing.
    ///
    /// A ring is needed for a message that waits; up to the round to which another ring is known of which much waits
    /// (by records and bytes, never by time: two rings that follow each other would drive each other for ever); and
    /// before the round of [`Self::wait_until`]. A ring that the learner has subscribed to is needed up to where it
    /// begins, too: what is ordered before that, as the learner has the ring, comes to nothing.
    pub fn needs(&self) -> Vec<Need> {
        let head = self.least_head().map(|(_, head)| head);
        let of_much = self.known_where_much_waits();
        let need = |(rank, lane): (&Rank, &Lane<T>)| {
            let of_head = head.and_then(|head| up_to(head, *rank));
            let of_others = of_much;
            let of_wait = self.until.and_then(|round| round.checked_sub(1));
            let (of_others, of_wait) = match mutants::on(Mutant::A27) {
                true => (None, None),
                false => (of_others, of_wait),
            };
            let of_delivery = of_head.into_iter().chain(of_others);
            let of_delivery = of_delivery.filter(|round| *round >= lane.begins());
            let of_begin = lane.begins().checked_sub(1);
            let round = of_delivery.chain(of_wait).chain(of_begin).max()?;
            let round = lane
                .until
                .map_or(round, |until| round.min(until.saturating_sub(1)));
            let is_known = lane.known_up_to().is_some_and(|known| known >= round);
            (!is_known && round >= lane.of.origin).then_some(Need { rank: *rank, round })
        };
        self.lanes.iter().filter_map(need).collect()
    }

    /// The least round up to which a ring is known of which much waits behind the point.
    fn known_where_much_waits(&self) -> Option<Round> {
        let point = self.point()?;
        let much = self.lanes.values();
        let much = much.filter(|lane| lane.is_much_behind(point.next_of(&lane.of)));
        much.filter_map(Lane::known_up_to).min()
    }
}

/// The round up to which a ring has to be known before a message of another one may be delivered.
fn up_to(head: Place, rank: Rank) -> Option<Round> {
    match rank < head.rank {
        true => Some(head.round),
        false if rank == head.rank => None,
        false => head.round.checked_sub(1),
    }
}

/// The constants of a ring for a merge that goes on from a point: the same, without a mutant.
fn anew(of: Constants, point: Point) -> Constants {
    let of = match mutants::on(Mutant::A02) {
        true => Constants {
            per_round: of.per_round.saturating_add(1),
            ..of
        },
        false => of,
    };
    match mutants::on(Mutant::A01) {
        true => {
            let rounds = of.round_of(point.next_of(&of)) - of.origin;
            let origin = point.round.saturating_sub(rounds);
            Constants { origin, ..of }
        }
        false => of,
    }
}
