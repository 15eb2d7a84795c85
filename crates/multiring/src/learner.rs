//! The learner of several rings: what a process delivers of them, in one order, and the points at which its application keeps a state.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use rota_core::contract::{Configuration, Delivery, Message};

use crate::feed::{Announced, Feed, Leveled};
use crate::merge::{Merge, Merged, Need, PushError};
use crate::mutants::{self, Mutant};
use crate::order::{Constants, Place, Point, Rank, Round};
use crate::resume::{Resume, ResumeRing};

/// What a message that waits takes beside its payload, about.
const MESSAGE_BYTES: usize = 128;

/// What a process of several rings delivers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RingsDelivery {
    /// A message, in the order of all rings.
    Message(Place, Message),
    /// The members of a ring are others now. Not in that order: what this process hears of a ring, when it does.
    Configuration(Rank, Configuration),
    /// A ring has forgotten what this process needs of it next, so many instances. Nothing is delivered any more: this process has to begin
    /// at a later point, with the state that belongs to it.
    Trimmed(Rank, u64),
    /// A ring has delivered something before what it had delivered already, which it never may. Nothing is delivered any more.
    Contradicted(Rank),
    /// Everything before this place was delivered, and nothing behind it: a state that is kept here goes on from there.
    Point(Box<Resume>),
    /// A ring was founded anew after the state with which this process began: that says nothing about this one. Nothing is delivered any more.
    Refounded(Rank),
}

/// A place of which the application is to be told.
#[derive(Debug)]
struct Stop {
    /// It is before everything of this round.
    round: Round,
    /// What is known of each ring there.
    rings: Vec<ResumeRing>,
}

/// See the module's page.
#[derive(Debug)]
pub struct RingsLearner {
    merge: Merge<Message>,
    /// The application is told when it has come there.
    stop: Option<Stop>,
    /// What is next, and stands behind that.
    held: Option<Merged<Message>>,
    /// The greatest round for which each ring was said to be needed.
    asked: BTreeMap<Rank, Round>,
    /// Something has come since what is needed was looked at.
    is_changed: bool,
    /// The application began with a state.
    has_state: bool,
    /// Nothing is delivered any more.
    is_over: bool,
}

impl RingsLearner {
    /// Of these rings, of which there may be none, from their beginning, or from the point of the state with which the application begins.
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

    /// What of a ring waits for others, in bytes.
    pub fn waiting_bytes(&self, rank: Rank) -> usize {
        self.merge.waiting_bytes(rank)
    }

    /// How far it is; `None` between two messages of one instance.
    pub fn point(&self) -> Option<Point> {
        match &self.held {
            // It is before everything else, and not delivered.
            Some(held) => self.before(held.place),
            None => self.merge.point(),
        }
    }

    fn before(&self, place: Place) -> Option<Point> {
        let of = self.rings().find(|of| of.rank == place.rank)?;
        (place.index == 0).then(|| Point::before(of, place.instance))
    }

    /// Which rings it waits for, and up to which round.
    pub fn needs(&self) -> Vec<Need> {
        self.merge.needs()
    }

    /// What a ring delivers. What the application is told of that at once, if anything; the rest comes of [`Self::poll`].
    pub fn on_delivery(&mut self, rank: Rank, delivery: Delivery) -> Option<RingsDelivery> {
        match delivery {
            Delivery::Message(message) => self.push(rank, message),
            Delivery::Passed { next } => {
                let told = self.merge.passed(rank, next, 1);
                self.is_changed |= told.is_ok();
                None
            }
            // Whoever delivers nothing need not hear of members either.
            Delivery::Configuration(now) => {
                let told = RingsDelivery::Configuration(rank, now);
                self.rings().next().is_some().then_some(told)
            }
            Delivery::Missed { count, .. } if self.has(rank) => {
                self.end(RingsDelivery::Trimmed(rank, count))
            }
            Delivery::Missed { .. } | Delivery::Primary(_) | Delivery::Excluded(_) => None,
        }
    }

