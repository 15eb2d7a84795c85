//! Changes of the subscriptions of a learner while it runs.
//!
//! A partition subscribes and leaves by notices that rings order for it ([`crate::notice`]), so all of its replicas
//! change at one place, whoever asked ([`crate::subscribe`] says where). A learner of no partition has the rings with
//! which it began.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use bytes::Bytes;
use rota_core::contract::Seq;
use rota_paxos::uring::accounts::{self, Partition};

use super::rings::Founding;
use super::{Item, RingsDelivery, RingsLearner};
use crate::mutants::{self, Mutant};
use crate::notice::{Command, Notice};
use crate::order::{Constants, Instance, Place, Point, Rank, Round};
use crate::subscribe::{Change, Hold, Subscriptions, Void, What};
use crate::wishes::{Refusal, Wish, Wishes};

/// The bytes of a notice that waits, about.
const NOTICE_BYTES: usize = 128;

/// The subscriptions of a learner of a partition.
#[derive(Debug)]
pub(super) struct Changes {
    partition: Partition,
    /// The rings that this process is on.
    pub(super) known: BTreeMap<Rank, Constants>,
    /// The rings that it may be on later.
    pub(super) founding: Founding,
    subscriptions: Subscriptions,
    /// Of rings that it neither has nor keeps: the first instance of which nothing has come.
    told: BTreeMap<Rank, Instance>,
    wishes: Wishes,
    /// The notices that could not be read.
    unreadable: u64,
    /// A point is to be taken when no change is pending any more.
    pub(super) owes_point: bool,
}

impl Changes {
    /// Some instances of a ring were not kept.
    fn tell(&mut self, rank: Rank, next: Instance) {
        let told = self.told.entry(rank).or_insert(1);
        *told = next.max(*told);
    }

    pub(super) fn spent(&self) -> Vec<(Rank, Instance)> {
        self.subscriptions.spent().collect()
    }
}

impl RingsLearner {
    /// The same learner as a replica of a partition, whose subscriptions can change: those that it has now are those of
    /// the partition. `known`: all rings that this process is on; `spent`: from the state with which it begins
    /// ([`crate::Resume::spent`]).
    #[must_use]
    pub fn of_partition(
        self,
        partition: Partition,
        known: impl IntoIterator<Item = Constants>,
        spent: &[(Rank, Instance)],
    ) -> Self {
        let rings = self.rings().map(|of| of.rank);
        let subscriptions = Subscriptions::new(rings).with_spent(spent.iter().copied());
        let known = known.into_iter().map(|of| (of.rank, of)).collect();
        let changes = Some(Changes {
            partition,
            known,
            founding: Founding::default(),
            subscriptions,
            told: BTreeMap::new(),
            wishes: Wishes::default(),
            unreadable: 0,
            owes_point: false,
        });
        Self { changes, ..self }
    }

    /// The partition's subscriptions, as of what was delivered; `None` of a learner of no partition.
    pub fn subscriptions(&self) -> Option<&Subscriptions> {
        self.changes.as_ref().map(|changes| &changes.subscriptions)
    }

    /// The change that was ordered and is not in effect.
    pub fn pending(&self) -> Option<Change> {
        self.subscriptions()?.pending().copied()
    }

    /// Whether no change is pending, nor was told right before the next message, which was not delivered yet; and each
    /// ring that it delivers is there to be asked for a snapshot.
    pub(super) fn is_settled(&self) -> bool {
        let is_free = self.pending().is_none() && (self.held.is_none() || self.stop.is_some());
        is_free && self.is_on_its_rings()
    }

    /// Takes a wish to change the subscriptions. The application is told when the partition has another ring
    /// ([`RingsDelivery::Subscribed`], [`RingsDelivery::Left`]), or why not ([`RingsDelivery::LastRing`],
    /// [`RingsDelivery::NotHeld`]), and of nothing where that was so already.
    ///
    /// # Errors
    /// [`Refusal`]: the wish is not looked at.
    pub fn wish(&mut self, wish: Wish) -> Result<(), Refusal> {
        let (Wish::Subscribe(rank) | Wish::Leave(rank)) = wish;
        let changes = self.changes.as_mut().ok_or(Refusal::NoPartition)?;
        if !changes.known.contains_key(&rank) {
            return Err(Refusal::NotOnRing);
        }
        if self.is_over {
            return Err(Refusal::Over);
        }
        changes.wishes.push(wish)
    }

    /// Whether a command on the accounts of a ring may be ordered by this process: a hold of its own partition is
    /// released only behind what makes each subscription by it void ([`Subscriptions::may_release`]).
    pub fn may_order(&self, rank: Rank, command: &accounts::Command) -> bool {
        let accounts::Command::Release(partition, instance) = *command else {
            return true;
        };
        let own = self.changes.as_ref();
        let own = own.filter(|own| own.partition == partition);
        own.is_none_or(|own| own.subscriptions.may_release(Hold { rank, instance }))
    }

    /// The number of wishes that have not come true.
    pub fn wishes(&self) -> usize {
        self.changes
            .as_ref()
            .map_or(0, |changes| changes.wishes.len())
    }

