//! The merged deliveries of the rings of a process, and the application above them.

use rota_core::contract::Delivery;
use rota_multiring::merge::Need;
use rota_multiring::{Constants, Point, Rank, RingsDelivery, RingsLearner};

use super::app::RingsApp;
use super::trace::RingsTrace;
use super::waits::{MergeWait, Waits};

/// Everything above the rings of a process.
#[derive(Debug)]
pub(super) struct MergedDelivery<A> {
    pub(super) learner: RingsLearner,
    pub(super) app: A,
    pub(super) trace: Option<RingsTrace>,
    /// Something was delivered since the last question about that.
    has_delivered: bool,
    waits: Waits,
}

impl<A: RingsApp> MergedDelivery<A> {
    /// Above the rings of a learner.
    pub(super) fn new(learner: RingsLearner, app: A, trace: Option<RingsTrace>) -> Self {
        Self {
            learner,
            app,
            trace,
            has_delivered: false,
            waits: Waits::default(),
        }
    }

    pub(super) fn has_room(&self, rank: Rank) -> bool {
        self.learner.has_room(rank) && self.app.has_room()
    }

    pub(super) fn deliver(&mut self, rank: Rank, delivery: Delivery) {
        if let Delivery::Message(message) = &delivery
            && self.learner.has(rank)
        {
            self.waits.on_pushed(rank, (message.seq, message.index));
        }
        let had_unreadable = self.learner.unreadable() > 0;
        let told = self.learner.on_delivery(rank, delivery);
        if self.learner.unreadable() > 0 && !had_unreadable {
            tracing::warn!(
                ring = rank.0,
                "a ring has ordered something about subscriptions that this program cannot read: nothing changes by it \
                 here; later ones are counted and not told"
            );
        }
        told.into_iter().for_each(|told| self.tell(told));
        self.pump();
    }

    /// Hands a delivery to the application.
    pub(super) fn tell(&mut self, delivery: RingsDelivery) {
        match &delivery {
            RingsDelivery::Message(place, message) => {
                let at = (message.seq, message.index);
                self.waits.on_delivered(place.rank, at);
                if let Some(trace) = &mut self.trace {
                    trace.on_deliver(*place, message);
                }
            }
            RingsDelivery::Trimmed(rank, count) => tracing::error!(
                ring = rank.0,
                count,
                "a ring has forgotten what this process needs next: it has to begin at a later point"
            ),
            RingsDelivery::Contradicted(rank) => {
                tracing::error!(ring = rank.0, "a ring contradicts itself");
            }
            RingsDelivery::Refounded(rank) => tracing::error!(
                ring = rank.0,
                "a ring was founded anew: the state or the charters that this process began with are of the one before"
            ),
            RingsDelivery::Subscribed(rank, point) => {
                tracing::info!(
                    ring = rank.0,
                    round = point.round,
                    "the partition has subscribed to a ring"
                );
                let trace = self.trace.iter_mut();
                trace.for_each(|trace| trace.on_subscribed(*rank, *point));
            }
            RingsDelivery::Left(rank, point) => {
                tracing::info!(
                    ring = rank.0,
                    round = point.round,
                    "the partition has left a ring"
                );
                self.waits.forget(*rank);
                let trace = self.trace.iter_mut();
                trace.for_each(|trace| trace.on_left(*rank, *point));
            }
            RingsDelivery::Unreachable(rank) => tracing::error!(
                ring = rank.0,
                "the partition subscribes to a ring that this process is not on"
            ),
            RingsDelivery::NotHeld(rank) => tracing::warn!(
                ring = rank.0,
                "the partition does not subscribe to a ring: all holds that were ordered for that were spent"
            ),
            RingsDelivery::LastRing(rank) => tracing::warn!(
                ring = rank.0,
                "the partition does not leave a ring: it has no other"
            ),
            RingsDelivery::Configuration(..) | RingsDelivery::Point(_) => {}
        }
        self.app.deliver(delivery);
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
        while self.app.has_room()
            && let Some(delivery) = self.learner.poll()
        {
            self.tell(delivery);
            self.has_delivered = true;
        }
    }

    /// Whether something was delivered since the last call.
    pub(super) const fn take_delivered(&mut self) -> bool {
        std::mem::replace(&mut self.has_delivered, false)
    }

    /// Writes into the trace the point that this process has come to, and that it leaves.
    pub(super) fn leave(&mut self) {
        let (point, rings) = (self.learner.point(), self.learner.rings());
        if let Some(trace) = &mut self.trace {
            for of in rings {
                point
                    .into_iter()
                    .for_each(|point| trace.on_point(point, of));
            }
            trace.on_leave();
        }
    }

    /// The point that the merge has come to, and the rings that it waits for.
    pub(super) fn describe(&self) -> (Option<Point>, Vec<Need>) {
        (self.learner.point(), self.learner.needs())
    }

    /// The messages of each ring that wait for other rings.
    pub(super) fn waits(&self) -> Vec<(Rank, MergeWait)> {
        let of = |of: &Constants| MergeWait {
            waiting_bytes: self.learner.waiting_bytes(of.rank),
            times: self.waits.of(of.rank),
        };
        let rings = self.learner.rings();
        rings
            .map(|constants| (constants.rank, of(constants)))
            .collect()
    }
}
