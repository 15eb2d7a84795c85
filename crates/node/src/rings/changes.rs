//! Subscriptions of a partition that change while its processes run.

use rota_core::contract::{NodeId, SubmitError};
use rota_multiring::notice::{self, Notice};
use rota_multiring::{Instance, Partition, Rank, Refusal, Replicas, Resume, Wish};
use rota_paxos::uring::accounts::Command;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use super::app::RingsApp;
use super::config::RingsConfig;
use super::driver::RingsDriver;
use super::error::RingsStartError;
use super::node::{RingsNode, RingsWatch};
use super::opening::Beginning;
use super::trace::StateSource;
use crate::driver::DriverError;

/// The number of wishes, at most, that wait for the rings' thread.
const MOST: usize = 64;

/// The most instances before a hold that it keeps: numbers of instances have fewer bits.
const MOST_KEPT: u64 = 1 << 40;

/// Wishes to change the subscriptions, on their way from any thread to the rings' own.
#[derive(Debug, Default)]
pub(super) struct Wishes(Mutex<VecDeque<Wish>>);

impl Wishes {
    fn push(&self, wish: Wish) -> Result<(), SubmitError> {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() >= MOST {
            return Err(SubmitError::Full);
        }
        waiting.push_back(wish);
        Ok(())
    }

    /// Hands them to the rings, the oldest first. Drops wishes that would never be taken.
    ///
    /// # Errors
    /// [`Refusal::Full`]: some wait until the rings have room.
    pub(super) fn hand_in<A: RingsApp>(&self, driver: &mut RingsDriver<A>) -> Result<(), Refusal> {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(wish) = waiting.front() {
            match driver.wish(*wish) {
                Ok(()) => {}
                Err(Refusal::Full) => return Err(Refusal::Full),
                Err(refusal) => tracing::warn!(?wish, %refusal, "the subscriptions do not change"),
            }
            waiting.pop_front();
        }
        Ok(())
    }
}

impl<A: RingsApp> RingsDriver<A> {
    /// Opens the rings that node `me` is on, for a replica of a partition that began with these rings: all replicas of
    /// it with the same, at all times. It may have others since; then `app` hears of that ([`Self::wish`]).
    ///
    /// # Errors
    /// [`RingsStartError`].
    pub fn open_as(
        config: &RingsConfig,
        me: NodeId,
        (partition, subscribe): (Partition, &[u16]),
        app: A,
    ) -> Result<Self, RingsStartError> {
        let beginning = Beginning {
            subscribe: Some(subscribe.to_vec()),
            state: None,
            partition: Some(partition),
        };
        Self::begin(config, me, beginning, app)
    }

    /// As [`Self::resume`], for a replica of a partition: with the rings that the partition had at the point of the
    /// state.
    ///
    /// # Errors
    /// [`RingsStartError`].
    pub fn resume_as(
        config: &RingsConfig,
        me: NodeId,
        (partition, state): (Partition, (Resume, StateSource)),
        app: A,
    ) -> Result<Self, RingsStartError> {
        let beginning = Beginning {
            subscribe: None,
            state: Some(state),
            partition: Some(partition),
        };
        Self::begin(config, me, beginning, app)
    }

    /// Has the partition subscribe to a ring, or leave it.
    ///
    /// # Errors
    /// [`Refusal`]; after `Full` the wish may be repeated behind a turn in which something happened.
    pub fn wish(&mut self, wish: Wish) -> Result<(), Refusal> {
        self.hub.borrow_mut().learner.wish(wish)?;
        // The notice that comes of it is given in the next turn, which is not to rest before.
        self.many.lanes().iter_mut().for_each(|lane| lane.get_up());
        Ok(())
    }

    /// Has the next notice ordered that a wish needs, if a ring takes it: otherwise in the next turn, as a ring has room
    /// again only when something has happened. Takes up a point that had to wait for a change.
    pub(super) fn change(&mut self) -> Result<(), DriverError> {
        let next = self.hub.borrow_mut().learner.next_notice();
        if let Some((ring, notice)) = next {
            // A hold is told from those before it by its instance: the ring has to know what was decided before. Which
            // account it opens is known by the rings that the partition has.
            let may = notice.command != notice::Command::Hold || self.are_in(ring);
            let decided = self.decided(ring);
            let command = self.command_of(ring, notice);
            if may && self.order(ring, &command)? {
                let learner = &mut self.hub.borrow_mut().learner;
                learner.on_given_behind((ring, notice), decided);
            }
        }
        if self.hub.borrow_mut().learner.takes_up_point() {
            self.want_point();
        }
        Ok(())
    }

    /// The instance of a ring before which everything is decided, as far as this node knows.
    fn decided(&mut self, ring: Rank) -> Instance {
        let mut lanes = self.many.lanes().iter_mut();
        let lane = lanes.find(|lane| lane.app.rank == ring);
        let engine = lane.and_then(|lane| lane.driver.engine_mut().get_mut().leveled());
        engine.map_or(1, |engine| engine.get().decided())
    }

    /// Whether this node is in a ring, and in all those that its partition has: else it may know of little there.
    fn are_in(&mut self, ring: Rank) -> bool {
        let hub = self.hub.borrow();
        let mut lanes = self.many.lanes().iter_mut();
        lanes.all(|lane| {
            let concerns = lane.app.rank == ring || hub.learner.has(lane.app.rank);
            let engine = lane.driver.engine_mut().get_mut().leveled();
            !concerns || engine.is_none_or(|engine| engine.get().is_operational())
        })
    }