    /// By ring: the last hold since which what comes of the ring is kept, and not delivered.
    pub fn standby(&self) -> impl Iterator<Item = (Rank, Instance)> {
        self.merge.held()
    }

    /// The notices of rings that could not be read: those of a newer program, or none at all. They change nothing.
    pub fn unreadable(&self) -> u64 {
        self.changes
            .as_ref()
            .map_or(0, |changes| changes.unreadable)
    }

    /// The ring that has to order the next notice, and the notice: until [`Self::on_given_behind`] says that the ring does.
    pub fn next_notice(&mut self) -> Option<(Rank, Notice)> {
        if self.is_over {
            return None;
        }
        let Self { changes, merge, .. } = self;
        let Changes {
            partition,
            known,
            subscriptions,
            wishes,
            ..
        } = changes.as_mut()?;
        let held = |rank| {
            let instance = merge.hold(rank)?;
            let may_serve = subscriptions.may_serve(Hold { rank, instance });
            may_serve.then_some(instance)
        };
        let of = |rank| known.get(&rank).copied();
        wishes.next(*partition, subscriptions, (of, held))
    }

    /// A ring orders the notice, some time. Nothing is known of what the ring has ordered before.
    pub fn on_given(&mut self, given: (Rank, Notice)) {
        self.on_given_behind(given, 1);
    }

    /// A ring orders the notice, some time: in this instance or behind it, as everything before was ordered when the
    /// notice was given. Holds from before are not taken for it.
    pub fn on_given_behind(&mut self, given: (Rank, Notice), behind: Instance) {
        let changes = self.changes.iter_mut();
        changes.for_each(|changes| changes.wishes.on_given(given, behind));
    }

    /// Whether a point was wanted while a change was pending, and may be taken now: then it is to be wanted again.
    pub fn takes_up_point(&mut self) -> bool {
        let is_settled = self.is_settled();
        let changes = self.changes.as_mut().filter(|_| is_settled);
        changes.is_some_and(|changes| core::mem::take(&mut changes.owes_point))
    }

    /// A ring that the learner neither has nor keeps has told something.
    pub(super) fn on_untaken(&mut self, rank: Rank, next: Instance) {
        if let Some(changes) = &mut self.changes {
            changes.tell(rank, next);
        }
    }

    /// Some instances of a ring are missed, and never come. Returns whether the learner needs them.
    pub(super) fn on_missed(&mut self, rank: Rank, (first, next): (Instance, Instance)) -> bool {
        if self.merge.wants(rank, (first, next)) {
            return true;
        }
        if let Some(changes) = &mut self.changes {
            changes.wishes.on_missed(rank);
        }
        let _ = self.merge.passed(rank, next, 1);
        if mutants::on(Mutant::A34) {
            return false;
        }
        let kept = self.merge.let_go(rank);
        self.on_untaken(rank, next.max(kept.unwrap_or(1)));
        false
    }

    /// A ring has ordered a notice. A hold counts when it is heard of; everything else at its place.
    pub(super) fn on_notice(
        &mut self,
        rank: Rank,
        (seq, bytes): (Seq, Bytes),
    ) -> Option<RingsDelivery> {
        let changes = self.changes.as_mut()?;
        let Some(notice) = Notice::decode(bytes) else {
            changes.unreadable += 1;
            return None;
        };
        if notice.partition != changes.partition {
            return None;
        }
        if notice.command == Command::Hold {
            return self.on_hold(rank, seq);
        }
        if !self.merge.wants(rank, (seq, seq.saturating_add(1))) {
            let changes = self.changes.as_mut()?;
            changes.wishes.on_lost((rank, notice));
        }
        self.push(rank, (seq, 0), (Item::Notice(notice.command), NOTICE_BYTES))
    }

    fn on_hold(&mut self, rank: Rank, instance: Instance) -> Option<RingsDelivery> {
        let changes = self.changes.as_mut()?;
        let serves = changes.subscriptions.may_serve(Hold { rank, instance });
        let ended = changes.wishes.on_hold((rank, instance), serves);
        if let Some(of) = changes.known.get(&rank).copied()
            && serves
        {
            self.merge.stand_by(of, instance);
        }
        ended.map(RingsDelivery::NotHeld)
    }

    /// Does what was ordered at this place. Returns what the application is told of that at once.
    pub(super) fn obey(&mut self, at: Place, command: Command) -> Option<RingsDelivery> {
        self.is_changed = true;
        let subscriptions = &mut self.changes.as_mut()?.subscriptions;
        let change = match command {
            Command::Hold => return None,
            Command::Subscribe(of, instance) => {
                let hold = Hold {
                    rank: of.rank,
                    instance,
                };
                subscriptions.subscribe(at, of, (hold, of.round_of(instance)))
            }
            // Whatever the proposer takes the ring for: what is spent of it follows from the constants.
            Command::Leave(rank) => match self.merge.rings().find(|of| of.rank == rank) {
                Some(of) => subscriptions.leave(at, *of),
                None => Err(Void::HasNot),
            },
            Command::Cancel(rank, instance) => {
                if subscriptions.cancel(at, Hold { rank, instance }) {
                    self.on_cancelled(command, (rank, instance));
                }
                return None;
            }
        };
        match change {
            Ok(change) => self.on_ordered(change),
            Err(void) => {
                let last = self.changes.as_mut()?.wishes.on_void(command, void);
                last.map(RingsDelivery::LastRing)
            }
        }
    }

