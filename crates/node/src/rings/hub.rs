//! What the rings of a process deliver, merged.

use rota_core::contract::{Delivery, Message};
use rota_multiring::merge::{Merged, Need};
use rota_multiring::{Constants, Merge, Point, PushError, Rank, Resume, ResumeRing, Round};
use std::collections::BTreeMap;

use super::app::{RingsApp, RingsDelivery};
use super::trace::RingsTrace;

/// What of one ring may wait for others, in bytes; the ring's engine keeps what is behind that, and throttles nobody.
const WAITING_BYTES: usize = 8 << 20;

/// A place of which the application is to be told.
#[derive(Debug)]
struct Stop {
    /// It is before everything of this round.
    round: Round,
    /// What is known of each ring there.
    rings: Vec<ResumeRing>,
}

/// Everything above the rings of a process.
#[derive(Debug)]
pub(super) struct Hub<A> {
    merge: Merge<Message>,
    pub(super) app: A,
    pub(super) trace: Option<RingsTrace>,
    /// The application is told when it has come there.
    stop: Option<Stop>,
    /// What is next, and stands behind that.
    held: Option<Merged<Message>>,
    /// The greatest round for which each ring was said to be needed.
    asked: BTreeMap<Rank, Round>,
    /// Something has come since what is needed was looked at.
    is_changed: bool,
    /// Something was delivered since that was asked.
    has_delivered: bool,
    /// Nothing is delivered any more.
    is_over: bool,
}

impl<A: RingsApp> Hub<A> {
    /// Above these rings, from their beginning or from a point.
    pub(super) fn new(
        rings: impl IntoIterator<Item = Constants>,
        point: Option<Point>,
        app: A,
        trace: Option<RingsTrace>,
    ) -> Self {
        Self {
            merge: match point {
                Some(point) => Merge::at(point, rings),
                None => Merge::new(rings),
            },
            app,
            trace,
            stop: None,
            held: None,
            asked: BTreeMap::new(),
            is_changed: false,
            has_delivered: false,
            is_over: false,
        }
    }

    /// Whether a ring's messages are wanted.
    pub(super) fn has(&self, rank: Rank) -> bool {
        self.merge.rings().any(|of| of.rank == rank)
    }

    pub(super) fn has_room(&self, rank: Rank) -> bool {
        self.merge.waiting_bytes(rank) < WAITING_BYTES && self.app.has_room()
    }

    pub(super) fn deliver(&mut self, rank: Rank, delivery: Delivery) {
        match delivery {
            Delivery::Message(message) => self.push(rank, message),
            Delivery::Passed { next } => {
                let told = self.merge.passed(rank, next, 1);
                self.is_changed |= told.is_ok();
            }
            Delivery::Configuration(now) => {
                self.app.deliver(RingsDelivery::Configuration(rank, now));
            }
            Delivery::Missed { count, .. } if self.has(rank) => {
                tracing::error!(
                    ring = rank.0,
                    count,
                    "a ring has forgotten what this process needs next: it has to begin at a later point"
                );
                self.end(RingsDelivery::Trimmed(rank, count));
            }
            Delivery::Missed { .. } | Delivery::Primary(_) | Delivery::Excluded(_) => {}
        }
        self.pump();
    }

    fn push(&mut self, rank: Rank, message: Message) {
        let (at, bytes) = (
            (message.seq, u32::from(message.index)),
            message.payload.len(),
        );
        match self.merge.push(rank, at, (message, bytes)) {
            Ok(()) => self.is_changed = true,
            // Of a ring that this process is on and does not want.
            Err(PushError::NotSubscribed(_)) => {}
            Err(error) => {
                tracing::error!(ring = rank.0, ?error, "a ring contradicts itself");
                self.end(RingsDelivery::Contradicted(rank));
            }
        }
    }

    /// The application wants to be told when it has come to this round, and not before something is known of each ring there.
    pub(super) fn stop_at(&mut self, round: Round) {
        let rings = Vec::new();
        self.stop = Some(Stop { round, rings });
        self.merge.wait_until(Some(round));
        self.is_changed = true;
    }

