//! The learner of several rings: the deliveries of a process in one order, and the points at which its application
//! keeps a state.

mod changes;
mod rings;

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use rota_core::contract::{Configuration, Delivery, Message};

use crate::feed::{Feed, Leveled};
use crate::merge::{Merge, Merged, Need, PushError};
use crate::mutants::{self, Mutant};
use crate::notice::Command;
use crate::order::{Constants, Instance, Place, Point, Rank, Round};
use crate::resume::{Resume, ResumeRing};
use changes::Changes;

/// The bytes of a message that waits beside its payload, about.
const MESSAGE_BYTES: usize = 128;

/// A delivery of a process of several rings.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RingsDelivery {
    /// A message, in the order of all rings.
    Message(Place, Message),
    /// The members of a ring are others now. This delivery is not in the order of all rings, but comes when this
    /// process hears of the change.
    Configuration(Rank, Configuration),
    /// A ring has forgotten the instances that this process needs of it next, with their number. Nothing is delivered
    /// any more: this process has to begin at a later point, with the state that belongs to it.
    Trimmed(Rank, u64),
    /// A ring has delivered something before its earlier deliveries, which it never may. Nothing is delivered any more.
    Contradicted(Rank),
    /// Everything before this place was delivered, and nothing behind it: a state that is kept here goes on from there.
    Point(Box<Resume>),
    /// A ring was founded anew after the state with which this process began, or the charters that it had kept: they
    /// say nothing about this ring.
    /// Nothing is delivered any more.
    Refounded(Rank),
    /// The partition has subscribed to a ring: its messages from this point on are delivered, too. At all replicas of
    /// the partition this comes at this point, behind everything before it, and before everything behind it. What is
    /// submitted to the ring from now on is ordered behind the point.
    Subscribed(Rank, Point),
    /// The partition has left a ring: nothing of it behind this point is delivered. At all replicas this comes at this
    /// point.
    Left(Rank, Point),
    /// The partition does not leave this ring, as this process has asked for: it has no other.
    LastRing(Rank),
    /// The partition does not subscribe to this ring, as this process has asked for: none of the holds that were ordered
    /// for that serves, as one far behind them was let go. This delivery is not in the order of all rings.
    NotHeld(Rank),
    /// The partition subscribes to a ring that this process is not on or only observes, or that it knows by other
    /// constants. Nothing is delivered any more.
    Unreachable(Rank),
}

/// An item of the merged order.
#[derive(Debug)]
enum Item {
    Message(Message),
    /// A command about the subscriptions of this learner's partition.
    Notice(Command),
}

/// A place of which the application is to be told.
#[derive(Debug)]
struct Stop {
    /// The place is before everything of this round.
    round: Round,
    /// The snapshots of rings there, as far as they are known.
    rings: Vec<ResumeRing>,
}

/// See the module's page.
#[derive(Debug)]
pub struct RingsLearner {
    merge: Merge<Item>,
    /// The place of which the application is told when it has come there.
    stop: Option<Stop>,
    /// The next message or notice, which stands behind that place, or where subscriptions change: until the ring that is
    /// new has come there, too.
    held: Option<Merged<Item>>,
    /// The greatest round for which each ring was said to be needed.
    asked: BTreeMap<Rank, Round>,
    /// Something has come since the needs were looked at.
    is_changed: bool,
    /// The application began with a state.
    has_state: bool,
    /// Nothing is delivered any more.
    is_over: bool,
    /// The subscriptions, of a learner of a partition.
    changes: Option<Changes>,
}

impl RingsLearner {
    /// A learner of these rings, of which there may be none, from their beginning, or from the point of the state with
    /// which the application begins.
    pub fn new(rings: impl IntoIterator<Item = Constants>, point: Option<Point>) -> Self {
        Self {
            merge: match point {
                Some(point) => Merge::at(point, rings),
                None => Merge::new(rings),
            },
            stop: None,
            held: None,
            asked: BTreeMap::new(),
            is_changed: false,
            has_state: point.is_some(),
            is_over: false,
            changes: None,
        }
    }

    /// The rings that it delivers, by rank.
    pub fn rings(&self) -> impl Iterator<Item = &Constants> {
        self.merge.rings()
    }

    /// Whether a ring's messages are delivered.
    pub fn has(&self, rank: Rank) -> bool {
        self.merge.rings().any(|of| of.rank == rank)
    }

    /// The point up to which it has delivered; `None` between two messages of one instance.
    pub fn point(&self) -> Option<Point> {
        match &self.held {
            // The held message is before everything else, and not delivered.
            Some(held) => self.before(held.place),
            None => self.merge.point(),
        }
    }