    /// The command by which a ring orders a notice. Where the partition has an account in one of its rings, a hold
    /// opens one in the new ring as well: both have one name.
    fn command_of(&mut self, ring: Rank, notice: Notice) -> Command {
        let told = Command::Notice(notice.encode());
        if notice.command != notice::Command::Hold {
            return told;
        }
        let mut replicas = Replicas::new();
        let mut kept = None;
        for lane in self.many.lanes() {
            let Some(engine) = lane.driver.engine_mut().get_mut().leveled() else {
                continue;
            };
            let engine = engine.get();
            if let Some((_, known)) = engine.accounts().account(notice.partition) {
                replicas.extend(known);
            }
            if lane.app.rank == ring {
                kept = Some(engine.kept_instances());
            }
        }
        match kept {
            Some(kept) if !replicas.is_empty() => {
                Command::Hold(notice.partition, replicas, kept.min(MOST_KEPT))
            }
            _ => told,
        }
    }
}

impl RingsNode {
    /// Starts node `me` as a replica of a partition, which began with these rings. Its subscriptions can change while
    /// it runs ([`Self::subscribe`], [`Self::unsubscribe`]), at all replicas of the partition at one place of the
    /// order. A replica that starts without a state names the rings with which the partition began, not those that it
    /// has had since: it delivers the changes again, each at its place.
    ///
    /// All nodes of the partition have to be on each ring that it is to subscribe to (`nodes` of the `[[ring]]`). A node
    /// that is not stops with [`RingsDelivery::Unreachable`](super::RingsDelivery::Unreachable).
    ///
    /// # Errors
    /// [`RingsStartError`].
    pub fn start_as(
        config: &RingsConfig,
        me: NodeId,
        (partition, subscribe): (Partition, &[u16]),
    ) -> Result<Self, RingsStartError> {
        let subscribe = subscribe.to_vec();
        Self::begin(config, me, true, move |config, app| {
            RingsDriver::open_as(config, me, (partition, &subscribe), app)
        })
    }

    /// As [`Self::resume`], as a replica of a partition: it has the rings that the partition had at the point of the
    /// state, which the state names ([`Resume::rings`]). No change is pending at a point: one that is ordered when a
    /// point is wanted puts the point off until it is in effect.
    ///
    /// # Errors
    /// [`RingsStartError`].
    pub fn resume_as(
        config: &RingsConfig,
        me: NodeId,
        (partition, state): (Partition, (Resume, StateSource)),
    ) -> Result<Self, RingsStartError> {
        Self::begin(config, me, true, move |config, app| {
            RingsDriver::resume_as(config, me, (partition, state), app)
        })
    }

    /// Has the partition of this process subscribe to a further ring. A hold is ordered in that ring, then the
    /// subscription in one that the partition has; from the beginning of a later round on, which follows from these
    /// places alone, every replica delivers the ring's messages as well. The application is told at that point
    /// ([`RingsDelivery::Subscribed`](super::RingsDelivery::Subscribed)), which may be several decisions away, and of
    /// nothing where the partition has the ring already; or that no hold serves
    /// ([`RingsDelivery::NotHeld`](super::RingsDelivery::NotHeld)). A wish is lost with its process; whoever repeats it
    /// does no harm.
    ///
    /// From the hold until then this process keeps what comes of the ring, up to 8 MiB; what is behind that stays with
    /// its engine. A ring forgets nothing that an account of the partition needs: where the partition has an account in
    /// one of its rings, the hold opens one in the new ring as well. Without accounts a replica that comes back after
    /// `kept_instances` is told `Trimmed`.
    ///
    /// # Errors
    /// [`SubmitError`]: `Unsupported` where this node is not on that ring or only observes it, or of no partition ([`Self::start_as`]);
    /// `Full` while many wishes wait.
    pub fn subscribe(&self, ring: Rank) -> Result<(), SubmitError> {
        self.watch().subscribe(ring)
    }

    /// Has the partition of this process leave a ring. That is ordered in a ring that the partition has, and takes
    /// effect at the beginning of the next round: at all replicas nothing of the ring is delivered from there on. The
    /// application is told at that point ([`RingsDelivery::Left`](super::RingsDelivery::Left)), or that the partition
    /// has no other ring ([`RingsDelivery::LastRing`](super::RingsDelivery::LastRing)). Where the partition does not
    /// have the ring, a hold that waits there for a subscription is let go.
    ///
    /// The account of the partition in that ring is released (`Command::Release`, by the name that the table has then,
    /// `Table::hold_of`) when a majority of its replicas has checkpoints behind this point: an earlier one still needs
    /// the ring. A release that comes before the partition has left, or has let its hold go, is not ordered; one that
    /// comes after the partition's next hold is refused by the ring.
    ///
    /// # Errors
    /// As [`Self::subscribe`].
    pub fn unsubscribe(&self, ring: Rank) -> Result<(), SubmitError> {
        self.watch().unsubscribe(ring)
    }
}

impl RingsWatch {
    /// As [`RingsNode::subscribe`].
    ///
    /// # Errors
    /// The same.
    pub fn subscribe(&self, ring: Rank) -> Result<(), SubmitError> {
        self.wish(ring, Wish::Subscribe(ring))
    }

    /// As [`RingsNode::unsubscribe`].
    ///
    /// # Errors
    /// The same.
    pub fn unsubscribe(&self, ring: Rank) -> Result<(), SubmitError> {
        self.wish(ring, Wish::Leave(ring))
    }

    fn wish(&self, ring: Rank, wish: Wish) -> Result<(), SubmitError> {
        if !self.shared.is_of_partition || !self.ways.has(ring) {
            return Err(SubmitError::Unsupported);
        }
        self.shared.wishes.push(wish)?;
        self.ways.wake();
        Ok(())
    }
}