    fn push(&mut self, rank: Rank, message: Message) -> Option<RingsDelivery> {
        let at = (message.seq, u32::from(message.index));
        // A message takes some beside what it carries.
        let bytes = message.payload.len() + MESSAGE_BYTES;
        match self.merge.push(rank, at, (message, bytes)) {
            Ok(()) => {
                self.is_changed = true;
                None
            }
            // Of a ring that this process is on and does not deliver.
            Err(PushError::NotSubscribed(_)) => None,
            Err(_) => self.end(RingsDelivery::Contradicted(rank)),
        }
    }

    fn end(&mut self, why: RingsDelivery) -> Option<RingsDelivery> {
        let is_over = core::mem::replace(&mut self.is_over, true);
        (!is_over).then_some(why)
    }

    /// What is delivered next, if that is known. What stands behind it may need other rings.
    pub fn poll(&mut self) -> Option<RingsDelivery> {
        let next = self.next();
        self.is_changed |= next.is_some() && !mutants::on(Mutant::A31);
        next
    }

    fn next(&mut self) -> Option<RingsDelivery> {
        while !self.is_over
            && let Some(merged) = self.held.take().or_else(|| self.merge.poll())
        {
            let is_behind =
                |stop: &Stop| merged.place.round >= stop.round && !mutants::on(Mutant::A30);
            if !self.stop.as_ref().is_some_and(is_behind) {
                return Some(RingsDelivery::Message(merged.place, merged.message));
            }
            self.held = Some(merged);
            if !self.knows_point() {
                return None;
            }
            if let Some(point) = self.take_point() {
                return Some(point);
            }
        }
        let round = self.stop.as_ref().map(|stop| stop.round);
        let is_there = |round| self.merge.point().is_some_and(|point| point.round >= round);
        let is_told = !self.is_over && round.is_some_and(is_there) && self.knows_point();
        if is_told { self.take_point() } else { None }
    }

    /// Whether each ring has said what is known of it at the point that is wanted.
    fn knows_point(&self) -> bool {
        let known = self.stop.as_ref().map(|stop| stop.rings.len());
        known == Some(self.merge.rings().count())
    }

    /// It has come there.
    fn take_point(&mut self) -> Option<RingsDelivery> {
        let first = self.merge.rings().next()?.rank;
        let mut stop = self.stop.take()?;
        self.merge.wait_until(None);
        stop.rings.sort_by_key(|ring| ring.of.rank);
        // The beginning of the round, also where a ring has none of its instances in it yet.
        let point = Point {
            round: stop.round,
            turn: first,
            used: 0,
        };
        let resume = Resume {
            point,
            rings: stop.rings,
        };
        debug_assert!(resume.is_sound(), "bases are those of their point");
        let is_sound = resume.is_sound();
        is_sound.then(|| RingsDelivery::Point(Box::new(resume)))
    }

    /// Has the application told of a point that all rings come to soon, also where nothing is submitted; nothing changes while it is to be told of
    /// one already. Of these rings, which are all that it delivers.
    pub fn want_point<E: Feed>(&mut self, engines: &mut [&mut Leveled<E>]) {
        if self.stop.is_some() || engines.is_empty() {
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

    /// What is known of a ring at the point that is wanted; and whether the state with which the application began is of this ring. What it is told of
    /// that.
    pub fn look_at<E: Feed>(&mut self, engine: &mut Leveled<E>) -> Option<RingsDelivery> {
        let of = engine.of().constants;
        if !self.looks_at_rings() || !self.has(of.rank) {
            return None;
        }
        // A ring that is not founded yet has no place where anybody could go on.
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

    /// A ring that this process coordinates has proposed values: what another one that it coordinates is told of that, so that it skips up to there
    /// while they are decided.
    pub fn announces(&self, from: Rank, announced: Announced, to: Rank) -> Option<Announced> {
        if from == to || !self.has(from) || !self.has(to) {
            return None;
        }
        // What stands behind the other ring in a round is not waited for in that round.
        let round = match to < from {
            true => Some(announced.round),
            false => announced.round.checked_sub(1),
        };
        Some(Announced {
            round: round?,
            ..announced
        })
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