    /// Nothing is kept of a ring for this hold any more, nor for earlier ones.
    fn on_cancelled(&mut self, command: Command, (rank, instance): (Rank, Instance)) {
        if let Some(changes) = &mut self.changes {
            changes.wishes.on_cancelled(command);
        }
        if self.merge.hold(rank).is_some_and(|hold| hold <= instance) {
            let kept = self.merge.let_go(rank);
            self.on_untaken(rank, kept.unwrap_or(1));
        }
    }

    /// A change is to take effect.
    fn on_ordered(&mut self, change: Change) -> Option<RingsDelivery> {
        let changes = self.changes.as_mut()?;
        // A state that is kept names the subscriptions that are in effect, and none that are to be.
        changes.owes_point |= self.stop.take().is_some();
        if !mutants::on(Mutant::A38) {
            self.merge.wait_until(Some(change.effective));
        }
        self.is_changed = true;
        match change.what {
            What::Leave(of) => {
                self.merge.unsubscribe(of.rank, change.effective);
                None
            }
            What::Subscribe(of, _) if changes.is_unreachable(&of) => {
                self.end(RingsDelivery::Unreachable(of.rank))
            }
            What::Subscribe(of, _) => {
                let told = changes.told.remove(&of.rank).unwrap_or(1);
                let from = change.effective;
                let kept = self.merge.subscribe_held(of, (from, told));
                let missed = |next: Instance| next.saturating_sub(of.first_of(from)).max(1);
                let told = kept
                    .err()
                    .map(|next| RingsDelivery::Trimmed(of.rank, missed(next)));
                told.and_then(|told| self.end(told))
            }
        }
    }

    /// Whether a subscription that takes effect in a round or before waits for its ring to come there. Until then what
    /// the application submits to the ring, as it was told of the subscription, might be ordered before that, and be
    /// delivered by nobody.
    pub(super) fn waits_for_ring(&self, round: Round) -> bool {
        let due = self.pending().filter(|change| change.effective <= round);
        due.is_some_and(|change| match change.what {
            What::Subscribe(of, _) => !self.merge.has_begun(of.rank),
            What::Leave(_) => false,
        })
    }

    /// Everything before a round was delivered: the change that takes effect there, or before, is done. Returns what the
    /// application is told of that.
    pub(super) fn change_at(&mut self, round: Round) -> Option<RingsDelivery> {
        let changes = self.changes.as_mut()?;
        let change = changes.subscriptions.reach(round)?;
        changes.wishes.on_change();
        self.merge.wait_until(None);
        self.is_changed = true;
        if let What::Leave(of) = change.what {
            let told = self.merge.remove(of.rank);
            changes.tell(of.rank, told);
        }
        let point = Point {
            round: change.effective,
            turn: changes.subscriptions.rings().next()?,
            used: 0,
        };
        Some(match change.what {
            What::Subscribe(of, _) => RingsDelivery::Subscribed(of.rank, point),
            What::Leave(of) => RingsDelivery::Left(of.rank, point),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rota_core::contract::Delivery;

    const ONE: Rank = Rank(1);
    const TWO: Rank = Rank(2);

    /// A replica begins behind a state that was kept when its partition had left ring 2, where many holds had been
    /// ordered by then. Ring 2 tells all of them before the one that the replica has ordered. The wish ended at the
    /// sixteenth of the old ones.
    #[test]
    fn holds_that_are_told_again_do_not_end_a_wish() {
        let (old, partition) = (40, 7);
        let known = [ONE, TWO].map(Constants::new);
        let learner = RingsLearner::new([Constants::new(ONE)], None);
        let mut learner = learner.of_partition(partition, known, &[(TWO, old)]);
        assert_eq!(learner.wish(Wish::Subscribe(TWO)), Ok(()));
        let given = learner.next_notice().expect("a hold");
        assert_eq!((given.0, given.1.command), (TWO, Command::Hold));
        learner.on_given_behind(given, old + 1);
        let hold = |seq| Delivery::Notice {
            seq,
            bytes: given.1.encode(),
        };
        for seq in 1..=old {
            assert_eq!(learner.on_delivery(TWO, hold(seq)), None, "hold {seq}");
            assert_eq!(learner.next_notice(), None, "one is on its way");
        }
        assert_eq!(learner.wishes(), 1);
        assert_eq!(learner.on_delivery(TWO, hold(old + 1)), None);
        assert!(learner.standby().eq([(TWO, old + 1)]));
        let next = learner.next_notice().map(|(_, notice)| notice.command);
        let subscribe = Command::Subscribe(Constants::new(TWO), old + 1);
        assert_eq!(next, Some(subscribe));
    }
}
