//! Rules of merge, leveling and subscriptions, each by one schedule: whether it holds.

use rota_core::contract::{Delivery, Incarnation, Message, MessageId, NodeId, Process, Service};
use rota_multiring::level::{Leveler, Mode, Standing};
use rota_multiring::merge::Need;
use rota_multiring::subscribe::{Hold, Subscriptions, Void};
use rota_multiring::{
    Charter, Chartered, Constants, Merge, Place, Rank, RingsDelivery, RingsLearner, Round,
};

use super::world::ring;

fn at(round: Round) -> Place {
    ring(1, 1, 0).place(round + 1)
}

/// A message of the first ring in this instance.
fn message(seq: u64) -> Delivery {
    let process = Process {
        node: NodeId::new(1).expect("not 0"),
        incarnation: Incarnation(1),
    };
    Delivery::Message(Message {
        id: MessageId {
            process,
            counter: seq,
        },
        service: Service::Safe,
        seq,
        index: 0,
        payload: vec![1].into(),
    })
}

/// The second ring is known up to a message of the first, which the application takes later; what stands behind that needs more of it.
pub fn what_stands_behind_a_message_needs_another_ring() -> bool {
    let mut learner = RingsLearner::new([Constants::new(Rank(1)), Constants::new(Rank(2))], None);
    for seq in [2, 9] {
        learner.on_delivery(Rank(1), message(seq));
    }
    learner.on_delivery(Rank(1), Delivery::Passed { next: 10 });
    learner.on_delivery(Rank(2), Delivery::Passed { next: 4 });
    let first = learner.take_needs();
    let one = learner.poll();
    let second = learner.take_needs();
    let rounds = |needs: &[Need]| needs.iter().map(|need| need.round).collect::<Vec<_>>();
    one.is_some() && learner.poll().is_none() && first.is_empty() && rounds(&second) == [7]
}

fn hold(rank: u16) -> Hold {
    let (rank, instance) = (Rank(rank), 4);
    Hold { rank, instance }
}

/// Two replicas that hear of a subscription at different times begin with it in the same round.
pub fn a_subscription_begins_where_it_is_ordered_to() -> bool {
    let mut of = Subscriptions::new([Rank(1)]);
    let change = of.subscribe(at(9), Constants::new(Rank(3)), (hold(3), 20));
    change.is_ok_and(|change| change.effective == 21)
}

/// What is ordered while a change is pending is void.
pub fn changes_follow_each_other() -> bool {
    let mut of = Subscriptions::new([Rank(1), Rank(2)]);
    let first = of.subscribe(at(9), Constants::new(Rank(3)), (hold(3), 20));
    let second = of.leave(at(10), Constants::new(Rank(2)));
    first.is_ok() && matches!(second, Err(Void::Pending(_)))
}

/// A hold by which the partition came to a ring that it has left keeps nothing any more.
pub fn a_hold_serves_once() -> bool {
    let mut of = Subscriptions::new([Rank(1)]);
    let third = Constants::new(Rank(3));
    let first = of.subscribe(at(1), third, (hold(3), 3));
    let left = of.leave(at(9), third);
    let again = of.subscribe(at(20), third, (hold(3), 3));
    first.is_ok() && left.is_ok() && again == Err(Void::NotHeld)
}

/// A ring keeps what a hold needs until the partition has let it go, or has left: what is ordered later by it is void.
pub fn a_hold_is_released_when_it_serves_nobody() -> bool {
    let third = Constants::new(Rank(3));
    let at_instance = |instance| Hold {
        rank: Rank(3),
        instance,
    };
    let (first, second) = (at_instance(4), at_instance(13));
    let mut of = Subscriptions::new([Rank(1)]);
    let held = of.may_release(first);
    let let_go = of.cancel(at(1), first) && of.may_release(first);
    let late = of.subscribe(at(2), third, (first, 3));
    let _ = of.subscribe(at(2), third, (second, 12));
    let pending = of.may_release(second);
    of.reach(13);
    let subscribed = of.may_release(second) || of.may_release(first);
    let _ = of.leave(at(20), third);
    let leaves = of.may_release(second);
    of.reach(21);
    let left = of.may_release(second) && !of.may_release(at_instance(40));
    let too_early = held || pending || subscribed || leaves;
    !too_early && let_go && late == Err(Void::NotHeld) && left
}

/// What a ring has forgotten of the order is never passed over: nothing is delivered any more.
pub fn what_is_forgotten_ends_the_order() -> bool {
    let mut learner = RingsLearner::new([ring(1, 1, 0), ring(2, 1, 0)], None);
    let passed = |next| Delivery::Passed { next };
    let missed = Delivery::Missed {
        seq: 5,
        count: 10,
        own: 0,
    };
    let before = learner.on_delivery(Rank(1), passed(5));
    let told = learner.on_delivery(Rank(1), missed);
    learner.on_delivery(Rank(1), message(20));
    for rank in [1, 2] {
        learner.on_delivery(Rank(rank), passed(30));
    }
    let is_told = told == Some(RingsDelivery::Trimmed(Rank(1), 10));
    before.is_none() && is_told && learner.poll().is_none()
}

