//! The merged deliveries of the rings of a process, and the application above them.

use rota_core::contract::Delivery;
use rota_multiring::merge::Need;
use rota_multiring::{Constants, Point, Rank, RingsDelivery, RingsLearner};

use super::app::RingsApp;
use super::trace::RingsTrace;

/// The bytes of one ring, at most, that wait for other rings; the ring's engine keeps what is behind that, and
/// throttles nobody.
const WAITING_BYTES: usize = 8 << 20;

/// Everything above the rings of a process.
#[derive(Debug)]
pub(super) struct MergedDelivery<A> {
    pub(super) learner: RingsLearner,
    pub(super) app: A,
    pub(super) trace: Option<RingsTrace>,
    /// Something was delivered since the last question about that.
    has_delivered: bool,
}

impl<A: RingsApp> MergedDelivery<A> {
    /// Above these rings, from their beginning or from a point.
    pub(super) fn new(
        rings: impl IntoIterator<Item = Constants>,
        point: Option<Point>,
        app: A,
        trace: Option<RingsTrace>,
    ) -> Self {
        Self {
            learner: RingsLearner::new(rings, point),
            app,
            trace,
            has_delivered: false,
        }
    }

    pub(super) fn has_room(&self, rank: Rank) -> bool {
        self.learner.waiting_bytes(rank) < WAITING_BYTES && self.app.has_room()
    }

    pub(super) fn deliver(&mut self, rank: Rank, delivery: Delivery) {
        let told = self.learner.on_delivery(rank, delivery);
        told.into_iter().for_each(|told| self.tell(told));
        self.pump();
    }

    /// Hands a delivery to the application.
    pub(super) fn tell(&mut self, delivery: RingsDelivery) {
        match &delivery {
            RingsDelivery::Message(place, message) => {
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
                "a ring was founded anew: the state that this process began with is of the one before"
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
}