    /// Whether the application is to be told of a place, and has not come there.
    pub(super) const fn is_to_stop(&self) -> bool {
        self.stop.is_some()
    }

    /// What is known of a ring where that is.
    pub(super) fn on_base(&mut self, ring: ResumeRing) {
        if let Some(stop) = &mut self.stop
            && ring.base.next == ring.of.first_of(stop.round)
        {
            stop.rings.retain(|other| other.of.rank != ring.of.rank);
            stop.rings.push(ring);
        }
    }

    /// It has come there. Whether the application was told.
    fn tell_point(&mut self) -> bool {
        let first = self.merge.rings().next().copied();
        let (Some(mut stop), Some(first)) = (self.stop.take(), first) else {
            return true;
        };
        if stop.rings.len() < self.merge.rings().count() {
            self.stop = Some(stop);
            return false;
        }
        stop.rings.sort_by_key(|ring| ring.of.rank);
        // The beginning of the round, also where a ring has none of its instances in it yet.
        let point = Point {
            round: stop.round,
            turn: first.rank,
            used: 0,
        };
        let resume = Resume {
            point,
            rings: stop.rings,
        };
        self.merge.wait_until(None);
        match resume.is_sound() {
            true => self.app.deliver(RingsDelivery::Point(Box::new(resume))),
            false => tracing::error!(?point, "what is known of rings contradicts the point"),
        }
        self.has_delivered = true;
        true
    }

    /// A ring was founded anew after the state with which this process began.
    pub(super) fn on_refounded(&mut self, rank: Rank) {
        if !self.is_over && self.has(rank) {
            tracing::error!(
                ring = rank.0,
                "a ring was founded anew: the state that this process began with is of the one before"
            );
            self.end(RingsDelivery::Refounded(rank));
            self.app.flush();
        }
    }

    /// Nothing is delivered any more, and this is why.
    fn end(&mut self, why: RingsDelivery) {
        if !self.is_over {
            self.is_over = true;
            self.app.deliver(why);
        }
    }

    /// Hands over what may be delivered by now, and what there was no room for; that is behind a batch of a ring.
    pub(super) fn pump_more(&mut self) {
        let had_delivered = std::mem::replace(&mut self.has_delivered, false);
        self.pump();
        if self.has_delivered {
            self.app.flush();
        }
        self.has_delivered |= had_delivered;
    }

    fn pump(&mut self) {
        while !self.is_over
            && self.app.has_room()
            && let Some(merged) = self.held.take().or_else(|| self.merge.poll())
        {
            let is_behind = |stop: &Stop| merged.place.round >= stop.round;
            if self.stop.as_ref().is_some_and(is_behind) && !self.tell_point() {
                self.held = Some(merged);
                return;
            }
            if let Some(trace) = &mut self.trace {
                trace.on_deliver(merged.place, &merged.message);
            }
            let delivery = RingsDelivery::Message(merged.place, merged.message);
            self.app.deliver(delivery);
            self.has_delivered = true;
        }
        if let Some(stop) = &self.stop
            && self.held.is_none()
            && let Some(point) = self.merge.point()
            && point.round >= stop.round
            && self.app.has_room()
        {
            let _ = self.tell_point();
        }
    }

    /// Whether something was delivered since this was asked last.
    pub(super) const fn take_delivered(&mut self) -> bool {
        std::mem::replace(&mut self.has_delivered, false)
    }

    /// The rings that are needed further than was said before.
    pub(super) fn take_needs(&mut self) -> Vec<Need> {
        if !std::mem::take(&mut self.is_changed) {
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

    /// Writes into the trace how far this process has come, and that it leaves.
    pub(super) fn leave(&mut self) {
        let (point, rings) = (self.merge.point(), self.merge.rings());
        if let Some(trace) = &mut self.trace {
            for of in rings {
                point
                    .into_iter()
                    .for_each(|point| trace.on_point(point, of));
            }
            trace.on_leave();
        }
    }

    /// How far it is, and what it waits for.
    pub(super) fn describe(&self) -> (Option<Point>, Vec<Need>) {
        (self.merge.point(), self.merge.needs())
    }
}