/// The same with several idle rings: each is needed up to where much of another waits, whatever the other idle ones are known up to.
pub fn several_that_are_idle_are_all_needed() -> bool {
    let rings = [1, 2, 3].map(|rank| ring(rank, 1, 0));
    let mut merge: Merge<()> = Merge::new(rings);
    merge.passed(Rank(2), 6, 1).expect("it is subscribed");
    for record in 1..3000 {
        let passed = merge.passed(Rank(3), 10 * record, 1);
        passed.expect("it is subscribed");
    }
    let known = 10 * 2999 - 2;
    let needs = [1, 2].map(|rank| Need {
        rank: Rank(rank),
        round: known,
    });
    merge.needs() == needs
}

/// A partition whose own ring is idle, and that subscribes to a ring that skips for others: it has no message that waits, and yet its point has to
/// move, or the other ring could never forget anything.
pub fn who_is_idle_needs_its_ring_for_what_others_skip() -> bool {
    let (own, common) = (ring(1, 1, 0), ring(2, 1, 0));
    let mut merge: Merge<()> = Merge::new([own, common]);
    let mut needs = Vec::new();
    for record in 1..3000 {
        let passed = merge.passed(common.rank, 10 * record, 1);
        passed.expect("it is subscribed");
        if needs.is_empty() {
            needs = merge.needs();
        }
    }
    let bounded = matches!(needs[..], [Need { rank: Rank(1), round }] if round < 10 * 1200);
    // By records and never by rounds: a ring that skips far ahead at once drives nobody.
    let mut ahead: Merge<()> = Merge::new([own, common]);
    ahead
        .passed(common.rank, 1 << 40, 1)
        .expect("it is subscribed");
    bounded && ahead.needs().is_empty()
}

/// A change that is pending, or a read, waits for a round though nothing is held.
pub fn a_round_that_is_waited_for_is_needed() -> bool {
    let mut merge: Merge<()> = Merge::new([ring(1, 1, 0), ring(2, 1, 0)]);
    merge.wait_until(Some(100));
    let needs = |rank| Need {
        rank: Rank(rank),
        round: 99,
    };
    let both = merge.needs() == [needs(1), needs(2)];
    merge.passed(Rank(2), 101, 1).expect("it is subscribed");
    both && merge.needs() == [needs(1)]
}

const fn standing(next: u64) -> Standing {
    Standing {
        now: 0,
        next,
        decided: next,
    }
}

/// What others skip does not move a horizon: two rings that skip for each other would run away.
pub fn skips_move_no_horizon() -> bool {
    let of = ring(1, 1, 0);
    let mut level = Leveler::new(of, Mode::Horizon);
    let (mut next, mut furthest) = (1, 0);
    let mut round = 0;
    for value in 0..200 {
        // Each is decided before long, and the next one comes much later. Meanwhile the others have ten values, and
        // jump to where this ring is.
        level.on_value(next, 1000 * value);
        next += 1;
        level.on_announced(Rank(2), round, 10);
        for now in 1000 * value + 1..1000 * value + 3 {
            let at = Standing {
                now,
                ..standing(next)
            };
            let to = level.skip_to(at).unwrap_or(next);
            level.on_skipped(next, to, now);
            furthest = furthest.max(to - next);
            next = to;
        }
        round = (round + 10).max(next);
    }
    (10..=40).contains(&furthest)
}

/// Who needs a round that is far ahead gets there step by step.
pub fn a_need_far_ahead_is_granted() -> bool {
    let mut level = Leveler::new(ring(1, 1, 0), Mode::Pull);
    let far = 5 << 30;
    let (mut next, mut steps) = (1, 0);
    while next <= far && steps < 10 {
        if !level.on_need(far) {
            return false;
        }
        let from = next;
        next = level.skip_to(standing(next)).unwrap_or(next);
        level.on_skipped(from, next, 0);
        steps += 1;
    }
    next > far && (4..=7).contains(&steps) && !level.on_need(1 << 47)
}

/// The constants of a ring whose charter is ordered in the 31st instance of the control ring, in round 17, when others
/// have come to this round.
fn founded(from: u64) -> Constants {
    let node = |id| NodeId::new(id).expect("not 0");
    let charter = Charter {
        per_round: std::num::NonZeroU32::new(4).expect("not 0"),
        ..Charter::new(Rank(7), 40, [1, 2, 3].map(node))
    };
    let of = Chartered {
        at: 31,
        from,
        charter: charter.encode(),
    };
    charter.constants(&ring(1, 3, 7), &of)
}

/// Where other rings are ahead of the control ring the new one begins there, and has nothing to skip.
pub fn a_ring_is_founded_behind_what_others_have_passed() -> bool {
    let origins = [0, 18, 500].map(|from| founded(from).origin);
    origins == [18, 18, 500] && founded(500) == ring(7, 4, 500)
}

/// Whoever subscribes waits for its other rings up to where the new one begins: that is never far.
pub fn a_ring_is_founded_nearby() -> bool {
    founded(1 << 62).origin == 18 + (1 << 20)
}