    fn before(&self, place: Place) -> Option<Point> {
        let of = self.rings().find(|of| of.rank == place.rank)?;
        (place.index == 0).then(|| Point::before(of, place.instance))
    }

    /// The rings that it waits for, and the round up to which it needs each.
    pub fn needs(&self) -> Vec<Need> {
        self.merge.needs()
    }

    /// Takes a delivery of a ring. Returns what the application is told of that at once, if anything; the rest comes
    /// from [`Self::poll`].
    pub fn on_delivery(&mut self, rank: Rank, delivery: Delivery) -> Option<RingsDelivery> {
        match delivery {
            Delivery::Message(message) => {
                let at = (message.seq, u32::from(message.index));
                // A message takes some bytes beside its payload.
                let bytes = message.payload.len() + MESSAGE_BYTES;
                self.push(rank, at, (Item::Message(message), bytes))
            }
            Delivery::Notice { seq, bytes } => self.on_notice(rank, (seq, bytes)),
            Delivery::Passed { next } => {
                match self.merge.passed(rank, next, 1) {
                    Ok(()) => self.is_changed = true,
                    Err(_) => self.on_untaken(rank, next),
                }
                None
            }
            // A process that delivers nothing need not hear of members either.
            Delivery::Configuration(now) => {
                let told = RingsDelivery::Configuration(rank, now);
                self.rings().next().is_some().then_some(told)
            }
            Delivery::Missed { seq, count, .. } => {
                let is_needed = self.on_missed(rank, (seq, seq.saturating_add(count)));
                if is_needed && mutants::on(Mutant::A40) {
                    let _ = self.merge.passed(rank, seq.saturating_add(count), 1);
                    return None;
                }
                let told = is_needed.then(|| self.end(RingsDelivery::Trimmed(rank, count)));
                told.flatten()
            }
            Delivery::Primary(_) | Delivery::Excluded(_) => None,
        }
    }

    fn push(
        &mut self,
        rank: Rank,
        at: (Instance, u32),
        item: (Item, usize),
    ) -> Option<RingsDelivery> {
        match self.merge.push(rank, at, item) {
            Ok(()) => {
                self.is_changed = true;
                None
            }
            // This process is on the ring and does not deliver it.
            Err(PushError::NotSubscribed(_)) => {
                self.on_untaken(rank, at.0.saturating_add(1));
                None
            }
            Err(_) => self.end(RingsDelivery::Contradicted(rank)),
        }
    }

    fn end(&mut self, why: RingsDelivery) -> Option<RingsDelivery> {
        let is_over = core::mem::replace(&mut self.is_over, true);
        (!is_over).then_some(why)
    }

    /// The next delivery, if it is known. Messages behind it may need other rings.
    pub fn poll(&mut self) -> Option<RingsDelivery> {
        let next = self.next();
        self.is_changed |= next.is_some() && !mutants::on(Mutant::A31);
        next
    }

    fn next(&mut self) -> Option<RingsDelivery> {
        while !self.is_over
            && let Some(merged) = self.held.take().or_else(|| self.merge.poll())
        {
            let round = merged.place.round;
            if self.waits_for_ring(round) {
                self.held = Some(merged);
                return None;
            }
            if !mutants::on(Mutant::A37)
                && let Some(told) = self.change_at(round)
            {
                self.held = Some(merged);
                return Some(told);
            }
            let is_behind = |stop: &Stop| round >= stop.round && !mutants::on(Mutant::A30);
            if !self.stop.as_ref().is_some_and(is_behind) {
                let told = self.deliver(merged);
                if told.is_some() {
                    return told;
                }
                continue;
            }
            self.held = Some(merged);
            if !self.knows_point() {
                return None;
            }
            if let Some(point) = self.take_point() {
                return Some(point);
            }
        }
        if self.is_over || self.stop.is_none() && self.pending().is_none() {
            return None;
        }
        let round = self.merge.point()?.round;
        if self.waits_for_ring(round) {
            return None;
        }
        let change = self.change_at(round);
        let is_there = self.stop.as_ref().is_some_and(|stop| round >= stop.round);
        let is_told = is_there && self.knows_point();
        change.or_else(|| is_told.then(|| self.take_point()).flatten())
    }

    /// What the application is told of the next item, if anything.
    fn deliver(&mut self, merged: Merged<Item>) -> Option<RingsDelivery> {
        match merged.message {
            Item::Message(message) => Some(RingsDelivery::Message(merged.place, message)),
            Item::Notice(command) => self.obey(merged.place, command),
        }
    }

    /// Whether the snapshot of each ring at the wanted point is known.
    fn knows_point(&self) -> bool {
        let known = self.stop.as_ref().map(|stop| stop.rings.len());
        known == Some(self.merge.rings().count())
    }

    /// Takes the wanted point, to which the learner has come.
    fn take_point(&mut self) -> Option<RingsDelivery> {
        let first = self.merge.rings().next()?.rank;
        let mut stop = self.stop.take()?;
        self.merge.wait_until(None);
        stop.rings.sort_by_key(|ring| ring.of.rank);
        // The beginning of the round, also if a ring has none of its instances in it yet.
        let point = Point {
            round: stop.round,
            turn: first,
            used: 0,
        };
        let resume = Resume {
            point,
            rings: stop.rings,
            spent: self.changes.as_ref().map_or_else(Vec::new, Changes::spent),
        };
        debug_assert!(resume.is_sound(), "bases are those of their point");
        let is_sound = resume.is_sound();
        is_sound.then(|| RingsDelivery::Point(Box::new(resume)))
    }

    /// Has the application told of a point that all rings come to soon, also if nothing is submitted; nothing changes
    /// while it is to be told of one already. A point that is wanted while a change of the subscriptions is pending, or
    /// before which one is ordered, is taken behind that change ([`Self::takes_up_point`]). `engines`: those of all
    /// rings that it delivers.
    pub fn want_point<E: Feed>(&mut self, engines: &mut [&mut Leveled<E>]) {
        if self.stop.is_some() || engines.is_empty() {
            return;
        }
        if !self.is_settled() {
            let changes = self.changes.iter_mut();
            changes.for_each(|changes| changes.owes_point = true);
            return;
        }
        let behind = |engine: &&mut Leveled<E>| {
            let of = engine.of().constants;
            of.round_of(engine.get().told()) + 1
        };
        let round = engines.iter().map(behind).max().unwrap_or(0);
        for engine in engines {
            let first = engine.of().constants.first_of(round);
            engine.get_mut().want_snapshot(first);
        }
        let rings = Vec::new();
        self.stop = Some(Stop { round, rings });
        self.merge.wait_until(Some(round));
        self.is_changed = true;
    }

    /// Whether rings are to be looked at: for a point that is wanted, or for the state with which the application began.
    pub const fn looks_at_rings(&self) -> bool {
        self.stop.is_some() || self.has_state
    }

    /// Takes the snapshot of a ring at the wanted point, and looks whether the state with which the application began
    /// is of this ring. Returns what the application is told of that.
    pub fn look_at<E: Feed>(&mut self, engine: &mut Leveled<E>) -> Option<RingsDelivery> {
        let of = engine.of().constants;
        if !self.looks_at_rings() || !self.has(of.rank) {
            return None;
        }
        // A ring that is not founded yet has no place at which an application could go on.
        if let Some(founded) = engine.get().founded() {
            while let Some(base) = engine.get_mut().take_base() {
                self.on_base(ResumeRing { of, founded, base });
            }
        }
        let is_other = self.has_state && engine.get().is_refounded();
        let end = is_other.then(|| self.end(RingsDelivery::Refounded(of.rank)));
        end.flatten()
    }

    fn on_base(&mut self, ring: ResumeRing) {
        if let Some(stop) = &mut self.stop
            && ring.base.next == ring.of.first_of(stop.round)
        {
            stop.rings.retain(|other| other.of.rank != ring.of.rank);
            stop.rings.push(ring);
        }
    }

    /// The rings that are needed further than was said before.
    pub fn take_needs(&mut self) -> Vec<Need> {
        if !core::mem::take(&mut self.is_changed) {
            return Vec::new();
        }
        let mut needs = self.merge.needs();
        needs.retain(|need| {
            let asked = self.asked.entry(need.rank).or_insert(0);
            let is_news = need.round >= *asked;
            *asked = (*asked).max(need.round.saturating_add(1));
            is_news
        });
        needs
    }
}

impl RingsLearner {
    /// Its invariants.
    pub fn check(&self) {
        let Some(stop) = &self.stop else {
            return;
        };
        let is_first = |ring: &ResumeRing| ring.base.next == ring.of.first_of(stop.round);
        assert!(
            stop.rings.iter().all(is_first),
            "bases are of the round that is waited for"
        );
        let rings = self.merge.rings().count();
        assert!(stop.rings.len() <= rings, "each ring says it once");
        if let Some(held) = &self.held {
            assert!(
                held.place.round >= stop.round,
                "what is held back stands behind the point"
            );
        }
    }
}
